"""Is an import the same in several processes as here, and are faults of workers told as they were raised?"""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpuledger.errors import FileFault
from gpuledger.lake import pieces
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import samples_table
from gpuledger.lake.processes import Order, Progress, carried_out
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days in one file of several row groups, with a row that is there twice and rows that cannot be used."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(FleetSpec(gpus=6, days=2, step_s=600), folder / "fleet.parquet")
    table = pq.read_table(folder / "fleet.parquet")
    table = pa.concat_tables([table, table.slice(100, 3)])
    power = table["DCGM_FI_DEV_POWER_USAGE"].to_pylist()
    power[5] = power[700] = 3_000.0
    table = table.set_column(table.column_names.index("DCGM_FI_DEV_POWER_USAGE"), "DCGM_FI_DEV_POWER_USAGE", [power])
    pq.write_table(table, folder / "fleet.parquet", row_group_size=200)
    return folder / "fleet.parquet"


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", 300)


def test_several_processes_make_the_same_lake(tmp_path: Path, fleet: Path, small_pieces: None) -> None:
    here, there = Lake(tmp_path / "here"), Lake(tmp_path / "there")
    one, many = import_files(here, [fleet], processes=1), import_files(there, [fleet], processes=2)
    assert samples_table(there).equals(samples_table(here))
    assert one.rejects == many.rejects == {"power_over_twice_the_board": 2}
    assert one.rows_duplicate == many.rows_duplicate == 3
    texts = [Path(r.rejects_file or "").read_text(encoding="utf-8") for r in (one, many)]
    assert texts[0] == texts[1]
    assert [line.split(",")[1] for line in texts[0].splitlines()[1:]] == ["6", "701"]
    assert (one.rows_added, one.days, one.notes) == (many.rows_added, many.days, many.notes)


def test_importing_again_in_processes_adds_nothing(tmp_path: Path, fleet: Path, small_pieces: None) -> None:
    lake = Lake(tmp_path / "lake")
    first = import_files(lake, [fleet], processes=2)
    again = import_files(lake, [fleet], processes=2)
    assert again.rows_added == 0
    assert again.rows_duplicate == first.rows_added + first.rows_duplicate


def test_a_fault_in_a_worker_leaves_no_lake(tmp_path: Path, fleet: Path, small_pieces: None) -> None:
    broken = tmp_path / "broken.parquet"
    raw = bytearray(fleet.read_bytes())
    raw[len(raw) // 3 : len(raw) // 3 + 4000] = bytes(4000)
    broken.write_bytes(raw)
    with pytest.raises(FileFault, match="broken inside"):
        import_files(Lake(tmp_path / "lake"), [broken, fleet], processes=2)
    assert not (tmp_path / "lake").exists()


def test_a_csv_in_pieces_is_the_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that are no number, rows with too many cells, and their numbers in the file, whatever the pieces."""
    monkeypatch.setattr(pieces, "PIECE_ROWS", 50)
    spec = FleetSpec(gpus=4, days=1, step_s=600)
    write_fleet(spec, tmp_path / "fleet.csv", "csv")
    lines = (tmp_path / "fleet.csv").read_text(encoding="utf-8").splitlines()
    lines[10] = lines[10] + ",one,more"
    column = lines[0].split(",").index("DCGM_FI_DEV_POWER_USAGE")
    for at, text in ((200, "many"), (201, "N/A"), (430, " 250 W ")):
        cells = lines[at].split(",")
        cells[column] = text
        lines[at] = ",".join(cells)
    (tmp_path / "fleet.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = []
    for name, processes in (("here", 1), ("there", 2)):
        done = import_files(Lake(tmp_path / name), [tmp_path / "fleet.csv"], processes=processes)
        rejected = Path(done.rejects_file or "").read_text(encoding="utf-8").splitlines()[1:]
        found.append((samples_table(Lake(tmp_path / name)).to_pylist(), sorted(r.split(",")[1:4] for r in rejected)))
    assert found[0] == found[1]
    assert found[0][1] == [["10", "wrong_number_of_cells", ""], ["200", "not_a_number", "DCGM_FI_DEV_POWER_USAGE"]]
    assert sum(row["power_w"] is None for row in found[0][0]) == 1
    assert any(row["power_w"] == 250 for row in found[0][0])
    quoted = tmp_path / "quoted.csv"
    quoted.write_text((tmp_path / "fleet.csv").read_text(encoding="utf-8").replace("trainer", '"trai\nner"', 1))
    again = import_files(Lake(tmp_path / "quoted"), [quoted], processes=2)
    assert again.rows_added == len(found[0][0])


class Nothing(msgspec.Struct, frozen=True):
    """A task without anything to know."""


def fill_the_disk(task: Nothing, _progress: Progress) -> Nothing:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_in_a_worker_asks_for_space() -> None:
    answer = carried_out(Order.of(fill_the_disk, Nothing()), lambda _stage, _rows: None)
    assert "the disk is full" in answer.error
    assert "free some space" in answer.hint
