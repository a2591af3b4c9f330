"""What do the guide's seven workloads, five sets and claims come to, the original's figures beside ours?"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.catalog.gpus import load_gpus
from gpuledger.catalog.prices import instance_price
from gpuledger.plan.guide.asking import Form, Market, form_of, plan_configured, plan_market
from gpuledger.plan.guide.config import reference
from gpuledger.plan.guide.placed_job import CANNOT_FIT, Misfit
from gpuledger.plan.guide.sets import plan_set
from gpuledger.plan.market import market_options
from gpuledger.report.documents.migrate import headline
from gpuledger.units import Unknown

ROOT = Path(__file__).parents[2]
TABLE = json.loads((ROOT / "tests" / "data" / "guide_workloads.json").read_text())
ROWS = [pytest.param(row, id=row["id"]) for row in TABLE["workloads"]]


@pytest.fixture(scope="module")
def plans():
    config = reference()
    return {id_: plan_configured(config, form_of(one), id_) for id_, one in config.workloads.items()}


def original_now_usd(id_: str) -> Decimal:
    """As the original reckons: the listed price times GPUs times hours, whatever the price is of."""
    s = reference().workloads[id_].scenario
    one = reference().instances[s.current_instance]
    price = one.spot_cost_per_hour if s.use_spot else one.on_demand_cost_per_hour
    return Decimal(str(price)) * s.current_gpu_count * Decimal(str(s.monthly_hours))


def original_memory_gb(id_: str) -> float:
    s = reference().workloads[id_].scenario
    size = reference().sizes[s.model_size.lower()]
    kind = reference().kinds[s.workload_type.lower()]
    width = reference().precisions[s.precision].bytes_per_parameter
    return size.parameter_count_billion * width * kind.memory_overhead_multiplier


@pytest.mark.parametrize("row", ROWS)
def test_a_workload(row, plans):
    plan, id_ = plans[row["id"]], row["id"]
    s = reference().workloads[id_].scenario
    assert Decimal(row["original_now_usd"]) == original_now_usd(id_)
    assert plan.current.monthly_usd == Decimal(row["now_usd"])
    room_gb = s.current_gpu_count * reference().instances[s.current_instance].gpu_memory_gb
    assert row["original_fits"] == (original_memory_gb(id_) <= room_gb)
    assert row["fits"] == (not isinstance(plan.current.placement, Misfit))
    assert float(row["original_memory_gb"]) == pytest.approx(original_memory_gb(id_))
    assert plan.memory.rule_bytes / 1e9 == pytest.approx(original_memory_gb(id_))
    assert plan.memory.real_bytes / 1e9 == pytest.approx(float(row["memory_gb"]), rel=0.03)
    c = plan.chosen.candidate
    assert f"{c.gpus} x {c.gpu_name} ({c.instance}, {c.purchase})" == row["chosen"]
    assert float(plan.chosen.monthly_usd) == pytest.approx(float(row["then_usd"]), rel=0.01)
    if row["speed_ratio"] is None:
        assert isinstance(plan.chosen.speed_ratio, Unknown)
    else:
        assert plan.chosen.speed_ratio == pytest.approx(row["speed_ratio"], rel=0.02)
    assert all(row[why] for why in ("why_cost", "why_memory", "why_chosen"))
    # What every plan must show.
    assert plan.job.expected_outcome
    assert plan.job.tags
    assert plan.job.use_case
    assert plan.runners_up
    assert plan.assumptions
    assert "illustrative" in plan.price_dates[0]
    assert plan.chosen.low_monthly_usd <= plan.chosen.monthly_usd <= plan.chosen.high_monthly_usd


@pytest.mark.parametrize("name", TABLE["sets"])
def test_a_set(name, plans):
    found = plan_set(reference(), name, lambda id_: plans[id_])
    assert found.now_usd == Decimal(TABLE["sets"][name]["now_usd"])
    original = sum(original_now_usd(id_) for id_ in reference().sets[name])
    assert original == Decimal(TABLE["sets"][name]["original_now_usd"])
    assert found.purpose
    assert found.use_case
    assert found.now_usd - found.then_usd == found.saving_usd
    assert found.then_usd == sum(p.chosen.monthly_usd for p in found.plans)
    assert float(found.then_usd) == pytest.approx(float(TABLE["sets"][name]["then_usd"]), rel=0.01)
    lost = "training_large_p4d" in reference().sets[name]
    assert (found.cannot_run_now, found.cannot_run_then_usd) == ((1, 20000) if lost else (0, 0))
    assert ("1 of them cannot run where it is: to run it takes $20,000 of that" in headline(found)) == lost


@pytest.mark.parametrize("claim", TABLE["claims"], ids=lambda c: c["claim"])
def test_a_claim(claim, plans):
    if claim["kind"] == "market_saving_pct":
        now, then = (instance_price(claim[k], "us-east-1").usd_per_gpu_h for k in ("from", "to"))
        assert round(100 * (1 - then / now)) == claim["ours"]
        assert round(100 * (1 - Decimal("3.5") / (Decimal(50) / 8))) == 44
    elif claim["kind"] == "peak_ratio":
        now, then = (load_gpus()[claim[k]].peak("bf16") for k in ("from", "to"))
        assert round(then / now, 2) == claim["ours"]
    else:
        (group,) = [
            g for g in plans["inference_small_p5"].refused_groups if g.gpu_name == "L4" and g.kind == CANNOT_FIT
        ]
        assert 1 in group.counts
        assert "INT8" in group.remedies[0]


def test_the_page_prints_the_table():
    text = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    for row in TABLE["workloads"]:
        usd, ours = (f"${Decimal(row[k]):,.0f}" for k in ("original_now_usd", "now_usd"))
        gb = f"{float(row['original_memory_gb']):g}"
        then = f"{row['chosen']}, ${Decimal(row['then_usd']):,.0f}"
        line = f"| `{row['id']}` | {usd} | {ours} | {gb} | {float(row['memory_gb']):g} | {then} | {row['why_chosen']} |"
        assert line in text, row["id"]
    for name in TABLE["sets"]:
        figures = [f"${Decimal(TABLE['sets'][name][k]):,.0f}" for k in ("original_now_usd", "now_usd", "then_usd")]
        assert f"| {reference().purposes[name].purpose} | {' | '.join(figures)} |" in text, name
    for claim in TABLE["claims"]:
        assert claim["claim"] in text


def test_at_market_prices_fewer_dollars_for_less_work_are_not_called_a_saving():
    market = Market(market_options(clouds=["aws"], regions=["us-east-1"]), "aws us-east-1")
    plan = plan_market(reference(), form_of(reference().workloads["inference_small_p5"]), market, "inference_small_p5")
    cheapest = min((o for o in plan.options if o.candidate.gpu_name == "L40S"), key=lambda o: o.monthly_usd)
    now = plan.current.monthly_usd
    assert round(100 * (1 - cheapest.monthly_usd / now)) == 73
    # A quarter of the speed for 27 % of the dollars: each token costs more.
    assert cheapest.same_work_pct == pytest.approx(100 * (float(cheapest.monthly_usd / now) / cheapest.speed_ratio - 1))
    assert cheapest.same_work_pct > 0
    assert isinstance(cheapest.saving_pct, Unknown)
    assert plan.chosen.same_work_pct <= 0.5
    # With the load measured, its work is known: that costs less.
    measured = replace(form_of(reference().workloads["inference_small_p5"]), busy_ratio=0.1)
    assert round(plan_market(reference(), measured, market, "x").chosen.saving_pct) >= 73
    assert plan.price_dates == ("2026-08-22", "2026-08-22")
    assert "2026-08-22" in plan.prices


def test_already_well_optimized_is_an_answer():
    form = Form(instance="P5e", gpus=8, workload="fine_tuning", size="medium", monthly_h=200, spot=True)
    plan = plan_configured(reference(), form)
    assert plan.verdict == "already well optimized"
    assert plan.chosen.current
    assert plan.recommendation.startswith("Already well optimized: keep 8 x H200")


def test_more_of_the_same_is_proposed_for_work_that_ends_unless_the_count_is_to_stay():
    form = Form(instance="P6", gpus=2, workload="fine_tuning", size="medium", monthly_h=200, spot=True)
    free, fixed = (plan_configured(reference(), replace(form, keep_gpus=kept)) for kept in (False, True))
    assert free.recommendation.startswith("Use 8 x B200 (P6, spot) instead of 2: ")
    assert "Each of the 8 GPUs does as much as one" in free.recommendation
    assert free.chosen.speed_ratio == pytest.approx(4, rel=0.02)
    assert fixed.recommendation.startswith("Already well optimized: keep 2 x B200")
    assert {o.candidate.gpus for o in fixed.options} == {2}
    assert {r.candidate.gpus for r in fixed.refused if r.kind == "COUNT"} >= {1, 4, 8}
    assert any("stays 2, as asked" in words for words in fixed.assumptions)


def test_what_depends_on_the_network_between_instances_is_not_chosen_for_it():
    """32 B200 are 8.4 times as fast at 400 Gb/s and 2.8 times at 100: eight in one instance are the surer 2.1 times."""
    form = Form(instance="P5", gpus=8, workload="training", size="small", precision="bf16")
    plan = plan_configured(reference(), form)
    many = next(o for o in plan.options if o.candidate.id == "P6/32/on-demand")
    assert plan.chosen.candidate.id == "P6/8/on-demand"
    assert many is plan.fastest
    assert any("network" in words for words in many.risk.reasons)
    assert many.scaling.low_ratio < 0.5 < many.scaling.ratio
    assert many.low_monthly_usd < many.monthly_usd < many.high_monthly_usd


def test_of_counts_that_score_alike_the_fewest_gpus_are_chosen(plans):
    """One B200 does the month's work within a day; eight would do it in three hours for the same money."""
    chosen = plans["research_training_g6e"].chosen
    alike = [o for o in plans["research_training_g6e"].options if o.candidate.offer == chosen.candidate.offer]
    assert max(o.score for o in alike) - chosen.score < 0.005
    assert chosen.candidate.gpus == min(o.candidate.gpus for o in alike) == 1
    assert chosen.monthly_h < 24


