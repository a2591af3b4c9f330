"""What did each device do for each owner, and how is it called?

Each device is judged day by day for each owner by the time it worked or waited; idle time is set apart. The days it
spent in one class are then one stretch. Days are read one after the other, so memory follows devices, not days.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuledger.advice.case import words_of
from gpuledger.advice.limits import Limits
from gpuledger.advice.summed import Summed, SumsRow
from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.cost.buckets import IDLE
from gpuledger.cost.rating import Rated, Rater
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator, apart, grouped, runs, some
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows, kept
from gpuledger.ledger.read.rollup import HEALTH, HISTOGRAM
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.activity import COLUMNS as ACTIVITY
from gpuledger.physics.activity import CONDITIONS
from gpuledger.physics.behavior import NOT_KNOWN, classify_rows, figure_rows, load_rules
from gpuledger.physics.signals import GpuFacts, signal_rows
from gpuledger.physics.states import NOT_ALL_SEEN, State
from gpuledger.telemetry import schema
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
    "seen_ms", "spun_ms",
)  # fmt: skip
SUMS = tuple(dict.fromkeys((*_ALL, *_WORK, *_MADE)))
MOST = ("limit_mw", "card_bytes", "fb_max_bytes", "slice_ppm")
_NUMBERS = tuple(n for n in dict.fromkeys((*_ALL, *_WORK, *ACTIVITY, *CONDITIONS)) if n not in _MADE)

# Work that may be none: a kernel that only waits keeps the engine, and draws next to nothing (physics/behaviors.toml).
_MAY_SPIN = (State.LIGHT, State.LIGHT_UNSEEN, State.PLAIN)
SPINS_FROM_RATIO, SPINS_BELOW_RATIO = 0.85, 0.15

Key = tuple[str, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
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
    return StretchReader(limits, thresholds or load_thresholds()).found(lake, scope)


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of one device for one owner: their names, and all words in these and in those of their containers."""

    names: frozenset[str]
    words: frozenset[str]


def read_pods(lake: Lake, scope: Scope) -> dict[Key, Pods]:
    """The pods and containers of each device and owner."""
    books, labels = Books(lake, scope), (*schema.DEVICE, "namespace", "workload", "pod", "container")
    found = dict[Key, tuple[set[str], set[str]]]()
    seen = set[tuple[str | None, ...]]()
    for rows in books.pods(labels):
        order, starts = runs([rows[c] + 1 for c in labels])
        first = starts if order is None else order[starts]
        texts = zip(*(books.names[c].text(rows[c][first]) for c in labels), strict=True)
        for held in texts:
            if held not in seen:
                seen.add(held)
                uuid, instance, namespace, workload, pod, container = held
                names, words = found.setdefault((uuid or "", instance, namespace, workload), (set(), set()))
                names.update({pod} if pod else ())
                words.update(words_of(pod or ""), words_of(container or ""))
    return {key: Pods(frozenset(names), frozenset(words)) for key, (names, words) in found.items()}


def _models(books: Books) -> list[Gpu | None]:
    """The GPUs of the model names of some books; the last is no name, which would look through the whole catalog."""
    found = [find_gpu(text) if text else None for text in books.names["gpu_model"].texts]
    return [*(gpu if isinstance(gpu, Gpu) else None for gpu in found), None]


