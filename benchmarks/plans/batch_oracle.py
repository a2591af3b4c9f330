"""What is the cheapest way to run a few jobs, found by trying everything, without any code of the planner?

Time is in hours from 0; a job runs in whole hours of its pool (the last one in part), as many pieces as it likes if it
can be interrupted. Dollars are added up minute by minute.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations, pairwise

MINUTES = 60
RESTART_MIN = 10


@dataclass(frozen=True)
class SmallJob:
    """A job: minutes of work from one hour to another."""

    gpus: int
    minutes: int
    first_h: int
    due_min: int
    preemptible: bool
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class SmallPool:
    """A pool with one price for each hour of the day."""

    gpu: str
    gpus: int
    usd_by_hour: tuple[float, ...]
    terms: str
    speed: float = 1.0
    overhead_pct: float = 0.0


@dataclass(frozen=True)
class Case:
    """A few jobs on a few pools."""

    jobs: tuple[SmallJob, ...]
    pools: tuple[SmallPool, ...]
    hours: int


def random_case(rng: random.Random) -> Case:
    """Two to five jobs on one to three pools over six to nine hours."""
    hours = rng.randint(6, 9)
    kinds = ["on-demand", "reserved", "spot"]
    pools = tuple(
        SmallPool(
            gpu=rng.choice(["a", "b"]),
            gpus=rng.choice([2, 4, 8]),
            usd_by_hour=_prices(rng),
            terms="on-demand" if i == 0 else rng.choice(kinds),
            speed=rng.choice([1.0, 1.0, 2.0]),
            overhead_pct=rng.choice([0.0, 10.0]) if i else 0.0,
        )
        for i in range(rng.randint(1, 3))
    )
    jobs = []
    for _ in range(rng.randint(2, 5)):
        minutes = rng.choice([30, 60, 90, 120, 150, 240])
        first = rng.randint(0, 3)
        due = min(hours * MINUTES, first * MINUTES + minutes + rng.choice([0, 60, 120, 200, 400]))
        jobs.append(SmallJob(rng.choice([1, 2, 2]), minutes, first, max(due, first * MINUTES + minutes),
                             rng.random() < 0.5, (pools[0].gpu,) if rng.random() < 0.3 else ()))  # fmt: skip
    return Case(tuple(jobs), pools, max(-(-j.due_min // MINUTES) for j in jobs))


def _prices(rng: random.Random) -> tuple[float, ...]:
    low, high, cut = rng.choice([1.0, 1.5]), rng.choice([2.0, 3.0, 4.5]), rng.randint(1, 6)
    return tuple(high if hour < cut or hour > cut + 3 else low for hour in range(24))


def cheapest_usd(case: Case) -> float | None:
    """The fewest dollars with every deadline met, reserved pools included; None where there is no such way."""
    options = [sorted(_options(case, job), key=lambda o: o[0]) for job in case.jobs]
    if any(not o for o in options):
        return None
    least = [o[0][0] for o in options]
    rest = [sum(least[i:]) for i in range(len(least) + 1)]
    used = [[0] * case.hours for _ in case.pools]
    best: list[float | None] = [None]

    def place(i: int, usd: float) -> None:
        if best[0] is not None and usd + rest[i] >= best[0] - 1e-12:
            return
        if i == len(case.jobs):
            best[0] = usd
            return
        for more, pool, hours in options[i]:
            if all(used[pool][h] + case.jobs[i].gpus <= case.pools[pool].gpus for h in hours):
                for h in hours:
                    used[pool][h] += case.jobs[i].gpus
                place(i + 1, usd + more)
                for h in hours:
                    used[pool][h] -= case.jobs[i].gpus

    place(0, 0.0)
    fixed = sum(
        p.gpus * sum(p.usd_by_hour[h % 24] for h in range(case.hours)) for p in case.pools if p.terms == "reserved"
    )
    return None if best[0] is None else best[0] + fixed


def _options(case: Case, job: SmallJob) -> list[tuple[float, int, tuple[int, ...]]]:
    out = []
    for number, pool in enumerate(case.pools):
        if job.gpus > pool.gpus or (job.types and pool.gpu not in job.types):
            continue
        if pool.terms == "spot" and not job.preemptible:
            continue
        work = job.minutes / pool.speed * (1 + pool.overhead_pct / 100)
        hours = range(job.first_h, -(-job.due_min // MINUTES))
        for size in range(1, len(hours) + 1):
            for held in combinations(hours, size):
                pieces = 1 + sum(b != a + 1 for a, b in pairwise(held))
                need = work + (pieces - 1) * RESTART_MIN
                if (pieces > 1 and not job.preemptible) or -(-need // MINUTES) != size:
                    continue
                last = need - (size - 1) * MINUTES
                if held[-1] * MINUTES + last > job.due_min + 1e-9:
                    continue
                by_hour = [(h, last if h == held[-1] else MINUTES) for h in held]
                usd = sum(pool.usd_by_hour[h % 24] / MINUTES * minutes * job.gpus for h, minutes in by_hour)
                out.append((0.0 if pool.terms == "reserved" else usd, number, held))
    return out
