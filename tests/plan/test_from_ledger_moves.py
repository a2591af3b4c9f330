from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.advice.limits import load_limits
from gpuledger.advice.offers import Need, pipes_not_recorded
from gpuledger.catalog.gpus import get_gpu, proposed_gpus
from gpuledger.catalog.prices.offers import Offer
from gpuledger.cost.statement import BUCKETS
from gpuledger.plan.market import Market
from gpuledger.plan.move.boards import bought, kept
from gpuledger.plan.move.carry import Misfit, other_gpu, same_gpu, slice_for
from gpuledger.plan.move.demand import Holding, Load
from gpuledger.plan.move.moves import Claim, find_moves
from gpuledger.plan.packing import Parcel
from gpuledger.units import Unknown

LIMITS = load_limits()
TODAY = dt.date(2026, 11, 15)


def load(device: str = "a", gpu: str = "a100-sxm4-40gb", **own: Any) -> Load:
    """A quiet A100: 4 GB, a tenth of the time busy, slow work."""
    fields: dict[str, Any] = {
        "device": device, "board": device, "sliced": False, "namespace": "n", "gpu_model": get_gpu(gpu).name,
        "gpu": get_gpu(gpu), "hours": 100, "observed_h": 100.0, "busy_ratio": 0.08, "busy_hours_ratio": 0.1,
        "evidence": "counters", "tflops": (1.0, 2.0, 2.0), "busy_hours_tflops": 3.0,
        "needs": (Need("bf16", 30.0, known=False),),
        "busy_hours_dram_bytes_per_s": 1e10, "working_dram_bytes_per_s": 1e11, "memory_max_bytes": 4e9,
        "nvlink_bytes_per_s": 0.0, "phases_ms": {},
    }  # fmt: skip
    return Load(**(fields | own))


def holding(*loads: Load, usd: str | None = "3.00", serves: bool = False) -> Holding:
    paid = {x.device: dict.fromkeys(BUCKETS, Decimal(10)) for x in loads}
    return Holding(
        namespace="n", gpu_model=loads[0].gpu_model, gpu=loads[0].gpu, loads=loads, paid=paid,
        paid_h={x.device: 100.0 for x in loads}, usd_per_gpu_h=Decimal(usd) if usd else Unknown("no price"),
        purposes=frozenset({"inference" if serves else "training"}),
    )  # fmt: skip


def market(**usd: float) -> Market:
    """Two clouds that list only these GPUs."""
    listed = [
        Offer(
            cloud=cloud, instance=f"{key}-box", accelerator=key, gpu=key.replace("_", "-"), gpus=Decimal(1), region="r",
            zone="z", purchase="on_demand", usd_per_h=Decimal(str(price)), dated="2026-11-01",
        )
        for cloud in ("a", "b")
        for key, price in usd.items()
    ]  # fmt: skip
    return Market(TODAY, clouds_from=2, listed=listed)


def claims(held: Holding, prices: Market) -> dict[str, Claim]:
    return {c.gpu.key if c.kind == "other" else c.kind: c for c in find_moves(held, LIMITS, prices)[0]}


def reasons(held: Holding, prices: Market) -> dict[str, str]:
    return {r.gpu_name if r.kind == "other" else r.kind: r.reason for r in find_moves(held, LIMITS, prices)[1]}


def test_small_jobs_are_put_together_by_memory_and_time() -> None:
    # Each of 8 needs 4 of 36 GB (40 less a tenth) and a tenth of the time: at 60, 70 and 85 % full 6, 7 and 8 share.
    found = claims(holding(*(load(str(n)) for n in range(8))), market())["fewer"]
    assert found.gpus_after == (2, 2, 1)
    assert found.gain.middle == Decimal("0.750000")


def test_full_cards_cannot_share_and_say_why() -> None:
    held = holding(*(load(str(n), memory_max_bytes=30e9) for n in range(4)))
    _, refused = find_moves(held, LIMITS, market())
    (fewer,) = [r for r in refused if r.kind == "fewer"]
    assert fewer.reason == "memory"
    assert "75 %" in fewer.why
    assert fewer.remedy


def test_copies_of_a_server_only_add_up_their_time() -> None:
    # Six servers, 30 of 40 GB each, 0.45 busy: 2.7 GPUs of work are 4 at 70 % and 4 at 85 %; cautiously none shares.
    held = holding(*(load(str(n), memory_max_bytes=30e9, busy_hours_ratio=0.45) for n in range(6)), serves=True)
    assert claims(held, market())["fewer"].gpus_after == (6, 4, 4)