class StretchReader:
    """Judges the rows of a day and adds up days of one class."""

    labels, numbers, maybe = (*KEYS, "state"), _NUMBERS, MOST

    def __init__(self, limits: Limits, thresholds: Thresholds) -> None:
        self._rules, self._active_from = thresholds, limits.idle.active_from_ratio
        self._books: Books | None = None
        self._late: list[Rows] = []
        self._sums = Accumulator(most=MOST)
        self._classes = ("idle", "idle-held", NOT_KNOWN, *dict.fromkeys(r.klass for r in load_rules().rules))
        place = {name: i for i, name in enumerate(self._classes)}
        self._of_rule = np.array([*(place[r.klass] for r in load_rules().rules), place[NOT_KNOWN]])

    def take(self, books: Books, day_ms: int, rated: Rated) -> None:
        """Judge the rows of one day, of the owners in scope."""
        self._books = books
        done = {"done_high": np.rint(rated.done.high * PPM).astype(np.int64), "work_ms": rated.done.ms.astype(np.int64)}
        rows = kept(rated.rows | done, rated.rows["wanted"])
        # A span over midnight is posted with the day before: a few seconds, judged by themselves.
        own = rows["hour_ms"] // MS_PER_DAY == day_ms // MS_PER_DAY
        if not own.all():
            self._late.append(kept(rows, ~own))
        self._day(books, kept(rows, own))

    def _day(self, books: Books, rows: Rows) -> None:
        if len(rows["hour_ms"]):
            rows["spun_ms"] = self._spun(books, rows)
            self._add_work(rows)
            keys, sums = self._by_owner(rows)
            self._sums.add([*keys, self._judge(books, keys, sums)], sums)

    def _add_work(self, rows: Rows) -> None:
        # A little utilization is some work: what is idle by the bill for that is not idle here.
        some_work = (rows["state"] == State.IDLE) & (np.maximum(rows["engine_ms"], rows["sm_ms"]) == 0)
        some_work &= rows["util_ppm_ms"] >= self._rules.idle.activity_below_ratio * PPM * np.maximum(rows["util_ms"], 1)
        if some_work.any():
            rows |= {name: np.where(some_work, 0, rows[name]) for name in IDLE}
        no_work, old = np.sum([rows[i] for i in IDLE], axis=0), rows["state"] < 0
        # Lines of version 1 do not tell states apart: one that idles throughout is known by its sums.
        resting = ((rows["state"] == State.IDLE) & ~some_work) | (old & (no_work >= rows["observed_ms"]))
        engaged = rows["observed_ms"] * ~resting
        limit, pif = rows["limit_mw"], np.where(rows["limit_mw"] > 0, rows["pif_ms"], 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(pif > 0, rows["pif_uj"] / limit, 0.0)
        rows |= {
            "all_ms": rows["observed_ms"],
            "resting_ms": no_work,
            "unseen_ms": np.where(np.isin(rows["state"], NOT_ALL_SEEN), engaged, 0),
            "capped_ms": np.where(rows["state"] == State.CAPPED, engaged, 0),
            "capped_mw_ms": np.where(rows["state"] == State.CAPPED, engaged * np.nan_to_num(limit), 0).astype(np.int64),
            "seen_ms": np.maximum(rows["engine_ms"], rows["sm_ms"]),
            "rfu_ms": pif,
            "rfu_ratio_ms": np.rint(ratio * PPM).astype(np.int64),
        }
        whole = {name: rows[name] for name in (*_WORK, "done_high", "work_ms")}
        # Most columns are zero, and times known are mostly the time observed: one array under many names.
        working = {id(v): np.where(resting, 0, v) if some(v) else v for v in apart(whole.values())}
        rows |= {name: working[id(values)] for name, values in whole.items()}
        # The idle part of an older line that works too is in its sums.
        rows["observed_ms"] = rows["observed_ms"] - np.where(old & ~resting, no_work, 0)

    def _spun(self, books: Books, rows: Rows) -> np.ndarray:
        """The time in which a kernel was there and the board drew hardly more than when idle: it waits or hangs."""
        spun = np.isin(rows["state"], _MAY_SPIN) & (rows["pif_ms"] > 0)
        if not spun.any():
            return np.zeros(len(spun), dtype=np.int64)
        facts = GpuFacts.of(_models(books), rows["gpu_model"])
        idle_mw = facts.idle_w * 1e3
        limit_mw = np.where(rows["limit_mw"] > 0, rows["limit_mw"], facts.board_w * 1e3)
        by_engine = rows["engine_ms"] > 0
        busy, known = (
            np.where(by_engine, rows[f"engine_{of}"], rows[f"util_{of}"]).astype(np.float64) for of in ("ppm_ms", "ms")
        )
        drawn_mw = rows["pif_uj"] / np.maximum(rows["pif_ms"], 1)
        # Without a known idle power or limit nothing is shown: a comparison with NaN is false.
        spun &= (busy >= SPINS_FROM_RATIO * PPM * known) & (known > 0)
        spun &= drawn_mw - idle_mw < SPINS_BELOW_RATIO * (limit_mw - idle_mw)
        return np.where(spun, rows["observed_ms"], 0)

    def _by_owner(self, rows: Rows) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
        """States of one owner, device and day made one."""
        most = {name: np.nan_to_num(rows[name].astype(np.float64), nan=-1.0) for name in MOST}
        columns = {name: rows[name] for name in SUMS} | most
        return grouped([rows[c] for c in KEYS], columns, dict.fromkeys(MOST, np.maximum))

    def _judge(self, books: Books, keys: list[np.ndarray], sums: dict[str, np.ndarray]) -> np.ndarray:
        """The class of each row; one that hardly works is idle, whatever the little work in it looks like."""
        model = keys[KEYS.index("gpu_model")]
        known = dict(sums) | {name: np.where(sums[name] < 0, np.nan, sums[name]) for name in MOST}
        signals = signal_rows(known, GpuFacts.of(_models(books), model), self._rules.idle)
        bins = np.stack([sums[h] for h in HISTOGRAM], axis=1).astype(np.float64)
        total = bins.sum(1, keepdims=True)
        shares = np.divide(bins, total, out=np.full(bins.shape, np.nan), where=total > 0)
        klass = self._of_rule[classify_rows(figure_rows(signals, shares))]
        resting = sums["resting_ms"]
        quiet = (resting > 0) & (resting >= (1 - self._active_from) * sums["all_ms"])
        held = sums["idle_held_ms"] >= sums["idle_ms"] + sums["idle_unknown_ms"]
        return np.where(quiet, np.where(held, self._classes.index("idle-held"), self._classes.index("idle")), klass)

    def found(self, lake: Lake, scope: Scope) -> tuple[Stretch, ...]:
        """All stretches, in order of their labels; where no other reader passed the lines on, they are read here."""
        if self._books is None:
            books = Books(lake, scope, self._rules)
            rater = Rater(books.names)
            for day_ms, rows in books.blocks(self.labels, self.numbers, self.maybe, owners=False):
                self.take(books, day_ms, rater.of(rows))
        else:
            books = self._books
        for late in self._late:
            self._day(books, late)
        keys, sums = self._sums.total()
        if not keys:
            raise books.nothing_found()
        names = books.names
        texts = [names[c].text(k) for c, k in zip(KEYS, keys, strict=False)]
        klass = [self._classes[i] for i in keys[-1].tolist()]
        table = Summed({c: v.astype(np.int64) for c, v in sums.items()}, MOST)
        order = sorted(range(len(klass)), key=lambda i: (*(t[i] or "" for t in texts), klass[i]))
        uuid, instance, namespace, workload, model, precision = texts
        return tuple(
            Stretch(
                uuid[i] or "", instance[i], namespace[i], workload[i], model[i], precision[i], klass[i],
                SumsRow(table, i),
            )
            for i in order
        )  # fmt: skip
