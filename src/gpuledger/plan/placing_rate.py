"""How much work does one placement do in a second, and within which range?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.plan.guide.statement import Rate
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.throughput import MICRO_BATCHES, decode_errors, decode_step_s, train_rate
from gpuledger.units import Unknown


def work_rate(model: Model, setup: Setup, gpu: Gpu, gpus_per_instance: int) -> Rate | Unknown:
    """Tokens a second of one copy: trained, or written with all its requests at a time, half full on average."""
    if setup.mode == "train":
        found = train_rate(model, gpu, setup, MICRO_BATCHES, per_node=gpus_per_instance)
        if isinstance(found, Unknown):
            return found
        return _around(found.rate.per_s, found.rate.low_per_s, found.rate.high_per_s)
    step = decode_step_s(model, gpu, setup, setup.context / 2)
    if isinstance(step, Unknown):
        return step
    middle = setup.data * setup.batch / step
    return _around(middle, *decode_errors(model, gpu).range_of(middle))


def _around(middle: float, low: float, high: float) -> Rate:
    """The range of the measured errors, widened to hold the estimate itself where all of them lie on one side."""
    return Rate(min(low, middle), middle, max(high, middle))