def test_gpus_that_talk_to_each_other_stay_together() -> None:
    held = holding(*(load(str(n), nvlink_bytes_per_s=5e10) for n in range(4)))
    told = reasons(held, market(l4=0.1, a40=0.1, h200_sxm_141gb=0.1))
    assert (told["fewer"], told["slices"], told["L4"], told["A40"]) == ("link",) * 4  # a bridge joins two, not four
    assert "H200-SXM-141GB" not in told
    two = holding(*(load(str(n), nvlink_bytes_per_s=5e9) for n in range(2)))
    assert "A40" not in reasons(two, market(a40=0.1))
    fast = holding(*(load(str(n), nvlink_bytes_per_s=3e11) for n in range(2)))
    assert reasons(fast, market(a40=0.1))["A40"] == "link"  # 300 of 112 GB/s


def test_slices_hold_small_loads() -> None:
    # 4 GB and 8 % of the time fit 1g.5gb, a seventh of a board: seven to a board.
    found = claims(holding(*(load(str(n), busy_hours_ratio=0.08) for n in range(7))), market())["slices"]
    assert found.gpus_after == (1, 1, 1)
    assert found.slice_name is not None
    assert "1g" in found.slice_name


def test_a_smaller_gpu_is_found_with_its_price_and_its_range() -> None:
    found = claims(holding(load(busy_hours_ratio=0.6), load("b", busy_hours_ratio=0.6)), market(l4=0.9))["l4"]
    assert found.moved == ("a", "b")
    assert found.gpus_after[1] == 2
    assert float(found.gain.middle) == pytest.approx(1 - 0.9 / 3)
    assert found.price is not None
    assert (found.price.usd_per_gpu_h, found.price.age_days, found.price.stale) == (Decimal("0.9"), 14, False)


def test_only_the_loads_that_fit_move() -> None:
    held = holding(load("small", busy_hours_ratio=0.5), load("large", memory_max_bytes=30e9))
    found = claims(held, market(l4=0.9))["l4"]
    assert found.moved == ("small",)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"memory_max_bytes": 22e9}, "memory"),
        ({"busy_hours_ratio": 0.9, "needs": (Need("bf16", 250.0),)}, "compute"),
        ({"busy_hours_ratio": 0.9, "working_dram_bytes_per_s": 1.2e12}, "bandwidth"),
        ({"nvlink_bytes_per_s": 5e10}, "link"),
        ({"precision": "fp4"}, "precision"),
        ({"memory_max_bytes": Unknown("not recorded")}, "not measured"),
        ({"working_dram_bytes_per_s": Unknown("not recorded")}, "not measured"),
        ({"sliced": True}, "sliced"),
    ],
)
def test_what_l4_cannot_carry_is_refused_with_why_and_remedy(given: dict[str, Any], reason: str) -> None:
    found = other_gpu(load(**given), get_gpu("l4"), LIMITS, 0.7, cautious=False)
    assert isinstance(found, Misfit)
    assert (found.reason, bool(found.why), bool(found.remedy)) == (reason, True, True)


def test_another_vendor_too_few_clouds_and_a_higher_price_are_refused() -> None:
    told = reasons(holding(load(), load("b")), market(l4=9.9, mi300x=0.1))
    assert (told["L4"], told["MI300X"], told["T4"]) == ("price", "vendor", "price")
    one_cloud = Market(TODAY, clouds_from=3, listed=market(l4=0.1)._listed)
    assert reasons(holding(load(), load("b")), one_cloud)["L4"] == "price"


def test_every_gpu_that_may_be_proposed_is_a_move_or_refused() -> None:
    held, prices = holding(load(), load("b")), market(l4=0.5, l40s=1.0)
    made, refused = find_moves(held, LIMITS, prices)
    named = [c.gpu.name for c in made if c.kind == "other"] + [r.gpu_name for r in refused if r.kind == "other"]
    assert sorted(named) == sorted(g.name for g in proposed_gpus() if g.key != "a100-sxm4-40gb")
    assert all(r.why and r.reason for r in refused)


def test_without_a_present_price_other_gpus_cannot_be_weighed() -> None:
    told = reasons(holding(load(), load("b"), usd=None), market(l4=0.5))
    assert told["L4"] == "price"


def test_cautiously_a_load_slows_down_with_the_gpu() -> None:
    one, l4 = load(busy_hours_ratio=0.2), get_gpu("l4")
    bold, careful = (other_gpu(one, l4, LIMITS, 0.7, cautious=c) for c in (False, True))
    assert isinstance(bold, Parcel)
    assert bold.time_ratio == pytest.approx(0.2)
    # 1555 against 300 GB/s: at worst 5.2 times slower, so the busy hours no longer have the time.
    assert isinstance(careful, Misfit)
    assert careful.reason in {"compute", "bandwidth"}


