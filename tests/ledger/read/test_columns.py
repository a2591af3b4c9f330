"""Is a file of the books read as it was written, NULLs, older formats and all?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.lake.names import Names
from gpuledger.ledger.read.columns import Wanted, joined, read_files, read_groups

ROW = st.tuples(st.sampled_from([None, "a", "b", "ß"]), st.integers(0, 1 << 62), st.none() | st.integers(0, 9))
SCHEMA = pa.schema([("who", pa.string()), ("n", pa.int64()), ("maybe", pa.int64())])


def write(path: Path, rows: list[tuple[str | None, int, int | None]]) -> str:
    table = pa.table(list(zip(*rows, strict=True)) or [[], [], []], schema=SCHEMA)
    pq.write_table(table, path, row_group_size=3)
    return str(path)


@given(st.lists(st.lists(ROW, max_size=8), min_size=1, max_size=4))
@settings(deadline=None, max_examples=40)
def test_what_was_written_is_read_whole_or_in_groups(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[str | None, int, int | None]]]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    paths = [write(folder / f"{i}.parquet", rows) for i, rows in enumerate(files)]
    for read in (read_files, read_groups):
        names = Names()
        found = joined([rows for _, rows in read(paths, Wanted({"who": names}, ("n",), ("maybe",)))])
        if not found:
            assert read is read_groups  # a file without rows has no group
            continue
        maybe = [None if np.isnan(v) else int(v) for v in found["maybe"].tolist()]
        back = list(zip(names.text(found["who"]), found["n"].tolist(), maybe, strict=True))
        assert back == [row for rows in files for row in rows]
        order = sorted({who for who, _, _ in back if who is not None})
        assert names.places()[found["who"]].tolist() == [0 if w is None else order.index(w) + 1 for w, _, _ in back]


def test_a_column_an_older_file_lacks_is_zero_or_not_known(tmp_path: Path) -> None:
    path = write(tmp_path / "old.parquet", [("a", 1, None)])
    ((_, rows),) = read_files([path], Wanted({"new": Names()}, ("n", "later"), ("other",)))
    assert (rows["new"].tolist(), rows["later"].tolist()) == ([-1], [0])
    assert np.isnan(rows["other"]).all()


def test_a_file_that_cannot_be_read_says_so_when_its_turn_comes(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    good = write(tmp_path / "good.parquet", [("a", 1, 2)])
    reading = read_files([good, str(tmp_path / "broken.parquet")], Wanted({}, ("n",)))
    assert next(reading)[1]["n"].tolist() == [1]
    with pytest.raises(pa.ArrowInvalid):
        next(reading)
    with pytest.raises(pa.ArrowTypeError, match="whole numbers are expected"):
        list(read_files([good], Wanted({}, ("who",))))


def test_names_wanted_and_the_nameless() -> None:
    names = Names()
    codes = names.numbered(pa.chunked_array([pa.array(["x", None, "y"]).dictionary_encode()]))
    assert names.among({"y"})[codes].tolist() == [False, False, True]
    assert names.among({"none"}, "none")[codes].tolist() == [False, True, False]
    assert names.numbers(["y", None, "other"]).tolist() == [1, -1, -1]


def test_parts_of_one_dictionary_are_told_apart() -> None:
    words, names = pa.array(["x", "y", "z"]), Names()
    found = []
    for part in (words[:1], words, words[1:], words[:1]):
        coded = pa.DictionaryArray.from_arrays(pa.array([len(part) - 1, None], pa.int32()), part)
        found.append(names.text(names.numbered(pa.chunked_array([coded]))))
    assert found == [["x", None], ["z", None], ["z", None], ["x", None]]
