"""What do the lines of a window add up to, for each owner within each stretch that is priced alike?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpuledger.cost.buckets import NUMBERS, boards_of, divide
from gpuledger.cost.rating import Along, Rater
from gpuledger.lake.names import Names
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows
from gpuledger.ledger.read.owners import OWNED, By, Labels, labelled
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.calibration import Calibration
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, PPM

OWNER = ("cluster", "namespace", "workload")


@dataclass(frozen=True, slots=True)
class Device:
    """A device and when it was seen in the whole lake, whoever owned it; of its labels the latest."""

    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    cluster: str | None
    region: str | None
    first_ms: int
    last_ms: int
    host: str | None = None
    gpu_index: str | None = None

    @property
    def name(self) -> str:
        """As an inventory names it."""
        return f"{self.gpu_uuid}/{self.gpu_instance_id}" if self.gpu_instance_id else self.gpu_uuid


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a board's time that is priced alike; `number` ties its sums to its price.

    With an instance it is of that MIG slice alone, which then has no part in those of its board.
    """

    number: int
    gpu_uuid: str
    gpu_instance_id: str | None
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Piece:
    """The sums of one owner's lines on one device within one segment; `slice_ppm`: its share of the board.

    `owned`: whether some label but a namespace names the owner; `labels`: further ones that were asked for.
    """

    segment: int
    device: tuple[str, str | None]
    slice_ppm: int | None
    cluster: str | None
    namespace: str | None
    workload: str | None
    wanted: bool
    sums: Mapping[str, int] = field(default_factory=dict)
    owned: bool = False
    labels: Labels = field(default_factory=dict)


class _SumsOf(Mapping[str, int]):
    """One place of all columns of sums. A dict for each owner took most of the memory of a lake with many owners."""

    __slots__ = ("_columns", "_place")

    def __init__(self, columns: Mapping[str, np.ndarray], place: int) -> None:
        self._columns, self._place = columns, place

    def __getitem__(self, name: str) -> int:
        return int(self._columns[name][self._place])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


# Room for the number of a MIG instance, next to that of its board.
_INSTANCES = 24
_BLOCKS = 256
_FACTS = ("gpu_model", "cluster", "region", "host", "gpu_index")


def read_devices(books: Books) -> list[Device]:
    """Every device of the lake, in order."""
    everything = Books(books.lake, Scope())
    seen = Accumulator(most=("last_ms",), least=("first_ms",))
    for _, rows in everything.blocks(_FACTS, ("first_ms", "last_ms")):
        seen.add([*(rows[c] for c in (*schema.DEVICE, *_FACTS))], {c: rows[c] for c in ("first_ms", "last_ms")})
    keys, ends = seen.total()
    if not keys:
        return []
    names = everything.names
    places = [names[c].places()[k] for c, k in zip(schema.DEVICE, keys, strict=False)]
    # The latest of a device's lines last; of equal ones the later in the alphabet, so that files' order cannot matter.
    ties = [names[c].places()[k] for c, k in zip(_FACTS, keys[2:], strict=True)]
    order = np.lexsort([*reversed(ties), ends["last_ms"], *reversed(places)])
    keys, first, last = [k[order] for k in keys], ends["first_ms"][order], ends["last_ms"][order]
    new = np.flatnonzero((np.diff(keys[0], prepend=-2) != 0) | (np.diff(keys[1], prepend=-2) != 0))
    final = np.append(new[1:], len(first)) - 1
    *labels, host, index = keys
    # The latest index known on that host: the one it had on another host would name another GPU.
    there = (index >= 0) & (host == np.repeat(host[final], final - new + 1))
    known = np.maximum.reduceat(np.where(there, np.arange(len(index)), -1), new)
    codes = [*(k[final] for k in (*labels, host)), np.where(known < 0, -1, index[known])]
    texts = [names[c].text(k) for c, k in zip((*schema.DEVICE, *_FACTS), codes, strict=True)]
    starts, ends_ms = np.minimum.reduceat(first, new).tolist(), last[final].tolist()
    return [
        Device(uuid or "", instance, model, cluster, region, start, end, *place)
        for uuid, instance, model, cluster, region, *place, start, end in zip(*texts, starts, ends_ms, strict=True)
    ]


