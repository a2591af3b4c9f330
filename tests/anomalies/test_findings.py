"""What is a GPU said to have, and what does it cost?"""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from gpuledger.anomalies.build import judged
from gpuledger.anomalies.findings import dollars, kind_of
from gpuledger.anomalies.reading import work_name
from gpuledger.anomalies.signals import rules
from gpuledger.anomalies.statement import Slowdown
from gpuledger.cost.pricing import Price
from gpuledger.report.documents.anomalies import headline
from gpuledger.units import Unknown
from small_fleets import fleet, noise

PRICE = Price(Decimal("2.50"), "given", "as given", Decimal("2.00"), Decimal("3.00"))


@pytest.mark.parametrize(
    ("signals", "kind"),
    [
        ({"clock", "heat", "work"}, "heat"),
        ({"throttled"}, "heat"),
        ({"limit", "clock"}, "power limit"),
        ({"capped", "work"}, "power limit"),
        ({"clock", "power", "work"}, "clock"),
        ({"work", "memory"}, "memory"),
        ({"work", "util", "memory"}, "starved"),
        ({"work", "power"}, "slow"),
        ({"heat"}, "heat"),
        ({"util"}, None),
        ({"power"}, None),
        ({"capped"}, None),
        ({"memory"}, None),
    ],
)
def test_what_readings_point_to(signals, kind):
    assert kind_of(signals, work_known=True) == kind


def test_less_power_at_the_same_utilization_shows_a_slow_gpu_where_no_work_is_counted():
    assert kind_of({"power"}, work_known=False) == "slow"
    assert kind_of({"power", "util"}, work_known=False) is None


def test_dollars_by_hand():
    # 20 % of a GPU that works all the time: 0.2 x 720 h x $2.50.
    found = dollars(Slowdown(10, 20, 30), PRICE, 1.0)
    assert (found.low_usd, found.middle_usd, found.high_usd) == (Decimal(144), Decimal(360), Decimal(648))
    assert dollars(Slowdown(10, 20, 30), PRICE, 0.5).middle_usd == Decimal(180)
    assert isinstance(dollars(Slowdown(10, 20, 30), Unknown("no price"), 1.0), Unknown)
    assert isinstance(dollars(Unknown("not measured"), PRICE, 1.0), Unknown)


def test_a_gang_may_lose_as_much_on_every_gpu():
    values = np.log(1500) + noise(1)
    values[3, 24:] += np.log(0.8)
    (one,) = judged(fleet({"clock": values}), rules(), lambda _: PRICE).findings
    assert float(one.usd_per_month.middle_usd) == pytest.approx(360, rel=0.1)
    assert one.gang_gpus == 8
    assert float(one.gang_usd_per_month.middle_usd) == pytest.approx(7 * float(one.usd_per_month.middle_usd), rel=1e-3)


def test_idle_time_costs_all_of_it():
    values = np.full((8, 48), 100.0)
    values[2, 24:] = 50.0
    (one,) = judged(fleet({"working": values}), rules(), lambda _: PRICE).findings
    assert one.kind == "idle"
    assert one.usd_per_month.middle_usd == Decimal(900)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("ml", "train", None, "train-0", "h1"), ("ml/train", True)),
        (("ml", None, "4711", None, "h1"), ("ml/4711", True)),
        (("ml", None, None, "serve-6d5f7c9b8d-x2x9k", "h1"), ("ml/serve", True)),
        (("ml", None, None, "train-12", "h1"), ("ml/train", True)),
        (("ml", None, None, "agent-h1", "h1"), ("ml/agent", True)),
        (("ml", None, None, None, "h1"), ("ml", False)),
        ((None, None, None, None, "h1"), ("", False)),
    ],
)
def test_what_work_is_called(labels, expected):
    assert work_name(*labels) == expected


def test_slices_are_not_counted_as_gpus():
    made = replace(judged(fleet({"clock": noise(1)}), rules(), lambda _: PRICE), slices=2)
    assert "8 GPUs and MIG slices" in headline(made)
    assert "slices" not in headline(replace(made, slices=0))
