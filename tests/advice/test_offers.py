from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from case_table import CASES

from gpuledger.advice.findings import find
from gpuledger.advice.limits import load_limits
from gpuledger.advice.offers import smaller_gpu, spot_discount
from gpuledger.advice.rule import RULES
from gpuledger.catalog.gpus import get_gpu
from gpuledger.catalog.prices import find_offers
from gpuledger.cost.statement import Dollars
from gpuledger.units import Unknown

LIMITS = load_limits()


def test_the_discount_is_that_of_the_same_zone():
    found = spot_discount("h100-sxm5-80gb")
    assert not isinstance(found, Unknown)
    assert 0 <= found.low <= found.middle <= found.high < 1
    assert found.zones > 50
    prices: dict[tuple[str, ...], dict[str, float]] = {}
    for offer in find_offers(gpu="h100-sxm5-80gb"):
        if not isinstance(offer.usd_per_gpu_h, Unknown) and not offer.apart:
            place = (offer.cloud, offer.instance, offer.region, offer.zone)
            prices.setdefault(place, {})[offer.purchase] = float(offer.usd_per_gpu_h)
    cuts = sorted(1 - p["spot"] / p["on_demand"] for p in prices.values() if len(p) == 2)
    assert found.zones == len(cuts)
    assert found.middle == pytest.approx(cuts[round(0.5 * (len(cuts) - 1))])
    assert "H100" in found.words


def test_an_instance_of_ones_own_comes_before_the_market():
    own, market = spot_discount("h100-sxm5-80gb", "p5.48xlarge"), spot_discount("h100-sxm5-80gb")
    assert not isinstance(own, Unknown)
    assert own.what == "p5.48xlarge"
    assert spot_discount("h100-sxm5-80gb", "no-such-instance") == market


def test_no_spot_offer_is_unknown():
    found = spot_discount("v100-sxm2-16gb")
    assert isinstance(found, Unknown)
    assert "v100-sxm2-16gb" in found.why


def test_the_smaller_gpu_is_smaller_cheaper_and_large_enough():
    one = CASES["steady and partial"]
    found = smaller_gpu(one, LIMITS)
    assert not isinstance(found, Unknown)
    assert found.paid_usd_per_gpu_h == 4
    assert found.price.usd_per_gpu_h < found.paid_usd_per_gpu_h
    assert found.gpu.memory_bytes.value * 0.9 >= one.demand.memory_max_bytes
    assert found.gpu.memory_bandwidth_bytes_per_s.value < 1.555e12
    assert len(found.price.clouds) >= LIMITS.smaller.clouds_from
    cut = 1 - float(found.price.usd_per_gpu_h) / 4
    assert float(found.gain.middle) == pytest.approx(cut, abs=1e-6)


def test_nothing_is_cheaper_than_what_is_paid_below_the_market():
    one = CASES["steady and partial"]
    cheap = replace(one, dollars=Dollars.of({b: usd / 14 for b, usd in one.dollars.each().items()}))
    found = smaller_gpu(cheap, LIMITS)
    assert isinstance(found, Unknown) or found.price.usd_per_gpu_h < Decimal("0.29")
    rules, spot = dict(RULES), CASES["compute-bound in bf16, H100"]
    assert find(rules["spot"], spot, LIMITS) is not None
    paid_less = replace(spot, dollars=Dollars.of({b: usd / 14 for b, usd in spot.dollars.each().items()}))
    assert find(rules["spot"], paid_less, LIMITS) is None


def test_traffic_between_gpus_needs_a_link():
    one = CASES["steady and partial"]
    linked = replace(one, demand=replace(one.demand, nvlink_bytes_per_s=5e10))
    found = smaller_gpu(linked, LIMITS)
    if not isinstance(found, Unknown):
        assert found.gpu.link is not None
        assert not found.gpu.link.kind.startswith("PCIe")


def test_headroom_that_is_not_measured_is_unknown():
    one = CASES["steady and partial"]
    found = smaller_gpu(replace(one, demand=replace(one.demand, tflops=Unknown("no counters"))), LIMITS)
    assert isinstance(found, Unknown)
    assert "not measured" in found.why


@pytest.mark.parametrize(("pipe", "ratio"), [("fp32", 1.0), ("fp64", 0.3)])
def test_vector_work_needs_the_vector_peak_of_the_smaller_gpu(pipe, ratio):
    """An RTX 6000 Ada has 364 bf16 TFLOPS and 91.1 of fp32: 67 are more than the 70 % it is planned with."""
    one = CASES["steady and partial"]
    quiet = replace(one, gpu=get_gpu("h100-sxm5-80gb"), gpu_model="NVIDIA H100 80GB HBM3")
    first = smaller_gpu(quiet, LIMITS)
    assert not isinstance(first, Unknown)
    assert first.gpu.key == "rtx-6000-ada"
    busy = replace(quiet, signals=replace(one.signals, **{f"{pipe}_ratio": ratio}))
    found = smaller_gpu(busy, LIMITS)
    if not isinstance(found, Unknown):
        peak = found.gpu.peak(pipe)
        assert not isinstance(peak, Unknown)
        assert 0.7 * peak >= ratio * quiet.gpu.peak(pipe)
        assert pipe in found.fits


def test_a_precision_the_smaller_gpu_lacks_refuses_it():
    one = CASES["steady and partial"]
    b200 = replace(one, gpu=get_gpu("b200-sxm"), demand=replace(one.demand, tflops=50.0))
    assert not isinstance(smaller_gpu(b200, LIMITS), Unknown)
    found = smaller_gpu(replace(b200, precision="fp4"), LIMITS)
    assert isinstance(found, Unknown) or "fp4" in found.gpu.peak_tflops
