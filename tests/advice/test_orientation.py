"""Do the figures next to what is called usual come out as a pencil says?"""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace

import pytest

from gpuledger.advice.orientation import BAND_ENDS, orientation_of, usual
from gpuledger.cost.statement import PHASES
from gpuledger.units import Unknown


def row(name, paid_usd, paid_h, unpriced_h=0.0):
    dollars = Unknown("no price") if paid_usd is None else SimpleNamespace(paid_usd=Decimal(paid_usd))
    return SimpleNamespace(name=name, dollars=dollars, times=SimpleNamespace(paid_h=paid_h), unpriced_h=unpriced_h)


def found(rows=(), phases=None):
    shares = dict.fromkeys(PHASES, 25.0) if phases is None else phases
    return orientation_of(SimpleNamespace(by_model=tuple(rows), phases_pct=shares))


def test_a_price_is_dollars_over_the_hours_that_have_one():
    """$300 over 100 h of one kind of H100, and $150 over 50 of 70 h of another."""
    price, _ = found([row("NVIDIA H100 80GB HBM3", 300, 100.0), row("NVIDIA H100 PCIe", 150, 70.0, 20.0)])
    assert (price.name, price.low, price.high) == ("H100", 3.0, 5.0)
    assert price.here_low == price.here_high == pytest.approx(3.0)


def test_a_model_without_a_price_or_a_band_is_left_out():
    rows = [row("NVIDIA A10G", 100, 100.0), row("NVIDIA A100-SXM4-40GB", None, 10.0), row("no such GPU", 1, 1.0)]
    assert [o.unit for o in found(rows)] == ["pct"]


def test_the_mean_utilization_lies_between_the_ends_of_the_bands():
    """Half idle, half at 90 % and more: between 45 and 55 %."""
    (mean,) = found(phases={"idle": 50.0, "underutilized": 0.0, "productive": 0.0, "compute_bound": 50.0})
    assert (mean.here_low, mean.here_high) == (45, 55)
    assert (mean.low, mean.high) == (15, 30)
    (none,) = found(phases=Unknown("no utilization"))
    assert none.here_low.why == "no utilization"


def test_the_bands_are_those_of_the_audit_and_the_source_is_named():
    assert tuple(BAND_ENDS) == PHASES
    assert usual().source
