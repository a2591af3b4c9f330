"""Are spot prices carried forward, gone offers gone, and gaps unknown; and does the shipped history hold together?"""

from __future__ import annotations

import datetime as dt
import json
import math

import numpy as np
import pytest

from gpuledger.catalog.prices.history import Changes, Pool, PriceHistory, load_history
from gpuledger.catalog.prices.history_files import read_history, region_of
from gpuledger.catalog.prices.reclaim import bands, facts, rate_of, reclaims_per_h
from gpuledger.errors import FileFault, UnknownName
from gpuledger.units import Range, Unknown

HOUR = 3600
POOL = Pool("x.large", "r-1", "r-1a")


def history(observed_h, points):
    at, demand, spot = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    made = Changes((at * HOUR).astype(np.int64), demand, spot)
    return PriceHistory({POOL: made}, (np.array(observed_h) * HOUR).astype(np.int64), "test", carry_h=30.0)


def at(*hours):
    return (np.array(hours) * HOUR).astype(np.int64)


def test_a_price_holds_until_the_next_change():
    h = history([0, 24, 48, 72], [(0, 3.0, 1.0), (48, 3.0, 2.0)])
    spot, demand = h.prices(POOL, at(0, 10, 47, 48, 80))
    assert spot.tolist() == [1.0, 1.0, 1.0, 2.0, 2.0]
    assert set(demand.tolist()) == {3.0}


def test_an_offer_that_is_gone_has_no_price():
    h = history([0, 24, 48], [(0, 3.0, 1.0), (24, math.nan, math.nan)])
    spot, demand = h.prices(POOL, at(23, 24, 40))
    assert spot[0] == 1.0
    assert np.isnan(spot[1:]).all()
    assert np.isnan(demand[1:]).all()


def test_what_nobody_looked_at_is_unknown():
    h = history([0, 24, 200], [(0, 3.0, 1.0)])
    assert h.observed(at(-1, 0, 54, 55, 199, 200)).tolist() == [False, True, True, False, False, True]
    assert np.isnan(h.prices(POOL, at(100))[0]).all()
    assert h.gaps() == [(54 * HOUR, 200 * HOUR)]


def test_an_unknown_region_suggests_the_nearest():
    h = history([0], [(0, 3.0, 1.0)])
    with pytest.raises(UnknownName, match="r-2") as error:
        h.matching(["x.large"], ["r-2"], [])
    assert "r-1" in error.value.hint


def test_the_shipped_history_has_its_gap_and_its_source():
    h = load_history()
    gap = [tuple(str(dt.datetime.fromtimestamp(s, dt.UTC).date()) for s in g) for g in h.gaps()]
    assert ("2026-04-03", "2026-07-13") in gap
    assert "skypilot-catalog" in h.source
    assert h.as_of == dt.date(2026, 8, 22)


def test_the_shipped_history_has_a_known_row():
    h = load_history()
    first = np.array([h.first_s])
    spot, demand = h.prices(Pool("g4dn.12xlarge", "ap-northeast-1", "apne1-az4"), first)
    assert (spot[0], demand[0]) == (1.8789, 5.281)


def test_every_shipped_pool_is_sorted_priced_and_of_a_known_gpu():
    h = load_history()
    for pool in h.pools:
        found = h.changes(pool)
        assert (np.diff(found.at_s) > 0).all()
        for prices in (found.spot_usd_h, found.on_demand_usd_h):
            known = prices[~np.isnan(prices)]
            assert ((known > 0) & (known < 1000)).all()
        assert pool.instance in facts().instances


def test_a_band_becomes_a_rate_by_pencil():
    # 5-10 %: low -ln(0.95)/720; high 0.1/0.9/1.2.
    found = rate_of(facts().band[1])
    assert found.low == pytest.approx(7.124e-5, rel=1e-3)
    assert found.high == pytest.approx(0.0925926, rel=1e-5)
    assert found.low < found.middle < found.high


def test_higher_bands_are_reclaimed_more_often():
    rates = [rate_of(b) for b in facts().band]
    for field in ("low", "middle", "high"):
        values = [getattr(r, field) for r in rates]
        assert values == sorted(set(values))


def test_a_band_that_is_not_published_is_unknown():
    assert isinstance(reclaims_per_h("p6-b300.48xlarge", "us-east-1"), Unknown)
    assert isinstance(reclaims_per_h("p3.2xlarge", "us-east-1"), Range)
    assert bands()["p3.2xlarge", "us-east-1"].name == "over 20 %"


CSV = "Timestamp,InstanceType,AvailabilityZone,SpotPrice\n{}"


def written(tmp_path, text, name="h.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_of_the_user(tmp_path):
    rows = "2026-10-01T00:00:00Z,g5.xlarge,us-east-1a,$0.40\n1790985600,g5.xlarge,us-east-1a,0.5\n"
    h = read_history(written(tmp_path, CSV.format(rows)))
    (pool,) = h.pools
    assert pool == Pool("g5.xlarge", "us-east-1", "us-east-1a")
    assert h.changes(pool).spot_usd_h.tolist() == [0.40, 0.5]
    assert h.changes(pool).on_demand_usd_h[0] == pytest.approx(1.006)  # of the catalog


def test_the_json_of_the_aws_command(tmp_path):
    row = {
        "AvailabilityZone": "us-east-1a", "InstanceType": "g5.xlarge", "ProductDescription": "Linux/UNIX",
        "SpotPrice": "0.412", "Timestamp": "2026-10-01T05:06:07+00:00",
    }  # fmt: skip
    windows = row | {"ProductDescription": "Windows", "SpotPrice": "0.9"}
    h = read_history(written(tmp_path, json.dumps({"SpotPriceHistory": [row, windows]}), "h.json"))
    assert h.changes(h.pools[0]).spot_usd_h.tolist() == [0.412]


def test_on_demand_comes_from_the_file_or_from_the_user(tmp_path):
    own = "time,instance,zone,price,on_demand\n2026-10-01,my.gpu,rack-1,0.4,1.5\n"
    assert read_history(written(tmp_path, own)).changes(Pool("my.gpu", "rack-1", "rack-1")).on_demand_usd_h == [1.5]
    bare = written(tmp_path, "time,instance,zone,price\n2026-10-01,my.gpu,rack-1,0.4\n")
    assert read_history(bare, 2.5).changes(Pool("my.gpu", "rack-1", "rack-1")).on_demand_usd_h == [2.5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no prices"),
        ("time,instance,price\n2026-10-01,a,1\n", "no column for zone"),
        (CSV.format("2026-10-01,a,us-east-1a,-3\n"), "row 2: '-3' is not a price"),
        (CSV.format("2026-10-01,a,us-east-1a,nan\n"), "is not a price"),
        (CSV.format("yesterday,a,us-east-1a,1\n"), "row 2: 'yesterday' is not a time"),
        (CSV.format("2026-10-01,a,,1\n"), "row 2 has no zone"),
        ("{}", "no list SpotPriceHistory"),
        ('{"SpotPriceHistory": [', "broken JSON"),
    ],
)
def test_a_history_that_cannot_be_used_says_why(tmp_path, text, words):
    with pytest.raises(FileFault, match=words) as error:
        read_history(written(tmp_path, text))
    assert error.value.hint


@pytest.mark.parametrize(
    ("zone", "region"),
    [("us-east-1a", "us-east-1"), ("us-central1-a", "us-central1"), ("use1-az1", "use1-az1"), ("rack", "rack")],
)
def test_the_region_of_a_zone(zone, region):
    assert region_of(zone) == region
