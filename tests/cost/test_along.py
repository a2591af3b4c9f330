"""Does a reader that takes the lines of a bill along find what it finds by itself?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fleets import DAY, lake_of, random_fleet

from gpuledger.advice.limits import load_limits
from gpuledger.advice.stretches import Stretch, StretchReader, read_stretches
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import statement_and_bill
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import MS_PER_HOUR, utc

CUT = f"{utc(DAY + 7 * MS_PER_HOUR):%Y-%m-%dT%H:%M:%SZ}"
LATER = f"{utc(DAY + 30 * MS_PER_HOUR):%Y-%m-%dT%H:%M:%SZ}"


def plain(found: tuple[Stretch, ...]) -> list[Stretch]:
    """Stretches that compare by their figures."""
    return [replace(stretch, sums=dict(stretch.sums)) for stretch in found]


@pytest.mark.parametrize("seed", [2, 5])
@pytest.mark.parametrize("scope", [Scope(), Scope(namespaces=("train",)), Scope(since_ms=DAY + 5 * MS_PER_HOUR)])
@pytest.mark.parametrize("hours", [False, True])
def test_lines_read_once_give_what_reading_them_twice_gives(
    tmp_path: Path, seed: int, scope: Scope, hours: bool
) -> None:
    lake, limits, rules = lake_of(tmp_path, random_fleet(seed, days=1, step=20)), load_limits(), load_thresholds()
    stock = None
    if hours:  # a price that changes within a day: the bill needs hours, stretches are judged by days
        stock = tmp_path / "stock.csv"
        rows = [f"GPU-0,,{CUT},,,on_demand,2", f"GPU-0,{CUT},{LATER},,,on_demand,3"]
        stock.write_text("\n".join(["device,from,to,instance,region,purchase_option,usd_per_h", *rows]) + "\n")
    alone, _ = statement_and_bill(lake, scope, price=1, inventory=stock)
    reader = StretchReader(limits, rules)
    along, _ = statement_and_bill(lake, scope, price=1, inventory=stock, along=reader)
    assert along == alone
    assert plain(reader.found(lake, scope)) == plain(read_stretches(lake, scope, limits, rules))
