"""Does each topic show where it should, stay silent where it should, and never claim more than was measured?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import V100, observed

from gpuledger.advice.rule import RULES
from gpuledger.training.findings import TOPICS, find_all
from gpuledger.training.meter.events import PHASES
from gpuledger.training.meter.observed import LoaderFacts, MemoryFacts, Site, Work
from gpuledger.units import GIB, Unknown

SITE = Site("train.py", 17, ".item()", 50, 0.5)
SLOW = Work(1e13, 1e13, 3e12, "counted")
# One loop for each topic in which it must show.
SHOWS = {
    "loader": observed(ms={"data_wait": 35, "forward": 25, "backward": 40}, loader=LoaderFacts("DataLoader", 0, False)),
    "h2d": observed(ms={"h2d": 10, "forward": 40, "backward": 50}, batch_bytes=4e7),
    "sync_points": observed(ms={"forward": 40, "backward": 50, "sync": 2}, sites=(SITE,)),
    "precision": observed(precision="fp32"),
    "tensor_cores": observed(work=replace(SLOW, odd_ratio=0.4, odd_sizes=((8192, 50257, 768),))),
    "fusion": observed(work=replace(SLOW, kernels=20_000)),
    "optimizer": observed(ms={"forward": 30, "backward": 40, "optimizer": 30}, fused_optimizer=False),
    "batch": observed(work=SLOW, memory=MemoryFacts(9 * GIB, 10 * GIB, 80 * GIB)),
    "out_of_memory": observed(state="ran out of memory: CUDA out of memory", ended="out_of_memory"),
    "fragmentation": observed(memory=MemoryFacts(30 * GIB, 70 * GIB, 80 * GIB)),
    "recomputation": observed(
        work=Work(3e13, 4e13, 1e13, "counted", recompute_ratio=1.0), memory=MemoryFacts(30 * GIB, 32 * GIB, 80 * GIB)
    ),
    "mfu": observed(work=SLOW),
}


def by_topic(seen):
    return {f.topic: f for f in find_all(seen)}


def test_every_topic_has_a_loop_it_shows_in():
    assert set(SHOWS) == set(TOPICS.names())


@pytest.mark.parametrize("name", SHOWS)
def test_a_topic_shows_with_evidence_and_a_change(name):
    found = by_topic(SHOWS[name])[name]
    assert any(c.isdigit() for c in found.why), "evidence is figures"
    assert found.change.strip()
    assert found.figures
    assert found.source
    assert found.rule in RULES.names()
    assert 0 <= found.low <= found.middle <= found.high <= 1
    compile(found.change, name, "exec")  # the change is Python


def test_a_loop_in_good_order_has_nothing_to_find():
    assert by_topic(observed()) == {}


def test_on_a_processor_nothing_is_said_of_a_gpu():
    found = by_topic(observed(gpu=None, precision="fp32", work=replace(SLOW, odd_ratio=1.0, kernels=50_000)))
    assert set(found) <= {"loader", "optimizer", "sync_points"}


def test_loader_saves_at_most_the_wait():
    found = by_topic(SHOWS["loader"])["loader"]
    assert found.high == pytest.approx(0.35)
    assert "35.0 ms" in found.why
    assert "num_workers=0" in found.why
    assert "num_workers=8" in found.change


def test_more_workers_are_advised_than_there_are():
    seen = replace(SHOWS["loader"], loader=LoaderFacts("DataLoader", 8, True, 2))
    assert "num_workers=16" in by_topic(seen)["loader"].change


def test_sync_points_name_file_and_line():
    found = by_topic(SHOWS["sync_points"])["sync_points"]
    assert "train.py:17 .item() 1.0 per step, 10.00 ms" in found.why
    assert found.middle == pytest.approx(0.02)


def test_waits_are_told_over_the_steps_in_which_they_were_watched():
    """The first steps of a loop are not watched: of 50, one wait in each of the other 47 is one wait a step."""
    found = by_topic(observed(sites=(replace(SITE, times=47),), watched_steps=47))["sync_points"]
    assert found.figures["waits_per_step"] == 1.0


def test_a_wait_every_hundred_steps_is_no_finding():
    assert "sync_points" not in by_topic(observed(sites=(replace(SITE, times=1),)))


def test_precision_is_capped_by_the_peaks_and_by_amdahl():
    found = by_topic(SHOWS["precision"])["precision"]
    assert found.high == pytest.approx(0.9 * (1 - 1 / 8))
    assert found.rule == "bf16"


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp8", Unknown("not observed")])
def test_what_is_on_or_not_known_is_not_advised(precision):
    assert "precision" not in by_topic(replace(SHOWS["precision"], precision=precision))


def test_products_in_fp32_within_mixed_precision_are_not_told_to_switch_it_on():
    part = replace(SHOWS["precision"], precision_ratios={"fp32": 0.6, "bf16": 0.4})
    found = by_topic(part)["precision"]
    assert "with torch.autocast" not in found.change
    assert "40 % of the FLOPs run in 16 bits" in found.change
    assert "60 % of the FLOPs were observed in fp32" in found.why
    assert found.high == pytest.approx(0.6 * by_topic(SHOWS["precision"])["precision"].high)
    compile(found.change, "change", "exec")
    most = replace(part, precision="bf16", precision_ratios={"bf16": 0.6, "fp32": 0.4})
    assert "precision" not in by_topic(most)


@pytest.mark.parametrize(("precision", "shows"), [("bf16", True), ("tf32", True), ("fp32", False), ("fp64", False)])
def test_sizes_matter_where_products_run_on_tensor_cores(precision, shows):
    assert ("tensor_cores" in by_topic(replace(SHOWS["tensor_cores"], precision=precision))) is shows
    assert "tensor_cores" not in by_topic(replace(SHOWS["tensor_cores"], precision=Unknown("not observed")))


def test_copies_are_not_told_where_the_first_layer_was_not_seen():
    assert "h2d" not in by_topic(observed(ms={"h2d": 60, "backward": 40}, batch_bytes=4e7))


def test_a_gpu_without_bf16_is_told_of_fp16():
    found = by_topic(observed(gpu=V100, precision="fp32"))["precision"]
    assert found.rule == "amp"
    assert "has no bf16" in found.change
    assert "GradScaler" in found.change


def test_a_compiled_model_is_not_told_to_compile():
    assert "fusion" not in by_topic(replace(SHOWS["fusion"], compiled=True))


def test_a_larger_batch_is_not_advised_near_the_peak():
    assert "batch" not in by_topic(observed(memory=MemoryFacts(9 * GIB, 10 * GIB, 80 * GIB), work=observed().work))


@pytest.mark.parametrize(
    ("now", "held_gib", "said"),
    [
        (4, 10, "batch_size=24"),
        (16, 10, "batch_size=112"),
        (4, 45, "batch_size=6"),
        (9, 45, "batch_size=14"),
        (1, 45, None),
    ],
)
def test_the_batch_that_is_advised_is_larger_and_fits(now, held_gib, said):
    """Nine tenths of 80 GiB over what is held: 7.2 times, 1.6 times."""
    memory = MemoryFacts(held_gib * GIB, held_gib * GIB, 80 * GIB)
    found = by_topic(observed(work=SLOW, memory=memory, samples_per_step=float(now))).get("batch")
    assert (found is None) is (said is None)
    assert said is None or said in found.change


@given(st.fixed_dictionaries({p: st.floats(0, 100) for p in PHASES}), st.sampled_from(["fp32", "tf32", "bf16"]))
def test_no_finding_claims_more_than_its_phases(ms, precision):
    seen = observed(
        ms=ms,
        precision=precision,
        fused_optimizer=False,
        sites=(SITE,),
        work=replace(SLOW, kernels=20_000, odd_ratio=1.0),
    )
    most = {
        "loader": seen.share("data_wait"),
        "h2d": seen.share("h2d"),
        "precision": seen.share("forward", "backward"),
        "tensor_cores": seen.share("forward", "backward"),
        "fusion": seen.share("forward", "backward"),
        "optimizer": seen.share("optimizer"),
    }
    for name, found in by_topic(seen).items():
        assert found.high <= most.get(name, 1.0) + 1e-9


def test_the_largest_saving_comes_first():
    seen = replace(SHOWS["loader"], precision="fp32", sites=(SITE,))
    saved = [f.middle for f in find_all(seen)]
    assert saved == sorted(saved, reverse=True)


def test_a_convolutional_network_is_held_against_its_own_band():
    """Half of the peak is within the band of transformers and below that of convolutional networks."""
    step_s = observed().step.mean
    half = Work(0.5 * 989.5e12 * step_s, 0.5 * 989.5e12 * step_s, 0.2e12, "counted")
    assert "mfu" not in by_topic(observed(work=half))
    found = by_topic(observed(work=replace(half, convolution_ratio=0.97)))["mfu"]
    assert "usual for convolutional networks: 60 to 80 % MFU, as claimed" in found.why
    assert "mfu" not in by_topic(observed(work=replace(half, convolution_ratio=0.03)))  # a transformer's patches
