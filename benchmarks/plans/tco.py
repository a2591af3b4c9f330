"""Does `plan tco` come to what a pencil and published studies come to, and how wrong is a constant rent?

    python benchmarks/plans/tco.py [--data FOLDER] [--update docs/results/plans-tco.md]

The price history in FOLDER/prices (left out without one) gives what renting really cost over a year or more,
against what a plan made on its first day would have assumed.
"""

from __future__ import annotations

import argparse
import statistics
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from gpuledger import plan

HISTORY = "aws_gpu_spot_daily_2022-11_2026-08.csv.gz"
PENCIL = {
    "gpu": "h100-sxm", "gpus": 8, "purchase_usd": 30_000, "network_usd": 0, "spares_pct": 0, "life_years": 5,
    "capital_pct": 10, "busy_pct": 100, "host_w": 300, "pue": 1.2, "usd_per_kwh": 0.10, "colo_usd_per_kw_month": 150,
    "fte_per_hundred_gpus": 0.5, "usd_per_fte_year": 200_000, "maintenance_pct": 4, "failures_pct_year": 0,
    "utilization_pct": 50, "rent_usd": 3,
}  # fmt: skip
BY_HAND = {"own": "308281.728", "on-demand": "315360"}
# v2-pseo-ai.pages.dev/tools/gpu-tco-analysis: an 8-GPU H100 node over 3 years, with the ends of its own inputs.
STUDY = {
    "gpu": "h100-sxm", "gpus": 8, "spares_pct": 0, "capital_pct": 0, "busy_pct": 100, "host_w": 575, "pue": 1,
    "fte_per_hundred_gpus": 0, "maintenance_pct": 0, "failures_pct_year": 0, "utilization_pct": 100, "residual_pct": 0,
}  # fmt: skip
STUDY_LOW = {"purchase_usd": 37_500, "network_usd": 3_750, "usd_per_kwh": 0.06, "colo_usd_per_kw_month": 150}
STUDY_HIGH = {"purchase_usd": 43_750, "network_usd": 6_562.5, "usd_per_kwh": 0.12, "colo_usd_per_kw_month": 250}
TYPES = ("p5.48xlarge", "p4d.24xlarge", "p3.16xlarge", "g5.48xlarge", "g4dn.12xlarge")
MONTHS = (12, 24, 36)


def pencil() -> list[str]:
    """The example of the documentation against the same figures by hand."""
    made = plan.tco(**PENCIL)
    rows = ["| path | plan | by hand | difference |", "|---|---:|---:|---:|"]
    for name, expected in BY_HAND.items():
        total = made.path(name).usd.middle_usd
        rows.append(f"| {name} | ${total:,.3f} | ${Decimal(expected):,.3f} | ${total - Decimal(expected):,.3f} |")
    return rows


def study() -> list[str]:
    """A published range against the plan with the study's own inputs."""
    low = plan.tco(**STUDY, **STUDY_LOW, rent_usd=4.5)
    high = plan.tco(**STUDY, **STUDY_HIGH, rent_usd=3.0)
    low_month, high_month = (made.path("on-demand").break_even_month for made in (low, high))
    return [
        "| figure | published | plan, at the ends of the published inputs |",
        "|---|---:|---:|",
        f"| 8 x H100 for 3 years | $450,000 to $650,000 | ${low.own.total_usd:,.0f} to ${high.own.total_usd:,.0f} |",
        f"| break-even at full use | 14 to 18 months | {low_month:.1f} to {high_month:.1f} months |",
    ]


def realized(file: Path) -> list[str]:
    """What renting cost over some months, over what the price of the first day came to."""
    rows = [
        "| type | months | starts | median of real / planned | lowest | highest |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind in TYPES:
        prices = monthly(file, kind)
        for months in MONTHS:
            ratios = [
                statistics.mean(prices[start : start + months]) / prices[start]
                for start in range(len(prices) - months + 1)
            ]
            if ratios:
                rows.append(f"| {kind} | {months} | {len(ratios)} | {statistics.median(ratios):.3f} "
                            f"| {min(ratios):.3f} | {max(ratios):.3f} |")  # fmt: skip
    return rows


def monthly(file: Path, kind: str) -> list[float]:
    """The on-demand price in the cheapest region at the start of each month, the last change carried forward."""
    rows: list[Any] = duckdb.sql(
        f"""
        with seen as (
            select observed_utc::date as day, region, last(on_demand_usd_h order by observed_utc) as usd
            from read_csv('{file}') where instance_type = '{kind}' and on_demand_usd_h > 0 group by all),
        days as (select unnest(generate_series(min(day), max(day), interval 30 day))::date as day from seen),
        regions as (select distinct region from seen)
        select d.day, min(x.usd) from days d cross join regions r
        asof join seen x on x.region = r.region and x.day <= d.day group by 1 order by 1
        """
    ).fetchall()
    return [usd for _, usd in rows]


def main() -> None:
    """Print the tables; with --update, write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--update", type=Path)
    given = parser.parse_args()
    if given.update and not given.data:
        parser.error("--update needs --data: the page has tables of the price history")
    history = given.data / "prices" / HISTORY if given.data else None
    parts = ["# Results: plan tco", "", "`python benchmarks/plans/tco.py --data FOLDER` prints these tables.", "",
             "## By hand", "", *pencil(), "",
             "## A published estimate", "",
             "GPU TCO Analysis (v2-pseo-ai.pages.dev): node $300,000 to $350,000, network 10 to 15 %, 10.2 kW,",
             "$0.06 to $0.12 per kWh, colocation $150 to $250 per kW and month, rent $3.00 to $4.50.",
             "Its total is higher than what these inputs come to.", "", *study(), ""]  # fmt: skip
    if history is None or not history.exists():
        parts += ["Left out without a price history (--data): a constant rent against what it really was.", ""]
    else:
        parts += ["## A constant on-demand price against what it really was (AWS, 2022-11 to 2026-08)", "",
                  "The cheapest region at the start of each month of 30 days.",
                  "Below 1, renting cost less than a plan made on the first day assumed.",
                  "From April to mid-July 2026 the prices were not observed: the last one is carried forward.", "",
                  *realized(history), ""]  # fmt: skip
    text = "\n".join(parts)
    print(text)
    if given.update:
        given.update.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
