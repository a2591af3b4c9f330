"""Is a power limit that holds work down named, and never advised again by the rule that sets one?"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from casebook import A100, HOUR, MI300X, activity, case, line, memory

from gpuledger.advice.build import audit_statement
from gpuledger.advice.findings import find
from gpuledger.advice.limits import load_limits
from gpuledger.advice.rule import RULES
from gpuledger.catalog.gpus import get_gpu
from gpuledger.units import Unknown

LIMITS = load_limits()
LIFT, CAP = RULES.get("lift-power-limit"), RULES.get("power-cap")
FROM = LIMITS.power.capped_from_ratio


def capped(ratio: float, gpu: str = A100):
    demand = {"capped_ratio": ratio, "capped_w": 250.0}
    return case("compute-bound", gpu=gpu, signals={"power_ratio": 0.97}, demand=demand, usd_per_kwh=Decimal("0.12"))


def test_the_limit_and_the_boards_own_are_said():
    found = find(LIFT, capped(0.5), LIMITS)
    assert found is not None
    board = get_gpu(A100).board_power_w.value
    assert "at a power limit of 250 W for 50 % of the working time" in found.reason.why
    assert f"made for {board:.0f} W" in found.reason.why
    assert f"nvidia-smi -pl {board:.0f}" in found.change.text
    assert "energy" in found.change.text
    assert found.lever is None


@pytest.mark.parametrize(("ratio", "lifts"), [(0.0, False), (FROM - 0.01, False), (FROM, True), (1.0, True)])
def test_a_capped_case_is_never_told_to_cap(ratio, lifts):
    one = capped(ratio)
    assert (find(LIFT, one, LIMITS) is not None) is lifts
    assert (find(CAP, one, LIMITS) is not None) is not lifts


def test_nothing_is_said_without_a_limit_or_for_another_vendor():
    one = capped(0.5)
    no_limit = replace(one, demand=replace(one.demand, capped_w=Unknown("no time at a lowered power limit")))
    assert find(LIFT, no_limit, LIMITS) is None
    assert find(LIFT, capped(0.5, MI300X), LIMITS) is None
    assert find(LIFT, replace(one, gpu=Unknown("'X' is not in the catalog")), LIMITS) is None


def test_work_at_a_lowered_limit_is_not_called_partial_nor_sent_to_a_profile(books):
    # Clocks held down: the pipes are far from their limits, the board is not.
    load = activity(engine=0.95, sm=0.8, tensor=0.3, fp32=0.02, dram=0.2) | memory(0.6)
    power = {"state": "capped", "limit_mw": 400_000, "pif_ms": HOUR, "pif_uj": 396_000 * HOUR}
    made = audit_statement(books(*(line(h, **load, **power) for h in range(24))), price=2)
    (one,) = made.cases
    assert one.klass == "compute-bound"
    assert one.evidence[0] == "held at a power limit that was set below the board's own"
    ids = {r.id for r in made.recommendations}
    assert "lift-power-limit" in ids
    assert {"profile", "power-cap", "smaller-sku"}.isdisjoint(ids)
