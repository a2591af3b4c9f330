"""Are rows of nvidia-smi without a header read as what they are, and left out where that cannot be told?"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault
from gpuledger.telemetry.explain import explain

MIB = 1 << 20
SAID = {"host": "n1", "gpu_model": "NVIDIA A100-SXM4-80GB"}
# Four GPUs, milliseconds apart: utilization, used, free, total, power. The mean is 40 %; 604 MiB are reserved.
GPUS = ((90, 70_210, 11_106, 388.5), (70, 60_000, 21_316, 300.25), (0, 3, 81_313, 61.5), (0, 3, 81_313, 60.75))


def stamp(ms: int) -> str:
    return f"2026/03/04 09:{ms // 60_000:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def four(count: int, *, units: bool = True) -> list[str]:
    rows = []
    for n in range(count):
        for k, (util, used, free, watts) in enumerate(GPUS):
            cells = f"{util} %, {used} MiB, {free} MiB, 81920 MiB, {watts:.2f} W"
            rows.append(f"{stamp(5_000 * n + 4 * k)}, {cells}")
    return rows if units else [re.sub(r" (%|MiB|W)", "", row) for row in rows]


def read(folder: Path, rows: list[str]) -> pd.DataFrame:
    file = folder / "rows.csv"
    file.write_text("\n".join([*rows, ""]))
    lake = gpuledger.open(folder / "lake")
    lake.ingest(file, at="2026-03-04", every="1s", **SAID)
    return lake.samples().df().sort_values(["gpu_uuid", "at_ms"], ignore_index=True)


@pytest.mark.parametrize("units", [True, False], ids=["units", "nounits"])
def test_rows_of_four_gpus_without_a_header(tmp_path: Path, units: bool, capsys: pytest.CaptureFixture[str]) -> None:
    found = read(tmp_path, four(60, units=units))
    assert len(found) == 240
    for k, (util, used, free, watts) in enumerate(GPUS):
        mine = found[found["gpu_uuid"] == f"n1:gpu{k}"]
        assert len(mine) == 60
        assert mine["gpu_util_ratio"].to_numpy(float) == pytest.approx(util / 100)
        assert mine["power_w"].to_numpy(float) == pytest.approx(watts)
        assert set(mine["fb_used_bytes"]) == {used * MIB}
        assert set(mine["fb_free_bytes"]) == {free * MIB}
    assert run(["analyze", str(tmp_path / "rows.csv"), "--host", "n1", "--gpu-model", SAID["gpu_model"]]) == 0
    said = capsys.readouterr()
    assert "40.0 % utilization" in said.out
    assert "it has no header; its columns by their units and values: 1 timestamp, 2 utilization.gpu [%]" in said.err
    assert "4 GPUs identified by their order in each round" in said.err


# By columns what a row of one GPU holds, n from 0, and what is told of them: a name, or nothing.
ONE = {
    "utilization and memory": ("{u} %, {m} MiB", ["utilization.gpu [%]", "memory.used [MiB]"]),
    "total first": ("{u} %, 81920 MiB, {m} MiB", ["utilization.gpu [%]", "memory.total [MiB]", "memory.used [MiB]"]),
    "free first": ("{u} %, 81920 MiB, {f} MiB, {m} MiB", [
        "utilization.gpu [%]", "memory.total [MiB]", "memory.free [MiB]", "memory.used [MiB]"]),
    "reserved": ("{u} %, 604 MiB, {f} MiB, {m} MiB, 81920 MiB", [
        "utilization.gpu [%]", "", "memory.free [MiB]", "memory.used [MiB]", "memory.total [MiB]"]),
    "free and total": ("{u} %, {f} MiB, 81920 MiB", ["utilization.gpu [%]", "memory.free [MiB]", "memory.total [MiB]"]),
    "steady memory": ("{u} %, 3000 MiB, 78316 MiB, 81920 MiB", ["utilization.gpu [%]", "", "", "memory.total [MiB]"]),
    "memory of a size": ("{u} %, 81920 MiB", ["utilization.gpu [%]", ""]),
    "copies": ("{c} %, {u} %", ["utilization.memory [%]", "utilization.gpu [%]"]),
    "fan": ("{fan} %, {u} %", ["", ""]),
    "limit": ("{w:.2f} W, 400.00 W, 61, {u} %", ["power.draw [W]", "", "temperature.gpu", "utilization.gpu [%]"]),
    "clocks": ("{u} %, 1980 MHz, 2619 MHz", ["utilization.gpu [%]", "", ""]),
    "name": ("NVIDIA A100-SXM4-80GB, P0, {u} %, [N/A]", ["name", "pstate", "utilization.gpu [%]", ""]),
    "no units": ("{u}, {m}, 81920, {w:.2f}, 61", [
        "utilization.gpu [%]", "memory.used [MiB]", "memory.total [MiB]", "power.draw [W]", ""]),
    "no units, a clock": ("{u}, 1980, {w:.2f}", ["utilization.gpu [%]", "", "power.draw [W]"]),
}  # fmt: skip


@pytest.mark.parametrize(("row", "names"), ONE.values(), ids=ONE)
def test_columns_are_told_by_units_and_values_or_left_out(tmp_path: Path, row: str, names: list[str]) -> None:
    rows = []
    for n in range(60):
        used = 3_000 + 40 * n
        values = {"u": min(n, 50), "c": min(n, 50) // 2, "m": used, "f": 81_316 - used, "w": 80 + n, "fan": 60 - n}
        rows.append(f"{stamp(1_000 * n)}, {row.format(**values)}")
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(rows))
    if not any(re.match(r"(utilization.gpu|memory.used|power)", name) for name in names):
        with pytest.raises(FileFault, match="no column can be identified as a reading"):
            gpuledger.read(file, **SAID)
        return
    bound = explain(file).bound
    columns = [bound.time, *[source for source, _ in bound.values.values()], *bound.label_columns()]
    read_too = {name for name in names if name and name not in ("memory.total [MiB]", "pstate")}
    assert set(columns) == {"timestamp", *read_too}
    lake = gpuledger.open(tmp_path / "lake")
    notes = " ".join(lake.ingest(file, **SAID).notes)
    for place, name in enumerate(names, 2):
        assert (f"{place} {name}" in notes) if name else re.search(rf"left out.*\b{place} \(", notes)
    assert "read as GPU 0" in notes


def test_an_index_is_told_by_its_turns(tmp_path: Path) -> None:
    rows = [f"{stamp(1_000 * n)}, {k}, {10 * k} %" for n in range(20) for k in range(3)]
    found = read(tmp_path, rows)
    assert found.groupby("gpu_uuid")["gpu_util_ratio"].mean().round(6).to_dict() == {
        f"n1:gpu{k}": k / 10 for k in range(3)
    }


def test_rows_without_a_time(tmp_path: Path) -> None:
    found = read(tmp_path, [f"{n % 4 * 20} %, {3_000 + 10 * n} MiB" for n in range(60)])
    assert found["gpu_util_ratio"].mean() == pytest.approx(0.3)
    assert set(found["gpu_uuid"]) == {"n1:gpu0"}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([f"95 %, {used} MiB" for _ in range(60) for used in (60_000, 3)], "2 lines before"),
        ([f"95 %, {used} MiB" for _ in range(60) for used in (70_210, 70_214, 70_212)], "3 lines before"),
        (["95 %, 60000 MiB", "0 %, 3 MiB"], "2 rows with memory"),
        ([f"{n} %, 80.00 W" for n in range(60)], "0 rows with memory"),
    ],
)
def test_rows_without_a_time_that_may_be_of_several_gpus(tmp_path: Path, rows: list[str], words: str) -> None:
    with pytest.raises(FileFault, match=words) as refused:
        read(tmp_path, rows)
    assert "query index or uuid too" in refused.value.hint


def test_memory_that_cannot_be_the_total_is_refused(tmp_path: Path) -> None:
    """What never changed in the first rows changes later, so it was no total."""
    rows = [f"{stamp(500 * n)}, {n % 90} %, {n + 3_000} MiB, {81920 if n < 5_000 else 9_000} MiB" for n in range(6_000)]
    with pytest.raises(FileFault, match=r"two values of 'memory\.total"):
        read(tmp_path, rows)


@pytest.mark.parametrize(
    ("header", "cells", "column", "wanted"),
    [
        ("memory.used [MB]", "1000 MB", "fb_used_bytes", 10**9),
        ("memory.used [GiB]", "1.5 GiB", "fb_used_bytes", 1536 * MIB),
        ("memory.used [MB]", "1000", "fb_used_bytes", 10**9),
        ("memory.used [MB]", "1000 MiB", "fb_used_bytes", 1000 * MIB),
        ("memory.used", "1000 MiB", "fb_used_bytes", 1000 * MIB),
        ("power.draw [mW]", "80500 mW", "power_w", 80.5),
        ("power.draw [kW]", "0.5", "power_w", 500),
        ("temperature.gpu [C]", "61 C", "gpu_temp_c", 61),
    ],
)
def test_a_header_in_another_unit_is_read_in_that_one(
    tmp_path: Path, header: str, cells: str, column: str, wanted: float
) -> None:
    rows = [f"{stamp(1_000 * n)}, GPU-1, 50 %, {cells}" for n in range(5)]
    found = read(tmp_path, [f"timestamp, uuid, utilization.gpu [%], {header}", *rows])
    assert found[column].to_numpy(float) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("header", "why"),
    [("power.draw [MiB]", "MiB is not a unit of power_w"), ("memory.used", "nothing states its unit")],
)
def test_a_reading_without_its_unit_is_named(tmp_path: Path, header: str, why: str) -> None:
    file = tmp_path / "log.csv"
    rows = [f"{stamp(1_000 * n)}, GPU-1, 50 %, 80" for n in range(5)]
    file.write_text("\n".join([f"timestamp, uuid, utilization.gpu [%], {header}", *rows]))
    notes = gpuledger.open(tmp_path / "lake").ingest(file, **SAID).notes
    assert any(f"{header!r} is not read: {why}" in note for note in notes)


def test_gpus_that_take_turns_show_in_any_unit(tmp_path: Path) -> None:
    rows = [f"{stamp(1_000 * n)}, {(60, 0.01)[n % 2]} GiB" for n in range(100)]
    with pytest.raises(FileFault, match="is back 2 lines later"):
        read(tmp_path, ["timestamp, memory.used [GiB]", *rows])
