"""Which other clouds list the GPU as spot? Their prices have no history, so they are shown and not rated."""

from __future__ import annotations

import datetime as dt
import math

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import find_offers
from gpuledger.plan.spot.statement import Unrated
from gpuledger.units import Unknown

WITH_HISTORY = "aws"
MOST = 5


def unrated_offers(gpu: Gpu, gpus: int) -> tuple[Unrated, ...]:
    """The cheapest spot offer of each other cloud for all GPUs of the job."""
    best: dict[str, Unrated] = {}
    for offer in find_offers(gpu=gpu.key, purchase="spot"):
        if offer.cloud == WITH_HISTORY or offer.apart or offer.cloud in best or isinstance(offer.usd_per_h, Unknown):
            continue
        count = math.ceil(gpus / offer.gpus)
        whole = offer.usd_per_h * count
        place = offer.zone or offer.region
        best[offer.cloud] = Unrated(offer.cloud, offer.instance, place, whole, dt.date.fromisoformat(offer.dated))
    return tuple(sorted(best.values(), key=lambda u: u.usd_h)[:MOST])
