"""Is an import that writes days on the way the same import?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gpuledger.lake import by_day, importing, pieces
from gpuledger.lake.importing import ImportResult, import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import samples_table
from gpuledger.lake.processes import Progress
from gpuledger.lake.taking import Reading
from gpuledger.lake.writing import GroupTask, GroupWritten, write_group
from gpuledger.telemetry.fleet import FleetSpec
from gpuledger.telemetry.synthetic import write_fleet


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Four days of six GPUs in small row groups, some rows twice, one contradicting another, one that is rejected."""
    whole = tmp_path / "whole.parquet"
    write_fleet(FleetSpec(gpus=6, days=4, step_s=1800), whole)
    table = pq.read_table(whole)
    odd = table.slice(40, 1)
    place = table.column_names.index("DCGM_FI_DEV_GPU_TEMP")
    odd = odd.set_column(place, "DCGM_FI_DEV_GPU_TEMP", pc.add(odd["DCGM_FI_DEV_GPU_TEMP"], 7).cast(pa.int32()))
    power = np.array(table["DCGM_FI_DEV_POWER_USAGE"].to_numpy())
    power[700] = 9999.0
    drawn = table.set_column(table.column_names.index("DCGM_FI_DEV_POWER_USAGE"), "DCGM_FI_DEV_POWER_USAGE", [power])
    table = pa.concat_tables([drawn, table.slice(100, 30), odd])
    out = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(table.slice(0, 500), out[0], row_group_size=90)
    pq.write_table(table.slice(500), out[1], row_group_size=90)
    return out


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "DAY_PIECE_ROWS", 200)


def told(done: ImportResult) -> dict[str, Any]:
    """What an import says, but for where rejected rows are listed."""
    found = dict(vars(done))
    listed = found.pop("rejects_file")
    return found | {"listed": sorted(Path(listed).read_text().splitlines()) if listed else []}


def at_the_end(lake: Lake, paths: list[Path]) -> ImportResult:
    """The import that writes no day before all rows are taken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importing, "grouped", lambda *_given: None)
        return import_files(lake, paths, processes=1)


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("memory", [1 << 30, 1 << 12])
def test_rows_and_words_are_those_of_an_import_at_the_end(
    tmp_path: Path, files: list[Path], processes: int, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "MEMORY_BYTES", memory)
    wanted, found = Lake(tmp_path / "wanted"), Lake(tmp_path / "found")
    expected = told(at_the_end(wanted, files))
    assert expected["rows_rejected"] == 3
    assert expected["rows_duplicate"] == 30
    assert told(import_files(found, files, processes=processes)) == expected
    assert samples_table(found).equals(samples_table(wanted))


def test_a_day_the_lake_has_is_compared_under_its_lock(tmp_path: Path, files: list[Path]) -> None:
    lake, other = Lake(tmp_path / "lake"), Lake(tmp_path / "other")
    for one in (lake, other):
        at_the_end(one, files[:1])
    expected = told(at_the_end(other, files))
    assert expected["rows_duplicate"] > 500
    assert told(import_files(lake, files, processes=2)) == expected
    assert samples_table(lake).equals(samples_table(other))


def test_an_import_that_is_overtaken_starts_again(
    tmp_path: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another import adds the same days while this one has written them and waits for the lock."""
    lake, times = Lake(tmp_path / "lake"), []

    def overtaken(task: GroupTask, progress: Progress) -> GroupWritten:
        done = write_group(task, progress)
        times.append(len(done.days))
        at_the_end(lake, files[:1])
        return done

    monkeypatch.setattr(importing, "write_group", overtaken)
    done = import_files(lake, files, processes=1)
    assert times == [4]
    other = Lake(tmp_path / "other")
    at_the_end(other, files)
    ours, theirs = (sorted(map(str, samples_table(one).to_pylist())) for one in (lake, other))
    assert ours == theirs
    assert done.rows_read == sum(pq.read_metadata(f).num_rows for f in files)


def test_days_without_a_row_are_not_written(tmp_path: Path) -> None:
    """A row group from the first day to the last, and nothing in between."""
    write_fleet(FleetSpec(gpus=2, days=4, step_s=3600), tmp_path / "whole.parquet")
    table = pq.read_table(tmp_path / "whole.parquet")
    pq.write_table(pa.concat_tables([table.slice(0, 10), table.slice(table.num_rows - 10)]), tmp_path / "f.parquet")
    lake = Lake(tmp_path / "lake")
    done = import_files(lake, [tmp_path / "f.parquet"])
    assert len(done.days) == 2
    assert lake.manifest().days() == done.days
    assert len(by_day.days_of(pieces.pieces_of([tmp_path / "f.parquet"], Reading()))) == 4
