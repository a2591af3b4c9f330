"""Is the front of `plan regions` what it claims, and how long does a choice of region hold?

    python benchmarks/plans/regions.py [--data FOLDER] [--update docs/results/plans-regions.md]

The front: every region that is best under some weighting of dollars, carbon and zones must be on it (seeded weights);
every plan is made by `gpuledger.plan.regions`.
The choice: the cheapest AWS region of one day against the cheapest one 30, 90 and 180 days later, over the price
history in FOLDER/prices (left out where it is not there).
"""

from __future__ import annotations

import argparse
import random
import statistics
from pathlib import Path

import duckdb

import gpuledger
from gpuledger.plan.regions.build import figures
from gpuledger.plan.regions.statement import RegionsPlan

CASES = (("h100-sxm", 8, 0), ("h100-sxm", 8, 20_000), ("a100-sxm4-80gb", 8, 20_000), ("l4", 1, 500), ("a10g", 4, 500))
WEIGHTINGS, SEED = 2_000, 7
HISTORY, OBSERVED = "aws_gpu_spot_daily_2022-11_2026-08.csv.gz", "aws_spot_observation_times.csv"
TYPES = ("p5.48xlarge", "p4d.24xlarge", "g5.xlarge", "g4dn.xlarge")
DAYS = (30, 90, 180)


def weighted_winners(plan: RegionsPlan) -> tuple[int, int]:
    """How many weightings have their winner on the front, and how many different winners there are."""
    known = [(figures(c), c) for c in (*plan.chosen, *plan.runners_up) if figures(c)[1] is not None]
    most = [max(abs(float(f[i] or 0)) for f, _ in known) or 1.0 for i in range(3)]
    rng, held, winners = random.Random(SEED), 0, set()
    for _ in range(WEIGHTINGS):
        weights = [rng.random() for _ in range(3)]

        def score(pair: tuple, weights: list[float] = weights) -> float:
            return sum(w * float(v) / m for w, v, m in zip(weights, pair[0], most, strict=True))

        best = min(known, key=score)[1]
        held, winners = held + best.on_front, winners | {best.name}
    return held, len(winners)


def fronts() -> list[str]:
    """A table of plans: candidates, size of the front, winners of weightings."""
    lines = ["| job | candidates | on the front | weightings won by the front | different winners |",
             "|---|---:|---:|---:|---:|"]  # fmt: skip
    for name, count, gb in CASES:
        data = {"data": f"{gb} GiB", "data_at": "aws:us-east-1"} if gb else {}
        plan = gpuledger.plan.regions(gpu=name, gpus=count, hours=720, **data).statement
        held, winners = weighted_winners(plan)
        all_of = len(plan.chosen) + len(plan.runners_up)
        lines.append(f"| {count} x {name}, {gb:,} GB | {all_of} | {len(plan.chosen)} | {held} of {WEIGHTINGS} "
                     f"| {winners} |")  # fmt: skip
    return lines


def regret(file: Path) -> list[str]:
    """How much more the region chosen on a day costs than the cheapest one later."""
    heads = (
        "type",
        "purchase",
        "days later",
        "starts",
        "offer gone",
        "still cheapest",
        "median extra",
        "90th percentile",
    )
    lines = [f"| {' | '.join(heads)} |", "|---|---|---:|---:|---:|---:|---:|---:|"]
    for kind in TYPES:
        for price in ("on_demand_usd_h", "spot_usd_h"):
            days = daily(file, kind, price)
            for later in DAYS:
                found, gone = extra_costs(days, later)
                if not found:
                    continue
                same = sum(x == 0 for x in found) / len(found)
                ninth = statistics.quantiles(found, n=10)[-1] if len(found) > 1 else found[0]
                cells = (
                    kind, price.removesuffix("_usd_h").replace("_", "-"), str(later), str(len(found) + gone), str(gone),
                    f"{100 * same:.0f} %", f"{100 * statistics.median(found):.1f} %", f"{100 * ninth:.1f} %",
                )  # fmt: skip
                lines.append(f"| {' | '.join(cells)} |")
    return lines


def daily(file: Path, kind: str, price: str) -> dict[int, dict[str, float]]:
    """The cheapest zone of each region on every tenth day, the last change carried forward.

    Days without an observation in the ten days before are left out: a price that was not observed may have changed.
    """
    rows = duckdb.sql(
        f"""
        with seen as (
            select observed_utc::date as day, region, az, last({price} order by observed_utc) as usd
            from read_csv('{file}') where instance_type = '{kind}' group by all),
        looked as (select distinct observed_utc::date as day from read_csv('{file.with_name(OBSERVED)}')),
        grid as (select unnest(generate_series(min(day), max(day), interval 10 day))::date as day from seen),
        days as (
            select day from grid g
            where exists (select 1 from looked l where l.day between g.day - interval 10 day and g.day)),
        spots as (select distinct region, az from seen)
        select epoch(d.day)::bigint // 86400 as day, s.region, min(x.usd) as usd
        from days d cross join spots s
        asof join seen x on x.region = s.region and x.az = s.az and x.day <= d.day
        where x.usd > 0 group by all order by all
        """
    ).fetchall()
    out: dict[int, dict[str, float]] = {}
    for day, region, usd in rows:
        out.setdefault(day, {})[region] = usd
    return out


def extra_costs(days: dict[int, dict[str, float]], later: int) -> tuple[list[float], int]:
    """For each start: the chosen region's price later over the cheapest one's, less 1; and how many offers are gone."""
    found, gone = [], 0
    for day, prices in days.items():
        then = days.get(day + later)
        chosen = min(prices, key=lambda region: (prices[region], region))
        if then and chosen in then:
            found.append(then[chosen] / min(then.values()) - 1)
        gone += bool(then) and chosen not in (then or {})
    return found, gone


def main() -> None:
    """Print the tables; with --update, write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--update", type=Path)
    given = parser.parse_args()
    if given.update and not given.data:
        parser.error("--update needs --data: the page has tables of the price history")
    history = given.data / "prices" / HISTORY if given.data else None
    how = "`python benchmarks/plans/regions.py --data FOLDER` prints these tables."
    parts = ["# Results: plan regions", "", how, "", "## The front", "", *fronts(), ""]
    if history is None or not history.exists():
        parts += ["Left out without a price history (--data): how long a choice of region holds.", ""]
    else:
        parts += ["## How long a choice of region holds (AWS price history, 2022-11 to 2026-08)", "",
                  "Extra: the region that was cheapest at the start against the cheapest one later. Starts overlap.",
                  "Days without observed prices are left out.", "", *regret(history), ""]  # fmt: skip
    text = "\n".join(parts)
    print(text)
    if given.update:
        given.update.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
