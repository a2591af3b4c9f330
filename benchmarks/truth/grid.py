"""Is a load that starts and stops called what it is, whatever its period, its duty and the sampling?

    python benchmarks/truth/grid.py [FOLDER...] [--load WORKLOAD...] [--json]

Every cell of the grid (bouncing.py) goes through import and `audit --json`, as one training job on one GPU:

    waits under 30 s that take 15 % of the time or more   class starved, first advice about loading data
    waits of 30 s and more                                 that time counted as idle, no advice to end or share the job
    waits that take less than 15 % of the time             class of the work itself, first advice not about loading data

Without counters, waits or bursts shorter than the sampling step or the period of utilization cannot be resolved: the
evidence must say so. Up to twice that length both answers are taken; so are both within one step of 30 s. Exit code 1
below 95 % of the cells that can be resolved.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bouncing import DUTIES, PERIODS_S, RATES_HZ, UTIL_PERIOD_S, Load, sampled
from front_door import CommandFailed, ask, take_in
from schedules import RECORDINGS, START_S, pool_of

from recording import BadRecording, Row, Track, read_recording, write_telemetry

BAR_PCT, WAITS_FROM, LONG_WAIT_S, IDLE_FOUND = 95.0, 0.15, 30.0, 0.8
LOADING = ("num-workers", "dali", "prefetch", "pin-memory", "persistent-workers", "h2d-overlap")
# Pauses of a minute are no reason for any of these.
ENDING = ("cull-idle", "release-idle", "mps", "mig", "time-slicing", "consolidation", "schedule-off-hours")
# How the evidence says that the sampling is too coarse; any of them.
CANNOT = ("cannot be resolved", "cannot be told at this sampling")
WAITING = "idle_holding_memory"
FULL = 1.0


@dataclass(frozen=True)
class Cell:
    """One load, sampled one way."""

    workload: str
    load: Load
    hz: float
    counters: bool

    @property
    def name(self) -> str:
        """The job's name; the word `train` says what it is for."""
        how = f"{self.hz:g}hz-{'counters' if self.counters else 'nvml'}"
        return f"train-{self.workload}-{self.load.period_s:g}s-{100 * self.load.duty:.0f}pct-{how}".replace("_", "-")

    @property
    def resolves(self) -> str:
        """`yes`, `no`, or `either` at the edge."""
        shortest = min(self.load.wait_s, self.load.burst_s)
        limit = max(UTIL_PERIOD_S, 1 / self.hz)
        if self.counters or shortest >= 2 * limit:
            return "yes"
        return "no" if shortest < limit * (1 - 1e-9) else "either"

    def due(self) -> tuple[str, ...]:
        """The verdicts that are right."""
        waiting = 1 - self.load.duty
        if waiting < WAITS_FROM:
            found = ["work"]
        elif abs(self.load.wait_s - LONG_WAIT_S) <= 1 / self.hz:
            found = ["starved", "idle"]
        else:
            found = ["starved" if self.load.wait_s < LONG_WAIT_S else "idle"]
        if self.resolves == "no":
            return ("cannot", *(v for v in found if v == "work"))
        return (*found, "cannot") if self.resolves == "either" else tuple(found)


def cells(
    workloads: Iterable[str],
    periods: Sequence[float] = PERIODS_S,
    duties: Sequence[float] = DUTIES,
    rates: Sequence[float] = RATES_HZ,
) -> list[Cell]:
    """The grid, and for each way of sampling the load without waits."""
    loads = [Load(period, duty) for period, duty in product(periods, duties)]
    ways = list(product(workloads, rates, (True, False)))
    return [Cell(w, load, hz, counters) for w, hz, counters in ways for load in [*loads, Load(1.0, FULL)]]


def judge(
    grid: Sequence[Cell], pool: Mapping[str, Sequence[Row]], accepted: Mapping[str, Sequence[str]], folder: Path
) -> dict[str, dict[str, Any]]:
    """Each cell's verdict beside the right ones."""
    for counters in (True, False):
        mine = [cell for cell in grid if cell.counters == counters]
        if mine:
            write_telemetry(folder / "telemetry.csv", (track(cell, pool) for cell in mine), counters)
            take_in(folder / "lake", folder / "telemetry.csv")
    found = {cell.name: asked(cell, folder / "lake") for cell in grid}
    alone = {(c.workload, c.hz, c.counters): found[c.name]["class"] for c in grid if c.load.duty == FULL}
    for cell in grid:
        one = found[cell.name]
        work = set(accepted.get(cell.workload, ()))
        if not cell.counters:  # the classes of the truth are what counters can show
            work |= {alone.get((cell.workload, cell.hz, False))} - {"starved", "idle", "idle-held"}
        fits = {verdict: check(one, cell, work) for verdict, check in CHECKS.items()}
        one |= {"due": cell.due(), "fits": [v for v, right in fits.items() if right], "resolves": cell.resolves}
        one["right"] = any(fits[verdict] for verdict in cell.due())
    return found


