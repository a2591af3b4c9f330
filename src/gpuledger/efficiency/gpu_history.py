"""What did one GPU do hour by hour, and how busy was each GPU of the fleet lately?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpuledger.errors import UnknownName
from gpuledger.lake.batch import device_name
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows
from gpuledger.ledger.read.owners import OWNED, TeamOf
from gpuledger.ledger.read.scope import Scope, owner_name
from gpuledger.ledger.read.window import newest_ms
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_HOUR, PPM, Unknown, ratio

# How a state is shown: what the GPU does in it, whichever pipe does it.
Doing = Literal["working", "light", "waiting", "idle", "idle, memory held", "unrated", "activity not recorded"]
DOING: dict[str, Doing] = {
    "idle": "idle", "wait": "waiting", "light": "light", "light-unseen": "light", "plain": "unrated",
    "unstated": "activity not recorded",
}  # fmt: skip
_NUMBERS = ("observed_ms", "idle_held_ms", "util_ms", "util_ppm_ms", "power_ms", "power_uj")
_ENDS = ("first_ms", "last_ms")
RECENT_H = 48


@dataclass(frozen=True)
class GpuHour:
    """One hour of a GPU: means over the time observed, and minutes by what it did."""

    start_ms: int
    observed_min: float
    gpu_util_pct: float | Unknown
    power_w: float | Unknown
    minutes: dict[Doing, float]
    owners: tuple[str, ...]


@dataclass(frozen=True)
class Spell:
    """A stretch without work, or without samples."""

    kind: str
    start_ms: int
    end_ms: int

    @property
    def hours(self) -> float:
        """How long it lasted."""
        return (self.end_ms - self.start_ms) / MS_PER_HOUR


@dataclass(frozen=True)
class GpuHistory:
    """One device: its labels, its first and last instant, its hours, and its spells, the longest first."""

    device: str
    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    host: str | None
    gpu_index: str | None
    first_ms: int
    last_ms: int
    hours: tuple[GpuHour, ...]
    spells: tuple[Spell, ...]


def gpu_history(lake: Lake, scope: Scope, device: str) -> GpuHistory:
    """The hours and spells of one device, named by its UUID, with "/INSTANCE" for a MIG instance."""
    books = Books(lake, scope)
    found: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    minutes: dict[int, dict[Doing, float]] = defaultdict(lambda: defaultdict(float))
    owners: dict[int, set[str]] = defaultdict(set)
    place: dict[str, str | None] = {}
    ends: list[tuple[int, int]] = []
    labels = ("state", "namespace", "workload", "gpu_model", "host", "gpu_index")
    for _, rows in books.blocks(labels, (*_NUMBERS, *_ENDS), hourly=True):
        mine = _of_device(books, rows, device)
        ends += [(int(rows["first_ms"][mine].min()), int(rows["last_ms"][mine].max()))] if len(mine) else []
        texts = {name: books.names[name].text(rows[name][mine]) for name in (*schema.DEVICE, *labels)}
        for i, at in enumerate(mine.tolist()):
            hour = int(rows["hour_ms"][at])
            place |= {name: texts[name][i] for name in (*schema.DEVICE, *labels[3:]) if texts[name][i] is not None}
            for name in _NUMBERS:
                found[hour][name] += float(rows[name][at])
            _add_minutes(minutes[hour], texts["state"][i], rows, at)
            owners[hour].add(owner_name(texts["namespace"][i], texts["workload"][i]))
    if not found:
        raise UnknownName("GPU", device, device_names(lake, scope))
    hours = (_hour(at, found[at], minutes[at], owners[at]) for at in sorted(found))
    return GpuHistory(
        device, str(place["gpu_uuid"]), place.get("gpu_instance_id"), place.get("gpu_model"), place.get("host"),
        place.get("gpu_index"), min(first for first, _ in ends), max(last for _, last in ends), tuple(hours),
        _spells(books, device),
    )  # fmt: skip


def device_names(lake: Lake, scope: Scope) -> list[str]:
    """The devices with lines in scope, by name."""
    books = Books(lake, scope)
    found = set[str]()
    for _, rows in books.blocks((), ()):
        pairs = np.unique(np.stack([rows[c] for c in schema.DEVICE]), axis=1)
        uuid, instance = (books.names[c].text(pairs[i]) for i, c in enumerate(schema.DEVICE))
        found |= {device_name(u or "", i) for u, i in zip(uuid, instance, strict=True)}
    return sorted(found)


def device_owners(lake: Lake, scope: Scope, team_of: TeamOf) -> dict[str, tuple[str, ...]]:
    """By device the names of all its owners: namespaces, teams, users, accounts, jobs."""
    books, found = Books(lake, scope), dict[str, set[str]]()
    labels = ("cluster", *(name for name in ("namespace", *OWNED) if name != "pod"))
    for _, rows in books.blocks(labels, ()):
        columns = (*schema.DEVICE, *labels)
        once = np.unique(np.stack([rows[c] for c in columns]), axis=1)
        for texts in zip(*(books.names[c].text(once[i]) for i, c in enumerate(columns)), strict=True):
            named = dict(zip(columns, texts, strict=True))
            owners = found.setdefault(device_name(named["gpu_uuid"] or "", named["gpu_instance_id"]), set())
            owners |= {text for text in texts[len(schema.DEVICE) + 1 :] if text}
            team = team_of(named["cluster"], named["namespace"])
            owners |= {team} if team else set()
    return {device: tuple(sorted(names)) for device, names in found.items()}


def recent_util(lake: Lake, scope: Scope, hours: int = RECENT_H) -> tuple[int, dict[str, list[float | None]]]:
    """By device its utilization in each of the last hours, None where it was not seen; and where they start."""
    end = newest_ms(lake) if scope.until_ms is None else scope.until_ms
    first = (end - 1) // MS_PER_HOUR - hours + 1
    since = max(first * MS_PER_HOUR, scope.since_ms or 0)
    recent = Scope(since, scope.until_ms, scope.clusters, scope.namespaces, scope.owners)
    books = Books(lake, recent)
    ppm, ms = defaultdict[tuple[int, int], np.ndarray](lambda: np.zeros(hours)), dict[tuple[int, int], np.ndarray]()
    for _, rows in books.blocks((), ("util_ms", "util_ppm_ms"), hourly=True):
        at = rows["hour_ms"] // MS_PER_HOUR - first
        wide = len(books.names[schema.DEVICE[1]]) + 1
        code = rows[schema.DEVICE[0]] * wide + rows[schema.DEVICE[1]] + 1
        held, place = np.unique(code, return_inverse=True)
        inside = (at >= 0) & (at < hours)
        where = (place.reshape(-1) * hours + np.clip(at, 0, hours - 1))[inside]
        sums = [np.bincount(where, rows[c][inside], len(held) * hours) for c in ("util_ppm_ms", "util_ms")]
        for i, key in enumerate(held.tolist()):
            pair, span = (key // wide, key % wide - 1), slice(i * hours, (i + 1) * hours)
            ppm[pair] = ppm[pair] + sums[0][span]
            ms[pair] = ms.get(pair, np.zeros(hours)) + sums[1][span]
    texts = [[*books.names[c].texts, None] for c in schema.DEVICE]
    out = {}
    for (board, instance), known in ms.items():
        share = np.divide(100 * ppm[board, instance] / PPM, known, out=np.full(hours, np.nan), where=known > 0)
        name = device_name(texts[0][board] or "", texts[1][instance])
        out[name] = [None if np.isnan(v) else v for v in share.tolist()]
    return first * MS_PER_HOUR, out


def _of_device(books: Books, rows: Rows, device: str) -> np.ndarray:
    """The places of a device's rows. A UUID may have a slash itself: what follows the last may be an instance."""
    board, slice_ = schema.DEVICE
    uuid, _, instance = device.rpartition("/")
    whole = books.names[board].among((device,))[rows[board]] & (rows[slice_] < 0)
    part = books.names[board].among((uuid,))[rows[board]] & books.names[slice_].among((instance,))[rows[slice_]]
    return np.flatnonzero(whole | part) if uuid else np.flatnonzero(whole)


