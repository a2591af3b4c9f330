"""What is paid: rates, spot prices, bills, node lists, inventories, teams, carbon intensities."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from gpuledger.catalog.prices.history_files import read_history
from gpuledger.catalog.prices.own_rates import read_rates
from gpuledger.cost.emissions.hourly import read_hourly
from gpuledger.cost.inventories.kinds import read_stock
from gpuledger.cost.teams import load_config
from targets import Target, files_of

TODAY = dt.date(2026, 1, 20)


def stock(path: Path) -> object:
    """An inventory as `audit --inventory` takes it; its rows are read to the end."""
    return read_stock([path])


TARGETS = [
    Target("own prices", lambda p: read_rates(p, TODAY), files_of("fuzz/seeds/rates"), 4.0),
    Target("spot price history", read_history, files_of("fuzz/seeds/spot"), 4.0),
    Target("bill, inventory", stock, files_of("fuzz/seeds/bills"), 5.0),
    Target("teams", load_config, files_of("src/gpuledger/cost/data/demo_config.toml"), 2.0),
    Target("carbon intensity", read_hourly, files_of("fuzz/seeds/carbon"), 3.0),
]
