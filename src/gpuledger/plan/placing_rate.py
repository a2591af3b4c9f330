"""How much work does one placement do in a second?"""

from __future__ import annotations

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.plan.memory_setup import Setup
from gpuledger.plan.migrate_statement import Rate
from gpuledger.units import Unknown


def work_rate(model: Model, setup: Setup, gpu: Gpu, gpus_per_instance: int) -> Rate | Unknown:
    """Tokens a second of one copy: trained, or generated with all its requests at a time."""
    peak = gpu.peak(gpu.reference_precision())
    if isinstance(peak, Unknown):
        return peak
    if setup.mode == "train":
        flop = (8 if setup.recompute else 6) * model.params_active
        middle = setup.count * peak * 1e12 * 0.35 / flop
    else:
        bits = 8 if setup.precision in {"int8", "fp8"} else 16
        middle = (
            setup.batch * setup.tensor * gpu.memory_bandwidth_bytes_per_s.value * 0.6 / (model.params_active * bits / 8)
        )
    return Rate(middle * 0.8, middle, middle * 1.2)
