"""How active were the pipes of an NVIDIA GPU since the last look?

GPM (Hopper and later) counts activity in hardware. A sample freezes the counters; two samples give the means between
them. Each sample ends one window and opens the next, so no moment is missed however seldom it is read.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.devices.device import Value

# A share read just above one is rounding; far above, or below zero, it is a broken reading.
_ROUNDING = 1.02


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One activity counter, the column it fills and the factor to the schema's unit."""

    metric: str
    column: str
    multiply: float


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    min_interval_s: float
    source: str
    metrics: tuple[Metric, ...]


@cache
def metrics() -> tuple[Metric, ...]:
    """The counters that are read."""
    return load_toml(data_dir(__package__, "gpm_metrics.toml"), _File).metrics


def columns() -> tuple[str, ...]:
    """The columns they fill."""
    return tuple(dict.fromkeys(m.column for m in metrics()))


class GpmReader:
    """The activity of one GPU or MIG instance; each `read` gives the means since the one before."""

    def __init__(self, api: Any, handle: Any, gpu_instance: int | None, absent: dict[str, str]) -> None:
        self._api, self._handle, self._instance, self._absent = api, handle, gpu_instance, absent
        self._wanted = [m for m in metrics() if hasattr(api, m.metric)]
        self._columns = columns()
        self._answered: set[str] = set()
        self._samples = [api.nvmlGpmSampleAlloc(), api.nvmlGpmSampleAlloc()]
        self._primed = False
        self._request = api.c_nvmlGpmMetricsGet_t()
        self._request.version = api.NVML_GPM_METRICS_GET_VERSION
        self._fill_request()
        for m in metrics():
            if m not in self._wanted:
                absent[m.column] = f"the installed nvidia-ml-py does not know {m.metric}; upgrade it"

    def _fill_request(self) -> None:
        self._request.numMetrics = len(self._wanted)
        self._slots = [self._request.metrics[i] for i in range(len(self._wanted))]
        for slot, wanted in zip(self._slots, self._wanted, strict=True):
            slot.metricId = getattr(self._api, wanted.metric)

    def read(self) -> list[Value]:
        """The means since the last read, by column; all None on the first."""
        before, after = self._samples
        if self._instance is None:
            self._api.nvmlGpmSampleGet(self._handle, after)
        else:
            self._api.nvmlGpmMigSampleGet(self._handle, self._instance, after)
        # From here on the new sample opens the next window, whatever becomes of this one.
        self._samples = [after, before]
        if not self._primed:
            self._primed = True
            return [None] * len(self._columns)
        self._request.sample1, self._request.sample2 = before, after
        self._api.nvmlGpmMetricsGet(self._request)
        return self._collect()

    def _collect(self) -> list[Value]:
        found: dict[str, Value] = {}
        refused: list[Metric] = []
        for slot, wanted in zip(self._slots, self._wanted, strict=True):
            value: Value = None
            if slot.nvmlReturn == self._api.NVML_SUCCESS:
                value = _sound(slot.value * wanted.multiply, wanted.column)
                self._answered.add(wanted.metric)
            elif slot.nvmlReturn == self._api.NVML_ERROR_NOT_SUPPORTED and wanted.metric not in self._answered:
                refused.append(wanted)
            if wanted.column in found:
                so_far = found[wanted.column]
                value = None if value is None or so_far is None else so_far + value
            found[wanted.column] = value
        if refused:
            self._drop(refused)
        return [found.get(c) for c in self._columns]

    def _drop(self, refused: list[Metric]) -> None:
        """Ask no more for what the device does not have: each metric costs a tenth of a millisecond."""
        gone = {m.column for m in refused}
        for m in refused:
            self._absent[m.column] = f"this GPU does not count it ({m.metric}: not supported)"
        self._wanted = [m for m in self._wanted if m.column not in gone]
        self._fill_request()

    def close(self) -> None:
        """Give the sample buffers back."""
        for sample in self._samples:
            self._api.nvmlGpmSampleFree(sample)


def _sound(value: float, column: str) -> Value:
    """The value if it can be true."""
    if not value >= 0.0:
        return None
    if column.endswith("_ratio"):
        return min(value, 1.0) if value <= _ROUNDING else None
    return value