def read_pieces(
    books: Books,
    segments: Sequence[Segment],
    calibration: Calibration | None = None,
    by: By | None = None,
    along: Along | None = None,
) -> tuple[list[Piece], tuple[tuple[str | None, str | None], ...]]:
    """The sums of every owner within every segment, and the models whose tensor pipe worked, with each precision.

    `along` takes the same blocks of lines, except where segments need hours of some days: then it is left to read days.
    """
    cuts = _Cuts(segments)
    sums = Accumulator()
    worked: set[tuple[str | None, str | None]] = set()
    asked = tuple(name for name in ("team", *(by.labels if by else ())) if name not in OWNER)
    more = tuple(dict.fromkeys(asked))
    labels: tuple[str, ...] = (*OWNER, *OWNED, "gpu_model", "tensor_precision", "state")
    numbers: tuple[str, ...] = NUMBERS
    maybe: tuple[str, ...] = ("limit_mw", "slice_ppm")
    also = None if cuts.days else along
    if also is not None:
        labels, numbers = (*labels, *also.labels), (*numbers, *also.numbers)
        maybe = tuple(dict.fromkeys((*maybe, *also.maybe)))
    names, rater = books.names, Rater(books.names)
    for day_ms, found in books.blocks(labels, numbers, maybe, hourly=cuts.days, owners=False):
        rated = rater.of(found)
        if also is not None:
            also.take(books, day_ms, rated)
        rows, kinds = rated.rows, rated.kinds
        board = boards_of(kinds, rater.models, rows["gpu_uuid"], names["gpu_uuid"].texts, calibration)
        made = divide(rows, kinds, rater.models, board, rated.done)
        tensor = rows["wanted"] & (np.maximum(rows["tensor_ppm_ms"], rows["matrix"]) > 0)
        worked.update(kinds.pairs[i] for i in np.unique(kinds.of_row[tensor]).tolist())
        segment, row, made = cuts.cut(rows, made, names["gpu_uuid"], names["gpu_instance_id"])
        # An unknown share of the board is -1, a whole board one million.
        share = np.where(np.isnan(rows["slice_ppm"]), -1, np.nan_to_num(rows["slice_ppm"])).astype(np.int64)
        share[rows["gpu_instance_id"] < 0] = PPM
        owners = [rows[c][row] for c in (*schema.DEVICE, *OWNER, *more)]
        sums.add([segment, *owners, labelled(rows)[row] + 0, share[row], rows["wanted"][row] + 0], made)
    return _made(sums, names, more), tuple(sorted(worked, key=str))


def _made(sums: Accumulator, names: Mapping[str, Names], more: tuple[str, ...]) -> list[Piece]:
    keys, columns = sums.total()
    if not keys:
        return []
    segment, *labels, owned, share, wanted = keys
    text = [names[c].text(k) for c, k in zip((*schema.DEVICE, *OWNER, *more), labels, strict=True)]
    places = [names[c].places()[k] for c, k in zip((*schema.DEVICE, *OWNER, *more), labels, strict=True)]
    order = np.lexsort([wanted, share, *reversed(places), segment]).tolist()
    whole = {c: v.astype(np.int64) for c, v in columns.items()}
    uuid, instance, cluster, namespace, workload, *others = text
    segments, shares, asked, named = (column.tolist() for column in (segment, share, wanted, owned))
    return [
        Piece(
            segments[i], (uuid[i] or "", instance[i]), None if shares[i] < 0 else shares[i], cluster[i],
            namespace[i], workload[i], bool(asked[i]), _SumsOf(whole, i), bool(named[i]),
            {name: texts[i] for name, texts in zip(more, others, strict=True)},
        )
        for i in order
    ]  # fmt: skip