def test_power_alone_does_not_tell_which_pipes_another_gpu_needs() -> None:
    by_power = load("a", evidence="power", needs=pipes_not_recorded(get_gpu("H100-SXM5-80GB")))
    assert reasons(holding(by_power), market(l40s=0.5))["L40S"] == "not measured"


def test_a_slower_gpu_is_a_strain() -> None:
    # 150 of 181 bf16 TFLOPS (L40): more than the 70 % it is planned with, and the busy hours have the time.
    one = load("a", needs=(Need("bf16", 150.0),), busy_hours_ratio=0.3)
    found = claims(holding(one), market(l40=0.5))["l40"]
    assert found.strained
    assert "150 of 181 bf16 TFLOPS" in found.fits
    assert not claims(holding(load("a", busy_hours_ratio=0.3)), market(l40=0.5))["l40"].strained


def test_a_pipe_nobody_recorded_is_named_with_the_move() -> None:
    found = claims(holding(load("a", unrecorded=("fp64",))), market(l40=0.5))["l40"]
    assert any("fp64" in words for words in found.reasons)


@pytest.mark.parametrize(
    ("needs", "gpu", "reason"),
    [
        ((Need("fp32", 43.0),), "a100-sxm4-80gb", "compute"),
        ((Need("fp32", 43.0),), "l40s", None),
        ((Need("fp64", 5.0),), "a100-sxm4-80gb", None),
        ((Need("fp64", 5.0),), "l40s", "precision"),
        ((Need("int8", 50.0),), "v100-sxm2-32gb", "precision"),
        ((Need("fp8", 50.0),), "a100-sxm4-80gb", "precision"),
        ((Need("bf16", 50.0),), "v100-sxm2-32gb", "precision"),
        # Nobody labelled it: the reference precision of V100 is fp16.
        ((Need("bf16", 20.0, known=False),), "v100-sxm2-32gb", None),
        # Precisions share the tensor pipe: 150 of 312 and 80 of 156 are each below 70 %, together 99 %.
        ((Need("bf16", 150.0), Need("tf32", 80.0)), "a100-sxm4-80gb", "compute"),
        ((Need("bf16", 150.0),), "a100-sxm4-80gb", None),
    ],
)
def test_each_pipe_is_compared_with_its_own_peak(needs: tuple[Need, ...], gpu: str, reason: str | None) -> None:
    one = load(gpu="h100-sxm5-80gb", needs=needs, busy_hours_ratio=0.9, working_dram_bytes_per_s=1e11)
    found = other_gpu(one, get_gpu(gpu), LIMITS, 0.7, cautious=False)
    assert (found.reason if isinstance(found, Misfit) else None) == reason


def test_a_load_that_nearly_fills_its_card_is_alone_not_refused() -> None:
    found = same_gpu(load(memory_max_bytes=39e9), LIMITS)
    assert isinstance(found, Parcel)
    assert found.alone
    assert found.fits


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"gpu": "l4"}, "no MIG"), ({"nvlink_bytes_per_s": 5e10}, "link"), ({"sliced": True}, "sliced"),
     ({"busy_hours_ratio": 0.9}, "too large")],
)  # fmt: skip
def test_slices_are_refused_where_they_cannot_be(given: dict[str, Any], reason: str) -> None:
    found = slice_for(load(**given), LIMITS, 0.7)
    assert isinstance(found, Misfit)
    assert found.reason == reason


@given(now=st.integers(1, 500), needed=st.integers(1, 500), gpu=st.sampled_from(["mi250x", "mi250", "mi300x", "l4"]))
def test_dies_are_given_back_and_bought_by_whole_boards(now: int, needed: int, gpu: str) -> None:
    one = get_gpu(gpu)
    wanted = min(needed, now)
    stay = kept(now, wanted, one)
    assert wanted <= stay <= now
    assert (now - stay) % one.dies == 0
    assert stay - wanted < one.dies
    assert bought(needed, one) % one.dies == 0
    assert needed <= bought(needed, one) < needed + one.dies


def test_dies_move_to_another_gpu_by_whole_boards_and_the_rest_stays() -> None:
    three = [load(name, "mi250x", memory_max_bytes=4e9) for name in "abc"]
    found = claims(holding(*three), market(mi210=0.5))["mi210"]
    assert len(found.moved) == 2
    assert "a board of MI250X has 2 dies" in found.fits
    assert reasons(holding(three[0]), market(mi210=0.5))["MI210"] == "boards"


def test_boards_with_two_dies_are_bought_whole() -> None:
    three = [load(name, "mi300x", memory_max_bytes=50e9) for name in "abc"]
    assert claims(holding(*three, usd="6.00"), market(mi250x=0.5))["mi250x"].gpus_after == (4, 4, 4)
