"""Hours of a small fleet, made by hand."""

import numpy as np

from gpuledger.anomalies.reading import COUNTS, Gpu, Hours
from gpuledger.anomalies.signals import rules
from gpuledger.units import MS_PER_HOUR, Unknown

START_MS = 1_768_867_200_000 // MS_PER_HOUR * MS_PER_HOUR
NO_PRICE = Unknown("no price here")


def no_price(_model):
    return NO_PRICE


def fleet(values, *, work="ml/train", same_work=True, model="NVIDIA A10G", counts=None, names=None, step_h=1):
    """Hours of GPUs on one work: `values` by signal and `counts` by kind are arrays of GPU x hour."""
    shape = next(iter(values.values())).shape
    gpus, hours = shape
    names = names or [f"GPU-{i:03d}" for i in range(gpus)]
    gpu, hour = np.repeat(np.arange(gpus), hours), np.tile(np.arange(hours), gpus)
    empty, full = np.full(gpus * hours, np.nan), np.full(gpus * hours, float(MS_PER_HOUR))
    zero = np.zeros(gpus * hours, dtype=np.int64)
    return Hours(
        gpus=tuple(Gpu(n, n, None, model, f"host-{n}", "0") for n in names), works=(work,), models=(model,), gpu=gpu,
        work=zero, model=zero, at_ms=START_MS + hour * step_h * MS_PER_HOUR, observed_ms=full, working_ms=full,
        same_work=np.full(gpus * hours, same_work),
        values={s.name: values[s.name].reshape(-1) if s.name in values else empty for s in rules().signals},
        counts={c: (counts or {}).get(c, np.zeros(shape)).reshape(-1) for c in COUNTS},
    )  # fmt: skip


def noise(seed, gpus=8, hours=48, size=0.01):
    return np.random.default_rng(seed).normal(0, size, (gpus, hours))
