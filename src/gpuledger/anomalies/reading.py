"""What did each GPU read, hour by hour, on which work?

The lines of the ledger added up by device, work and hour. A reading "while working" leaves out idle time and waits, as
the state of each sample decided. Work is the job or deployment as its labels name it; the name of a pod loses what
tells replicas apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gpuledger.anomalies.signals import CountName, Rules, SignalName
from gpuledger.lake.batch import device_name
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows
from gpuledger.ledger.read.rollup import state_codes
from gpuledger.physics.states import RESTING
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_HOUR, PPM

_LABELS = ("namespace", "workload", "run_id", "pod", "host", "gpu_index", "gpu_model", "state")
_OWNER = ("namespace", "workload", "run_id", "pod", "host")
COUNTS: tuple[CountName, ...] = ("xid_events", "pcie_replays", "rows_remapped", "row_remap_failures")
# What adds up over all of an hour, and over its working time only.
_ALL = ("observed_ms", "throttle_ms", "thermal_ms", "power_capped_ms", *COUNTS)
_WORKING = (
    "clock_ms", "clock_mhz_ms", "power_ms", "power_uj", "util_ms", "util_ppm_ms", "tensor_ms", "tensor_ppm_mhz_ms",
    "engine_ms", "engine_ppm_ms", "sm_ms", "sm_ppm_ms", "dram_ms", "dram_ppm_ms",
)  # fmt: skip
# How Kubernetes names the pods of one Deployment, Job or StatefulSet apart.
_REPLICA = re.compile(r"(-[a-f0-9]{8,10}-[a-z0-9]{5}|-[bcdfghjklmnpqrstvwxz2456789]{5}|-\d+)$")
NO_WORK = ""


@dataclass(frozen=True)
class Gpu:
    """A device and where it was seen last."""

    device: str
    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    host: str | None
    gpu_index: str | None


@dataclass(frozen=True)
class Hours:
    """Readings by row: one device on one work in one hour. NaN where a reading is not known.

    `gpu`, `work` and `model` count into `gpus`, `works` and `models`; `same_work`: whether the work has a name of its
    own, not only a namespace. `grain_ms`: how long a row may be.
    """

    gpus: tuple[Gpu, ...]
    works: tuple[str, ...]
    models: tuple[str, ...]
    gpu: np.ndarray
    work: np.ndarray
    model: np.ndarray
    at_ms: np.ndarray
    observed_ms: np.ndarray
    working_ms: np.ndarray
    same_work: np.ndarray
    values: dict[SignalName, np.ndarray]
    counts: dict[CountName, np.ndarray]

    @property
    def start_ms(self) -> int:
        """The first hour."""
        return int(self.at_ms.min())

    @property
    def end_ms(self) -> int:
        """The end of the last hour."""
        return int(self.at_ms.max()) + MS_PER_HOUR


def read_hours(books: Books, limits: Rules) -> Hours:
    """The hours in scope; an error where there is not one line."""
    reader = _Reader(books)
    for _, rows in books.blocks(_LABELS, (*_ALL, *_WORKING), ("limit_mw", "gpu_temp_max_c"), hourly=True):
        reader.add(rows)
    return reader.made(limits)


def work_name(
    namespace: str | None, workload: str | None, run_id: str | None, pod: str | None, host: str | None
) -> tuple[str, bool]:
    """What the work is called, and whether that names one job or deployment, not only whose it is."""
    name = workload or run_id or (pod and _stem(pod, host))
    if not name:
        return namespace or NO_WORK, False
    return (f"{namespace}/{name}" if namespace else name), True


def _stem(pod: str, host: str | None) -> str:
    """A pod's name without its replica; a static pod is called after its node."""
    if host and pod.endswith(f"-{host}"):
        return pod.removesuffix(f"-{host}")
    return _REPLICA.sub("", pod) or pod


