"""What did each pool of GPUs hold, work on and put to use, hour by hour, and what did each pod do with its GPUs?

A pool is a cluster or a namespace. Hours are those of the ledger; their time is divided into the buckets of the cost
statement. An hour is observed where samples stand for enough of the time of the GPUs that were there; then it is scaled
to all of them. Time that was not observed stays a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpuledger.cost.buckets import NUMBERS, boards_of, divide
from gpuledger.cost.pieces import Device, read_devices
from gpuledger.cost.rating import kinds_of_rows
from gpuledger.errors import NothingFound
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator, runs
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows, exact_share
from gpuledger.ledger.read.owners import OWNED, labelled, space_name
from gpuledger.ledger.read.rollup import state_codes
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.activity import pipe_sums
from gpuledger.physics.calibration import Calibration
from gpuledger.physics.evidence import ModelFacts
from gpuledger.plan.capacity.facts import capacity_facts
from gpuledger.plan.capacity.series import Series
from gpuledger.units import MS_PER_HOUR

NO_CLUSTER = "no cluster"
_LABELS = ("cluster", "namespace", *OWNED, "gpu_model", "tensor_precision", "state")
# Milliseconds of an hour: observed, held by an owner, at work, busy, put to use, busy but not rated.
SUMS = ("observed", "held", "working", "busy", "productive", "unrated")
_KEYS = ("cluster", "namespace", "pod")


@dataclass(frozen=True, eq=False)
class PoolHours:
    """One cluster or namespace: GPUs by hour on every basis. `used`: GPUs that worked at all in the hour."""

    name: str
    cluster: str | None
    held: Series
    working: Series
    productive: Series
    busy_or_unrated: Series
    used: Series
    gpus_now: int
    idle_gpus: float
    busy_h: float
    unrated_h: float


@dataclass(frozen=True)
class PodUse:
    """One pod on one GPU, or the time of an owner without a pod name. `busiest_h`: the work of its busiest hour."""

    cluster: str | None
    space: str
    pod: str | None
    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    hours: Mapping[str, float]
    busiest_h: float
    memory_max_bytes: float | None


@dataclass(frozen=True, eq=False)
class FleetHours:
    """All that a capacity plan reads from the ledger. `folded_days` have no hours any more."""

    start_ms: int
    end_ms: int
    pools: tuple[PoolHours, ...]
    pods: tuple[PodUse, ...]
    devices: tuple[Device, ...]
    folded_days: int
    unshared_h: float


@dataclass
class _Reading:
    hours: Accumulator = field(default_factory=Accumulator)
    pods: Accumulator = field(default_factory=lambda: Accumulator(most=("memory", "busiest")))
    folded: set[int] = field(default_factory=set)
    unshared_ms: float = 0.0


def read_fleet_hours(lake: Lake, scope: Scope, *, by: str = "cluster", calibration: Calibration | None) -> FleetHours:
    """The hours of every pool in scope, and what every pod did; the ledger must be posted."""
    books, found = Books(lake, scope), _Reading()
    models: dict[str | None, ModelFacts] = {}
    maybe = ("limit_mw", "slice_ppm", "fb_max_bytes")
    for _, block in books.blocks(_LABELS, NUMBERS, maybe, hourly=True, owners=False):
        _take(books, block, models, calibration, found)
    keys, sums = found.hours.total()
    if not keys and found.folded:
        raise _no_hours(len(found.folded))
    if not keys or not sums["wanted"].any():
        raise books.nothing_found()
    devices = tuple(read_devices(books))
    start, end = int(keys[0].min()), int(keys[0].max()) + 1
    names = {c: books.names[c].text(k) for c, k in zip(("cluster", "namespace"), keys[1:3], strict=True)}
    spaces = [space_name(n, owned=bool(o)) for n, o in zip(names["namespace"], keys[3].tolist(), strict=True)]
    pools = names["cluster"] if by == "cluster" else spaces
    made = _Pools(keys[0], sums, start, end, devices)
    labels = sorted({p or NO_CLUSTER for p in pools})
    code = np.array([labels.index(p or NO_CLUSTER) for p in pools])
    wanted = [i for i in range(len(labels)) if sums["wanted"][code == i].any()]
    whole = by == "cluster" and not (scope.namespaces or scope.owners)
    return FleetHours(
        start_ms=start * MS_PER_HOUR,
        end_ms=end * MS_PER_HOUR,
        pools=tuple(made.pool(labels[i], code == i, names["cluster"], whole=whole) for i in wanted),
        pods=tuple(_pods(books, found.pods)),
        devices=devices,
        folded_days=len(found.folded),
        unshared_h=found.unshared_ms / MS_PER_HOUR,
    )  # fmt: skip


def _no_hours(days: int) -> NothingFound:
    which = "the day" if days == 1 else f"all {days} days"
    return NothingFound(
        f"a capacity plan needs demand by hour, and the hours of {which} in the window are folded into days",
        hint="import newer samples or give a table of demand (demand=FILE); to keep hours for longer from now on: "
        "gpuledger tidy --fold-older-than 90d",
    )


def _take(
    books: Books, block: Rows, models: dict[str | None, ModelFacts], calibration: Calibration | None, found: _Reading
) -> None:
    """Add a block of lines to the hours and to the pods."""
    names = books.names
    rows = block | pipe_sums(block) | {"state": state_codes(names["state"], block["state"])}
    kinds = kinds_of_rows(rows, names)
    for model, _ in kinds.pairs:
        models.setdefault(model, ModelFacts(model))
    boards = boards_of(kinds, models, rows["gpu_uuid"], names["gpu_uuid"].texts, calibration)
    parts = divide(rows, kinds, models, boards)
    owned = labelled(rows) | (rows["namespace"] >= 0)
    times = _times(parts, owned)
    share = np.where(rows["gpu_instance_id"] < 0, 1.0, exact_share(rows["slice_ppm"] / 1.0))
    unknown = np.isnan(share)
    wanted = rows["wanted"]
    found.unshared_ms += float(times["observed"][unknown & wanted].sum())
    weight = np.nan_to_num(share) * wanted
    weighed = {name: np.rint(weight * ms).astype(np.int64) for name, ms in times.items()}
    hourly = rows["grain_ms"] <= MS_PER_HOUR
    found.folded.update((rows["hour_ms"][~hourly] // MS_PER_HOUR).tolist())
    labels = [rows[c] for c in ("cluster", "namespace")]
    device = [rows[c] for c in ("gpu_uuid", "gpu_instance_id")]
    hour = rows["hour_ms"] // MS_PER_HOUR
    if hourly.any():
        keys = [k[hourly] for k in (hour, *labels, labelled(rows) + 0)]
        mine, times_of = [k[hourly] for k in device], {n: v[hourly] for n, v in times.items()}
        made = {n: v[hourly] for n, v in weighed.items()}
        made["used"] = _used([*keys, *mine], times_of["working"] * wanted[hourly])
        made["wanted"] = wanted[hourly].astype(np.int64)
        made["seen"] = _seen(keys[0], mine, times_of["observed"])
        found.hours.add(keys, made)
    memory = np.nan_to_num(rows["fb_max_bytes"], nan=-1.0)
    pod_keys = [*labels, labelled(rows) + 0, rows["pod"], *device, rows["gpu_model"]]
    busiest = _busiest([hour, *pod_keys], times["working"])
    most = {"memory": memory, "busiest": busiest}
    found.pods.add([k[wanted] for k in pod_keys], {n: v[wanted] for n, v in (times | most).items()})


def _times(parts: Mapping[str, np.ndarray], owned: np.ndarray) -> dict[str, np.ndarray]:
    """Milliseconds of lines by what a plan counts."""
    busy = parts["productive_ms"] + parts["stalled_ms"] + parts["unrated_ms"]
    working = busy + parts["underused_ms"]
    stated = working + parts["idle_ms"] + parts["idle_held_ms"]
    # An owner's idle GPU is held; without an owner it is held where its memory is.
    held = np.where(owned, stated, working + parts["idle_held_ms"])
    made = (stated, held, working, busy, parts["productive_ms"], parts["unrated_ms"])
    return {name: ms.astype(np.int64) for name, ms in zip(SUMS, made, strict=True)}


def _used(keys: Sequence[np.ndarray], working: np.ndarray) -> np.ndarray:
    """A one on the first line of each GPU, hour and owner that worked for long enough; zeros on all others."""
    first, total = _added(keys, working)
    out = np.zeros(len(working), np.int64)
    out[first] = total >= capacity_facts().used_from_ratio * MS_PER_HOUR
    return out


def _busiest(keys: Sequence[np.ndarray], working: np.ndarray) -> np.ndarray:
    """On every line the work of its GPU, hour and pod, an hour at most: that of a compacted day may be of one hour."""
    order, starts = runs([key - int(key.min()) for key in keys])
    rows = np.arange(len(working)) if order is None else order
    out = np.empty(len(working), np.int64)
    out[rows] = np.repeat(np.add.reduceat(working[rows], starts), np.diff(np.append(starts, len(rows))))
    return np.minimum(out, MS_PER_HOUR)


def _seen(hour: np.ndarray, device: Sequence[np.ndarray], observed: np.ndarray) -> np.ndarray:
    """On the first line of each board and hour the time it was seen; of a board in slices, of the one seen longest."""
    first, total = _added([hour, *device], observed)
    at, most = _added([hour[first], device[0][first]], total, np.maximum)
    out = np.zeros(len(observed), np.int64)
    out[first[at]] = most
    return out


def _added(keys: Sequence[np.ndarray], values: np.ndarray, how: np.ufunc = np.add) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each key, and what its rows come to."""
    order, starts = runs([key - int(key.min()) for key in keys])
    rows = np.arange(len(values)) if order is None else order
    return rows[starts], how.reduceat(values[rows], starts)


