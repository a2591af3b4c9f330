"""Do the three common migration patterns apply where they should, and come to what the plan says?"""

from __future__ import annotations

import pytest

from gpuledger.plan.guide.asking import Form, form_of, plan_configured
from gpuledger.plan.guide.config import reference
from gpuledger.report.documents.migrate_rows import comes_to, patterns_table
from gpuledger.units import Unknown

NAMES = ("over_provisioned_inference", "legacy_training", "budget_research")


def found(**form):
    plan = plan_configured(reference(), Form(**form))
    assert tuple(p.name for p in plan.patterns) == NAMES
    return plan, plan.patterns


@pytest.fixture(scope="module")
def served():
    config = reference()
    return plan_configured(config, form_of(config.workloads["inference_small_p5"]), "inference_small_p5")


def test_over_provisioned_inference_by_pencil(served):
    """The cheapest of the G-series: 2 x A10G at $1.624 for 720 hours, instead of an eighth of $50, at a quarter of the
    speed."""
    first, legacy, spot = served.patterns
    assert first.applies
    assert first.option == "2 x A10G (G5, on-demand)"
    more = 100 * (2 * 1.624 / 6.25 / first.speed_ratio - 1)
    assert first.saving_pct == Unknown(f"the same work costs {more:.0f} % more there")
    assert (legacy.applies, legacy.why_not) == (False, "this is not training")
    assert not spot.applies
    assert "must not stop" in spot.why_not


def test_legacy_training_compares_the_same_number_of_gpus():
    plan, (first, legacy, spot) = found(instance="P4d", gpus=8, workload="training", size="small", precision="bf16")
    assert not first.applies
    same = [o for o in plan.options if o.candidate.gpus == 8 and o.candidate.purchase == "on-demand"]
    assert legacy.speed_ratio == max(o.speed_ratio for o in same if o.candidate.instance in {"P5", "P5e", "P6"})
    assert legacy.option == "8 x B200 (P6, on-demand)"
    assert spot.saving_pct == pytest.approx(100 * (1 - 10 / 32))
    assert spot.option == "the same setup, at its spot price"


def test_the_newest_has_nothing_newer_and_the_g_series_is_not_legacy():
    for instance, why in (("P6", "no P-series option is newer than B200"), ("G6e", "G6e is not of the P-series")):
        _, (_, legacy, _) = found(instance=instance, gpus=8, workload="fine_tuning", size="small")
        assert (legacy.applies, legacy.why_not) == (False, why)


def test_a_setup_that_cannot_run_is_compared_with_nothing():
    config = reference()
    plan = plan_configured(config, form_of(config.workloads["training_large_p4d"]), "training_large_p4d")
    _, legacy, spot = plan.patterns
    assert legacy.applies
    assert isinstance(legacy.speed_ratio, Unknown)
    assert comes_to(legacy).startswith("the present setup cannot run it")
    assert spot.option == "as now, at its spot price"


def test_the_table_shows_claim_and_figure(served):
    rows = [[c.text for c in row] for row in patterns_table(served).rows]
    here = "2 x A10G (G5, on-demand): the same work costs 106 % more there, 0.25 x the speed"
    assert rows[0][1:] == ["saves 90 % or more", here]
    assert rows[1][2] == "does not apply: this is not training"
