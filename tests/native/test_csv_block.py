"""Are blocks of CSV that compiled code reads what pyarrow gives, and is all that is odd left to pyarrow?"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuledger.native import library
from gpuledger.native.csv_block import Kind, look, read
from gpuledger.telemetry import blocks
from gpuledger.telemetry.formats import csv_file
from gpuledger.telemetry.formats.csv_file import open_csv, with_arrow

pytestmark = pytest.mark.skipif(library.library() is None, reason="built without a C compiler")
SEPARATORS = st.sampled_from(",;\t|")
ORDINARY_NUMBERS = st.one_of(
    st.just(""),
    st.integers(-(10**6), 10**6).map(str),
    st.integers(0, 10**16).map(str),
    st.decimals(-(10**12), 10**12, places=4).map(str),
    st.floats(0, 1).map(lambda v: f"{v:.17f}"),
)
SPELLINGS = [
    "0", "-0", "-0.0", "1.", ".5", "-.5", ".", "-", "+1", " 1", "1 ", " ", "1e5", "1e", "0x10", "nan", "inf", "1.5.2",
    "9007199254740993", "9007199254740992", "0.1e-22", "1e27", "1e-27", "5e-324", "1e400", "12 W",
]  # fmt: skip
NUMBERS = st.one_of(
    ORDINARY_NUMBERS,
    st.integers(-(10**25), 10**25).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"\A[+-]?[0-9]{0,20}\.?[0-9]{0,20}([eE][+-]?[0-9]{1,3})?\Z"),
    st.sampled_from(SPELLINGS),
)
TEXTS = st.one_of(
    st.sampled_from(["", "a", "GPU-c195f12f", "GPU-c195f12e", "p5", "p5-use1-01", "p5-use1-02", "é", "温度", " a "]),
    st.text(st.characters(codec="utf-8", exclude_characters='\r\n,;\t|"'), max_size=12),
)
ODD = st.sampled_from(['"', '"a"', "a\rb", "\r", "\n", "\r\n", "a,b", "x;y", "\ufeff", "\x00"])


def both(
    block: bytes, names: list[str], kinds: dict[str, Kind], separator: str = ",", skip: int = 0
) -> tuple[pa.Table | None, pa.Table | str]:
    """The block as compiled code reads it, and as pyarrow does, or what pyarrow cannot read."""
    view = memoryview(block)
    seen = look(view)
    assert seen is not None
    assert seen.lines == block.count(b"\n")
    assert seen.ascii == block.isascii()
    quick = read(view, seen, separator, names, kinds, skip)
    wrong: list[int] = []
    try:
        table = with_arrow(view, separator, names, kinds, skip, lambda row: wrong.append(row.number) or "skip")
    except pa.ArrowInvalid as error:
        return quick, str(error)
    return quick, table if not wrong else f"rows {wrong} are wrong"


def assert_same(quick: pa.Table, careful: pa.Table | str) -> None:
    """The same types, values, signs of zero, dictionaries and nulls."""
    assert isinstance(careful, pa.Table), careful
    quick.validate(full=True)
    assert quick.schema == careful.schema
    careful = careful.combine_chunks()
    assert quick.num_rows == careful.num_rows
    for mine, theirs in zip(quick.columns, careful.columns, strict=True):
        (one,), (other,) = mine.chunks, theirs.chunks
        assert one.null_count == other.null_count
        if pa.types.is_dictionary(one.type):
            assert one.indices.equals(other.indices)
            assert one.dictionary.equals(other.dictionary)
        elif pa.types.is_floating(one.type):
            assert [bits(v) for v in one.to_pylist()] == [bits(v) for v in other.to_pylist()]
        else:
            assert one.equals(other)


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("<d", value)


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, list[str], dict[str, Kind], str, int]:
    """A block, mostly in order; its columns, those that are read, the separator, and lines above the rows."""
    separator, width = draw(SEPARATORS), draw(st.integers(1, 5))
    names = [f"c{k}" for k in range(width)]
    kinds = [draw(st.sampled_from(Kind)) for _ in names]
    numbers = draw(st.sampled_from([ORDINARY_NUMBERS, ORDINARY_NUMBERS, NUMBERS]))
    cells = [numbers if kind is Kind.NUMBERS else TEXTS for kind in kinds]
    rows = [[draw(c) for c in cells] for _ in range(draw(st.integers(0, 12)))]
    if rows and draw(st.integers(0, 4)) == 0:
        row = rows[draw(st.integers(0, len(rows) - 1))]
        row[draw(st.integers(0, width - 1))] = draw(ODD)
    if rows and draw(st.integers(0, 9)) == 0:
        rows[draw(st.integers(0, len(rows) - 1))] = draw(st.lists(TEXTS, max_size=7))
    skip = draw(st.integers(0, 2))
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    lines = [*(f"{'#' * k}{separator.join(names)}" for k in reversed(range(skip))), *map(separator.join, rows)]
    text = end.join(lines) + draw(st.sampled_from([end, end, end, ""]))
    wanted = draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
    return text.encode(), names, {n: kinds[int(n[1:])] for n in wanted}, separator, skip


@given(files())
def test_what_is_read_is_what_pyarrow_gives(file: tuple[bytes, list[str], dict[str, Kind], str, int]) -> None:
    block, names, kinds, separator, skip = file
    if block:
        quick, careful = both(block, names, kinds, separator, skip)
        if quick is not None:
            assert_same(quick, careful)


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.booleans())
@example(["9007199254740993", "0.30000000000000004", "1234567890123456789e-27", "2.2250738585072014e-5"], True)
def test_every_spelling_of_a_number_is_rounded_as_pyarrow_does(cells: list[str], late: bool) -> None:
    """Also where a cell is the first in the block, so that few bytes come before it."""
    rows = [f"{'a label of some length,' if late else 'a,'}{cell}" for cell in cells]
    for row in [*rows, "\n".join(rows)]:
        quick, careful = both(f"{row}\n".encode(), ["x", "y"], {"y": Kind.NUMBERS})
        if quick is not None:
            assert_same(quick, careful)


@given(st.integers(0, 2**64 - 1), st.integers(-27, 27))
def test_numbers_of_19_digits_are_rounded_once(whole: int, power: int) -> None:
    cell = f"{whole % 10**19}e{power}"
    quick, careful = both(f"{cell}\n".encode(), ["x"], {"x": Kind.NUMBERS})
    assert quick is not None
    assert_same(quick, careful)
    assert quick["x"][0].as_py() == float(Fraction(whole % 10**19) * Fraction(10) ** power)


ORDINARY = [
    "2026-01-20 00:00:00,GPU-c195f12f-f2a7-5b50-b391-9ce8d061eb39,86,673.346,286938633600,0.8428,\n",
    "2026-01-20 00:00:00,GPU-edcc8ccc-38b5-5dab-8d76-46ee2d0d47b3,90,-658.204,544086295200,1.2e-05,ünicode\n",
    "2026-01-20 00:00:30,GPU-c195f12f-f2a7-5b50-b391-9ce8d061eb39,,0.30000000000000004,0,1,x\n",
]
NAMES = ["time", "uuid", "util", "power", "energy", "active", "pod"]
KINDS = {
    "pod": Kind.TEXTS, "time": Kind.LABELS, "uuid": Kind.LABELS,
    "util": Kind.NUMBERS, "power": Kind.NUMBERS, "energy": Kind.NUMBERS, "active": Kind.NUMBERS,
}  # fmt: skip


@pytest.mark.parametrize("rows", [1, 2, 3, 300, 5000])
@pytest.mark.parametrize("separator", list(",;\t|"))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("skip", [0, 1, 2])
def test_ordinary_rows_take_the_quick_way(rows: int, separator: str, end: str, skip: int) -> None:
    text = ["", "header\n", "# a comment\nheader\n"][skip]
    text += "".join(ORDINARY[k % 3] for k in range(rows))
    block = text.replace(",", separator).replace("\n", end).encode()
    quick, careful = both(block, NAMES, KINDS, separator, skip)
    assert quick is not None
    assert_same(quick, careful)
    assert quick["util"].to_pylist()[:3] == [86.0, 90.0, None][:rows]


def test_many_distinct_labels_keep_their_order() -> None:
    texts = [f"pod-{k * 7919 % 60_000}" for k in range(70_000)]
    quick, careful = both("".join(f"{t},1\n" for t in texts).encode(), ["pod", "n"], {"pod": Kind.LABELS})
    assert quick is not None
    assert_same(quick, careful)
    assert len(quick["pod"].chunk(0).dictionary) == 60_000


def test_a_row_may_have_thousands_of_cells() -> None:
    names = [f"c{k}" for k in range(8192)]
    block = "".join(",".join(str(k * r) for k in range(8192)) + "\n" for r in range(5)).encode()
    quick, careful = both(block, names, {"c8191": Kind.NUMBERS, "c0": Kind.LABELS})
    assert quick is not None
    assert_same(quick, careful)


@pytest.mark.parametrize(
    "block",
    [
        b"1,a", b"1,a\n2\n", b"1,a\n2,b,c\n", b"1,a\n\n2,b\n", b"\n", b"1,a\n\r\n", b"1,a\rb\n", b"1,a\r\r\n",
        b'1,"a"\n', b"x,a\n", b"nan,a\n", b"inf,a\n", b"0x10,a\n", b"1e400,a\n", b" ,a\n", b"-,a\n", b".,a\n",
        b"1.2.3,a\n", b"\xef\xbb\xbf1,a\n", b"1,a\n1\n,a\n", b"12345678901234567890,a\n",
    ],
)  # fmt: skip
def test_what_is_odd_is_left_to_pyarrow(block: bytes) -> None:
    quick, _ = both(block, ["x", "y"], {"x": Kind.NUMBERS, "y": Kind.LABELS})
    assert quick is None


@pytest.mark.parametrize("block", [b"a\n\nb\n", b"\n", b"a\n\r\nb\n", b"a\nb"])
def test_a_blank_line_of_one_column_is_not_a_row(block: bytes) -> None:
    assert both(block, ["x"], {"x": Kind.LABELS})[0] is None


def test_no_rows_below_the_header_and_no_columns_are_left_to_pyarrow() -> None:
    assert both(b"x,y\n", ["x", "y"], {"x": Kind.LABELS}, skip=1)[0] is None
    assert both(b"1,2\n", ["x", "y"], {})[0] is None


def test_a_file_comes_out_alike_with_and_without_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few lines; one has a quotation mark, a later one a cell that is not a number."""
    rows = [ORDINARY[k % 3] for k in range(200)]
    rows[69] = rows[69].replace("GPU-", '"GPU-').replace("eb39,", 'eb39",')
    rows[120] = "too,few\n"
    rows[150] = rows[150].replace("673.346", "673.346 W")
    path = tmp_path / "some.csv"
    path.write_text(",".join(NAMES) + "\n" + "".join(rows) + ORDINARY[0].rstrip())
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 10)

    def rows_of() -> tuple[list[dict[str, object]], list[tuple[int, str]], list[pa.Schema]]:
        opened = open_csv(path)
        opened.numbers = frozenset(n for n, kind in KINDS.items() if kind is Kind.NUMBERS)
        found = list(opened.batches(list(KINDS), ("time", "uuid")))
        return [row for batch in found for row in batch.to_pylist()], opened.wrong_rows, [b.schema for b in found]

    quick = rows_of()
    assert len(quick[0]) == 200
    assert quick[1] == [(121, "too,few")]
    monkeypatch.setattr(csv_file, "look", lambda _: None)
    assert rows_of() == quick
    assert math.isclose(float(str(quick[0][3]["power"])), 673.346)
