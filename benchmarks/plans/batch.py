"""How good are batch plans, compared with trying everything on small cases and with queues on a real trace?

    python benchmarks/plans/batch.py [--data DIR] [--update docs/results/plans-batch.md]

DIR has jobs/philly_jobs.csv.gz (submit time, seconds, GPUs of DNN training jobs). The trace has no deadlines, prices or
pools: those are drawn from a seed, as written next to the table. Every plan is made by `gpuledger.plan.batch` from
files of jobs and pools. Figures other than seconds are the same on every run.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import gzip
import random
import statistics
import time
from decimal import Decimal
from pathlib import Path

from batch_cases import planned
from batch_files import planned_from_files
from batch_oracle import cheapest_usd, random_case

from gpuledger.errors import InputError
from gpuledger.plan.batching.jobs import Job
from gpuledger.plan.batching.pools import Pool, Terms, market_pools
from gpuledger.plan.batching.price_windows import PriceWindow
from gpuledger.plan.batching.search import KNOWN_ON_ARRIVAL
from gpuledger.plan.batching.statement import BatchPlan, Outcome
from gpuledger.units import MS_PER_HOUR

SEED = 20261116
CASES = 500
# First job and number of jobs of each window of the trace; the last one is large. None of them was looked at while
# the search was tuned: that was done on windows that start at 4,000, 5,000, 18,000, 20,000, 25,000, 32,000, 40,000,
# 46,000, 60,000 and 74,000.
WINDOWS = (
    (1_000, 1000),
    (10_000, 1000),
    (22_000, 1000),
    (36_000, 1000),
    (50_000, 1000),
    (66_000, 1000),
    (12_000, 3000),
)
SECONDS = 20.0
LONGEST_H, MOST_GPUS = 48, 32
T_95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45}
GPU = "h100-sxm"
PRICE_DAY = dt.date(2026, 11, 16)
BEGIN, END = "<!-- batch: begin -->", "<!-- batch: end -->"


def small_cases() -> list[str]:
    """Plans compared with trying everything."""
    rng, gaps, proven, impossible, wrong = random.Random(SEED), [], 0, 0, 0
    for _ in range(CASES):
        case = random_case(rng)
        best = cheapest_usd(case)
        try:
            made = planned(case)
        except InputError:
            impossible += best is None
            wrong += best is not None
            continue
        if best is None:
            wrong += 1
            continue
        proven += made.proof == "optimal"
        gaps.append(100 * (float(made.chosen.usd) - best) / best if best else 0.0)
    return [
        f"| cases with a way to meet all deadlines | {len(gaps)} of {CASES} |",
        f"| refused, and brute force finds no way either | {impossible} |",
        f"| disagreements on whether there is a way | {wrong} |",
        f"| as cheap as brute force | {sum(abs(g) < 1e-6 for g in gaps)} of {len(gaps)} |",
        f"| largest gap to brute force | {max(gaps):.3f} % |",
        f"| proven optimal | {proven} of {len(gaps)} |",
    ]


def trace(folder: Path) -> list[tuple[int, int, int]]:
    """Submit time in ms, length in ms and GPUs of each job, in order of submission."""
    with gzip.open(folder / "jobs" / "philly_jobs.csv.gz", "rt") as file:
        rows = [
            (
                round(dt.datetime.fromisoformat(r["timestamp"]).replace(tzinfo=dt.UTC).timestamp()) * 1000,
                round(float(r["duration"]) * 1000),
                int(r["num_gpus"]),
            )
            for r in csv.DictReader(file)
        ]
    return sorted(r for r in rows if r[1] <= LONGEST_H * MS_PER_HOUR and r[2] <= MOST_GPUS)


def window_jobs(rows: list[tuple[int, int, int]], number: int) -> list[Job]:
    """Jobs with deadlines and preemptible ones drawn from the seed."""
    rng = random.Random(SEED + number)
    out = []
    for i, (at, work, gpus) in enumerate(rows):
        wait = max(rng.choice([1, 2, 4, 8, 16, 24]) * MS_PER_HOUR, round(work * rng.uniform(0.5, 3.0)))
        out.append(Job(f"j{i}", gpus, work, at, at + round(work * 1.1) + wait, preemptible=rng.random() < 0.4))
    return out


def window_pools(jobs: list[Job]) -> list[Pool]:
    """Reserved GPUs for a quarter of the mean load, on-demand ones with a night price, and some spot."""
    first, last = min(j.earliest_ms for j in jobs), max(j.earliest_ms for j in jobs)
    load = sum(j.gpus * j.work_ms for j in jobs) / max(last - first, 8 * MS_PER_HOUR)
    market = {p.terms: p for p in market_pools([GPU], 1, PRICE_DAY, 10.0, spot=True).pools}
    day, spot = market[Terms.ON_DEMAND], market[Terms.SPOT]
    assert day.low_usd is not None
    return [
        Pool("reserved", GPU, max(16, round(load / 4)), (day.usd_per_gpu_h * Decimal("0.6")).quantize(Decimal("0.01")),
             Terms.RESERVED),
        Pool("on-demand", GPU, max(2 * MOST_GPUS, round(load)), day.usd_per_gpu_h,
             windows=(PriceWindow(day.low_usd, 20 * 60, 6 * 60),), dated=day.dated),
        Pool("spot", GPU, max(16, round(load / 4)), spot.usd_per_gpu_h, Terms.SPOT, overhead_pct=10.0,
             dated=spot.dated),
    ]  # fmt: skip


def replay(folder: Path) -> tuple[list[str], list[str]]:
    """A row per window, and the savings over windows of the same size with their interval."""
    rows, lines = trace(folder), []
    saved: dict[str, list[float]] = {}
    for number, (first, size) in enumerate(WINDOWS):
        jobs = window_jobs(rows[first : first + size], number)
        start = time.process_time()
        made = planned_from_files(jobs, window_pools(jobs), seconds=SECONDS, allow_late=True)
        seconds = time.process_time() - start
        lines += window_lines(number + 1, size, made, seconds)
        print("\n".join(window_lines(number + 1, size, made, seconds)), flush=True)
        for other in made.runners_up:
            if size == 1000:
                saved.setdefault(other.name, []).append(100 * float(other.more_usd / other.usd))
    table = [f"| {name} | {_interval(found)} |" for name, found in saved.items()]
    return lines, table


def window_lines(number: int, size: int, made: BatchPlan, seconds: float) -> list[str]:
    """The plan and each queue of one window."""

    def line(one: Outcome, more: str) -> str:
        return (
            f"| {number} | {size:,} | {one.name} | ${one.usd:,.0f} | {one.missed} | {one.late_h:,.1f} |"
            f" {one.mean_wait_h:.1f} | {more} |"
        )

    gap = f"{made.gap_pct:.1f} %, {seconds:.0f} s" if made.proof != "none" else f"late jobs, {seconds:.0f} s"
    return [line(made.chosen, gap), *(line(one, "") for one in made.runners_up)]


def _interval(found: list[float]) -> str:
    mean = statistics.fmean(found)
    if len(found) < 2:
        return f"{mean:.1f} %"
    half = T_95[len(found)] * statistics.stdev(found) / len(found) ** 0.5
    return f"{mean:.1f} % | {mean - half:.1f} to {mean + half:.1f} % | {min(found):.1f} to {max(found):.1f} %"


PAGE = """{begin}

