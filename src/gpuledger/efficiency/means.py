"""What do the accounts (a device and an owner each) add up to, and what are the time-weighted means of a group?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np

from gpuledger.efficiency.board_power import (
    ONE_DIE,
    ONE_DIE_MS,
    DieBoards,
    boards_of_dies,
    intensity,
    shared_by_dies,
)
from gpuledger.efficiency.statement import Figure, Means
from gpuledger.ledger.cells import CLASSES, PHASES
from gpuledger.ledger.read.adding import distinct
from gpuledger.ledger.read.columns import exact_share
from gpuledger.ledger.read.rollup import HISTOGRAM, AccountSums
from gpuledger.physics.calibration import Calibration
from gpuledger.physics.evidence import LOOSE_RATIO, ModelFacts, kinds_of, work
from gpuledger.units import MS_PER_HOUR, PPM, Bounds, Range, Unknown

MJ_PER_KWH = 3.6e9
NO_TIME = "the samples cover no time: each GPU needs at least two"
NO_UTIL = "no utilization in the samples"
NO_POWER = "no power in the samples"
NO_ENERGY = "neither energy nor power in the samples"
NO_SHARE = "the samples do not say which share of its board a MIG slice is"
NO_BOARD = "the board power of its GPU model is not in the catalog"
NO_IDLE = "the catalog has no idle power for its GPU model"
NO_COUNTERS = "no pipe activity with SM clock in the samples"
NO_RATES = "the catalog lacks SMs, FLOP per clock or peak of its GPU model"
NO_GAP = "needs utilization and PIF together"
LEVELS = ("low", "middle", "high")


class Accounts(msgspec.Struct, frozen=True):
    """Rows in order of device. `sums` hold the ledger's sums and what follows from them row by row; all add up.

    ratio_ms sums are a share x ms; next to each is the time it covers. `owned`: whether some label but a namespace
    names the owner.
    """

    labels: dict[str, list[str | None]]
    sums: dict[str, np.ndarray]
    slice_ratio: np.ndarray
    device: np.ndarray
    board: np.ndarray
    models: dict[str | None, ModelFacts]
    notes: tuple[frozenset[str], ...]
    first_ms: np.ndarray
    last_ms: np.ndarray
    owned: np.ndarray
    dies: DieBoards

    def __len__(self) -> int:
        return len(self.device)

    @property
    def devices(self) -> int:
        """How many devices: boards, and MIG instances one by one."""
        return int(self.device[-1]) + 1 if len(self.device) else 0

    def facts(self, row: int) -> ModelFacts:
        """The catalog's facts for the model of a row."""
        return self.models[self.labels["gpu_model"][row]]


def make_accounts(found: AccountSums, calibration: Calibration | None = None) -> Accounts:
    """The accounts, with what follows from their sums and the catalog."""
    labels, sums = found.labels, dict(found.sums)
    models = {name: ModelFacts(name) for name in dict.fromkeys(labels["gpu_model"])}
    whole = np.array([i is None for i in labels["gpu_instance_id"]], dtype=bool)
    slices = np.where(whole, 1.0, exact_share(found.slice_ppm))
    # Power and energy are read for the whole board: its MIG instances count them by their shares, once in all.
    # `unshared_ms`: the time for which they are known of instances whose share is not.
    part = slices * np.where(whole, 1.0, found.slice_scale[found.board])
    sums["unshared_ms"] = np.where(np.isnan(part), np.maximum(sums["power_ms"], sums["energy_ms"]), 0.0)
    sums |= {n: sums[n] * np.nan_to_num(part) for n in ("power_uj", "power_ms", "energy_mj", "energy_ms")}
    sums |= shared_by_dies(found, sums)
    idle_mw, over_measured, bandwidth = _calibrated(labels, models, calibration)
    sums |= intensity(sums, found.limit_mw, idle_mw)
    done = work(sums, *kinds_of(labels["gpu_model"], labels["tensor_precision"]), models)
    sums["worked_ms"], sums["worked_loose_ratio_ms"] = done.ms, done.loose
    for level in LEVELS:
        sums[f"worked_{level}_ratio_ms"] = getattr(done, level)
        sums[f"measured_{level}_ratio_ms"] = getattr(done, level) * over_measured
    sums["measured_ms"] = np.where(over_measured > 0, done.ms, 0.0)
    sums["memory_ratio_ms"] = sums["dram_ppm_ms"] / 1e6 * bandwidth
    ends = found.first_ms, found.last_ms
    more = found.owned, boards_of_dies(found)
    return Accounts(labels, sums, slices, found.device, found.board, models, done.notes, *ends, *more)


