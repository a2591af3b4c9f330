"""Which counter readings missed their window, and what did the next one cover?

Activity counters read as often as the driver refreshes them (10 times a second) now and then meet no refresh: every one
of them is exactly zero, PCIe too, though even an idle GPU answers its driver over PCIe. The next reading covers both
windows: activity is its mean over them, while amounts (memory, links) show twice the rate.
"""

from __future__ import annotations

import numpy as np

# Slower readings meet a refresh every time.
FINE_STEP_MS = 500
_ACTIVITY = (
    "engine_ratio", "sm_ratio", "occupancy_ratio", "integer_ratio", "tensor_ratio", "hmma_ratio", "imma_ratio",
    "dfma_ratio", "fp64_ratio", "fp32_ratio", "fp16_ratio",
)  # fmt: skip
_TRAFFIC = ("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s")
_RATES = ("dram_ratio", *_TRAFFIC, "nvlink_bytes_per_s")


def mend(readings: dict[str, np.ndarray], span_ms: np.ndarray, device_starts: np.ndarray) -> dict[str, np.ndarray]:
    """The readings with missed windows filled from the next reading of the same device, where there is one.

    One reading per instant of a device: where owners share an instant, they share its reading.
    """
    missed = _missed(readings)
    if missed is None:
        return readings
    missed &= span_ms <= FINE_STEP_MS
    if not missed.any():
        return readings
    n = len(missed)
    place = np.where(missed, n, np.arange(n))
    after = np.minimum.accumulate(place[::-1])[::-1]  # the next row that was not missed
    device = np.zeros(n, dtype=np.int64)
    device[device_starts[1:]] = 1
    device = np.cumsum(device)
    reached = np.minimum(after, n - 1)
    usable = missed & (after < n) & (device[reached] == device)
    rows, source = np.flatnonzero(usable), reached[usable]
    lost = np.flatnonzero(missed & ~usable)
    covered = span_ms.astype(np.float64)
    covered = covered + np.bincount(source, covered[rows], n)
    out = dict(readings)
    for name in (*_ACTIVITY, *_RATES):
        if name in out:
            # Activity is only copied: in 32 bits it must compare with its limits as it did before.
            values = np.array(out[name], dtype=np.float64 if name in _RATES else out[name].dtype)
            if name in _RATES:
                touched = np.unique(source)
                values[touched] *= span_ms[touched] / np.maximum(covered[touched], 1.0)
            values[rows], values[lost] = values[source], np.nan
            out[name] = values
    return out


def _missed(readings: dict[str, np.ndarray]) -> np.ndarray | None:
    traffic = [readings[c] for c in _TRAFFIC if c in readings]
    if not traffic:
        return None
    active = np.zeros(len(traffic[0]), dtype=bool)
    for name in _ACTIVITY:
        if name in readings and not active.all():
            active |= ~np.isnan(readings[name])
    zero = active & ~np.isnan(np.vstack(traffic)).all(axis=0)
    for name in (*_ACTIVITY, *_RATES):
        if name in readings:
            zero &= ~(readings[name] != 0) | np.isnan(readings[name])
    return zero
