"""Jobs as an H200 recorded them, on their way through a lake: samples, import, audit."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuledger.advice.build import audit_statement
from gpuledger.advice.case import Case
from gpuledger.advice.findings import Finding, find_all
from gpuledger.advice.limits import load_limits
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.units import MIB

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks" / "truth"))

from bouncing import Load, sampled  # noqa: E402
from schedules import START_S, STEP_S, pool_of, stamped  # noqa: E402

from recording import Row, Track, read_recording, write_telemetry  # noqa: E402

DATA = ROOT / "tests" / "data"
WINDOWS = json.loads((DATA / "h200_windows.json").read_text(encoding="utf-8"))
TRUTH = json.loads((DATA / "truth_rows" / "truth.json").read_text(encoding="utf-8"))
SECONDS = 60.0
# What DCGM reports by default besides the tensor pipe says nothing about work outside it.
VECTOR = ("fp64_active", "fp32_active", "fp16_active", "integer_active")
TENSOR_KINDS = ("dfma_tensor_active", "hmma_tensor_active", "imma_tensor_active")


@dataclass(frozen=True)
class Job:
    """What a job reports, which counters are recorded, whose it is and what it says of its precision."""

    rows: Sequence[Row]
    counters: bool = True
    precision: str | None = None
    namespace: str = "ml"
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged:
    """The case an audit made of a job, and every finding on it."""

    case: Case
    findings: Mapping[str, Finding]


def recorded_rows(folder: Path) -> dict[str, Sequence[Row]]:
    """Rows by workload: of the truth set, and those of the replay that it does not have."""
    replay = folder / "replay"
    replay.mkdir()
    shutil.copy(DATA / "h200_replay.csv.gz", replay / "samples.csv.gz")
    (replay / "truth.json").write_text(json.dumps({"info": TRUTH["info"], "workloads": {}}), encoding="utf-8")
    more = {name: rows for name, rows in read_recording(replay).rows.items() if name == "idle" or "waits" in name}
    return {**more, **pool_of([DATA / "truth_rows"])}


def level(name: str) -> list[Row]:
    """One row with the means of a recorded workload of which only the means are kept."""
    part, workload = name.split("/")
    signals, limit = WINDOWS[part][workload]["signals"], TRUTH["info"]["power_limit_w"]
    shares = {
        "gpu_util": "util", "mem_copy_util": "mem_copy", "gr_engine_active": "engine", "sm_active": "sm",
        "sm_occupancy": "occupancy", "integer_active": "integer", "tensor_active": "tensor", "dram_active": "dram",
        "fp64_active": "fp64", "fp32_active": "fp32", "fp16_active": "fp16",
    }  # fmt: skip
    row = {column: 100 * signals[f"{signal}_ratio"] for column, signal in shares.items()}
    card_mib = 143_771.0
    row |= {
        "power_w": signals["power_ratio"] * limit, "power_limit_w": limit, "sm_clock_mhz": 1980.0,
        "fb_used_mib": signals["fb_used_ratio"] * card_mib, "fb_free_mib": (1 - signals["fb_used_ratio"]) * card_mib,
        "pcie_rx_mib_s": signals["pcie_bytes_per_s"] / MIB / 2, "pcie_tx_mib_s": signals["pcie_bytes_per_s"] / MIB / 2,
    }  # fmt: skip
    return [row]


def steady(rows: Sequence[Row]) -> list[Row]:
    """Recorded rows one after the other, from the first again at their end."""
    return stamped([dict(rows[i % len(rows)]) for i in range(round(SECONDS / STEP_S))])


def bouncing(busy: Sequence[Row], waiting: Sequence[Row], period_s: float, duty: float) -> list[Row]:
    """Work and waits in turn, read ten times per second."""
    return sampled(Load(period_s, duty), 1 / STEP_S, busy, waiting, START_S)


def judge(jobs: Mapping[str, Job], folder: Path) -> dict[str, Judged]:
    """Every job on a GPU of its own, imported, posted and audited at $2 per GPU-hour."""
    lake = Lake(folder / "lake")
    for counters in (True, False):
        mine = [_track(name, job) for name, job in jobs.items() if job.counters == counters]
        file = folder / f"telemetry-{counters}.csv"
        write_telemetry(file, mine, counters)
        import_files(lake, [file])
    post_lake(lake, load_thresholds())
    cases = audit_statement(lake, price=2).cases
    limits = load_limits()
    by_device = {case.devices: case for case in cases}
    assert len(by_device) == len(jobs)
    return {
        name: Judged(case, {f.rule.id: f for f in find_all([case], limits)})
        for name in jobs
        for case in [by_device[(f"GPU-{name}",)]]
    }


def _track(name: str, job: Job) -> Track:
    rows: list[dict[str, Any]] = [{k: v for k, v in row.items() if k not in job.without} for row in job.rows]
    return Track(name if job.namespace else "", f"GPU-{name}", rows, job.precision, labels={"namespace": job.namespace})