## Small cases, compared with trying everything

{count} random cases of 2 to 5 jobs on 1 to 3 pools (seed {seed}), each planned by `gpuledger.plan.batch` from files.

| what | result |
|---|---|
{cases}

## A real trace, compared with queues

Jobs of the Philly trace (Microsoft, 2017; CC-BY-4.0) up to 48 h and 32 GPUs: when they were submitted, how long
they ran, on how many GPUs. The trace has no deadlines and no prices; these are drawn from the seed: a wait of 1 to
24 h or half to three times the length of the job, whichever is longer; 40 % of the jobs are preemptible. Reserved
GPUs for a quarter of the mean load at 60 % of the on-demand price; on-demand GPUs for the mean load at the market's
median price by day and its 10th percentile from 20:00 to 06:00; spot GPUs for a quarter of the load at the median
spot price, where jobs take 10 % longer ({gpu}, the price list shipped with gpuledger). The plan knows all jobs of a
window; FIFO, best fit, earliest deadline first and "{arrival}" know a job when it arrives.

The search was tuned on other windows of the same trace than these. Saved by the plan, as a share of the cost of each
other way, over windows of 1,000 jobs:

| compared with | mean | 95 % interval over windows | lowest to highest |
|---|---|---|---|
{saved}

Every window. Gap: how far the plan is at most above the cheapest there can be. Time: on one core of the CPU.

| window | jobs | way | cost | missed | hours late | mean wait, h | gap, time |
|---|---|---|---|---|---|---|---|
{lines}

{end}"""


def page(cases: list[str], lines: list[str], saved: list[str]) -> str:
    """The section of the results page."""
    listed = {name: "\n".join(rows) for name, rows in (("cases", cases), ("lines", lines), ("saved", saved))}
    return PAGE.format(begin=BEGIN, end=END, count=CASES, seed=SEED, gpu=GPU, arrival=KNOWN_ON_ARRIVAL, **listed)


def main() -> None:
    """Run both parts; print the tables, and write them where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with jobs/philly_jobs.csv.gz; without it, small cases only")
    parser.add_argument("--update", type=Path, help="page whose section to replace")
    given = parser.parse_args()
    if given.update and not given.data:
        parser.error("--update needs --data: the page has tables of a real trace")
    if not given.data:
        print("\n".join(["| what | result |", "|---|---|", *small_cases()]))
        print("Left out without a trace (--data): plans of a real trace, compared with queues.")
        return
    made = page(small_cases(), *replay(given.data))
    print(made)
    if given.update:
        text = given.update.read_text() if given.update.exists() else f"# Batch plans\n\n{BEGIN}\n{END}\n"
        head, tail = text.split(BEGIN)[0], text.split(END)[-1]
        given.update.write_text(f"{head}{made}{tail}")


if __name__ == "__main__":
    main()
