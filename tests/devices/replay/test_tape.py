"""Does a recording play back what was recorded?"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from gpuledger.devices.replay.doors import Tape, layouts, load_tapes
from gpuledger.errors import FileFault
from gpuledger.telemetry import schema

RECORDING = Path(__file__).parents[2] / "data" / "h200_replay.csv.gz"


def test_every_layout_fills_columns_of_the_schema() -> None:
    for layout in layouts():
        assert {c.column for c in layout.columns} <= set(schema.readings())


def test_rows_come_back_as_they_were_recorded() -> None:
    ((who, tape),) = load_tapes(RECORDING).items()
    with gzip.open(RECORDING, "rt") as file:
        rows = list(csv.DictReader(file))
    assert who == ("GPU-replay-0", "NVIDIA H200")
    assert len(tape) == len(rows) == 340
    at = 0.0
    for i, row in enumerate(rows[:30]):
        at = float(row["t"]) - float(rows[0]["t"])
        assert tape.level("power_w", at + 1e-4) == float(row["power_w"])
        assert tape.level("gpu_util_ratio", at + 1e-4) == pytest.approx(float(row["gpu_util"]) / 100)
        assert tape.energy_mj(at) == pytest.approx(float(row["energy_j"]) * 1000, rel=1e-6), i


def test_holes_are_cut_out_and_with_them_their_energy() -> None:
    ((_, tape),) = load_tapes(RECORDING).items()
    assert 30 < tape.length_s < 40
    total_j = (tape.energy_mj(tape.length_s) - tape.energy_mj(0.0)) / 1000
    mean_w = sum(tape.level("power_w", t / 10) for t in range(int(10 * tape.length_s))) / int(10 * tape.length_s)
    assert total_j == pytest.approx(mean_w * tape.length_s, rel=0.15)


def test_a_mean_weighs_each_row_by_the_time_it_covers() -> None:
    tape = Tape([0.0, 1.0, 3.0, 4.0], {"sm_ratio": [0.9, 0.2, 0.5, 0.8]})
    assert tape.mean("sm_ratio", 0.0, 3.0) == pytest.approx((0.2 + 2 * 0.5) / 3)
    assert tape.mean("sm_ratio", 0.5, 1.5) == pytest.approx((0.5 * 0.2 + 0.5 * 0.5) / 1.0)
    assert tape.mean("sm_ratio", 3.0, 4.0) == pytest.approx(0.8)
    assert tape.mean("fp64_ratio", 0.0, 3.0) is None


def test_empty_cells_are_not_known() -> None:
    tape = Tape([0.0, 1.0, 2.0, 3.0], {"dram_ratio": [None, 0.4, None, 0.6]})
    assert tape.mean("dram_ratio", 0.0, 1.0) == pytest.approx(0.4)
    assert tape.mean("dram_ratio", 1.0, 2.0) is None
    assert tape.level("dram_ratio", 2.5) is None


def test_a_recording_in_the_schemas_own_columns_plays_every_gpu(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text(
        "at_ms,gpu_uuid,gpu_model,power_w,gpu_util_ratio\n"
        "1000,GPU-a,NVIDIA L4,50,0.5\n1000,GPU-b,NVIDIA L4,60,\n"
        "2000,GPU-a,NVIDIA L4,55,0.6\n2000,GPU-b,NVIDIA L4,61,0.1\n"
    )
    tapes = load_tapes(file)
    assert set(tapes) == {("GPU-a", "NVIDIA L4"), ("GPU-b", "NVIDIA L4")}
    assert tapes["GPU-a", "NVIDIA L4"].level("power_w", 1.0) == 55
    assert tapes["GPU-b", "NVIDIA L4"].level("gpu_util_ratio", 0.5) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a,b\n1,2\n", "no columns that are known"),
        ("at_ms,gpu_uuid,power_w\n1000,GPU-a,5\n", "fewer than two"),
        ("at_ms,gpu_uuid,power_w\n1000,GPU-a,5\n2000,GPU-a,much\n", "number"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_with_the_next_step(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "x.csv"
    file.write_text(text)
    with pytest.raises(FileFault, match=words) as caught:
        load_tapes(file)
    assert caught.value.hint
    with pytest.raises(FileFault):
        load_tapes(tmp_path / "none.csv")
    broken = tmp_path / "x.csv.gz"
    broken.write_bytes(b"not gzip")
    with pytest.raises(FileFault):
        load_tapes(broken)


def test_a_recording_may_have_the_power_limit(tmp_path: Path) -> None:
    with gzip.open(RECORDING, "rt") as file:
        rows = list(csv.DictReader(file))
    assert "power_limit_w" not in rows[0]
    ((_, without),) = load_tapes(RECORDING).items()
    assert without.level("power_limit_w", 1.0) is None
    file = tmp_path / "limited.csv"
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, [*rows[0], "power_limit_w"])
        writer.writeheader()
        writer.writerows({**row, "power_limit_w": 450.0} for row in rows)
    ((_, tape),) = load_tapes(file).items()
    assert tape.level("power_limit_w", 1.0) == 450.0
    assert tape.level("power_w", 1.0) == without.level("power_w", 1.0)
