"""Is what was paid the sum of its seven buckets, to the last digit, however it is grouped?"""

from __future__ import annotations

import json
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from fleets import A100, DAY, H100, Row, lake_of, random_fleet

from gpuledger.cost.build import cost_statement
from gpuledger.cost.money import cost_usd
from gpuledger.cost.statement import BUCKETS, CostStatement, Dollars, to_json
from gpuledger.cost.teams import Config, NamespaceConfig
from gpuledger.ledger.read.scope import UNALLOCATED, Scope
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Unknown, utc

DAYS = 2
WHOLE = Scope(DAY, DAY + DAYS * MS_PER_DAY)
TEAMS = Config(namespaces={"train": NamespaceConfig(team="red"), UNALLOCATED: NamespaceConfig(team="blue")})
Stock = list[tuple[str, int, int, Decimal]]
UNSEEN = "GPU-ffffffff-0000-4000-8000-00000000000f"


def stock_of(dice: random.Random, rows: list[Row]) -> Stock:
    """Each board with one or two prices one after the other, and a board that was never seen."""
    out: Stock = []
    for gpu in sorted({str(row["UUID"]) for row in rows} | {UNSEEN}):
        cuts = sorted({DAY, *(DAY + dice.randrange(1, DAYS * MS_PER_DAY) // 1000 * 1000 for _ in range(2))})
        for start, end in zip(cuts, [*cuts[1:], DAY + DAYS * MS_PER_DAY], strict=True):
            if start < end and (start == DAY or dice.random() < 0.8):
                out.append((gpu, start, end, Decimal(dice.randrange(1, 10**6)) / 10**4))
    return out


def written(path: Path, stock: Stock) -> Path:
    head = "device,from,to,instance,region,purchase_option,usd_per_h"
    rows = [f"{g},{utc(a):%Y-%m-%dT%H:%M:%S},{utc(b):%Y-%m-%dT%H:%M:%S},,,,{p}" for g, a, b, p in stock]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def adds_up(made: CostStatement) -> None:
    groups = (made.by_gpu, made.by_model, made.by_cluster, made.by_namespace, made.by_owner, made.by_team)
    if isinstance(made.dollars, Unknown):  # slices of a board whose slices are not known
        assert not any(isinstance(row.dollars, Dollars) for rows in groups for row in rows)
        return
    assert sum(made.dollars.each().values(), Decimal(0)) == made.paid_usd
    for rows in groups:
        priced = [row.dollars for row in rows if isinstance(row.dollars, Dollars)]
        for bucket in BUCKETS:
            assert sum((d.each()[bucket] for d in priced), Decimal(0)) == made.dollars.each()[bucket]
            assert sum(row.times.each()[bucket] for row in rows) == made.times.each()[bucket]
        for dollars in priced:
            assert sum(dollars.each().values(), Decimal(0)) == dollars.paid_usd
            assert all(amount >= 0 for amount in dollars.parts())
    told = json.loads(json.dumps(to_json(made)))
    for holder in (told, *(row for name in told if name.startswith("by_") for row in told[name])):
        if holder["paid_usd"] is not None:
            assert set(holder["buckets"]) == set(BUCKETS)
            known = {b: Decimal(usd) for b, usd in holder["buckets"].items() if usd is not None}
            assert sum(known.values(), Decimal(0)) == Decimal(holder["paid_usd"])
            hours = {b: h for b, h in holder["bucket_h"].items() if h is not None}
            assert sum(hours.values()) == pytest.approx(holder["paid_h"])
            # Only time without a price and time that no evidence rates has no dollars.
            priceless = [b for b in holder["buckets"].keys() - known.keys() if hours.get(b)]
            assert not priceless or made.unpriced
            for bucket in hours.keys() - known.keys() - set(priceless):
                assert known.get("unrated") or known.get("unobserved"), bucket


@pytest.mark.parametrize("seed", range(100, 108))
def test_paid_is_its_seven_buckets_at_every_grouping(tmp_path: Path, seed: int) -> None:
    rows = random_fleet(seed)
    lake = lake_of(tmp_path, rows)
    stock = written(tmp_path / "stock.csv", stock_of(random.Random(seed), rows))
    cut = DAY + random.Random(seed).randrange(MS_PER_HOUR, DAYS * MS_PER_DAY - MS_PER_HOUR)
    for scope in (Scope(), WHOLE, Scope(DAY, cut), Scope(cut, None), Scope(namespaces=("train", UNALLOCATED))):
        adds_up(cost_statement(lake, scope, price="2.4999", teams=TEAMS))
        adds_up(cost_statement(lake, scope, inventory=stock, teams=TEAMS))


@pytest.mark.parametrize("seed", range(200, 206))
def test_an_inventory_is_paid_to_the_last_digit_whoever_used_it(tmp_path: Path, seed: int) -> None:
    rows = random_fleet(seed, models=(A100, H100))
    lake, stock = lake_of(tmp_path, rows), stock_of(random.Random(seed), rows)
    made = cost_statement(lake, WHOLE, inventory=written(tmp_path / "stock.csv", stock))
    assert made.unpriced == ()
    assert made.paid_usd == sum((cost_usd(end - start, Fraction(price)) for _, start, end, price in stock), Decimal(0))
    assert made.times.paid_ms == sum(end - start for _, start, end, _ in stock)


@pytest.mark.parametrize("seed", range(300, 304))
def test_adjoining_windows_of_a_random_fleet_add_up(tmp_path: Path, seed: int) -> None:
    rows = random_fleet(seed, models=(A100, H100))
    lake = lake_of(tmp_path, rows)
    cut = DAY + random.Random(seed).randrange(MS_PER_HOUR * 8, DAYS * MS_PER_DAY - MS_PER_HOUR * 8)
    whole, first, second = (cost_statement(lake, s, price=1) for s in (Scope(), Scope(None, cut), Scope(cut, None)))
    assert first.times.paid_ms + second.times.paid_ms == whole.times.paid_ms
    # Each of them is rounded to 10^-12 dollars, stretch by stretch.
    assert abs(first.paid_usd + second.paid_usd - whole.paid_usd) <= Decimal("1e-9")  # type: ignore[operator]
    # Work is at most the busy time of its line, and lines of a day that the cut falls in are read by hour.
    for bucket in BUCKETS:
        parts = first.times.each()[bucket] + second.times.each()[bucket]
        assert parts == pytest.approx(whole.times.each()[bucket], abs=whole.times.paid_ms / 1000)