class _Reader:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._sums = Accumulator(most=("heat",))
        self._works: dict[tuple[str, bool], int] = {}
        self._places: dict[tuple[int, int], tuple[int, str | None, str | None]] = {}
        self._owners: dict[tuple[int, ...], int] = {}

    def add(self, rows: Rows) -> None:
        state = state_codes(self._books.names["state"], rows["state"])
        working = ~np.isin(state, [-1, *RESTING])
        columns = {name: rows[name] for name in _ALL}
        columns |= {name: np.where(working, rows[name], 0) for name in _WORKING}
        columns["working_ms"] = np.where(working, rows["observed_ms"], 0)
        limit = rows["limit_mw"].astype(float)
        known = ~np.isnan(limit)
        columns["limit_ms"] = np.where(known, rows["observed_ms"], 0)
        columns["limit_mw_s"] = (np.where(known, limit, 0) * (rows["observed_ms"] / 1000)).astype(np.int64)
        columns["heat"] = np.nan_to_num(rows["gpu_temp_max_c"].astype(float), nan=-1.0).astype(np.int64)
        device = [rows[c] for c in schema.DEVICE]
        self._sums.add([*device, rows["gpu_model"], self._work(rows), rows["hour_ms"] // MS_PER_HOUR], columns)
        self._place(rows)

    def _work(self, rows: Rows) -> np.ndarray:
        """Each row's work by number."""
        labels = np.stack([rows[c] for c in _OWNER])
        kinds, place = np.unique(labels, axis=1, return_inverse=True)
        numbers = [self._numbered(tuple(kind)) for kind in kinds.T.tolist()]
        return np.array(numbers, dtype=np.int64)[place.reshape(-1)]

    def _numbered(self, labels: tuple[int, ...]) -> int:
        if labels not in self._owners:
            texts = [None if n < 0 else self._books.names[c].texts[n] for c, n in zip(_OWNER, labels, strict=True)]
            self._owners[labels] = self._works.setdefault(work_name(*texts), len(self._works))
        return self._owners[labels]

    def _place(self, rows: Rows) -> None:
        """Where each device was seen last."""
        spots = np.stack([*(rows[c] for c in schema.DEVICE), rows["host"], rows["gpu_index"], rows["hour_ms"]])
        for board, instance, host, index, at in np.unique(spots, axis=1).T.tolist():
            last = self._places.get((board, instance))
            if last is None or at >= last[0]:
                spot = [
                    None if n < 0 else self._books.names[c].texts[n] for c, n in (("host", host), ("gpu_index", index))
                ]
                self._places[board, instance] = (at, spot[0], spot[1])

    def made(self, limits: Rules) -> Hours:
        keys, sums = self._sums.total()
        if not keys:
            raise self._books.nothing_found()
        board, instance, model, work, hour = keys
        pairs, gpu = np.unique(np.stack([board, instance]), axis=1, return_inverse=True)
        models, of_model = np.unique(model, return_inverse=True)
        named = list(self._works)
        same = np.array([known for _, known in named], dtype=bool)
        of_row = of_model.reshape(-1)
        gpu = gpu.reshape(-1)
        latest = dict(zip(gpu.tolist(), model.tolist(), strict=True))  # hours come in order within a device
        gpus = tuple(self._gpu(b, i, latest[n]) for n, (b, i) in enumerate(pairs.T.tolist()))
        texts = self._books.names["gpu_model"].texts
        return Hours(
            gpus=gpus, works=tuple(name for name, _ in named), gpu=gpu, work=work, model=of_row,
            models=tuple("" if m < 0 else texts[m] or "" for m in models.tolist()), at_ms=hour * MS_PER_HOUR,
            observed_ms=sums["observed_ms"], working_ms=sums["working_ms"], same_work=same[work],
            values=_values(sums, limits), counts={name: sums[name] for name in COUNTS},
        )  # fmt: skip

    def _gpu(self, board: int, instance: int, model: int) -> Gpu:
        names = self._books.names
        uuid = names["gpu_uuid"].texts[board] or ""
        slice_id = None if instance < 0 else names["gpu_instance_id"].texts[instance]
        _, host, index = self._places[board, instance]
        called = None if model < 0 else names["gpu_model"].texts[model]
        return Gpu(device_name(uuid, slice_id), uuid, slice_id, called, host, index)


def _values(sums: dict[str, np.ndarray], limits: Rules) -> dict[SignalName, np.ndarray]:
    """The readings that are compared: logarithms of those of form ratio, percentage points of shares."""
    works, seen = sums["working_ms"] >= limits.seen_from_ms, sums["observed_ms"] >= limits.seen_from_ms
    clock = _per(sums["clock_mhz_ms"], sums["clock_ms"])
    busy = np.where(
        sums["sm_ms"] > 0, _per(sums["sm_ppm_ms"], sums["sm_ms"]), _per(sums["engine_ppm_ms"], sums["engine_ms"])
    )
    tensor = _per(sums["tensor_ppm_mhz_ms"], sums["tensor_ms"]) / PPM
    # A hundredth of the time on the tensor pipe: less is not what the work is about.
    by_tensor = np.nan_to_num(tensor / np.where(clock > 0, clock, np.nan)) > 0.01
    heat = sums["heat"].astype(float)
    known = sums["throttle_ms"] >= limits.seen_from_ms
    return {
        "clock": _log(clock, works),
        "work": _log(np.where(by_tensor, tensor, busy / PPM * clock), works),
        "memory": _log(_per(sums["dram_ppm_ms"], sums["dram_ms"]) / PPM, works),
        "power": _log(_per(sums["power_uj"], sums["power_ms"]), works),
        "limit": _log(_per(sums["limit_mw_s"], sums["limit_ms"]), seen),
        "util": np.where(works, 100 * _per(sums["util_ppm_ms"], sums["util_ms"]) / PPM, np.nan),
        "working": np.where(seen, 100 * _per(sums["working_ms"], sums["observed_ms"]), np.nan),
        "heat": np.where(seen & (heat >= 0), heat, np.nan),
        "throttled": np.where(known, 100 * _per(sums["thermal_ms"], sums["throttle_ms"]), np.nan),
        "capped": np.where(known, 100 * _per(sums["power_capped_ms"], sums["throttle_ms"]), np.nan),
    }


def _per(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def _log(values: np.ndarray, inside: np.ndarray) -> np.ndarray:
    good = inside & (np.nan_to_num(values) > 0)
    return np.log(values, out=np.full(len(values), np.nan), where=good)
