"""Is the shipped price data whole and plausible? What a mistake in a price list would look like is refused here."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal

import pytest

from gpuledger.catalog.prices.offers import Offer, facts, load_offers
from gpuledger.units import Unknown


def known() -> list[tuple[Offer, Decimal]]:
    return [(o, p) for o in load_offers() if not o.apart and not isinstance(p := o.usd_per_gpu_h, Unknown)]


def test_no_gpu_is_nearly_free_or_dearer_than_any_ever_was() -> None:
    for offer, price in known():
        assert Decimal("0.005") < price < Decimal(30), offer


@pytest.mark.parametrize(
    ("gpu", "least", "most"),
    [("h100-sxm5-80gb", 1.5, 17), ("h200-sxm-141gb", 1.5, 14), ("b200-sxm", 3, 25),
     ("a100-sxm4-80gb", 0.8, 7), ("l4", 0.3, 6)],
)  # fmt: skip
def test_on_demand_prices_of_well_known_gpus_lie_in_a_band(gpu: str, least: float, most: float) -> None:
    found = [float(p) for o, p in known() if o.gpu == gpu and o.purchase == "on_demand"]
    assert found
    assert least <= min(found)
    assert max(found) <= most


def test_an_instance_has_as_many_gpus_everywhere_and_of_one_kind() -> None:
    kinds = defaultdict(set)
    for offer in load_offers():
        if offer.cloud != "vast":  # a market place: its names are not of instance types
            kinds[offer.cloud, offer.instance].add(
                (offer.accelerator, offer.gpus, offer.gpu if isinstance(offer.gpu, str) else "")
            )
    nameless = {key for key in kinds if not key[1]}
    many = {key: found for key, found in kinds.items() if len(found) > 1 and key not in nameless}
    assert not many
    assert {cloud for cloud, _ in nameless} <= {"gcp"}


def test_gpu_counts_are_those_of_real_machines() -> None:
    whole = Counter(int(o.gpus) for o in load_offers() if o.gpus >= 1)
    assert set(whole) <= set(range(1, 17))


def test_known_instances_cost_what_their_cloud_lists() -> None:
    # Published on-demand prices of whole instances in us-east-1.
    listed = {"p5.48xlarge": "55.04", "g5.xlarge": "1.006", "g6.xlarge": "0.8048", "p4d.24xlarge": "21.957642"}
    for instance, usd in listed.items():
        found = {
            o.usd_per_h
            for o in load_offers()
            if (o.cloud, o.instance, o.region, o.purchase) == ("aws", instance, "us-east-1", "on_demand")
        }
        assert Decimal(usd) in found, (instance, found)


def test_in_one_zone_a_larger_instance_of_the_same_gpu_costs_more() -> None:
    """Per GPU the price may fall with size; the price of the whole never does: a scope mistaken would show here."""
    by_place: dict[tuple[str, ...], dict[int, list[Decimal]]] = defaultdict(lambda: defaultdict(list))
    for offer, price in known():
        if offer.purchase == "on_demand" and offer.cloud in {"aws", "gcp", "azure", "lambda", "runpod"}:
            place = (offer.cloud, str(offer.gpu), offer.accelerator, offer.region, offer.zone)
            by_place[place][int(offer.gpus)].append(price * offer.gpus)
    for place, sizes in by_place.items():
        least = [min(sizes[n]) for n in sorted(sizes)]
        assert least == sorted(least), place


def test_every_cloud_says_its_dates_and_its_source() -> None:
    assert all(o.source == facts().source and o.dated for o in load_offers())
    assert "skypilot" in facts().source
    assert facts().stale_basis