def track(cell: Cell, pool: Mapping[str, Sequence[Row]]) -> Track:
    """The cell's samples as one job on one GPU."""
    rows = sampled(cell.load, cell.hz, pool[cell.workload], pool[WAITING], START_S)
    return Track(cell.name, f"GPU-{cell.name}", rows)


def asked(cell: Cell, lake: Path) -> dict[str, Any]:
    """What the audit of this job says."""
    audit = ask("audit", "--lake", str(lake), "--price", "1", "--owner", cell.name)
    behaviour = next(b for b in audit["behaviours"] if b["workload"] == cell.name)
    evidence = [*behaviour["evidence"], *(e for part in behaviour["parts"] for e in part["evidence"])]
    return {
        "class": behaviour["class"],
        "evidence": list(dict.fromkeys(evidence)),
        "first": audit["first"],
        "bucket_pct": audit["bucket_pct"],
    }


def _idle(one: Mapping[str, Any], cell: Cell, _work: set[str]) -> bool:
    idle = one["bucket_pct"]["idle"] + one["bucket_pct"]["idle_held"]
    return idle >= IDLE_FOUND * 100 * (1 - cell.load.duty) and one["first"] not in ENDING


CHECKS: dict[str, Callable[[Mapping[str, Any], Cell, set[str]], bool]] = {
    "starved": lambda one, _cell, _work: one["class"] == "starved" and one["first"] in LOADING,
    "idle": _idle,
    "work": lambda one, _cell, work: one["class"] in work and one["first"] not in LOADING,
    "cannot": lambda one, _cell, _work: any(words in line for line in one["evidence"] for words in CANNOT),
}


def counts(found: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Right answers of all, where the sampling resolves the load and where it does not."""
    groups: dict[str, list[bool]] = {"resolved": [], "not resolved": []}
    for one in found.values():
        groups["not resolved" if one["resolves"] == "no" else "resolved"].append(one["right"])
    return {title: (sum(rights), len(rights)) for title, rights in groups.items()}


def show(grid: Sequence[Cell], found: Mapping[str, Mapping[str, Any]]) -> str:
    """A square per way of sampling; what is wrong is spelled out below."""
    letter = {"starved": "S", "idle": "I", "work": "W", "cannot": "?"}
    lines = ["right answers: S starved, I idle, W work, ? cannot be resolved; lower case: wrong, the answer due", ""]
    for way in dict.fromkeys((c.workload, c.hz, c.counters) for c in grid):
        mine = [c for c in grid if (c.workload, c.hz, c.counters) == way and c.load.duty != FULL]
        periods, duties = (sorted({getattr(c.load, of) for c in mine}) for of in ("period_s", "duty"))
        lines.append(f"{way[0]}, {way[1]:g} Hz, {'with' if way[2] else 'without'} counters")
        lines.append("  duty \\ period s " + "".join(f"{p:>6g}" for p in periods))
        for duty in duties:
            marks = []
            for cell in sorted((c for c in mine if c.load.duty == duty), key=lambda c: c.load.period_s):
                one = found[cell.name]
                right = next((v for v in one["due"] if v in one["fits"]), None)
                marks.append(letter[right] if right else letter[one["due"][0]].lower().replace("?", "x"))
            lines.append(f"  {duty:>14.0%} " + "".join(f"{m:>6s}" for m in marks))
    lines.append("")
    for cell in grid:
        one = found[cell.name]
        if not one["right"]:
            lines.append(f"{cell.name}: due {' or '.join(one['due'])}; class {one['class']}, first {one['first']}")
    for title, (right, of) in counts(found).items():
        lines.append(f"{title}: {right} of {of} right" + (f" ({100 * right / of:.0f} %)" if of else ""))
    return "\n".join(lines)


def accepted_of(folders: Sequence[Path]) -> dict[str, list[str]]:
    """The classes that are right for each workload."""
    known = [recording.facts for recording in map(read_recording, folders)]
    return {
        name: one["accepted_classes"] for facts in known for name, one in facts.items() if "accepted_classes" in one
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--load", nargs="*", default=["lm_train_bf16_b16"], help="the workloads that start and stop")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    folders = args.folders or [folder for folder in RECORDINGS if folder.is_dir()]
    grid = cells(args.load)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = judge(grid, pool_of(folders), accepted_of(folders), Path(folder))
    except (BadRecording, CommandFailed, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyError as error:
        print(f"no recording holds {error}; give the folder of one that does", file=sys.stderr)
        return 2
    print(json.dumps({"cells": found, "right": counts(found)}, indent=1) if args.json else show(grid, found))
    right, of = counts(found)["resolved"]
    return 0 if 100 * right >= BAR_PCT * of else 1


if __name__ == "__main__":
    sys.exit(main())