def test_spot_is_never_chosen_for_production_serving():
    for spot in (True, False):
        form = Form(instance="G5", gpus=2, workload="inference", size="small", spot=spot, precision="int8")
        plan = plan_configured(reference(), form)
        assert all(o.candidate.purchase == "on-demand" for o in plan.options)
        assert any(r.kind == "SPOT" for r in plan.refused)
        assert any("production on spot" in w for w in plan.warnings) == spot


def test_nothing_fits_is_an_answer_with_what_would_help(tmp_path):
    (tmp_path / "gpu_instances.json").write_text(
        json.dumps({"gpu_instances": {k: None for k in reference().instances if k != "G4dn"}})
    )
    (tmp_path / "workloads.json").write_text(
        json.dumps({"workloads": {k: None for k in reference().workloads if "g4dn" not in k},
                    "workload_sets": {k: (["production_serving_g4dn"]) for k in reference().sets}})
    )  # fmt: skip
    from gpuledger.plan.guide.config import load_config

    config = load_config(tmp_path)
    plan = plan_configured(config, Form(instance="G4dn", gpus=1, workload="training", size="massive", precision="fp16"))
    assert plan.verdict == "nothing fits"
    assert plan.chosen is None
    assert plan.recommendation.startswith("No option can run this. CANNOT FIT MODEL")
    assert "What would help" in plan.recommendation


def test_a_precision_the_gpu_lacks_is_refused_there_alone():
    plan = plan_configured(
        reference(), Form(instance="P5", gpus=1, workload="inference", size="small", precision="fp8")
    )
    lacking = {g.gpu_name for g in plan.refused_groups if g.kind == "PRECISION"}
    assert {"A100 40GB", "A100 80GB", "T4", "A10G"} <= lacking
    assert any(o.candidate.instance == "P5" for o in plan.options)
    group = next(g for g in plan.refused_groups if g.gpu_name == "A100 80GB" and g.kind == "PRECISION")
    assert "no fp8 units" in group.why
    assert "bf16" in group.remedies[0]
