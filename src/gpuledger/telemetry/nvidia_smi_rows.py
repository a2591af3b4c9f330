"""Which columns do rows of nvidia-smi have that were written without a header?

They are found by the units and ranges of their cells. Where two columns could change places, such as used and free
memory of a steady job, neither is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import permutations

import msgspec
import numpy as np

TIME, UTIL, COPY, POWER = "timestamp", "utilization.gpu [%]", "utilization.memory [%]", "power.draw [W]"
USED, FREE, TOTAL = "memory.used [MiB]", "memory.free [MiB]", "memory.total [MiB]"
_WORDS = {
    TIME: re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}"),
    "uuid": re.compile(r"(GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]+"),
    "pci.bus_id": re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d"),
    "pstate": re.compile(r"P\d{1,2}"),
    "name": re.compile(r"(NVIDIA|Tesla|Quadro|GeForce|TITAN|GRID|RTX|GTX|[ABHLVTP]\d{1,3}\b)(?!\d* ?(MiB|W|%)$).*"),
}
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?) ?(%|MiB|W|MHz|C)?")
_SILENT = re.compile(r"\[.*\]|N/A|ERR!|")
_MOST_GPUS = 16
_RESERVED = 0.1  # of the total memory, at most
_RELATED = 0.3  # correlation of used memory with utilization or power, at least
_NEARLY_ALL = 95  # percent
_COOLEST, _HOTTEST = 18, 110
_FASTEST_MHZ, _SLOWEST_MHZ, _FASTEST_MEMORY_MHZ, _CLOCKS = 3_500, 100, 15_000, 8


class _Column(msgspec.Struct, frozen=True):
    place: int
    values: np.ndarray
    unit: str
    decimals: bool

    @property
    def known(self) -> np.ndarray:
        return self.values[~np.isnan(self.values)]


def is_row(cells: Sequence[str]) -> bool:
    """Whether cells without a time are of such a row: numbers, some of them with a unit."""
    found = [_NUMBER.fullmatch(cell) for cell in cells]
    readings = [match[2] for match in found if match]
    silent = all(match or _SILENT.fullmatch(cell) for match, cell in zip(found, cells, strict=True))
    return silent and len(cells) > 1 and bool({"%", "MiB", "W"} & set(readings))


def columns_of(rows: list[list[str]]) -> list[str]:
    """The names of the columns, as a header would have them; empty for one that cannot be told. `rows`: the first."""
    names, columns = [""] * len(rows[0]), list[_Column]()
    for place, cells in enumerate(zip(*rows, strict=True)):
        said = [cell for cell in cells if not _SILENT.fullmatch(cell)]
        word = next((n for n, form in _WORDS.items() if said and all(form.fullmatch(c) for c in said)), "")
        if word and word not in names:
            names[place] = word
        elif said and (column := _numbers(place, cells)):
            columns.append(column)
    units = any(column.unit for column in columns)
    found = _plain(columns, units)
    shares, watts, memory = (found.pop(unit) for unit in ("%", "W", "MiB"))
    told = {name: column.place for name, (column, *more) in found.items() if not more}
    told |= _shares(shares) | _watts(watts)
    activity = next((c.values for c in columns if c.place in (told.get(UTIL), told.get(POWER))), None)
    for name, place in (told | _memory(memory, activity)).items():
        names[place] = name
    return names


def in_words(names: list[str], rows: list[list[str]]) -> str:
    """What the columns were told to be, and which are left out."""
    told = ", ".join(f"{place} {name}" for place, name in enumerate(names, 1) if name)
    left = ", ".join(f"{place} ({rows[0][place - 1]!r})" for place, name in enumerate(names, 1) if not name)
    rest = f"; left out, as they cannot be identified: {left}" if left else ""
    return f"it has no header; its columns by their units and values: {told}{rest}"


def _numbers(place: int, cells: Sequence[str]) -> _Column | None:
    found = [_NUMBER.fullmatch(cell) for cell in cells]
    if any(not match and not _SILENT.fullmatch(cell) for match, cell in zip(found, cells, strict=True)):
        return None
    units = {match[2] or "" for match in found if match}
    values = np.array([float(match[1]) if match else np.nan for match in found])
    decimals = all("." in match[1] for match in found if match)
    return _Column(place, values, units.pop(), decimals) if len(units) == 1 else None


def _plain(columns: list[_Column], units: bool) -> dict[str, list[_Column]]:
    """The columns by their unit, and by name those without one that may be it; without any units by their ranges."""
    out: dict[str, list[_Column]] = {"%": [], "W": [], "MiB": [], "index": [], "temperature.gpu": []}
    for column in columns:
        low, high = column.known.min(), column.known.max()
        if column.unit:
            kind = {"C": "temperature.gpu"}.get(column.unit, column.unit)
        elif _counts(column):
            kind = "index"
        elif units:
            kind = "temperature.gpu" if not column.decimals and _COOLEST <= low <= high <= _HOTTEST else ""
        elif column.decimals:
            kind = "W"
        elif _is_memory(column):
            kind = "MiB"
        else:
            kind = "%" if high <= 100 and low < high and (low < _COOLEST or high == 100) else ""
        if kind in out:
            out[kind].append(column)
    return {kind: found for kind, found in out.items() if found or kind in ("%", "W", "MiB")}


def _counts(column: _Column) -> bool:
    """Whether the numbers count the GPUs of each round: 0, 1, 2, 3, 0, 1, 2, 3."""
    period = _period(column.values)
    once = column.values[:period]
    small = not np.isnan(once).any() and once.max(initial=0) < _MOST_GPUS and not column.decimals
    return bool(small and period > 1 and (np.diff(once) > 0).all())


def _is_memory(column: _Column) -> bool:
    """Whether numbers without a unit can only be MiB: no clock is so fast, so slow or of so many values."""
    high, low, different = column.known.max(), column.known.min(), len(np.unique(column.known))
    many = high > _FASTEST_MHZ and (different > _CLOCKS or low < _SLOWEST_MHZ)
    size = different == 1 and high >= 2048 and high % 1024 == 0
    return bool(high > _FASTEST_MEMORY_MHZ or many or size)


def _period(values: np.ndarray) -> int:
    """After how many rows a column repeats itself exactly; 0 where it does not."""
    for size in range(1, min(_MOST_GPUS, max(len(values) // 2, 1)) + 1):
        if np.array_equal(values[size:], values[:-size], equal_nan=True):
            return size
    return 0


def _shares(columns: list[_Column]) -> dict[str, int]:
    """Utilization is the only column in percent, or the one without which there is no utilization of memory."""
    if len(columns) == 1:
        return {UTIL: columns[0].place}
    leads = [(a, b) for a, b in permutations(columns, 2) if _leads(a.values, b.values)]
    if len({a.place for a, _ in leads}) > 1:  # such as of a GPU that did nothing
        leads = [(a, b) for a, b in leads if not _leads(b.values, a.values)] or leads[: len(columns) == 2]
    first = {a.place for a, _ in leads}
    if len(first) != 1:
        return {}
    rest = [b.place for _, b in leads]
    return {UTIL: first.pop()} | ({COPY: rest[0]} if len(rest) == 1 else {})


def _leads(one: np.ndarray, other: np.ndarray) -> bool:
    both = ~np.isnan(one) & ~np.isnan(other)
    ends = bool(both.any() and (one[both].max() >= _NEARLY_ALL or not one[both].min()))  # a fan stays between
    return ends and (other[both] <= one[both]).mean() >= 0.99 and not other[both][one[both] == 0].any()


def _watts(columns: list[_Column]) -> dict[str, int]:
    """The draw is the only column in watts, or the only one that changes: limits do not."""
    moving = [c for c in columns if _period(c.values) != 1] if len(columns) > 1 else columns
    return {POWER: moving[0].place} if len(moving) == 1 else {}


def _memory(columns: list[_Column], activity: np.ndarray | None) -> dict[str, int]:
    """The total never changes; used, free and reserved memory add up to it; used memory goes with activity."""
    if len(columns) == 1:
        (only,) = columns
        if _period(only.values) == 1 and len(only.values) > 1 and only.values[0] % 256 == 0:
            return {}  # perhaps the total
        return {FREE if _related(only, activity) < -_RELATED else USED: only.place}
    totals = [c for c in columns if _period(c.values) and all((c.values >= o.values).all() for o in columns)]
    if len(totals) != 1:
        return {}
    total, rest = totals[0], [c for c in columns if c is not totals[0]]
    out = {TOTAL: total.place}
    if len(rest) == 1:
        return out | {FREE if _related(rest[0], activity) < -_RELATED else USED: rest[0].place}
    if len(rest) == 3:
        small = [c for c in rest if _period(c.values) and (c.values <= _RESERVED * total.values).all()]
        whole = np.abs(total.values - sum(c.values for c in rest)).max() <= 2
        rest = [c for c in rest if c not in small] if whole and len(small) == 1 else []
    if len(rest) == 2:
        missing = total.values - rest[0].values - rest[1].values
        related = [_related(c, activity) for c in rest]
        if (missing >= 0).all() and (missing <= _RESERVED * total.values).all() and max(related) >= _RELATED:
            used = rest[related.index(max(related))]
            return out | {USED: used.place, FREE: next(c.place for c in rest if c is not used)}
    return out


def _related(column: _Column, activity: np.ndarray | None) -> float:
    """The correlation with activity; 0 where one of the two does not change."""
    if activity is None:
        return 0.0
    both = ~np.isnan(column.values) & ~np.isnan(activity)
    one, other = column.values[both], activity[both]
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