def _add_minutes(minutes: dict[Doing, float], state: str | None, rows: Rows, at: int) -> None:
    held = float(rows["idle_held_ms"][at])
    minutes[DOING.get(state or "unstated", "working")] += (float(rows["observed_ms"][at]) - held) / 60_000
    if held:
        minutes["idle, memory held"] += held / 60_000


def _hour(start_ms: int, sums: dict[str, float], minutes: dict[Doing, float], owners: set[str]) -> GpuHour:
    util = ratio(100 * sums["util_ppm_ms"] / PPM, sums["util_ms"], "utilization is not recorded")
    watts = ratio(sums["power_uj"] / 1e3, sums["power_ms"], "power is not recorded")
    return GpuHour(start_ms, sums["observed_ms"] / 60_000, util, watts, dict(minutes), tuple(sorted(owners)))


def _spells(books: Books, device: str) -> tuple[Spell, ...]:
    out: list[Spell] = []
    for rows in books.spells():
        mine = _of_device(books, rows, device)
        kinds = books.names["kind"].text(rows["kind"][mine])
        for at, kind in zip(mine.tolist(), kinds, strict=True):
            out.append(Spell(kind or "", int(rows["start_ms"][at]), int(rows["end_ms"][at])))
    return whole_spells(out, books.scope.since_ms or 0, books.scope.until_ms or 1 << 62)


def whole_spells(found: Iterable[Spell], since_ms: int, until_ms: int) -> tuple[Spell, ...]:
    """Spells that touch made one, as where midnight cut them, and cut to the window; the longest first."""
    out: list[Spell] = []
    for spell in sorted(found, key=lambda s: s.start_ms):
        start, end = max(spell.start_ms, since_ms), min(spell.end_ms, until_ms)
        if end <= start:
            continue
        if out and (out[-1].kind, out[-1].end_ms) == (spell.kind, start):
            start = out.pop().start_ms
        out.append(Spell(spell.kind, start, end))
    return tuple(sorted(out, key=lambda s: (s.start_ms - s.end_ms, s.start_ms)))
