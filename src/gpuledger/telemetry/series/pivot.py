"""How do series become rows: one row per device, owner and instant, one column per reading?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping import Mapping, TimeRule, ValueRule
from gpuledger.telemetry.series import Points
from gpuledger.telemetry.series.exporters import NAME, Reading, infos, proofs_of_shares, reading_of
from gpuledger.telemetry.series.labels import METRICS, TARGET, Naming
from gpuledger.telemetry.shares import as_shares, groups_of, seen_in
from gpuledger.units import MS_PER_DAY

PROFILE = "gpu_profile"
WRITTEN_TIME = "Time"  # as Grafana heads the times it writes
# Points that are turned into rows at a time.
SLICE_POINTS = 4_000_000
_UNUSED = -1
_PLACES = 10_000
_HOLDER = tuple(name for name in schema.SERIES if name != "cluster")


@dataclass(frozen=True)
class _Kept:
    """What is known of each series: the column and unit of its reading, and the number of its set of labels.

    `half`: 1 or 2 where two metrics make one reading. `proves_shares`: next to it, one that may be percent is a share.
    """

    column: np.ndarray
    multiply: np.ndarray
    divide: np.ndarray
    blank_from: np.ndarray
    rank: np.ndarray
    set: np.ndarray
    half: np.ndarray
    may_be_percent: np.ndarray
    proves_shares: np.ndarray


@dataclass
class Pivot:
    """The series of a source, ready to be turned into rows. `notes`: what the user should hear about them.

    `times`: how the source writes its instants; a point's instant is then its place in this list. `not_read`: the
    metrics of which nothing is read. `unclear`: metrics with values that may be shares or percent, left out.
    """

    labels: list[str]
    columns: list[str]
    timed: bool
    sets: list[dict[str, str]]
    notes: list[str]
    points: Points
    kept: _Kept
    times: list[str] | None = None
    not_read: tuple[str, ...] = ()
    contradictions: int = 0
    unclear: set[str] = field(default_factory=set)
    _wider: dict[int, list[int]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The columns of the rows."""
        return [*([self.time] if self.timed else []), *self.labels, *self.columns]

    @property
    def time(self) -> str:
        """The column of times: as the source calls it, where it writes them itself."""
        return schema.TIME if self.times is None else WRITTEN_TIME

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, some millions of points at a time."""
        series, at_ms, values = self.points.arrays()
        values = self._as_shares(series, at_ms, values)
        # NaN is how Prometheus marks that a series has ended: its labels were not there any more.
        used = (self.kept.set[series] != _UNUSED) & ~np.isnan(values)
        series, at_ms, values = series[used], at_ms[used], values[used]
        order = np.argsort(at_ms, kind="stable")
        first = 0
        while first < len(order):
            end = first + SLICE_POINTS
            if end < len(order):  # an instant stays whole
                end += int(np.searchsorted(at_ms[order[end:]], at_ms[order[end - 1]], side="right"))
            piece = order[first:end]
            yield self._rows(series[piece], at_ms[piece], values[piece])
            first = end

    def _as_shares(self, series: np.ndarray, at_ms: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The values, those that may be shares or percent as shares; NaN where nothing tells."""
        mine = np.flatnonzero(self.kept.may_be_percent[series])
        if not len(mine):
            return values
        instants = np.unique(at_ms)
        place = self._devices()[series] * len(instants) + np.searchsorted(instants, at_ms)
        sure = np.isin(place[mine], place[self.kept.proves_shares[series] & ~np.isnan(values)])
        first, group = groups_of(np.stack([self._devices()[series[mine]], at_ms[mine] // MS_PER_DAY]))
        met = seen_in(values[mine], sure, group, len(first))
        out = values.copy()
        out[mine], unknown = as_shares(values[mine], sure, met[group])
        self.unclear |= {self.points.labels[s][NAME] for s in np.unique(series[mine[unknown]]).tolist()}
        return out

    def _devices(self) -> np.ndarray:
        """The number of each series' device; -1 for series that are not used."""
        names = [(s["gpu_uuid"], s.get("gpu_instance_id")) for s in self.sets]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return np.array([*(numbers[name] for name in names), _UNUSED])[self.kept.set]

    def _rows(self, series: np.ndarray, at_ms: np.ndarray, values: np.ndarray) -> pa.RecordBatch:
        instants, when = np.unique(at_ms, return_inverse=True)
        sets = self._joined(series, when)
        keys, row = np.unique(sets * len(instants) + when, return_inverse=True)
        set_of_row = pa.array(keys // len(instants))
        stamps = pa.array(instants[keys % len(instants)])
        if self.times is not None:
            stamps = pa.DictionaryArray.from_arrays(stamps.cast(pa.int32()), pa.array(self.times, pa.string()))
        out: dict[str, pa.Array] = {self.time: stamps} if self.timed else {}
        for label in self.labels:
            out[label] = pa.array([s.get(label) for s in self.sets], pa.string()).dictionary_encode().take(set_of_row)
        column = self.kept.column[series]
        for number, name in enumerate(self.columns):
            mine = np.flatnonzero(column == number)
            readings = self._column(row[mine], series[mine], values[mine], len(keys))
            out[name] = pa.array(readings, mask=np.isnan(readings))
        return pa.RecordBatch.from_pydict(out)

    def _column(self, row: np.ndarray, series: np.ndarray, values: np.ndarray, rows: int) -> np.ndarray:
        """One reading by row: of one metric, else the sum of two that make it together, where both are there."""
        half = self.kept.half[series]
        if not half.any():
            return self._reading(row, series, values, rows)
        alone, one, other = (self._reading(row[h], series[h], values[h], rows) for h in (half == n for n in range(3)))
        return np.where(np.isnan(alone), one + other, alone)

    def _joined(self, series: np.ndarray, when: np.ndarray) -> np.ndarray:
        """The sets with a narrow one replaced by a wider one of the same device at instants that have both.

        Some metrics of a device lack labels that others have; together they are one row. Not so where the wider set
        names a holder that the narrow one does not, and both have a reading: one of the board, one of what it used.
        """
        sets = self.kept.set[series]
        if not self._wider:
            return sets.astype(np.int64)
        out = sets.astype(np.int64)
        order = np.argsort(sets, kind="stable")
        edges = np.searchsorted(sets[order], np.arange(len(self.sets) + 1))
        for narrow, wider in self._wider.items():
            left = order[edges[narrow] : edges[narrow + 1]]
            for wide in wider:
                theirs = order[edges[wide] : edges[wide + 1]]
                both = np.isin(when[left], when[theirs])
                if both.any() and _names_holder(self.sets[wide].keys() - self.sets[narrow].keys()):
                    columns = self.kept.column[series]
                    own, other = (columns[rows] * (when.max() + 1) + when[rows] for rows in (left, theirs))
                    apart = np.unique(when[left[np.isin(own, other)]])
                    both &= ~np.isin(when[left], apart)
                out[left[both]] = wide
                left = left[~both]
        return out

    def _reading(self, row: np.ndarray, series: np.ndarray, values: np.ndarray, rows: int) -> np.ndarray:
        """One reading by row, NaN where there is none; of several metrics for it the first in rank that has a value."""
        out = np.full(rows, np.nan)
        kept = self.kept
        with np.errstate(over="ignore"):
            known = ~((values >= kept.blank_from[series]) & np.isfinite(values))
            numbers = values * kept.multiply[series] / kept.divide[series]
        ranks = kept.rank[series]
        for rank in np.unique(ranks[known])[::-1]:
            some = known & (ranks == rank)
            at, now = row[some], numbers[some]
            out[at] = now
            clash = np.unique(at[out[at] != now])
            if len(clash):  # one reading of one device at one instant with two values: neither can be trusted
                self.contradictions += len(clash)
                out[clash] = np.nan
        return out

    def mapping(self) -> Mapping:
        """How the rows fill the schema, and what they do not say."""
        known = {name for s in self.sets for name in s}
        by_index = any(s["gpu_uuid"] == s.get("gpu_index") for s in self.sets)
        asks = [name for name, silent in (
            ("time", not self.timed),
            ("host", by_index and "host" not in known),
            ("gpu_model", "gpu_model" not in known),
        ) if silent]  # fmt: skip
        values = tuple(ValueRule(column=c, sources=(c,)) for c in self.columns)
        return Mapping(
            name="metrics",
            title="metrics of a GPU exporter",
            detect=(self.time, "gpu_uuid"),
            required=("time", "gpu_uuid"),
            time=TimeRule(sources=(self.time,)),
            labels={label: (label,) for label in self.labels if label != PROFILE},
            values=(*values, ValueRule(column="slice_ratio", sources=(PROFILE,), parse="mig_profile")),
            asks=tuple(asks),
        )


def pivot(points: Points, *, timed: bool = True, times: list[str] | None = None, naming: Naming | None = None) -> Pivot:
    """The series of known exporters, ready to be turned into rows; without any the pivot has no columns."""
    naming = naming or Naming.of(points.labels)
    readings = [reading_of(labels) for labels in points.labels]
    sets: dict[frozenset[tuple[str, str]], int] = {}
    known: dict[frozenset[tuple[str, str]], int] = {}  # the metrics of a device mostly have the same labels
    set_of = []
    for labels, reading in zip(points.labels, readings, strict=True):
        if reading is None:
            set_of.append(_UNUSED)
            continue
        key = frozenset((name, text) for name, text in labels.items() if name != NAME) | {(NAME, reading.exporter.name)}
        if key not in known:
            own = naming.canonical(labels, reading.exporter)
            named = "gpu_uuid" in own
            known[key] = sets.setdefault(frozenset(own.items()), len(sets)) if named else _UNUSED
        set_of.append(known[key])
    found = [dict(key) for key in sets]
    columns = sorted({r.column for r, s in zip(readings, set_of, strict=True) if r and s != _UNUSED})
    names = {name for s in found for name in s}
    return Pivot(
        labels=[c for c in (*schema.labels(), PROFILE) if c in names],
        columns=columns,
        timed=timed,
        times=times,
        sets=found,
        notes=naming.notes(),
        not_read=_not_read(points, set_of),
        points=points,
        kept=_kept(points, readings, set_of, columns),
        _wider=_wider(found),
    )


def _kept(points: Points, readings: list[Reading | None], set_of: list[int], columns: list[str]) -> _Kept:
    place = {column: number for number, column in enumerate(columns)}
    ranks = [
        r.rank * _PLACES + (_number(labels.get(r.lowest, "")) if r.lowest else 0) if r else 0
        for r, labels in zip(readings, points.labels, strict=True)
    ]
    return _Kept(
        column=np.array([place.get(r.column, _UNUSED) if r else _UNUSED for r in readings], np.int32),
        multiply=np.array([r.multiply if r else 1.0 for r in readings], np.float64),
        divide=np.array([r.divide if r else 1.0 for r in readings], np.float64),
        blank_from=np.array([r.blank_from if r else np.inf for r in readings], np.float64),
        rank=np.array(ranks, np.int64),
        set=np.array(set_of, np.int64),
        half=np.array([r.half if r else 0 for r in readings], np.int8),
        may_be_percent=np.array([bool(r and r.share_with) for r in readings], np.bool_) & (np.array(set_of) != _UNUSED),
        proves_shares=np.array([labels.get(NAME) in proofs_of_shares() for labels in points.labels], np.bool_),
    )


def _not_read(points: Points, set_of: list[int]) -> tuple[str, ...]:
    """The metrics of which nothing is read, without those that say whose a device is or what it is called."""
    names = dict.fromkeys(labels[NAME] for labels in points.labels if NAME in labels)
    read = {labels.get(NAME) for labels, number in zip(points.labels, set_of, strict=True) if number != _UNUSED}
    return tuple(n for n in names if n not in read and n not in infos() and n not in (*METRICS, TARGET))


def _names_holder(names: set[str]) -> bool:
    return not names.isdisjoint(_HOLDER)


def _number(text: str) -> int:
    return min(int(text), _PLACES - 1) if text.isdecimal() and len(text) < 10 else _PLACES - 1


def _wider(sets: list[dict[str, str]]) -> dict[int, list[int]]:
    """For each set of labels those of the same device that say the same and more."""
    devices: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for number, labels in enumerate(sets):
        devices[labels["gpu_uuid"], labels.get("gpu_instance_id")].append(number)
    out: dict[int, list[int]] = {}
    for numbers in devices.values():
        if len(numbers) > 1:
            for a in numbers:
                wider = [b for b in numbers if a != b and sets[a].items() < sets[b].items()]
                if wider:
                    out[a] = wider
    return out
