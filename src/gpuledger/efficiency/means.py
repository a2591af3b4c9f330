"""What are the time-weighted means of a group of accounts?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from gpuledger.efficiency.accounts import Accounts
from gpuledger.efficiency.statement import Figure, Means, Range
from gpuledger.ledger.cells import CLASSES, PHASES
from gpuledger.ledger.read.adding import distinct
from gpuledger.ledger.read.rollup import HISTOGRAM
from gpuledger.units import MS_PER_HOUR, PPM, Unknown

MJ_PER_KWH = 3.6e9
NO_UTIL = "no utilization in the samples"
NO_POWER = "no power in the samples"
NO_ENERGY = "neither energy nor power in the samples"
NO_SHARE = "the samples do not say which share of its board a MIG slice is"
NO_BOARD = "the board power of its GPU model is not in the catalog"
NO_IDLE = "the catalog has no idle power for its GPU model"
NO_COUNTERS = "no pipe activity with SM clock in the samples"
NO_RATES = "the catalog lacks SMs, FLOP per clock or peak of its GPU model"
NO_GAP = "needs utilization and PIF together"


class Groups:
    """Accounts added up by group (`group` is each account's, 0 to n - 1); every figure is a list, one per group."""

    def __init__(self, accounts: Accounts, group: np.ndarray, n: int) -> None:
        self.n = n
        self._sums = {name: np.bincount(group, values, minlength=n) for name, values in accounts.sums.items()}
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

    def sums(self, name: str) -> np.ndarray:
        """One sum of all groups."""
        return self._sums[name]

    def shares(self, part: str, whole: str, why: str, factor: float = 1.0) -> list[Figure]:
        """factor x one sum over another, for all groups."""
        return _ratios(factor * self._sums[part], self._sums[whole], why)

    @cached_property
    def pif(self) -> list[Figure]:
        """Mean power over board power."""
        ratios = self.shares("pif_ratio_ms", "pif_ms", NO_POWER)
        powered = (self._sums["power_ms"] + self._sums["unshared_ms"]).tolist()
        unrated = Unknown(NO_BOARD)
        return [unrated if isinstance(f, Unknown) and ms else f for f, ms in zip(ratios, powered, strict=True)]

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
        levels = [self.shares(f"worked_{k}_ratio_ms", "worked_ms", NO_COUNTERS, 100) for k in ("low", "middle", "high")]
        recorded = self._sums["counters_ms"].tolist()
        texts = {notes: "; ".join(sorted(notes)) for notes in set(self._notes)}
        unrated, out = Unknown(NO_RATES), list[Range | Unknown]()
        for low, middle, high, ms, notes in zip(*levels, recorded, self._notes, strict=True):
            if isinstance(low, Unknown) or isinstance(middle, Unknown) or isinstance(high, Unknown):
                out.append(unrated if ms else Unknown(NO_COUNTERS))
            else:
                out.append(Range(low, middle, high, "counters", texts[notes]))
        return out

    @cached_property
    def measured_pct(self) -> list[Range | None]:
        """The same work over the TFLOPS a calibration measured; None where no board of the group was measured."""
        levels = [self.shares(f"measured_{k}_ratio_ms", "measured_ms", "", 100) for k in ("low", "middle", "high")]
        behind = (self._sums["measured_ms"] < self._sums["worked_ms"]).tolist()
        out = list[Range | None]()
        for low, middle, high, part in zip(*levels, behind, strict=True):
            if isinstance(low, Unknown) or isinstance(middle, Unknown) or isinstance(high, Unknown):
                out.append(None)
            else:
                out.append(Range(low, middle, high, "counters", "calibrated boards only" if part else ""))
        return out

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
        histogram = np.stack([self._sums[name] for name in HISTOGRAM], axis=1)
        corrected = self.shares("corrected_ratio_ms", "corrected_ms", NO_IDLE, 100)
        columns = zip(
            self.gpus,
            self._sums["samples"].astype(np.int64).tolist(),
            (self._sums["observed_ms"] / MS_PER_HOUR).tolist(),
            self.gpu_util_pct,
            self.pif,
            [p if isinstance(p, Unknown) else 100 * p for p in self.pif],
            [p if isinstance(p, Unknown) else c for p, c in zip(self.pif, corrected, strict=True)],
            self.counters_pct,
            self.gap_pp,
            self.shares("memory_ratio_ms", "dram_ms", "no memory activity in the samples", 100),
            self._of_boards(1e-3 * self._sums["power_uj"], self._sums["power_ms"], NO_POWER),
            quantiles_pct(histogram, 0.50),
            quantiles_pct(histogram, 0.95),
            self._of_boards(self._sums["energy_mj"] / MJ_PER_KWH, np.sign(self._sums["energy_ms"]), NO_ENERGY),
            self.measured_pct,
            strict=True,
        )
        return [Means(*row) for row in columns]

    def _of_boards(self, part: np.ndarray, whole: np.ndarray, why: str) -> list[Figure]:
        """One sum over another, of readings of whole boards; a slice of unknown share has no part in them."""
        unshared, no_share = self._sums["unshared_ms"].tolist(), Unknown(NO_SHARE)
        found = zip(_ratios(part, whole, why), unshared, strict=True)
        return [no_share if isinstance(figure, Unknown) and ms else figure for figure, ms in found]


def fleet(accounts: Accounts) -> Groups:
    """Everything as one group."""
    return Groups(accounts, np.zeros(len(accounts), dtype=np.int64), 1)


def by_label(accounts: Accounts, label: str, called: Callable[[str | None], str]) -> tuple[list[str], Groups]:
    """Accounts by one label, as it is called in statements; names in order."""
    texts = [called(text) for text in accounts.labels[label]]
    names = sorted(set(texts))
    place = {name: i for i, name in enumerate(names)}
    return names, Groups(accounts, np.array([place[t] for t in texts], dtype=np.int64), len(names))


def difference(a: Figure, b: Figure) -> Figure:
    """a - b, or the first reason why not."""
    if isinstance(a, Unknown):
        return a
    return b if isinstance(b, Unknown) else a - b


def quantiles_pct(histogram: np.ndarray, q: float) -> list[Figure]:
    """By row the value below which a share `q` of the time lies, interpolated within its bin, of equal bins."""
    reached = np.cumsum(histogram, axis=1)
    wanted = q * reached[:, -1:]
    # The first bin that reaches it and holds any time.
    place = np.argmax((reached >= wanted) & (histogram > 0), axis=1)
    row = np.arange(len(histogram))
    held = np.maximum(histogram[row, place], 1e-300)
    inside = (wanted[:, 0] - (reached[row, place] - histogram[row, place])) / held
    values = (100 / histogram.shape[1] * (place + np.clip(inside, 0.0, 1.0))).tolist()
    unknown = Unknown(NO_UTIL)
    return [value if total else unknown for value, total in zip(values, reached[:, -1].tolist(), strict=True)]


def _ratios(part: np.ndarray, whole: np.ndarray, why: str) -> list[Figure]:
    known = whole > 0
    unknown = Unknown(why)
    values = np.divide(part, whole, out=np.zeros(len(part)), where=known).tolist()
    return [value if k else unknown for value, k in zip(values, known.tolist(), strict=True)]


def _parts(parts: dict[str, float]) -> dict[str, float]:
    total = sum(parts.values())
    return {name: 100 * part / total for name, part in parts.items()} if total else {}
