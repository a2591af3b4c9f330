"""How many broken GPUs are named, and how many that are well? Faults put into a fleet, through import and statement.

    python benchmarks/anomalies/score.py [--worlds 31] [--clean 6] [--older 12] [--days 14] [--real FILE --map FILE]
        [--update docs/results/anomalies.md] [--json]

Each world is a fleet of 48 GPUs on four works; four of its GPUs break at some hour of its middle half, each in its own
way and size. A clean world has none: each GPU named there is a false alarm. An older world is one of 16 GPUs on two
works of eight, two of which broke before its first sample; its GPUs that are well count for precision. What is scored
is the answer of `gpuledger anomalies`: the file is imported into a lake, posted, and the statement is made. --real:
readings of real GPUs and their mapping file; nothing is known to be broken there, so each GPU named counts as a false
alarm.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faults import FAULTS, OLDER, Fault
from world import GPUS, SMALL, World, make, write

import gpuledger
from gpuledger.anomalies.statement import AnomalyStatement

PER_WORLD = 4
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Case:
    """One broken GPU and what was said of it."""

    fault: str
    size: float
    named: bool
    kind_fits: bool
    since_error_h: float | None
    said: tuple[tuple[str, bool], ...]  # each kind that was named, and whether it fits the fault


def statement_of(world: World) -> AnomalyStatement:
    """What gpuledger says of a world."""
    with tempfile.TemporaryDirectory(prefix="anomalies-") as folder:
        file = write(world, Path(folder) / "fleet.parquet")
        lake = gpuledger.open(Path(folder) / "lake")
        lake.ingest(file)
        return lake.anomalies(prices=2.5).statement


def broken_world(seed: int, days: float) -> tuple[World, dict[int, tuple[Fault, float, int]]]:
    """A fleet with some broken GPUs: the fault, its size and its hour by GPU."""
    world, chance = make(seed, days), np.random.default_rng([seed, 2])
    every = [(fault, size) for fault in FAULTS for size in fault.sizes]
    picks = [every[(PER_WORLD * seed + i) % len(every)] for i in range(PER_WORLD)]
    broken, hours = {}, int(world.hour[-1])
    for gpu, (fault, size) in zip(chance.choice(GPUS, PER_WORLD, replace=False).tolist(), picks, strict=True):
        hour = int(chance.integers(hours // 4, 3 * hours // 4))
        fault.apply(world, gpu, hour, size, chance)
        broken[gpu] = (fault, size, hour)
    return world, broken


def older_world(seed: int, days: float) -> tuple[World, dict[int, tuple[Fault, float, int]]]:
    """A small fleet with one GPU of each work that was broken before the first sample."""
    world, chance = make(seed, days, works=SMALL), np.random.default_rng([seed, 3])
    every = [(fault, size) for fault in OLDER for size in fault.sizes]
    broken = {}
    for work in range(len(SMALL)):
        fault, size = every[(len(SMALL) * seed + work) % len(every)]
        gpu = work * SMALL[0][-1] + int(chance.integers(SMALL[0][-1]))
        fault.apply(world, gpu, 0, size, chance)
        broken[gpu] = (fault, size, 0)
    return world, broken


def judge(
    world: World, found: AnomalyStatement, broken: dict[int, tuple[Fault, float, int]]
) -> tuple[list[Case], list[str]]:
    """The cases of a world, and the kinds of findings on GPUs that are well, the first of each."""
    by_uuid = defaultdict(list)
    for one in found.findings:
        by_uuid[one.gpu_uuid].append(one)
    cases = []
    for gpu, (fault, size, hour) in broken.items():
        mine = by_uuid.pop(world.fleet[gpu].uuid, [])
        fits = [f for f in mine if f.kind in fault.kinds]
        began = int(world.at_ms[0]) + hour * 3_600_000
        error = abs(fits[0].since_ms - began) / 3_600_000 if fits else None
        cases.append(Case(fault.name, size, bool(mine), bool(fits), error, tuple((f.kind, f in fits) for f in mine)))
    return cases, [first.kind for first, *_ in by_uuid.values()]


def summary(
    cases: list[Case], wrong: list[str], clean_wrong: int, clean_gpu_days: float, gpu_days: float
) -> dict[str, Any]:
    """Precision and recall, by fault and size too."""
    groups: dict[tuple[str, float], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.fault, case.size].append(case)
    named = sum(c.named for c in cases)
    since = [c.since_error_h for c in cases if c.since_error_h is not None]
    return {
        "cases": len(cases),
        "recall": named / max(1, len(cases)),
        "kind_right": sum(c.kind_fits for c in cases) / max(1, named),
        "precision": named / max(1, named + len(wrong)),
        "wrong_gpus": len(wrong),
        "by_kind": _by_kind(cases, wrong),
        "gpu_days": gpu_days,
        "since_error_h_median": float(np.median(since)) if since else None,
        "clean_wrong_gpus": clean_wrong,
        "clean_gpu_days": clean_gpu_days,
        "false_alarms_per_1000_gpu_days": 1000 * clean_wrong / max(1e-9, clean_gpu_days),
        "by_fault": [
            {"fault": name, "size": size, "cases": len(g), "named": sum(c.named for c in g),
             "kind": sum(c.kind_fits for c in g)}
            for (name, size), g in sorted(groups.items())
        ],
    }  # fmt: skip


def _by_kind(cases: list[Case], wrong: list[str]) -> dict[str, tuple[int, int]]:
    """By kind of finding how many fit the fault, of how many."""
    every = [said for case in cases for said in case.said] + [(kind, False) for kind in wrong]
    return {kind: (sum(fits for k, fits in every if k == kind), sum(k == kind for k, _ in every))
            for kind in sorted({kind for kind, _ in every})}  # fmt: skip


def real(file: Path, mapping: str | None) -> dict[str, Any]:
    """False alarms on real readings."""
    with tempfile.TemporaryDirectory(prefix="anomalies-real-") as folder:
        lake = gpuledger.open(Path(folder) / "lake")
        lake.ingest(file, map=mapping)
        found = lake.anomalies().statement
    days = found.gpus * (found.end_ms - found.start_ms) / 86_400_000
    return {
        "gpus": found.gpus, "by_peers": found.by_peers, "by_own_past": found.by_own_past, "gpu_days": days,
        "named": len({f.gpu_uuid for f in found.findings}), "kinds": sorted(f.kind for f in found.findings),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=31)
    parser.add_argument("--clean", type=int, default=6)
    parser.add_argument("--older", type=int, default=12)
    parser.add_argument("--days", type=float, default=14.0)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--real", type=Path, help="real readings to count false alarms on")
    parser.add_argument("--map", help="mapping file of --real")
    parser.add_argument("--update", type=Path, help="page whose figures are to be replaced")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    began, cases, wrong = time.monotonic(), list[Case](), list[str]()
    for seed in range(asked.first_seed, asked.first_seed + asked.worlds):
        world, broken = broken_world(seed, asked.days)
        found, named = judge(world, statement_of(world), broken)
        cases += found
        wrong += named
    older, older_wrong = list[Case](), list[str]()
    for seed in range(asked.first_seed + 900, asked.first_seed + 900 + asked.older):
        world, broken = older_world(seed, asked.days)
        found, named = judge(world, statement_of(world), broken)
        older += found
        older_wrong += named
    clean = 0
    for seed in range(asked.first_seed + 500, asked.first_seed + 500 + asked.clean):
        clean += len({f.gpu_uuid for f in statement_of(make(seed, asked.days)).findings})
    days = asked.days * GPUS
    made = summary(cases, wrong, clean, asked.clean * days, asked.worlds * days) | {"seconds": time.monotonic() - began}
    older_days = asked.older * asked.days * sum(work[-1] for work in SMALL)
    made["older"] = summary(older, older_wrong, 0, 0, older_days)
    if asked.real:
        made["real"] = real(asked.real, asked.map)
    if asked.update:
        page = asked.update.read_text(encoding="utf-8")
        head, _, rest = page.partition(BEGIN)
        asked.update.write_text(f"{head}{BEGIN}\n{markdown(made)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(json.dumps(made, indent=1) if asked.json else text(made))


def markdown(made: dict[str, Any]) -> str:
    """The same as a part of a page."""
    table = _table(made["by_fault"])
    form = (
        "{cases} broken GPUs in {gpu_days:,.0f} GPU-days: recall {recall:.1%}, precision {precision:.1%} "
        "({wrong_gpus} others named), the right kind for {kind_right:.1%} of those named. Since when: off by "
        "{since_error_h_median:g} h (median).\n\nFleets without a fault: {clean_wrong_gpus} GPUs named in "
        "{clean_gpu_days:,.0f} GPU-days ({false_alarms_per_1000_gpu_days:.2f} per 1,000)."
    )
    kinds = "; ".join(f"{kind} {right} of {every}" for kind, (right, every) in made["by_kind"].items())
    older = (
        "Fleets of 16 GPUs on two works, two of them broken before the first sample:\n\n{table}\n\n{cases} broken GPUs "
        "in {gpu_days:,.0f} GPU-days: recall {recall:.1%}, precision {precision:.1%} ({wrong_gpus} others named), the "
        "right kind for {kind_right:.1%} of those named."
    ).format(table=_table(made["older"]["by_fault"]), **made["older"])
    return f"{table}\n\n{form.format(**made)}\n\nFindings that fit the fault, by kind: {kinds}.\n\n{older}"


def _table(rows: list[dict[str, Any]]) -> str:
    by_fault: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_fault[row["fault"]].append(f"{row['size']:g}: {row['named']} of {row['cases']}")
    lines = [f"| {fault} | {'; '.join(found)} |" for fault, found in by_fault.items()]
    return "\n".join(["| fault | named, by size |", "| --- | --- |", *lines])


def text(made: dict[str, Any]) -> str:
    """The table people read."""
    lines = [f"{'fault':<30}{'size':>6}{'cases':>7}{'named':>7}{'kind right':>12}"]
    form = "{fault:<30}{size:>6g}{cases:>7}{named:>7}{kind:>12}"
    lines += [form.format(**row) for row in made["by_fault"]]
    form = (
        "\nrecall {recall:.3f}, precision {precision:.3f} ({cases} broken GPUs, {wrong_gpus} others named in "
        "{gpu_days:,.0f} GPU-days), kind right {kind_right:.3f}\nsince when: median error {since_error_h_median} h\n"
        "clean fleets: {false_alarms_per_1000_gpu_days:.2f} false alarms per 1,000 GPU-days ({clean_wrong_gpus} in "
        "{clean_gpu_days:,.0f})\n{seconds:.0f} s"
    )
    lines.append(form.format(**made))
    lines.append(f"findings that fit the fault, by kind: {made['by_kind']}")
    older = made["older"]
    lines += ["", "broken before the first sample, fleets of 16"]
    lines += ["{fault:<30}{size:>6g}{cases:>7}{named:>7}{kind:>12}".format(**row) for row in older["by_fault"]]
    lines.append("recall {recall:.3f}, precision {precision:.3f} ({wrong_gpus} others named)".format(**older))
    if "real" in made:
        lines.append(f"real readings: {made['real']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
