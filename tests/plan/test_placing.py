"""Are placements, derived shapes, shared GPUs and judgements what a pencil says?"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.gpus import load_gpus
from gpuledger.plan.guide.asking import Form, job_of, plan_configured
from gpuledger.plan.guide.config import reference
from gpuledger.plan.guide.judging import effort, mean
from gpuledger.plan.guide.memory_rule import rule_of_thumb
from gpuledger.plan.guide.options import configured, counts, may_pay
from gpuledger.plan.guide.placed_job import CANNOT_FIT, Misfit, Placement
from gpuledger.plan.guide.placing import fits, place, smallest_count
from gpuledger.plan.guide.schema import dense_model
from gpuledger.plan.guide.sets import together
from gpuledger.units import Unknown


def job(**form):
    return job_of(Form(**{"instance": "P5", "gpus": 1, "workload": "inference", "size": "small"} | form), reference())


def gpu(key):
    return load_gpus()[key]


@given(st.integers(300_000_000, 2_000_000_000_000))
def test_a_derived_model_has_exactly_the_parameters_given(params):
    model = dense_model("x", params)
    assert model.params_total == params
    assert model.shape.heads * model.shape.head_dim == model.shape.hidden


def test_weights_are_parameters_times_bytes():
    for precision, stored in (("fp16", 70_000_000_000), ("int8", 35_000_000_000)):
        assert rule_of_thumb(job(size="medium", precision=precision), 1.5, 1.5).weights_bytes == stored


def test_thirteen_billion_in_fp16_fit_no_24_gb_card_and_the_remedies_are_true():
    found = place(job(), gpu("l4"), 1, 8)
    assert isinstance(found, Misfit)
    assert found.kind == CANNOT_FIT
    assert found.per_gpu_bytes > 26_000_000_000 > found.capacity_bytes
    assert found.remedies[0].startswith("INT8")
    assert fits(job(precision="int8"), gpu("l4"), 1, 8)
    assert "2 GPUs of L4 instead of 1" in found.remedies
    assert fits(job(), gpu("l4"), 2, 8)


def test_full_training_of_70b_needs_sixteen_bytes_a_parameter_and_lora_does_not():
    full = job(workload="training", size="large", precision="bf16")
    found = place(full, gpu("h200-sxm-141gb"), 8, 8)  # 1,120 GB of states alone on 8 x 141
    assert isinstance(found, Misfit)
    lora = job(workload="fine_tuning", size="large", precision="bf16")
    assert isinstance(place(lora, gpu("h200-sxm-141gb"), 8, 8), Placement)
    assert any("LoRA" in r for r in found.remedies)


def test_words_of_a_placement_are_of_this_job():
    """One GPU is not data parallel, and who trains adapters already does not train every weight."""
    one = place(job(workload="fine_tuning", size="medium"), gpu("h100-sxm5-80gb"), 1, 8)
    assert one.words == "on one GPU, activations recomputed"
    adapters = place(job(workload="fine_tuning", size="medium"), gpu("l40s"), 1, 8)
    assert "QLoRA: 4-bit weights and adapters instead of LoRA over fp16 weights" in adapters.remedies[-1]
    whole = place(job(workload="fine_tuning", size="medium", method="full"), gpu("h100-sxm5-80gb"), 1, 8)
    assert "instead of training every weight" in whole.remedies[-1]


def test_a_copy_never_spans_instances_and_copies_add_up():
    small = job(precision="int8")
    one, four = (place(small, gpu("l40s"), n, 1) for n in (1, 4))
    assert four.gpus_per_copy == 1
    assert four.copies == 4
    assert four.rate.middle == pytest.approx(4 * one.rate.middle)


def test_gpus_of_several_instances_exchange_over_the_network():
    """FSDP of 8 B gathers 2 x 16.06 GB and scatters as much again, 7/8 of it past each GPU: 42.2 GB a micro-batch.

    Over NVLink4 that hides behind the backward pass; at 400 Gb/s x 0.8 = 40 GB/s it takes 1.05 s and does not.
    """
    asked = job(workload="training", size=None, model="llama-3.1-8b", precision="bf16")
    one, eight = (place(asked, gpu("h100-sxm5-80gb"), 8, held) for held in (8, 1))
    assert "FSDP" in one.words
    assert "FSDP" in eight.words
    per_gpu_s = 4096 / (eight.rate.middle / 8)
    assert per_gpu_s > 3 * 16.06e9 * 7 / 8 / 40e9
    assert one.rate.middle > 1.5 * eight.rate.middle
    assert place(asked, gpu("h100-sxm5-80gb"), 8, 4).rate.middle <= one.rate.middle


def test_int8_is_not_for_training_but_for_frozen_weights():
    refused = place(job(workload="training", precision="int8"), gpu("h100-sxm5-80gb"), 8, 8)
    assert (refused.kind, refused.why) == ("PRECISION", "int8 is for stored weights, not for training")
    assert isinstance(place(job(workload="fine_tuning", precision="int8"), gpu("h100-sxm5-80gb"), 1, 8), Placement)


def test_the_smallest_count_is_one_that_fits_and_half_of_it_does_not():
    serving = job(size="large")  # 140 GB of weights
    least = smallest_count(serving, gpu("a100-sxm4-80gb"), 8)
    assert least == 2
    assert not fits(serving, gpu("a100-sxm4-80gb"), 1, 8)
    assert smallest_count(job(workload="training", size="massive", precision="fp16"), gpu("t4"), 1) is None


@pytest.mark.parametrize(("name", "per_instance"), [("h100-sxm5-80gb", 8), ("a100-sxm4-40gb", 8), ("l40s", 4),
                                                    ("h100-sxm5-80gb", 1), ("h200-sxm-141gb", 10)])  # fmt: skip
def test_the_fewest_gpus_against_trying_every_count(name, per_instance):
    """Powers of two alone would pay for 32 H100 where 24 do."""
    training = job(workload="training", size="large", precision="bf16")
    within = [n for n in (1, 2, 4, 8) if n < per_instance]
    fitting = [
        n for n in [*within, *range(per_instance, 65, per_instance)] if fits(training, gpu(name), n, per_instance)
    ]
    assert smallest_count(training, gpu(name), per_instance) == fitting[0]
    if per_instance == 8:
        found = place(training, gpu(name), 4, per_instance)
        assert f"{fitting[0]} GPUs of {gpu(name).name} instead of 4" in found.remedies


def steps(asked, gpu_or_not, gpus, per_instance, instance="P5"):
    return list(counts(asked, gpu_or_not, configured(reference(), instance, gpus, "on-demand"), per_instance).steps)


def test_counts_stay_within_an_instance_or_take_whole_ones_up_to_four_times_the_present():
    anywhere = Unknown("not in the catalog")
    assert steps(job(), anywhere, 4, 8) == [1, 2, 4, 8, 16]
    assert steps(job(), anywhere, 3, 8) == [1, 2, 3, 4, 8]
    assert steps(job(), anywhere, 12, 8) == [1, 2, 4, 8, 16, 32, 48]  # twelve is not whole instances of eight
    assert steps(job(), anywhere, 32, 8)[-1] == 64  # never above the most
    large = job(workload="training", size="massive")
    least = smallest_count(large, gpu("a100-sxm4-80gb"), 8)
    assert least > 8
    assert steps(large, gpu("a100-sxm4-80gb"), 1, 8)[-1] == least


def test_where_the_present_setup_cannot_run_it_no_more_gpus_than_it_needs_are_looked_at():
    training = job(workload="training", size="small", precision="bf16")
    assert steps(training, gpu("h100-sxm5-80gb"), 1, 8) == [1, 2, 4]  # four hold it, one does not
    assert steps(training, gpu("h100-sxm5-80gb"), 4, 8) == [1, 2, 4, 8, 16]


def test_more_gpus_of_a_server_must_not_cost_more_than_now_and_work_that_ends_may():
    config = reference()
    now, four = configured(config, "P5", 1, "on-demand"), configured(config, "G6", 4, "on-demand")  # $6.25 and $5.29
    eight = configured(config, "G6", 8, "on-demand")
    assert [may_pay(job(), c, now, 2) for c in (four, eight)] == [True, False]
    assert may_pay(job(), eight, now, 8)  # as many as it needs
    assert may_pay(job(workload="training"), eight, now, 2)


def test_over_several_instances_the_range_reaches_down_to_a_slower_network():
    """13B in plain data parallel would exchange 26 GB of gradients; sharded it gathers more, so the network shows."""
    training = job(workload="training", size="small", precision="bf16")
    one, two = (place(training, gpu("h100-sxm5-80gb"), n, 8) for n in (8, 16))
    assert one.slow_network is None
    assert two.slow_network < 0.9 * two.rate.middle
    assert two.rate.low < two.slow_network
    assert two.rate.middle == pytest.approx(2 * one.rate.middle, rel=0.01)  # hidden behind the work at 400 Gb/s


def test_effort_adds_its_steps():
    config = reference()
    now, then = configured(config, "P5", 1, "on-demand"), configured(config, "G6e", 1, "spot")
    made = effort(now, then)
    assert made.amount == 12 + 12 + 16  # another GPU, another architecture, to spot
    assert made.level == "medium"
    assert effort(now, now).amount == 0


def test_a_mean_is_weighed():
    assert mean({"throughput": 1.0, "headroom": 0.5}, {"throughput": 0.75, "headroom": 0.25}) == 0.875


class TestSharing:
    def test_small_servers_share_a_gpu_and_a_slice_holds_one(self):
        plan = plan_configured(reference(), Form(instance="P5", gpus=1, workload="inference", size="small"))
        here = plan.sharing[0]
        assert here.jobs_per_gpu == 3  # 28 of 85 GB
        assert here.usd_per_job_month == plan.current.monthly_usd / 3
        assert here.slice == "3g.40gb"
        assert here.slice_usd_per_month == plan.current.monthly_usd / 2

    def test_the_same_gpu_is_told_of_once_and_no_slices_are_no_mystery(self):
        form = Form(instance="G4dn", gpus=8, workload="inference", size="small", precision="int8")
        (told,) = plan_configured(reference(), form).sharing
        assert told.words.endswith("MIG: T4 is not among the GPUs that support MIG")

    def test_several_servers_on_one_gpu_are_proposed_for_a_set(self):
        form = Form(instance="P5e", gpus=1, workload="inference", size="small", precision="int8", busy_ratio=0.9)
        plan = plan_configured(reference(), replace(form, priority="reliability"))
        assert plan.chosen.candidate.gpus == 1
        twice = together([plan, plan])
        if isinstance(twice.saving_usd, Unknown):
            pytest.fail("all prices are known")
        (found,) = twice.consolidation
        assert (found.gpus_apart, found.gpus_together) == (2, 1)
        assert found.saving_usd == plan.chosen.monthly_usd
        assert twice.now_usd == 2 * plan.current.monthly_usd


def test_a_server_keeps_its_hours_and_batch_work_its_amount():
    serving = plan_configured(reference(), Form(instance="P4de", gpus=1, workload="inference", size="small"))
    assert {o.monthly_h for o in serving.options} == {Decimal(720)}
    tuning = plan_configured(
        reference(), Form(instance="P4de", gpus=1, workload="fine_tuning", size="small", monthly_h=100)
    )
    for o in tuning.options:
        assert float(o.monthly_h) * o.speed_ratio == pytest.approx(100)
        assert o.monthly_usd == o.candidate.usd_per_h * o.monthly_h


def test_dollars_per_million_tokens_by_pencil():
    plan = plan_configured(reference(), Form(instance="P5", gpus=1, workload="inference", size="small"))
    o = next(o for o in plan.options if o.current)
    assert float(o.usd_per_million) == pytest.approx(6.25 / (o.placement.rate.middle * 3600) * 1e6)
