"""What did each device do for each owner, and how is it called?

Each device is judged day by day for each owner by the time it worked or waited; idle time is set apart. The days it
spent in one class are then one stretch. Days are read one after the other, so memory follows devices, not days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuledger.advice.limits import Limits
from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.catalog.thresholds import Idle, Thresholds, load_thresholds
from gpuledger.cost.buckets import IDLE, Kinds
from gpuledger.cost.pieces import kinds_of_rows
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator, apart, grouped
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows, kept
from gpuledger.ledger.read.rollup import HEALTH, HISTOGRAM, state_codes
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.activity import COLUMNS as ACTIVITY
from gpuledger.physics.activity import CONDITIONS, pipe_sums
from gpuledger.physics.behavior import NOT_KNOWN, classify_rows, figure_rows, load_rules
from gpuledger.physics.evidence import ModelFacts, work
from gpuledger.physics.signals import GpuFacts, signal_rows
from gpuledger.physics.states import NOT_ALL_SEEN, State
from gpuledger.units import MS_PER_DAY, PPM

KEYS = ("gpu_uuid", "gpu_instance_id", "namespace", "workload", "gpu_model", "tensor_precision")
# Sums over all of the time.
_ALL = (
    "unstated_ms", *IDLE, "phase_idle_ms", "phase_underutilized_ms", "phase_productive_ms",
    "phase_compute_bound_ms", "energy_ms", "energy_mj", "fb_ms", "fb_mib_ms", *HEALTH,
)  # fmt: skip
# Sums over the time it worked or waited.
_WORK = (
    "samples", "observed_ms", "busy_ppm_ms", "wait_1s_ms", "wait_10s_ms", "wait_30s_ms", "waits", "util_ms",
    "util_ppm_ms", "active_ms", "active_util_ppm_ms", "pif_ms", "pif_uj", "engine_ms", "engine_ppm_ms", "sm_ms",
    "sm_ppm_ms", "occupancy_ms", "occupancy_ppm_ms", "integer_ms", "integer_ppm_ms", "mem_copy_ms", "mem_copy_ppm_ms",
    "dram_ms", "dram_ppm_ms", "tensor_ms", "tensor_ppm_ms", "fp64_ms", "fp64_ppm_ms", "fp32_ms", "fp32_ppm_ms",
    "fp16_ms", "fp16_ppm_ms", "imma_ppm_ms", "dfma_ppm_ms", "clock_ms", "clock_mhz_ms", "pcie_rx_ms", "pcie_rx_bytes",
    "pcie_tx_ms", "pcie_tx_bytes", "nvlink_ms", "nvlink_bytes", "capped_ms", *HISTOGRAM,
)  # fmt: skip
_MADE = (
    "all_ms", "resting_ms", "done_high", "work_ms", "unseen_ms", "capped_ms", "capped_mw_ms", "rfu_ms", "rfu_ratio_ms",
    "seen_ms",
)  # fmt: skip
SUMS = tuple(dict.fromkeys((*_ALL, *_WORK, *_MADE)))
MOST = ("limit_mw", "card_bytes", "fb_max_bytes", "slice_ppm")
_NUMBERS = tuple(n for n in dict.fromkeys((*_ALL, *_WORK, *ACTIVITY, *CONDITIONS)) if n not in _MADE)

Key = tuple[str, str | None, str | None, str | None]


@dataclass(frozen=True)
class Stretch:
    """The days of one device for one owner in one class: whose they are, their sums by column, the class."""

    gpu_uuid: str
    gpu_instance_id: str | None
    namespace: str | None
    workload: str | None
    gpu_model: str | None
    precision: str | None
    klass: str
    sums: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """The device and the owner, as charges name them."""
        return self.gpu_uuid, self.gpu_instance_id, self.namespace, self.workload


def read_stretches(
    lake: Lake, scope: Scope, limits: Limits, thresholds: Thresholds | None = None
) -> tuple[Stretch, ...]:
    """The stretches of everyone in scope; an error where there is not one line."""
    rules = thresholds or load_thresholds()
    books = Books(lake, scope, rules)
    reader = _Reader(books, rules.idle, limits.idle.active_from_ratio)
    pending: list[Rows] = []
    for day_ms, rows in books.blocks((*KEYS, "state"), _NUMBERS, MOST):
        # A span over midnight is posted with the day before: a few seconds, judged by themselves.
        own = rows["hour_ms"] // MS_PER_DAY == day_ms // MS_PER_DAY
        if not own.all():
            pending.append(kept(rows, ~own))
        reader.take(kept(rows, own))
    for late in pending:
        reader.take(late)
    return reader.found()


class _Reader:
    """Judges the rows of a day and adds up days of one class."""

    def __init__(self, books: Books, idle: Idle, active_from_ratio: float) -> None:
        self._books, self._idle, self._active_from = books, idle, active_from_ratio
        self._sums = Accumulator(most=MOST)
        self._classes = ("idle", "idle-held", NOT_KNOWN, *dict.fromkeys(r.klass for r in load_rules().rules))
        place = {name: i for i, name in enumerate(self._classes)}
        self._of_rule = np.array([*(place[r.klass] for r in load_rules().rules), place[NOT_KNOWN]])
        self._models: dict[str | None, ModelFacts] = {}

    def take(self, rows: Rows) -> None:
        """Judge the rows of one day."""
        if not len(rows["hour_ms"]):
            return
        names = self._books.names
        rows = rows | pipe_sums(rows) | {"state": state_codes(names["state"], rows["state"])}
        kinds = kinds_of_rows(rows, names)
        for model, _ in kinds.pairs:
            self._models.setdefault(model, ModelFacts(model))
        self._add_work(rows, kinds)
        keys, sums = self._by_owner(rows)
        klass = self._judge(keys, sums)
        self._sums.add([*keys, klass], sums)

    def _add_work(self, rows: Rows, kinds: Kinds) -> None:
        done = work(rows, kinds.of_row, kinds.pairs, self._models, with_notes=False)
        no_work, old = np.sum([rows[i] for i in IDLE], axis=0), rows["state"] < 0
        # Lines of version 1 do not tell states apart: one that idles throughout is known by its sums.
        resting = (rows["state"] == State.IDLE) | (old & (no_work >= rows["observed_ms"]))
        engaged = rows["observed_ms"] * ~resting
        limit, pif = rows["limit_mw"], np.where(rows["limit_mw"] > 0, rows["pif_ms"], 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(pif > 0, rows["pif_uj"] / limit, 0.0)
        rows |= {
            "all_ms": rows["observed_ms"],
            "resting_ms": no_work,
            "done_high": np.rint(done.high * PPM).astype(np.int64),
            "work_ms": done.ms.astype(np.int64),
            "unseen_ms": np.where(np.isin(rows["state"], NOT_ALL_SEEN), engaged, 0),
            "capped_ms": np.where(rows["state"] == State.CAPPED, engaged, 0),
            "capped_mw_ms": np.where(rows["state"] == State.CAPPED, engaged * np.nan_to_num(limit), 0).astype(np.int64),
            "seen_ms": np.maximum(rows["engine_ms"], rows["sm_ms"]),
            "rfu_ms": pif,
            "rfu_ratio_ms": np.rint(ratio * PPM).astype(np.int64),
        }
        whole = {name: rows[name] for name in (*_WORK, "done_high", "work_ms")}
        # Most columns are zero, and times known are mostly the time observed: one array under many names.
        working = {id(v): np.where(resting, 0, v) if v.any() else v for v in apart(whole.values())}
        rows |= {name: working[id(values)] for name, values in whole.items()}
        # The idle part of an older line that works too is in its sums.
        rows["observed_ms"] = rows["observed_ms"] - np.where(old & ~resting, no_work, 0)

    def _by_owner(self, rows: Rows) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """States of one owner, device and day made one."""
        most = {name: np.nan_to_num(rows[name].astype(np.float64), nan=-1.0) for name in MOST}
        columns = {name: rows[name] for name in SUMS} | most
        return grouped([rows[c] for c in KEYS], columns, dict.fromkeys(MOST, np.maximum))

    def _judge(self, keys: list[np.ndarray], sums: dict[str, np.ndarray]) -> np.ndarray:
        """The class of each row; one that hardly works is idle, whatever the little work in it looks like."""
        model = keys[KEYS.index("gpu_model")]
        texts = [*self._books.names["gpu_model"].texts, None]
        gpus = [g if isinstance(g := find_gpu(t), Gpu) else None for t in (t or "" for t in texts)]
        known = dict(sums) | {name: np.where(sums[name] < 0, np.nan, sums[name]) for name in MOST}
        signals = signal_rows(known, GpuFacts.of(gpus, model), self._idle)
        bins = np.stack([sums[h] for h in HISTOGRAM], axis=1).astype(np.float64)
        total = bins.sum(1, keepdims=True)
        shares = np.divide(bins, total, out=np.full(bins.shape, np.nan), where=total > 0)
        klass = self._of_rule[classify_rows(figure_rows(signals, shares))]
        resting = sums["resting_ms"]
        quiet = (resting > 0) & (resting >= (1 - self._active_from) * sums["all_ms"])
        held = sums["idle_held_ms"] >= sums["idle_ms"] + sums["idle_unknown_ms"]
        return np.where(quiet, np.where(held, self._classes.index("idle-held"), self._classes.index("idle")), klass)

    def found(self) -> tuple[Stretch, ...]:
        """All stretches, in order of their labels."""
        keys, sums = self._sums.total()
        if not keys:
            raise self._books.nothing_found()
        names = self._books.names
        texts = [names[c].text(k) for c, k in zip(KEYS, keys, strict=False)]
        klass = [self._classes[i] for i in keys[-1].tolist()]
        columns = {c: v.astype(np.int64).tolist() for c, v in sums.items()}
        for name in MOST:
            columns[name] = [None if v < 0 else v for v in columns[name]]
        order = sorted(range(len(klass)), key=lambda i: (*(t[i] or "" for t in texts), klass[i]))
        uuid, instance, namespace, workload, model, precision = texts
        return tuple(
            Stretch(
                uuid[i] or "", instance[i], namespace[i], workload[i], model[i], precision[i], klass[i],
                {c: v[i] for c, v in columns.items()},
            )
            for i in order
        )  # fmt: skip