class _Pools:
    """Makes the hours of pools from sums by hour and owner."""

    def __init__(
        self, hour: np.ndarray, sums: Mapping[str, np.ndarray], start: int, end: int, devices: Sequence[Device]
    ) -> None:
        self._hour, self._sums, self._start, self._hours = hour - start, sums, start, end - start
        self._boards = devices

    def pool(self, name: str, mine: np.ndarray, clusters: Sequence[str | None], *, whole: bool) -> PoolHours:
        """One pool: its lines by hour, scaled to the GPUs that were there."""
        at = self._hour[mine]
        sums = {c: np.bincount(at, v[mine], self._hours) / MS_PER_HOUR for c, v in self._sums.items() if c != "used"}
        used = np.bincount(at, self._sums["used"][mine], self._hours)
        there = {clusters[i] for i in np.flatnonzero(mine).tolist()}
        # A silent board of a cluster is a gap. A namespace without a line held nothing, where the fleet was seen.
        present = self._present(there if whole else None)
        time = sums["seen"] if whole else np.bincount(self._hour, self._sums["seen"], self._hours) / MS_PER_HOUR
        seen = np.divide(time, present, out=np.zeros(self._hours), where=present > 0)
        fit = seen >= capacity_facts().hour_from_ratio
        scale = np.divide(1.0, np.minimum(seen, 1.0), out=np.full(self._hours, np.nan), where=fit)
        held = sums["held"] * scale
        now = int(present[-1]) if whole else round(float(np.max(np.nan_to_num(held[-24:]))))

        def series(values: np.ndarray) -> Series:
            return Series(name, self._start * MS_PER_HOUR, values * scale)

        idle = (
            sums["held"] - sums["working"] if not whole else present - sums["working"] * np.nan_to_num(scale, nan=1.0)
        )
        return PoolHours(
            name=name,
            cluster=next(iter(there)) if len(there) == 1 else None,
            held=series(sums["held"]),
            working=series(sums["working"]),
            productive=series(sums["productive"]),
            busy_or_unrated=series(sums["productive"] + sums["unrated"]),
            used=series(used.astype(np.float64)),
            gpus_now=now,
            idle_gpus=float(np.mean(idle[fit])) if fit.any() else 0.0,
            busy_h=float(sums["busy"].sum()),
            unrated_h=float(sums["unrated"].sum()),
        )

    def _present(self, clusters: set[str | None] | None) -> np.ndarray:
        """Boards there by hour: from the first to the last sample of each."""
        edges = np.zeros(self._hours + 1)
        spans: dict[str, tuple[int, int]] = {}
        for d in self._boards:
            if clusters is None or d.cluster in clusters:
                low, high = spans.get(d.gpu_uuid, (d.first_ms, d.last_ms))
                spans[d.gpu_uuid] = min(low, d.first_ms), max(high, d.last_ms)
        for low, high in spans.values():
            first = min(max(low // MS_PER_HOUR - self._start, 0), self._hours)
            last = min(max(-(-high // MS_PER_HOUR) - self._start, 0), self._hours)
            edges[first] += 1
            edges[last] -= 1
        return np.cumsum(edges)[:-1]


def _pods(books: Books, sums: Accumulator) -> list[PodUse]:
    keys, columns = sums.total()
    cluster, space, owned, pod, uuid, part, model = keys
    texts = [
        books.names[c].text(k)
        for c, k in zip(
            ("cluster", "namespace", "pod", "gpu_uuid", "gpu_instance_id", "gpu_model"),
            (cluster, space, pod, uuid, part, model), strict=True,
        )
    ]  # fmt: skip
    hours = {name: columns[name] / MS_PER_HOUR for name in SUMS}
    out = []
    for i, (in_cluster, in_space, name, board, instance, kind) in enumerate(zip(*texts, strict=True)):
        most = float(columns["memory"][i])
        times = {n: float(v[i]) for n, v in hours.items()}
        where = space_name(in_space, owned=bool(owned[i]))
        busiest = float(columns["busiest"][i]) / MS_PER_HOUR
        memory = None if most < 0 else most
        out.append(PodUse(in_cluster, where, name, board or "", instance, kind, times, busiest, memory))
    return sorted(out, key=lambda p: (p.space, p.pod or "", p.gpu_uuid, p.gpu_instance_id or ""))
