"""How does the planned spot rule do on the past, against simple rules and against knowing the future?

    python benchmarks/plans/spot.py --data DIR [--update docs/results/plans-spot.md]

Two tests, both walk forward. Prices: the shipped AWS history; at each start the planner has only the prices of that
day, capacity is drawn from the reclaim bands with a seed. Traces: probed capacity of AWS zones (DIR/spot); at each
start the planner has learned reclaim rates from the part of the trace before it; spot costs a third of on-demand.
Costs are percent of always on-demand, so that every job counts the same.

Each half-year has as many jobs, each trace about as many: GPUs, place, hours, deadline (10 % of slack to as long again)
and start are drawn with a seed. With few jobs per window, rules without a fallback often miss no deadline by luck; such
a test, used before, is counted too.

Each test has two parts. The rule was developed while looking at the first (development): its figures may flatter it.
The second (held out) has GPUs, start days, a seed and traces that no choice was made with.

A plan tests one job at its own starts, so these tests call what it calls. A sample of jobs is tested by
`gpuledger.plan.spot(backtest=True)` too, and must come to the same.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from spot_traces import CHECKPOINT_H, RESTART_H, relative, trace_cases

import gpuledger
from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices.history import S_PER_H, PriceHistory, load_history
from gpuledger.plan.spot.backtest import PLANNED, Backtest, Case, RuleResult, past_case, summed, walk, window_of
from gpuledger.plan.spot.build import past_starts
from gpuledger.plan.spot.pools import Wanted
from gpuledger.plan.spot.replay import Terms
from gpuledger.units import Unknown

SEED = 7
SAMPLE = 5  # jobs whose back-test is also made through the Python API
DAY_S = 24 * S_PER_H
STARTS_EVERY_S = 45 * DAY_S
FEW_JOBS = ((10.0, 1.25), (48.0, 1.5), (120.0, 1.2), (120.0, 2.0))
FLEETS = (("a100-sxm4-40gb", 8), ("a10g", 4), ("l40s", 4), ("t4", 1), ("h100-sxm5-80gb", 8), ("l4", 1))
HELD_OUT_FLEETS = (("v100-sxm2-16gb", 1), ("v100-sxm2-32gb", 8), ("a100-sxm4-80gb", 8), ("h200-sxm-141gb", 8))
HELD_OUT_SEED, HELD_OUT_SHIFT_S = 1009, 11 * DAY_S
DEVELOPMENT_DEVICES, HELD_OUT_DEVICES = ("v100", "k80"), ("intel", "c3")
JOBS = tuple((hours, slack) for hours in (10.0, 24.0, 48.0, 120.0) for slack in (1.1, 1.25, 1.5, 2.0))
MOST_LEFT_OUT = 20  # starts left out per job that is tested
HELD_OUT_JOBS, DEVELOPMENT_JOBS = 200, 100  # per window
PLACES: tuple[tuple[str, ...], ...] = ((), ("us-east-1",))
START_MARK, END_MARK = "<!-- spot -->", "<!-- /spot -->"


def few_cases(asked: tuple[str, int, tuple[str, ...], int, int]) -> tuple[list[Case], int]:
    """Every start of every job for one fleet in one place, as in the test used before."""
    gpu, gpus, regions, seed, shift_s = asked
    history, wanted = load_history(), Wanted(get_gpu(gpu), gpus, regions)
    found, out = [], 0
    for number, (work_h, slack) in enumerate(FEW_JOBS):
        terms = Terms(work_h, CHECKPOINT_H, RESTART_H, slack * work_h)
        # Jobs of different lengths start on different days.
        for at in range(history.first_s + 20 * DAY_S + number * 7 * DAY_S + shift_s, history.last_s, STARTS_EVERY_S):
            case = past_case(history, wanted, terms, at, seed + number)
            if isinstance(case, Unknown):
                out += 1
            else:
                found.append(relative(case))
    return found, out


def windows(history: PriceHistory) -> list[tuple[str, int, int]]:
    """Every half-year of the history: its name, its first and last second that has prices."""
    days = range(history.first_s + 20 * DAY_S, history.last_s, DAY_S)
    names = list(dict.fromkeys(map(window_of, days)))
    return [(n, min(d for d in days if window_of(d) == n), max(d for d in days if window_of(d) == n)) for n in names]


def drawn_cases(asked: tuple[str, int, int, tuple[tuple[str, int], ...], int, int]) -> tuple[list[Case], int]:
    """Jobs of one half-year, drawn with a seed."""
    window, first_s, last_s, fleets, number, seed = asked
    history, random = load_history(), Random(f"{seed} {window}")
    found: list[Case] = []
    out = 0
    while len(found) < number and out < MOST_LEFT_OUT * number:
        (gpu, gpus), (work_h, slack) = random.choice(fleets), random.choice(JOBS)
        wanted = Wanted(get_gpu(gpu), gpus, random.choice(PLACES))
        terms = Terms(work_h, CHECKPOINT_H, RESTART_H, slack * work_h)
        case = past_case(history, wanted, terms, random.randrange(first_s, last_s + DAY_S), random.randrange(2**31))
        if isinstance(case, Unknown) or case.window != window:
            out += 1
        else:
            found.append(relative(case))
    return found, out


def through_the_plan(asked: tuple[str, int, tuple[str, ...], int]) -> int:
    """The number of starts that `gpuledger.plan.spot` tests a job at; its back-test must be the one made here."""
    gpu, gpus, regions, number = asked
    history, (work_h, slack) = load_history(), FEW_JOBS[number]
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
    jobs = [(*random.choice(FLEETS), random.choice(PLACES), random.randrange(len(FEW_JOBS))) for _ in range(SAMPLE)]
    starts = sum(pool.map(through_the_plan, jobs))
    said = f"{starts:,} further starts ({SAMPLE} jobs, drawn with a seed) were tested by `gpuledger.plan.spot` with"
    return [f"{said} `backtest=True`: the same figures as by the calls above.", ""]


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
    return [*out, "", *lost_lines(back), ""]


def lost_lines(back: Backtest) -> list[str]:
    """In how many windows a simple rule was better, and which."""
    every = {r.window for r in back.windows}
    lost = {b.window for b in back.beaten} & every
    out = [f"A simple rule was cheaper without missing more deadlines in {len(lost)} of {len(every)} windows."]
    rows = [f"- {b.window}: {b.rule}, {b.usd:.2f} % against {b.planned_usd:.2f} %" for b in back.beaten]
    return [*out, *([""] if rows else []), *rows]


def _table(_name: str, rows: Sequence[RuleResult]) -> list[str]:
    out = ["| rule | cost, % of on-demand (95 %) | missed | median regret (95 %) |", "|---|---:|---:|---:|"]
    for r in rows:
        cost = f"{r.mean_usd:.1f} ({r.mean_low_usd:.1f}-{r.mean_high_usd:.1f})"
        regret = f"{r.median_regret_pct:.1f} % ({r.regret_low_pct:.1f}-{r.regret_high_pct:.1f})"
        out.append(f"| {r.rule} | {cost} | {r.misses} | {regret} |")
    return out


def part_lines(
    pool: ProcessPoolExecutor, part: str, data: Path | None, fleets: tuple[tuple[str, int], ...],
    devices: tuple[str, ...], seed: int, number: int,
) -> list[str]:  # fmt: skip
    """Both tests with some GPUs, traces and a seed."""
    on_traces = pool.submit(trace_cases, data, devices, number) if data else None
    parts = list(pool.map(drawn_cases, [(*w, fleets, number, seed) for w in windows(load_history())]))
    cases, out = [c for found, _ in parts for c in found], sum(n for _, n in parts)
    text = lines(f"AWS prices, capacity drawn from the reclaim bands ({part})", summed(cases, out, seed))
    if on_traces:
        text += lines(f"Probed capacity ({part})", summed(on_traces.result(), 0, seed))
    print("\n".join(text), flush=True)
    return text


def few_lines(pool: ProcessPoolExecutor, data: Path | None) -> list[str]:
    """The test used before, with few jobs per window, on held-out data."""
    asked = [(g, n, place, HELD_OUT_SEED, HELD_OUT_SHIFT_S) for g, n in HELD_OUT_FLEETS for place in PLACES]
    parts = list(pool.map(few_cases, asked))
    cases, out = [c for found, _ in parts for c in found], sum(n for _, n in parts)
    tests = [("prices", summed(cases, out, HELD_OUT_SEED))]
    if data:
        tests.append(("probed capacity", summed(trace_cases(data, HELD_OUT_DEVICES), 0, HELD_OUT_SEED)))
    text = ["### Few jobs per window, as tested before (held out)", ""]
    for name, back in tests:
        windows_of_jobs = [r.starts for r in back.windows if r.rule == PLANNED]
        jobs = f"{min(windows_of_jobs)} to {max(windows_of_jobs)} jobs per window"
        text += [f"{name.capitalize()}, {jobs}, {back.rules[0].misses} deadlines missed.", *lost_lines(back), ""]
    print("\n".join(text), flush=True)
    return text


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
        if not given.development:
            args = (HELD_OUT_FLEETS, HELD_OUT_DEVICES, HELD_OUT_SEED, HELD_OUT_JOBS)
            text += part_lines(pool, "held out", given.data, *args)
            text += few_lines(pool, given.data)
        text += part_lines(pool, "development", given.data, FLEETS, DEVELOPMENT_DEVICES, SEED, DEVELOPMENT_JOBS)
        text += checked_lines(pool)
    print("\n".join(text[-2:]))
    if not given.data:
        print("Left out without traces (--data): probed capacity.")
    print(f"{time.perf_counter() - began:.0f} s")
    if given.update:
        update(given.update, "\n".join(text).rstrip())


if __name__ == "__main__":
    main()
