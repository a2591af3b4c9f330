"""What does each rule come to on probed capacity? A trace says when each zone had capacity; spot costs a third."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuledger.catalog.prices.history import S_PER_H
from gpuledger.plan.spot.backtest import Case, run_rules
from gpuledger.plan.spot.belief import Belief
from gpuledger.plan.spot.clairvoyant import least_usd
from gpuledger.plan.spot.replay import Terms, World

CHECKPOINT_H, RESTART_H = 1 / 60, 1 / 12
FEW_JOBS, FEW_EVERY_H = ((12.0, 1.25), (12.0, 1.5), (48.0, 1.25), (48.0, 2.0), (12.0, 1.1)), 36.0
JOBS = tuple((hours, slack) for hours in (4.0, 12.0, 48.0) for slack in (1.1, 1.25, 1.5, 2.0))
STEP_H, SPOT = 1 / 6, 1 / 3


def traces(data: Path, devices: tuple[str, ...]) -> Iterator[tuple[str, list[str], np.ndarray, float]]:
    """Each probed trace of these devices: its name, zones, capacity by tick and zone, hours per tick."""
    runs: dict[tuple[str, ...], dict[str, list[tuple[int, int, bool]]]] = {}
    with (data / "spot" / "skypilot_spot_traces_rle.csv").open(encoding="utf-8", newline="") as file:
        for r in csv.DictReader(file):
            if r["device"].startswith(devices):
                key = (r["start_date"], r["device"], r["kind"], r["nodes_requested"], r["gap_seconds"])
                full = int(r["available_instances"]) >= int(r["nodes_requested"])
                runs.setdefault(key, {}).setdefault(r["zone"], []).append(
                    (int(r["start_tick"]), int(r["run_ticks"]), full)
                )
    for key, zones in sorted(runs.items()):
        series = [np.repeat([u for _, _, u in sorted(z)], [n for _, n, _ in sorted(z)]) for z in zones.values()]
        ticks = min(map(len, series))
        name = f"{key[0]} {key[1].replace('_', ' x')}" + (f", {key[3]} nodes" if key[3] != "1" else "")
        yield f"{name} ({key[2]})", list(zones), np.array([s[:ticks] for s in series]).T, int(key[4]) / S_PER_H


def coarse(up: np.ndarray, gap_h: float) -> tuple[np.ndarray, float]:
    """Ticks of about ten minutes; a longer tick has capacity if all of its parts have."""
    parts = max(round(STEP_H / gap_h), 1)
    ticks = len(up) // parts
    return up[: ticks * parts].reshape(ticks, parts, -1).all(axis=1), parts * gap_h


def learned(past: np.ndarray, step_h: float, zones: Sequence[str]) -> list[Belief]:
    """Reclaim rate and outage of each zone from its past."""
    out = []
    for at, zone in enumerate(zones):
        up = past[:, at]
        ends = int((up[:-1] & ~up[1:]).sum())
        outage = max(float((~up).sum()) * step_h / max(ends, 1), step_h)
        rate = (ends + 0.5) / max(float(up.sum()) * step_h, 1.0)
        out.append(Belief(SPOT, rate, outage, zone[:-1], ends + 0.5))
    return out


def relative(case: Case) -> Case:
    """A case in percent of always on-demand."""
    whole = case.outcomes["on-demand"].usd / 100
    scaled = {name: replace(o, usd=o.usd / whole) for name, o in case.outcomes.items()}
    return Case(case.start_ms, case.window, case.least_usd / whole, scaled)


def trace_cases(data: Path, devices: tuple[str, ...], many: int = 0) -> list[Case]:
    """Jobs on every trace: about `many`, evenly from tight to loose and over its last three quarters, or a few."""
    found = []
    for name, zones, raw, gap_h in traces(data, devices):
        up, step = coarse(raw, gap_h)
        for work_h, slack in JOBS if many else FEW_JOBS:
            terms = Terms(work_h, CHECKPOINT_H, RESTART_H, slack * work_h)
            ticks = int(2.5 * terms.deadline_h / step)
            first, end = len(up) // 4, len(up) - int(1.5 * terms.deadline_h / step)
            every = max(1, (end - first) * len(JOBS) // many) if many else int(FEW_EVERY_H / step)
            for at in range(first, end, every):
                world_up = up[at : at + ticks]
                world = World(step, np.full(world_up.shape, SPOT), world_up, np.ones(len(world_up)))
                outcomes = run_rules(world, terms, learned(up[:at], step, zones))
                found.append(relative(Case(at, name, least_usd(world, terms), outcomes)))
    return found
