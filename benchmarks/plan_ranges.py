"""Do the shipped ranges of plans say what the measured runs say, and do they hold the runs they claim to hold?

    PYTHONPATH=src python benchmarks/plan_ranges.py            exit with 1 where they do not, and print why
    PYTHONPATH=src python benchmarks/plan_ranges.py --write    set the computed figures (needs tomlkit)

Computed are how many runs and models there are, the median, and for memory the least and the most of planned over
taken: [error.*] of overheads.toml, and [[train.errors]] and [[traced.errors]] of efficiency_factors.toml. The ends of a
range (p10, p90) are set by hand, and checked: a range of memory holds every run, one of speed at least HELD of the runs
that calibrated nothing. That of serving with a growing cache is the deciles of three runs and is checked with
plan_errors.py. Traced plans are those of data/models_plans.json; formulas are evaluated now. No torch is needed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plan_errors import measured_memory, training_errors
from plan_rows import measured_cases
from plan_runs import GPU, HERE, measured_runs, rows, setup_of, taken_bytes, words

from gpuledger import plan
from gpuledger.catalog.models.configs import UnreadType, model_from_config
from gpuledger.plan.memory.facts import Measured, overheads
from gpuledger.plan.speed.facts import ErrorSpread, factors

SHIPPED = HERE.parent / "src" / "gpuledger" / "plan" / "data"
RECORDED = HERE.parent / "tests" / "data"  # training runs of our own H200 recording
MEMORY, SPEED = "overheads.toml", "efficiency_factors.toml"
HELD = {"traced": 0.9, "train": 0.8}
CALIBRATES = "calibrate"


@dataclass(frozen=True)
class Run:
    """One plan over what was measured."""

    model: str
    words: str
    ratio: float
    planned_bytes: int = 0
    taken_bytes: int = 0


def memory_runs() -> dict[str, list[Run]]:
    """Plans of memory by the range they have."""
    found = defaultdict(list)
    for row in rows():
        found[row.memory_of].append(Run(row.name, row.run, row.total_ratio, row.planned_bytes, row.taken_bytes))
    for case in measured_memory(measured_cases() or {"cases": []}):
        sizes = case["planned_bytes"], case["taken_bytes"]
        found[case["of"]].append(Run(case["model"], case["row"], case["total_ratio"], *sizes))
    found["unchecked"] += unchecked_formulas()
    return dict(found)


def unchecked_formulas() -> Iterator[Run]:
    """Types with a formula that was not checked, planned by it; a file with more than a text model has no formula."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        for run in (run for _, run in measured_runs() if "text_config" not in run["config"]):
            file.write_text(json.dumps(run["config"]), encoding="utf-8")
            try:
                if model_from_config(file).by_formula:
                    continue
            except UnreadType:
                continue
            need, taken = plan.fit(file, GPU, trace="never", **setup_of(run)).statement.total_bytes, taken_bytes(run)
            yield Run(run["name"], words(run), need / taken, need, taken)


def speed_runs() -> dict[tuple[str, str], list[Run]]:
    """Plans of speed by kind of plan and the range they have; runs that set the factors are left out."""
    found = defaultdict(list)
    for row in rows():
        if row.speed_traced and row.split != CALIBRATES:
            found["traced", row.speed_of].append(Run(row.name, row.run, row.speed_ratio))
    for row in training_errors(measured_cases(), RECORDED):
        if row["held_out"]:
            found["train", row["of"]].append(Run(row["row"], "", row["ours_per_s"] / row["measured_per_s"]))
    return dict(found)


def computed(runs: list[Run], *, memory: bool) -> dict[str, float]:
    """The figures that follow from runs."""
    ratios = [run.ratio for run in runs]
    found: dict[str, float] = {"rows": len(runs), "p50": round(statistics.median(ratios), 3)}
    if memory:
        found |= {"models": len({run.model for run in runs})}
        found |= {"least": round(min(ratios), 3), "most": round(max(ratios), 3)}
    return found


def problems() -> list[str]:
    """What the shipped files say that the runs do not; empty where all is as computed."""
    return [*_memory_problems(), *_speed_problems()]


def _memory_problems() -> Iterator[str]:
    for of, runs in memory_runs().items():
        errors: Measured = getattr(overheads().error, of)
        yield from _differences(f"{MEMORY} [error.{of}]", errors, computed(runs, memory=True))
        for run in runs if of != "serve" else ():
            low, high = errors.span(run.planned_bytes)
            if not low <= run.taken_bytes <= high:
                yield (
                    f"{MEMORY} [error.{of}]: {errors.p10} to {errors.p90} does not hold {run.model} ({run.words}), "
                    f"{run.ratio:.3f}: widen p10 or p90, or find out why"
                )


def _speed_problems() -> Iterator[str]:
    found = speed_runs()
    for kind, shares in HELD.items():
        for errors in getattr(factors(), kind).errors:
            where, runs = f"{SPEED} [[{kind}.errors]] of {errors.of!r}", found.get((kind, errors.of), [])
            if not runs:
                yield f"{where}: no measured run has this range"
                continue
            yield from _differences(where, errors, computed(runs, memory=False))
            inside = sum(errors.p10 <= run.ratio <= errors.p90 for run in runs)
            if inside < shares * len(runs):
                yield f"{where}: {errors.p10} to {errors.p90} holds {inside} of {len(runs)} runs: widen p10 or p90"


def _differences(where: str, shipped: Measured | ErrorSpread, found: dict[str, float]) -> Iterator[str]:
    for name, value in found.items():
        if (has := getattr(shipped, name)) != value:
            yield f"{where}: {name} is {has}, the runs say {value}: run python benchmarks/plan_ranges.py --write"


def write() -> None:
    """Set the computed figures; all else stays as it is, comments included."""
    import tomlkit

    memory = tomlkit.parse((SHIPPED / MEMORY).read_text(encoding="utf-8"))
    for of, runs in memory_runs().items():
        memory["error"][of].update(computed(runs, memory=True))  # type: ignore[index,union-attr]
    speed = tomlkit.parse((SHIPPED / SPEED).read_text(encoding="utf-8"))
    for (kind, of), runs in speed_runs().items():
        tables: Any = speed[kind]["errors"]  # type: ignore[index]
        for table in (table for table in tables if table["of"] == of):
            table.update(computed(runs, memory=False))
    (SHIPPED / MEMORY).write_text(tomlkit.dumps(memory), encoding="utf-8")
    (SHIPPED / SPEED).write_text(tomlkit.dumps(speed), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="set the computed figures in the shipped files")
    if parser.parse_args().write:
        write()
        return 0
    found = problems()
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
