"""Do lasting and temporary books hold the same?"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gpuledger.ledger.book_files import GROUP_ROWS, LASTING, TEMPORARY, book_groups, read_book, write_small, write_to

PIECES = [
    pa.table({"gpu_uuid": pa.array(["a", "a", "b"]).dictionary_encode(), "kind": ["x", "y", None], "ms": [1, 2, None]}),
    pa.table({"gpu_uuid": pa.array(["c", None]).dictionary_encode(), "kind": ["x", "z"], "ms": [4, 5]}),
]
WHOLE = [
    {"gpu_uuid": "a", "kind": "x", "ms": 1},
    {"gpu_uuid": "a", "kind": "y", "ms": 2},
    {"gpu_uuid": "b", "kind": None, "ms": None},
    {"gpu_uuid": "c", "kind": "x", "ms": 4},
    {"gpu_uuid": None, "kind": "z", "ms": 5},
]


@pytest.fixture(params=[LASTING, TEMPORARY])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Of one kind or the other, with two groups of rows whose labels differ."""
    found = tmp_path / f"book{request.param}"
    writer = write_to(found, PIECES[0].schema, noted=["ms"])
    for piece in PIECES:
        writer.write_table(piece)
    writer.close()
    return found


def test_what_was_written_is_read(file: Path) -> None:
    found = read_book(file)
    assert found.to_pylist() == WHOLE
    assert [field.type for field in found.schema] == [pa.string(), pa.string(), pa.int64()]


def test_labels_are_coded_where_asked_for_and_columns_it_lacks_left_out(file: Path) -> None:
    found = read_book(file, ["kind", "ms", "pod", "kind"], ["kind"])
    assert set(found.column_names) == {"kind", "ms"}
    assert pa.types.is_dictionary(found.schema.field("kind").type)
    assert found["kind"].to_pylist() == [row["kind"] for row in WHOLE]


def test_groups_are_read_one_by_one(file: Path) -> None:
    found = list(book_groups(file, ["gpu_uuid", "ms"], ["gpu_uuid"]))
    assert [group.num_rows for group in found] == [3, 2]
    assert all(pa.types.is_dictionary(group.schema.field("gpu_uuid").type) for group in found)
    assert [v for group in found for v in group["gpu_uuid"].to_pylist()] == [row["gpu_uuid"] for row in WHOLE]


@pytest.mark.parametrize("kind", [LASTING, TEMPORARY])
@pytest.mark.parametrize("rows", [0, 1, GROUP_ROWS + 1])
def test_a_table_written_at_once(tmp_path: Path, kind: str, rows: int) -> None:
    table = pa.table({"hour_ms": pa.array(range(rows), pa.int64())})
    write_small(tmp_path / f"hours{kind}", table)
    assert read_book(tmp_path / f"hours{kind}").equals(table)