def _calibrated(
    labels: dict[str, list[str | None]], models: dict[str | None, ModelFacts], calibration: Calibration | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By account: idle power in mW (NaN: unknown), peak over measured TFLOPS (0: none), rated over measured GB/s."""
    listed = {m: float("nan") if isinstance(f.idle_mw, Unknown) else f.idle_mw for m, f in models.items()}
    idle = np.array([listed[model] for model in labels["gpu_model"]])
    tflops, bandwidth = np.zeros(len(idle)), np.ones(len(idle))
    for i, uuid in enumerate(labels["gpu_uuid"] if calibration else ()):
        measured = calibration.of(uuid or "") if calibration else None
        if measured is None:
            continue
        facts = models[labels["gpu_model"][i]]
        peak, gpu = facts.peak_tflops, facts.gpu
        if measured.idle_power_w is not None and uuid:
            idle[i] = measured.idle_power_w * 1e3
        if measured.achievable_tflops and not isinstance(peak, Unknown):
            tflops[i] = peak / measured.achievable_tflops
        wide = gpu if isinstance(gpu, Unknown) else gpu.figure("memory_bandwidth_bytes_per_s")
        if measured.bandwidth_bytes_per_s and not isinstance(wide, Unknown):
            bandwidth[i] = wide / measured.bandwidth_bytes_per_s
    return idle, tflops, bandwidth


class Groups:
    """Accounts added up by group (`group` is each account's, 0 to n - 1); every figure is a list, one per group."""

    def __init__(self, accounts: Accounts, group: np.ndarray, n: int) -> None:
        self.n = n
        sums = accounts.sums | accounts.dies.whole_boards_only(accounts.sums, group)
        self._sums = {name: np.bincount(group, values, minlength=n) for name, values in sums.items()}
        # A board counts once in a group, however many owners or MIG instances it has there.
        width = int(accounts.board.max(initial=0)) + 1
        self.gpus = np.bincount(distinct(group * width + accounts.board) // width, minlength=n).tolist()
        self._notes: list[frozenset[str]] = [frozenset()] * n
        for i, notes in zip(group.tolist(), accounts.notes, strict=True):
            if not notes <= self._notes[i]:
                self._notes[i] |= notes

    @property
    def all(self) -> Mapping[str, np.ndarray]:
        """All sums of all groups."""
        return self._sums

    def sum(self, name: str, i: int) -> float:
        """One sum of one group."""
        return float(self._sums[name][i])

    def shares(self, part: str, whole: str, why: str, factor: float = 1.0) -> list[Figure]:
        """factor x one sum over another, for all groups."""
        over, known = self._sums[whole], self._sums[whole] > 0
        values = np.divide(factor * self._sums[part], over, out=np.zeros(self.n), where=known).tolist()
        return [v if k else u for v, k, u in zip(values, known.tolist(), self._unknown(why), strict=True)]

    def _unknown(self, why: str) -> list[Unknown]:
        """By group why a figure is unknown: for this reason, or because its samples cover no time at all."""
        reason, no_time = Unknown(why), Unknown(NO_TIME)
        return [reason if ms else no_time for ms in self._sums["observed_ms"].tolist()]

    @cached_property
    def pif(self) -> list[Figure]:
        """Mean power over board power."""
        ratios = self.shares("pif_ratio_ms", "pif_ms", NO_POWER)
        powered = (self._sums["power_ms"] + self._sums["unshared_ms"]).tolist()
        cut = self._sums[ONE_DIE_MS].tolist()
        unrated, one_die = Unknown(NO_BOARD), Unknown(ONE_DIE)
        return [
            one_die if isinstance(f, Unknown) and die else unrated if isinstance(f, Unknown) and ms else f
            for f, ms, die in zip(ratios, powered, cut, strict=True)
        ]

    @cached_property
    def gpu_util_pct(self) -> list[Figure]:
        """Mean utilization."""
        return self.shares("util_ppm_ms", "util_ms", NO_UTIL, 100 / PPM)

    @cached_property
    def gap_pp(self) -> list[Figure]:
        """Utilization less RFU by power, over the accounts in which both are known."""
        util = self.shares("gap_util_ppm_ms", "gap_util_ms", NO_GAP, 100 / PPM)
        rfu = self.shares("gap_pif_ratio_ms", "gap_pif_ms", NO_GAP, 100)
        return [difference(u, r) for u, r in zip(util, rfu, strict=True)]

    @cached_property
    def counters_pct(self) -> list[Range | Unknown]:
        """Work by pipe activity over the dense peak at the reference precision."""
        texts = {notes: "; ".join(sorted(notes)) for notes in set(self._notes)}
        ranges = self._ranges("worked", [texts[notes] for notes in self._notes])
        unrated, recorded = Unknown(NO_RATES), self._sums["counters_ms"].tolist()
        missing = zip(ranges, recorded, self._unknown(NO_COUNTERS), strict=True)
        return [(unrated if ms else uncounted) if r is None else r for r, ms, uncounted in missing]

    @cached_property
    def measured_pct(self) -> list[Range | None]:
        """The same work over the TFLOPS a calibration measured; None where no board of the group was measured."""
        behind = (self._sums["measured_ms"] < self._sums["worked_ms"]).tolist()
        return self._ranges("measured", ["calibrated boards only" if part else "" for part in behind])

    def _ranges(self, kind: str, notes: Sequence[str]) -> list[Range | None]:
        """Work in percent of a peak by group, from low to high; None where it covers no time."""
        ms = self._sums[f"{kind}_ms"]
        known = ms > 0
        levels = [
            np.divide(100 * self._sums[f"{kind}_{k}_ratio_ms"], ms, out=np.zeros(self.n), where=known).tolist()
            for k in LEVELS
        ]
        loose = self._sums["worked_loose_ratio_ms"] > LOOSE_RATIO * self._sums["worked_middle_ratio_ms"]
        kinds = [Bounds if some else Range for some in loose.tolist()]
        rows = zip(known.tolist(), kinds, *levels, notes, strict=True)
        return [kind(low, middle, high, "counters", note) if k else None for k, kind, low, middle, high, note in rows]

    @cached_property
    def bottlenecked_pct(self) -> list[Figure]:
        """Bottlenecked share of the active time that could be judged."""
        return self.shares("bottleneck_ms", "active_pif_ms", "no active time with power and board power known", 100)

    def classes_pct(self, i: int) -> dict[str, float]:
        """Share of the classed time by class; empty where none could be classed."""
        return _parts({k: self.sum(f"class_{k}_ms", i) for k in CLASSES})

    def phases_pct(self, i: int) -> dict[str, float]:
        """Share of the time with known utilization by phase; empty where there is none."""
        return _parts({k: self.sum(f"phase_{k}_ms", i) for k in PHASES})

    @cached_property
    def means(self) -> list[Means]:
        """All means of each group."""
        sums, no_util = self._sums, self._unknown(NO_UTIL)
        kwh, energy_ms = (sums["energy_mj"] / MJ_PER_KWH).tolist(), sums["energy_ms"].tolist()
        energy = zip(kwh, energy_ms, self._unknown(NO_ENERGY), strict=True)
        histogram = np.stack([sums[name] for name in HISTOGRAM], axis=1)
        corrected = self.shares("corrected_ratio_ms", "corrected_ms", NO_IDLE, 100)
        columns = zip(
            self.gpus,
            sums["samples"].astype(np.int64).tolist(),
            (sums["observed_ms"] / MS_PER_HOUR).tolist(),
            self.gpu_util_pct,
            self.pif,
            [p if isinstance(p, Unknown) else 100 * p for p in self.pif],
            [p if isinstance(p, Unknown) else c for p, c in zip(self.pif, corrected, strict=True)],
            self.counters_pct,
            self.gap_pp,
            self.shares("memory_ratio_ms", "dram_ms", "no memory activity in the samples", 100),
            self._of_boards(self.shares("power_uj", "power_ms", NO_POWER, 1e-3)),
            quantiles_pct(histogram, 0.50, no_util),
            quantiles_pct(histogram, 0.95, no_util),
            self._of_boards([e if ms else u for e, ms, u in energy]),
            self.measured_pct,
            strict=True,
        )
        return [Means(*row) for row in columns]

    def _of_boards(self, figures: list[Figure]) -> list[Figure]:
        """Figures read for whole boards; a slice of unknown share has no part in them."""
        unshared, no_share = self._sums["unshared_ms"].tolist(), Unknown(NO_SHARE)
        return [no_share if isinstance(f, Unknown) and ms else f for f, ms in zip(figures, unshared, strict=True)]


def fleet(accounts: Accounts) -> Groups:
    """Everything as one group."""
    return Groups(accounts, np.zeros(len(accounts), dtype=np.int64), 1)


def in_order(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The names among texts, in order, and the place of each text among them."""
    names = sorted(set(texts))
    place = {name: i for i, name in enumerate(names)}
    return names, np.array([place[text] for text in texts], dtype=np.int64)


def difference(a: Figure, b: Figure) -> Figure:
    """a - b, or the first reason why not."""
    if isinstance(a, Unknown):
        return a
    return b if isinstance(b, Unknown) else a - b


def quantiles_pct(histogram: np.ndarray, q: float, unknown: Sequence[Unknown] = ()) -> list[Figure]:
    """By row the value below which a share `q` of the time lies, interpolated within its bin, of equal bins.

    `unknown`: by row the reason where it holds no time.
    """
    reached = np.cumsum(histogram, axis=1)
    wanted = q * reached[:, -1:]
    # The first bin that reaches it and holds any time.
    place = np.argmax((reached >= wanted) & (histogram > 0), axis=1)
    row = np.arange(len(histogram))
    held = np.maximum(histogram[row, place], 1e-300)
    inside = (wanted[:, 0] - (reached[row, place] - histogram[row, place])) / held
    values = (100 / histogram.shape[1] * (place + np.clip(inside, 0.0, 1.0))).tolist()
    why = unknown or [Unknown(NO_UTIL)] * len(values)
    return [value if total else u for value, total, u in zip(values, reached[:, -1].tolist(), why, strict=True)]


def _parts(parts: dict[str, float]) -> dict[str, float]:
    total = sum(parts.values())
    return {name: 100 * part / total for name, part in parts.items()} if total else {}
