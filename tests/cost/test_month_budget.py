"""Budget against actual, through import and posting: a GPU of $1 per hour costs $24 per day."""

from __future__ import annotations

from decimal import Decimal

import pytest
from fleets import lake_of

from gpuledger.cost.month_budget import ALL, month_budget
from gpuledger.errors import InputError
from gpuledger.units import Unknown, day_start_ms, utc

HOUR = 3_600_000


def rows(first, days, gpus=1, namespace="ml"):
    start = day_start_ms(first)
    return [
        {
            "timestamp": f"{utc(start + h * HOUR):%Y-%m-%dT%H:%M:%SZ}", "UUID": f"GPU-{namespace}-{g}",
            "modelName": "NVIDIA A100-SXM4-40GB", "namespace": namespace, "DCGM_FI_DEV_GPU_UTIL": 90,
        }
        for h in range(days * 24 + 1)
        for g in range(gpus)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """March 2026 up to the 20th and the last days of February: one GPU of ml, two of lab."""
    folder = tmp_path_factory.mktemp("months")
    return lake_of(folder, [*rows("2026-02-20", 28), *rows("2026-02-20", 28, 2, "lab")])


def test_the_month_ends_where_the_days_seen_lead(lake):
    found = month_budget(lake, {ALL: Decimal(2000)}, price=1)
    (line,) = found.lines
    assert (found.month, found.days) == ("2026-03", 31)
    assert float(line.actual_usd) == pytest.approx(19 * 72, rel=0.01)
    assert float(line.total_usd) == pytest.approx(31 * 72, rel=0.01)
    assert line.verdict == "over"
    assert float(line.over_usd) == pytest.approx(31 * 72 - 2000, rel=0.1)
    assert line.forecast.by_weekday


def test_each_budget_has_its_own_actual_and_forecast(lake):
    found = month_budget(lake, {"ml": Decimal(800), "lab": Decimal(900), "none": Decimal(5)}, price=1)
    by_name = {line.name: line for line in found.lines}
    assert float(by_name["ml"].total_usd) == pytest.approx(31 * 24, rel=0.01)
    assert by_name["ml"].verdict == "within"
    assert by_name["lab"].verdict == "over already"
    assert by_name["none"].verdict == "unknown"
    assert isinstance(by_name["none"].actual_usd, Unknown)
    assert by_name[ALL].verdict == "no budget"


def test_a_past_month_is_compared_as_it_was_and_its_unseen_days_are_forecast(lake):
    found = month_budget(lake, {ALL: Decimal(1)}, "2026-02", price=1)
    assert found.days_left == 0
    assert found.unseen_days == 19
    (line,) = found.lines
    assert float(line.actual_usd) == pytest.approx(9 * 72, rel=0.01)
    assert float(line.total_usd) == pytest.approx(28 * 72, rel=0.01)


@pytest.mark.parametrize("month", ["2027-01", "March", "2026-13"])
def test_a_month_that_cannot_be_is_refused(lake, month):
    with pytest.raises(InputError):
        month_budget(lake, {}, month, price=1)
