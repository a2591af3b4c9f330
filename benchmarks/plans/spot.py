"""How does the planned spot rule do on the past, against simple rules and against knowing the future?

    python benchmarks/plans/spot.py --data DIR [--update docs/results/plans-spot.md]

Two tests, both walk forward. Prices: the shipped AWS history; at each start the planner has only the prices of that
day, capacity is drawn from the reclaim bands with a seed. Traces: probed capacity of AWS zones (DIR/spot); at each
start the planner has learned reclaim rates from the part of the trace before it; spot costs a third of on-demand.
Costs are percent of always on-demand, so that every job counts the same.

Each test has two parts. The rule was developed while looking at the first (development): its figures may flatter it.
The second (held out) has GPUs, start days, a seed and traces that no choice was made with.

A plan tests one job at its own starts, so these tests call what it calls. A sample of jobs is tested by
`gpuledger.plan.spot(backtest=True)` too, and must come to the same.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

import gpuledger
from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.history import S_PER_H, load_history
from gpuledger.plan.spot.backtest import PLANNED, Backtest, Case, RuleResult, past_case, run_rules, summed, walk
from gpuledger.plan.spot.build import past_starts
from gpuledger.plan.spot.clairvoyant import least_usd
from gpuledger.plan.spot.pools import Wanted
from gpuledger.plan.spot.replay import Terms, World
from gpuledger.plan.spot.rule import Belief
from gpuledger.units import Unknown

SEED = 7
SAMPLE = 5  # jobs whose back-test is also made through the Python API
CHECKPOINT_H, RESTART_H = 1 / 60, 1 / 12
DAY_S = 24 * S_PER_H
STARTS_EVERY_S = 45 * DAY_S
JOBS = ((10.0, 1.25), (48.0, 1.5), (120.0, 1.2), (120.0, 2.0))
FLEETS = (("a100-sxm4-40gb", 8), ("a10g", 4), ("l40s", 4), ("t4", 1), ("h100-sxm5-80gb", 8), ("l4", 1))
HELD_OUT_FLEETS = (("v100-sxm2-16gb", 1), ("v100-sxm2-32gb", 8), ("a100-sxm4-80gb", 8), ("h200-sxm-141gb", 8))
HELD_OUT_SEED, HELD_OUT_SHIFT_S = 1009, 11 * DAY_S
DEVELOPMENT_DEVICES, HELD_OUT_DEVICES = ("v100", "k80"), ("intel", "c3")
PLACES: tuple[tuple[str, ...], ...] = ((), ("us-east-1",))
TRACE_JOBS = ((12.0, 1.25), (12.0, 1.5), (48.0, 1.25), (48.0, 2.0), (12.0, 1.1))
TRACE_STEP_H, TRACE_SPOT = 1 / 6, 1 / 3
START_MARK, END_MARK = "<!-- spot -->", "<!-- /spot -->"


def relative(case: Case, window: str = "") -> Case:
    """A case in percent of always on-demand."""
    whole = case.outcomes["on-demand"].usd / 100
    scaled = {name: replace(o, usd=o.usd / whole) for name, o in case.outcomes.items()}
    return Case(case.start_ms, window or case.window, case.least_usd / whole, scaled)


def past_cases(asked: tuple[str, int, tuple[str, ...], int, int]) -> tuple[list[Case], int]:
    """Every start of every job for one fleet in one place."""
    gpu, gpus, regions, seed, shift_s = asked
    history, wanted = load_history(), Wanted(get_gpu(gpu), gpus, regions)
    found, out = [], 0
    for number, (work_h, slack) in enumerate(JOBS):
        terms = Terms(work_h, CHECKPOINT_H, RESTART_H, slack * work_h)
        # Jobs of different lengths start on different days.
        for at in range(history.first_s + 20 * DAY_S + number * 7 * DAY_S + shift_s, history.last_s, STARTS_EVERY_S):
            case = past_case(history, wanted, terms, at, seed + number)
            if isinstance(case, Unknown):
                out += 1
            else:
                found.append(relative(case))
    return found, out


def through_the_plan(asked: tuple[str, int, tuple[str, ...], int]) -> int:
    """The number of starts that `gpuledger.plan.spot` tests a job at; its back-test must be the one made here."""
    gpu, gpus, regions, number = asked
    history, (work_h, slack) = load_history(), JOBS[number]
    at = dt.datetime.fromtimestamp(history.last_s, dt.UTC).isoformat()
    shown = gpuledger.plan.spot(
        gpu=gpu, gpus=gpus, hours=work_h, deadline=f"{slack * work_h}h", region=regions, as_of=at, backtest=True,
        checkpoint_seconds=CHECKPOINT_H * S_PER_H, restart_seconds=RESTART_H * S_PER_H, draws=1, seed=SEED,
    ).statement.backtest  # fmt: skip
    terms, wanted = Terms(work_h, CHECKPOINT_H, RESTART_H, slack * work_h), Wanted(get_gpu(gpu), gpus, regions)
    found = list(walk(history, wanted, terms, past_starts(history, terms, history.last_s), SEED))
    cases = [c for c in found if isinstance(c, Case)]
    assert shown == summed(cases, len(found) - len(cases), SEED), asked
    return len(cases)


def checked_lines(pool: ProcessPoolExecutor) -> list[str]:
    """How many starts were also tested through the Python API."""
    random = Random(SEED)
    jobs = [(*random.choice(FLEETS), random.choice(PLACES), random.randrange(len(JOBS))) for _ in range(SAMPLE)]
    starts = sum(pool.map(through_the_plan, jobs))
    said = f"{starts:,} further starts ({SAMPLE} jobs, drawn with a seed) were tested by `gpuledger.plan.spot` with"
    return [f"{said} `backtest=True`: the same figures as by the calls above.", ""]


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
    parts = max(round(TRACE_STEP_H / gap_h), 1)
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
        out.append(Belief(TRACE_SPOT, rate, outage, zone[:-1], ends + 0.5))
    return out


def trace_cases(data: Path, devices: tuple[str, ...]) -> list[Case]:
    """Every start of every job on every trace."""
    found = []
    for name, zones, raw, gap_h in traces(data, devices):
        up, step = coarse(raw, gap_h)
        for work_h, slack in TRACE_JOBS:
            terms = Terms(work_h, CHECKPOINT_H, RESTART_H, slack * work_h)
            ticks = int(2.5 * terms.deadline_h / step)
            for at in range(len(up) // 4, len(up) - int(1.5 * terms.deadline_h / step), int(36 / step)):
                world_up = up[at : at + ticks]
                world = World(step, np.full(world_up.shape, TRACE_SPOT), world_up, np.ones(len(world_up)))
                outcomes = run_rules(world, terms, learned(up[:at], step, zones))
                found.append(relative(Case(at, name, least_usd(world, terms), outcomes)))
    return found


def lines(title: str, back: Backtest) -> list[str]:
    """A test as Markdown."""
    out = [
        f"### {title}",
        "",
        f"{back.starts:,} jobs; {back.left_out:,} starts left out (not observed, or nothing on offer).",
        "",
    ]
    out += _table("all", back.rules)
    windows = list(dict.fromkeys(r.window for r in back.windows))
    heads = [r.rule for r in back.rules]
    out += ["", "Cost in % of on-demand / deadlines missed, by window:", ""]
    out += [
        f"| window | jobs | {' | '.join(heads)} | median regret of planned (95 %) |",
        "|---|" + "---:|" * (len(heads) + 2),
    ]
    for window in windows:
        rows = {r.rule: r for r in back.windows if r.window == window}
        ours = rows[PLANNED]
        cells = " | ".join(f"{rows[n].mean_usd:.1f} / {rows[n].misses}" for n in heads)
        regret = f"{ours.median_regret_pct:.1f} % ({ours.regret_low_pct:.1f}-{ours.regret_high_pct:.1f})"
        out.append(f"| {window} | {ours.starts} | {cells} | {regret} |")
    out += ["", "Windows in which a simple rule was cheaper without missing more deadlines:", ""]
    out += [f"- {b.window}: {b.rule}, {b.usd:.2f} % against {b.planned_usd:.2f} %" for b in back.beaten] or ["- none"]
    return [*out, ""]


def _table(_name: str, rows: Sequence[RuleResult]) -> list[str]:
    out = ["| rule | cost, % of on-demand (95 %) | missed | median regret (95 %) |", "|---|---:|---:|---:|"]
    for r in rows:
        cost = f"{r.mean_usd:.1f} ({r.mean_low_usd:.1f}-{r.mean_high_usd:.1f})"
        regret = f"{r.median_regret_pct:.1f} % ({r.regret_low_pct:.1f}-{r.regret_high_pct:.1f})"
        out.append(f"| {r.rule} | {cost} | {r.misses} | {regret} |")
    return out


def update(file: Path, text: str) -> None:
    """Put the section into the file, between its marks."""
    whole = (
        file.read_text(encoding="utf-8") if file.exists() else f"# Spot plans: results\n\n{START_MARK}\n{END_MARK}\n"
    )
    before, _, rest = whole.partition(START_MARK)
    after = rest.partition(END_MARK)[2]
    file.write_text(f"{before}{START_MARK}\n{text}\n{END_MARK}{after}", encoding="utf-8")


def main() -> None:
    """Run both tests."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--data", type=Path, help="Folder with spot/; without it only prices are tested.")
    asked.add_argument("--update", type=Path, help="File whose section is replaced.")
    asked.add_argument(
        "--development", action="store_true", help="Leave the held-out parts alone: for work on the rule."
    )
    given = asked.parse_args()
    if given.development and given.update:
        asked.error("--update writes all parts: leave --development out")
    began = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        text: list[str] = []
        parts_run = (
            ("held out", HELD_OUT_FLEETS, HELD_OUT_DEVICES, HELD_OUT_SEED, HELD_OUT_SHIFT_S),
            ("development", FLEETS, DEVELOPMENT_DEVICES, SEED, 0),
        )
        for part, fleets, devices, seed, shift_s in parts_run[given.development :]:
            on_traces = pool.submit(trace_cases, given.data, devices) if given.data else None
            parts = list(pool.map(past_cases, [(g, n, place, seed, shift_s) for g, n in fleets for place in PLACES]))
            cases, out = [c for found, _ in parts for c in found], sum(n for _, n in parts)
            text += lines(f"AWS prices, capacity drawn from the reclaim bands ({part})", summed(cases, out, seed))
            if on_traces:
                text += lines(f"Probed capacity ({part})", summed(on_traces.result(), 0, seed))
        text += checked_lines(pool)
    print("\n".join(text))
    if not given.data:
        print("Left out without traces (--data): probed capacity.")
    print(f"{time.perf_counter() - began:.0f} s")
    if given.update:
        update(given.update, "\n".join(text).rstrip())


if __name__ == "__main__":
    main()
