"""What do the samples of a stretch of time say, once counter windows that were missed are mended?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuledger.efficiency.pipes import State, pipe_facts
from gpuledger.ledger.measures import PIPES, POWER_CAP_BITS

_ACTIVITY = (*(f"{p}_ratio" for p in PIPES), "engine_ratio", "sm_ratio", "occupancy_ratio", "integer_ratio")
# These are amounts over the sampler's own time, so a reading that covers two windows shows twice the rate.
_RATES = ("dram_ratio", "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s", "nvlink_bytes_per_s")
_TRAFFIC = ("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s")


@dataclass(frozen=True)
class Window:
    """Readings by schema column, NaN where silent; counters stand for `counter_s`, the rest for `span_s` of time."""

    columns: Mapping[str, np.ndarray]
    span_s: np.ndarray
    counter_s: np.ndarray

    def __len__(self) -> int:
        return len(self.span_s)

    def weights(self, name: str) -> np.ndarray:
        """The time each reading of a column stands for."""
        return self.counter_s if name in _ACTIVITY or name in _RATES else self.span_s

    def known(self, name: str) -> np.ndarray | None:
        """The column, or None where no row has a reading."""
        values = self.columns.get(name)
        return None if values is None or np.isnan(values[self.weights(name) > 0]).all() else values

    def mean(self, name: str) -> float | None:
        """Mean over the time in which the column is known."""
        values = self.known(name)
        return None if values is None else _mean(values, self.weights(name))

    def take(self, rows: np.ndarray) -> Window:
        """Some of the rows."""
        return Window({k: v[rows] for k, v in self.columns.items()}, self.span_s[rows], self.counter_s[rows])


def make_window(columns: Mapping[str, np.ndarray], span_s: np.ndarray) -> Window:
    """The readings with missed counter windows mended.

    Counters read as often as the driver refreshes them (10 Hz) now and then meet no refresh: every one is exactly
    zero, PCIe too, though even an idle GPU answers its driver over PCIe. The next reading covers both windows.
    """
    held = {k: np.asarray(v, dtype=np.float64).copy() for k, v in columns.items()}
    span = np.asarray(span_s, dtype=np.float64)
    missed = _missed(held, len(span))
    counter = np.where(missed, 0.0, span)
    waiting = 0.0
    for i in np.flatnonzero(missed | np.roll(missed, 1)):
        if missed[i]:
            waiting += float(span[i])
        elif waiting:
            counter[i] += waiting
            for name in _RATES:
                if name in held:
                    held[name][i] *= span[i] / counter[i]
            waiting = 0.0
    for name in (*_ACTIVITY, *_RATES):
        if name in held:
            held[name][missed] = np.nan
    return Window(held, span, counter)


def _missed(columns: Mapping[str, np.ndarray], rows: int) -> np.ndarray:
    if "engine_ratio" not in columns or not any(c in columns for c in _TRAFFIC):
        return np.zeros(rows, dtype=bool)
    zero = np.ones(rows, dtype=bool)
    for name in (*_ACTIVITY, *_RATES):
        if name in columns:
            zero &= ~(columns[name] != 0) | np.isnan(columns[name])
    traffic = np.vstack([columns[c] for c in _TRAFFIC if c in columns])
    silent = np.isnan(columns["engine_ratio"]) | np.isnan(traffic).all(axis=0)
    return zero & ~silent


def activity_mhz(window: Window) -> dict[str, float]:
    """Mean of activity x SM clock of each pipe that is known: the product of each row, since the two move together."""
    clock = window.known("sm_clock_mhz")
    found = {}
    for pipe in PIPES:
        values = window.known(f"{pipe}_ratio")
        if values is None or clock is None:
            continue
        product, activity = _mean(values * clock, window.counter_s), _mean(values, window.counter_s)
        if product is not None and activity is not None:
            found[pipe] = product if activity >= pipe_facts().noise_ratio else 0.0
    return found


def pipe_state(window: Window) -> State:
    """Whether the tensor pipe worked under a power cap, how full the SMs' time was of it, and their warp slots."""
    tensor, bits, sm = (window.known(c) for c in ("tensor_ratio", "throttle_bits", "sm_ratio"))
    capped = saturation = slots = None
    if tensor is not None and bits is not None:
        known = ~np.isnan(bits) & ~np.isnan(tensor)
        work = np.where(known, tensor * window.counter_s, 0.0)
        held = (np.where(known, bits, 0.0).astype(np.int64) & POWER_CAP_BITS) != 0
        total = float(work.sum())
        capped = float(work[held].sum()) / total if total > 0 else None
    if tensor is not None and sm is not None:
        busy, worked = _mean(sm, window.counter_s), _mean(tensor, window.counter_s)
        saturation = worked / busy if busy and worked is not None else None
        filled = window.mean("occupancy_ratio")
        slots = filled / busy if busy and filled is not None else None
    engine, dram = window.mean("engine_ratio"), window.mean("dram_ratio")
    return State(capped, saturation, slots, dram / engine if engine and dram is not None else None)


def _mean(values: np.ndarray, weights: np.ndarray) -> float | None:
    known = ~np.isnan(values) & (weights > 0)
    total = float(weights[known].sum())
    return float((values[known] * weights[known]).sum()) / total if total > 0 else None