class _Cuts:
    """Which segment each row is in; a row that reaches over an edge is cut in proportion to time."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._by_name: dict[tuple[str, str | None], list[Segment]] = {}
        for segment in segments:
            self._by_name.setdefault((segment.gpu_uuid, segment.gpu_instance_id), []).append(segment)
        # The devices met so far with their segments, and by device the one that all of it is in: number, start, end.
        self._met: dict[int, int] = {}
        self._blocks: dict[bytes, np.ndarray] = {}
        self._spans: list[list[Segment]] = []
        self._only = np.zeros((3, 0), np.int64)

    @property
    def days(self) -> Collection[int]:
        """The starts of days within which a segment meets another: there, hours are needed."""
        edges = set[int]()
        for found in self._by_name.values():
            ordered = sorted(found, key=lambda s: s.start_ms)
            inner = [t for s in ordered for t in (s.start_ms, s.end_ms)][1:-1]
            edges.update(t // MS_PER_DAY * MS_PER_DAY for t in inner if t % MS_PER_DAY)
        return edges

    def cut(
        self, rows: Rows, made: Mapping[str, np.ndarray], uuids: Names, instances: Names
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """The segment of each part, its row, and its sums. Rows in no segment are left out."""
        device = self._devices(rows, uuids, instances)
        first, last = rows["first_ms"], rows["last_ms"]
        number, start, end = self._only[:, device]
        whole = (number >= 0) & (start <= first) & (end >= last)
        segment, row = [number[whole]], [np.flatnonzero(whole)]
        parts = [{c: v[whole] for c, v in made.items()}]
        for i in np.flatnonzero(~whole).tolist():
            low, high, span = int(first[i]), int(last[i]), max(int(last[i] - first[i]), 1)
            for s in self._spans[device[i]]:
                a, b = max(s.start_ms, low) - low, min(s.end_ms, high) - low
                if a < b or (low == high and s.start_ms <= low < s.end_ms):
                    segment.append(np.array([s.number]))
                    row.append(np.array([i]))
                    cut = {c: int(v[i]) for c, v in made.items()}
                    if a > 0 or b < high - low:
                        cut = {c: v * b // span - v * a // span for c, v in cut.items()}
                    parts.append({c: np.array([v]) for c, v in cut.items()})
        joined = parts[0] if len(parts) == 1 else {c: np.concatenate([p[c] for p in parts]) for c in parts[0]}
        return np.concatenate(segment), np.concatenate(row), joined

    def _devices(self, rows: Rows, uuids: Names, instances: Names) -> np.ndarray:
        """By row its device among those met, new ones added."""
        code = (rows["gpu_uuid"] << _INSTANCES) + rows["gpu_instance_id"] + 1
        starts = np.flatnonzero(np.append(1, np.diff(code)))  # the rows of a device stand together
        devices = code[starts]
        key = devices.tobytes()
        if key not in self._blocks:  # most blocks have the devices of one the day before
            if len(self._blocks) >= _BLOCKS:
                self._blocks.clear()
            self._blocks[key] = self._meet(devices.tolist(), uuids, instances)
        return np.repeat(self._blocks[key], np.diff(starts, append=len(code)))

    def _meet(self, devices: Sequence[int], uuids: Names, instances: Names) -> np.ndarray:
        """The places of these devices among those met."""
        for code in devices:
            if code not in self._met:
                self._met[code] = len(self._spans)
                self._spans.append(self._of(code, uuids, instances))
        if len(self._spans) > self._only.shape[1]:
            only = [(s[0].number, s[0].start_ms, s[0].end_ms) if len(s) == 1 else (-1, 0, -1) for s in self._spans]
            self._only = np.array(only, dtype=np.int64).T
        return np.array([self._met[code] for code in devices], dtype=np.int64)

    def _of(self, code: int, uuids: Names, instances: Names) -> list[Segment]:
        uuid, instance = code >> _INSTANCES, (code & ((1 << _INSTANCES) - 1)) - 1
        board = uuids.texts[uuid] or ""
        part = None if instance < 0 else instances.texts[instance]
        own = self._by_name.get((board, part)) if part else None
        return own if own is not None else self._by_name.get((board, None), [])
