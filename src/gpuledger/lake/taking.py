"""How are the rows of a file, or of a piece of one, read, checked and handed to the sorter?

Pieces of files may be taken by several processes at once. What one finds is `Taken`: rows are numbered within their
piece, and get their number in the file when all pieces are known.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Columns
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.catalog.gpus import find_gpu
from gpuledger.errors import FileFault, InputError, nearest
from gpuledger.lake import rejects as why
from gpuledger.lake.batch import as_dictionary
from gpuledger.lake.clocks import Ahead
from gpuledger.lake.handing import desk, given_file
from gpuledger.lake.processes import Progress
from gpuledger.lake.rejects import RejectLog
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.runs import Handed, moved
from gpuledger.telemetry import schema
from gpuledger.telemetry.convert import AMBIGUOUS_TIME, IMPOSSIBLE_TIME, convert, device_prefix
from gpuledger.telemetry.date_order import Dates
from gpuledger.telemetry.finding import Found, as_the_user_names_them
from gpuledger.telemetry.labels import Used
from gpuledger.telemetry.mapping import NOTHING_GIVEN, Bound, Given, Mapping, bind
from gpuledger.telemetry.mapping.shape import open_shaped
from gpuledger.telemetry.means import mean_rows
from gpuledger.telemetry.not_read import columns_note
from gpuledger.telemetry.passes import passes_of
from gpuledger.telemetry.same_gpus import SameGpus
from gpuledger.telemetry.shares import FileShares
from gpuledger.telemetry.stamps import StampReader, Untimed
from gpuledger.units import MS_PER_DAY, Unknown, utc

POWER_FACTOR = 2.0
# A row's number of arrival: the number of its piece, then its number within.
PIECE_BITS = 40


class Reading(msgspec.Struct, frozen=True):
    """How files are read. `only`: the columns of the schema that are wanted (None: all).

    Rows before `closed_ms` or after `latest_ms` are rejected (0: none are).
    """

    zone: str = "UTC"
    mapping: Mapping | None = None
    given: Given = NOTHING_GIVEN
    closed_ms: int = 0
    latest_ms: int = 0
    only: tuple[str, ...] | None = None


class Piece(msgspec.Struct, frozen=True):
    """Rows to take: the `part`th of `parts` pieces of a file, as the `number`th of all pieces.

    `groups`: where the file consists of groups of rows, the first and the last to take. `days`: the first and last day
    that rows may be of, as the file says, and `first_ms` the first instant; None: any. `rows`: about how many, after
    `before` others of the file.
    """

    path: str
    number: int
    part: int = 0
    parts: int = 1
    groups: tuple[int, int] | None = None
    days: tuple[int, int] | None = None
    rows: int = 0
    before: int = 0
    first_ms: int = 0


NO_TIME = (1 << 62, 0)


class Taken(msgspec.Struct, frozen=True):
    """What taking a piece found. `rejects`: the log of its rejected rows, numbered within the piece.

    `labels`: by label the source columns it may stand in; `label_rows`: how many rows have it from which. `ahead`: the
    devices with rows whose times have not come yet; `span_ms`: the first and the last time of the others. `unlisted`:
    by reason how many rejected rows the log had no room for. `dates`: in which order they are written. `zoneless`:
    times carry no zone.
    """

    rows: int
    usable: int
    notes: list[str]
    unknown_models: list[str]
    rejects: str
    labels: dict[str, tuple[str, ...]]
    label_rows: list[tuple[str, str, int]]
    ahead: list[Ahead]
    span_ms: tuple[int, int]
    unlisted: dict[str, int] = {}
    dates: Dates = Dates()
    zoneless: bool = False
    handed: Handed | None = None


class TakeTask(msgspec.Struct, frozen=True):
    """A piece to take, and a folder for what is left of it: each attempt makes one of its own in there."""

    piece: Piece
    reading: Reading
    folder: str


def take_piece(task: TakeTask, progress: Progress) -> Taken:
    """Take a piece in a process of its own."""
    with desk(task.folder) as own:
        folder = Path(tempfile.mkdtemp(prefix=f"piece-{task.piece.number}-", dir=own.here))
        sorter, file = DaySorter(folder, by_day=own.apart), given_file(task.piece.path)
        with as_the_user_names_them([Found(file, task.piece.path)]):
            piece = msgspec.structs.replace(task.piece, path=str(file))
            taken = Taker(sorter, task.reading, progress).take(piece, folder / "rejects.log")
        handed, (log,) = moved(sorter.hand_over(), own.hand_over), own.hand_over([taken.rejects])
        return msgspec.structs.replace(taken, handed=handed, rejects=log)


class Taker:
    """Reads pieces of files into a sorter."""

    def __init__(self, sorter: DaySorter, reading: Reading, progress: Progress) -> None:
        self._sorter, self._reading, self._progress = sorter, reading, progress
        self._limits: dict[str, float] = {}
        self._unknown: list[str] = []
        self._ahead: list[Ahead] = []

    def take(self, piece: Piece, log: Path) -> Taken:
        """Read one piece; rejected rows go to a log."""
        path, reading = Path(piece.path), self._reading
        groups = range(piece.groups[0], piece.groups[1] + 1) if piece.groups else None
        opened = open_shaped(path, reading.mapping, piece.part, piece.parts, groups)
        bound = bind(path, opened.names, reading.mapping or opened.mapping, reading.given).only(reading.only)
        rule, untimed = bound.mapping.time, Untimed(path, reading.given)
        stamps = StampReader(rule.formats, reading.zone, unit=rule.unit, untimed=untimed)
        stamps.resolve = (lambda: passes_of(path, bound, stamps)) if bound.time else None
        rejected = RejectLog(log)
        notes: list[str] = []
        rows, usable, span, used, held = 0, 0, NO_TIME, Used(), list[pa.Table]()
        labels = (*bound.label_columns(), *(c for c in (bound.time, bound.clock) if c and opened.text))
        opened.numbers = frozenset(source for _, source, rule in bound.readings() if not rule.parse)
        shares = FileShares(path, bound, reading.given, reading.zone)
        read_batches, same = opened.by_column or opened.batches, SameGpus(path, bound, opened.text)
        for batch in read_batches(bound.source_columns(), labels):
            converted = convert(batch, bound, stamps, rejected.room, shares)
            same.look(batch, converted.table)
            numbers = row_numbers(rows, batch.num_rows, opened.wrong_rows, opened.per_row)
            notes += [note for note in dict.fromkeys(converted.notes) if note not in notes]
            used.update(converted.label_rows)
            for fault in converted.faults:
                rejected.add((piece.path, int(numbers[fault.row]), fault.reason, fault.column, fault.value))
            rejected.count(converted.more)
            table, numbers = self._check(piece.path, numbers[converted.kept], converted.table, rejected)
            read, usable = batch.num_rows, usable + table.num_rows
            del batch, converted
            if reading.given.mean:
                held += [table] if table.num_rows else []
            elif table.num_rows:
                span = self._add(piece, table, numbers, span)
            del table
            self._sorter.settle()
            rows += read
            self._progress("read", read)
        if held:
            table = mean_rows(held)
            span = self._add(piece, table, np.arange(table.num_rows), span)
        if (
            piece.days
            and usable
            and not piece.days[0] <= span[0] // MS_PER_DAY <= span[1] // MS_PER_DAY <= piece.days[1]
        ):
            raise FileFault(path, "it has rows of other times than its own notes say", hint="write the file again")
        for number, text in opened.wrong_rows:
            rejected.add((piece.path, number, why.WRONG_CELLS, "", text[:80]))
        rejected.flush()
        notes += opened.notes
        notes += _notes(bound) + _local_times(rejected.counts, reading.zone)
        (unknown, self._unknown), (ahead, self._ahead) = (self._unknown, []), (self._ahead, [])
        named = [f"{path.name}: {note}" for note in notes]
        count = rows // opened.per_row + len(opened.wrong_rows)
        found = [(*key, n) for key, n in used.items()]
        more, dates = dict(rejected.more), Dates(rule.formats, bound.mapping.file, stamps.orders)
        return Taken(
            count, usable, named, unknown, str(log), bound.labels, found, ahead, span, more, dates, stamps.zoneless
        )

    def _add(self, piece: Piece, table: pa.Table, numbers: np.ndarray, span: tuple[int, int]) -> tuple[int, int]:
        """Hand rows to the sorter; the first and the last time of all so far."""
        self._sorter.add(table, numbers + (piece.number << PIECE_BITS) if self._sorter.numbered else None)
        at_ms = table[schema.TIME].to_numpy()
        return min(span[0], int(at_ms.min())), max(span[1], int(at_ms.max()))

    def _check(
        self, source: str, numbers: np.ndarray, table: pa.Table, rejected: RejectLog
    ) -> tuple[pa.Table, np.ndarray]:
        """Leave out rows of closed days, of times that have not come, and whose power no such board can draw."""
        at_ms = table[schema.TIME].to_numpy()
        bad = at_ms < self._reading.closed_ms
        for i in _listed(bad, why.CLOSED_DAY, rejected):
            when = f"{utc(int(at_ms[i])):%Y-%m-%dT%H:%MZ}"
            rejected.add((source, int(numbers[i]), why.CLOSED_DAY, "time", when))
        if self._reading.latest_ms and (ahead := at_ms > self._reading.latest_ms).any():
            self._ahead += (found := rows_ahead(table, ahead))
            words = {one.device: one.words for one in found}
            devices = table["gpu_uuid"]
            for i in _listed(ahead, why.AHEAD, rejected):
                when = f"{utc(int(at_ms[i])):%Y-%m-%dT%H:%MZ}, {words[devices[i].as_py()]}"
                rejected.add((source, int(numbers[i]), why.AHEAD, "time", when))
            bad |= ahead
        if "power_w" in table.column_names and "gpu_model" in table.column_names:
            power = table["power_w"]
            over = (power.to_numpy() > self._power_limits(table["gpu_model"])) & ~bad
            for i in _listed(over, why.OVER_POWER, rejected):
                rejected.add((source, int(numbers[i]), why.OVER_POWER, "power_w", str(power[i].as_py())))
            bad |= over
        return (table.filter(pa.array(~bad)), numbers[~bad]) if bad.any() else (table, numbers)

    def _power_limits(self, models: pa.ChunkedArray) -> np.ndarray:
        coded = as_dictionary(models)
        limits = [self._limit(m) for m in coded.dictionary.to_pylist()]
        table = np.array([*limits, np.inf])
        places = coded.indices.fill_null(len(limits)) if coded.indices.null_count else coded.indices
        return table.take(places.to_numpy(zero_copy_only=False))

    def _limit(self, model: str | None) -> float:
        if model is None:
            return np.inf
        if model not in self._limits:
            gpu = find_gpu(model)
            board = gpu if isinstance(gpu, Unknown) else gpu.figure("board_power_w")
            self._limits[model] = np.inf if isinstance(board, Unknown) else POWER_FACTOR * board
            if isinstance(gpu, Unknown):
                self._unknown.append(model)
        return self._limits[model]


def _listed(bad: np.ndarray, reason: str, rejected: RejectLog) -> list[int]:
    """The rejected rows of a table that the log has room for; the others are counted."""
    rows = np.flatnonzero(bad)
    room = rejected.room
    rejected.count(Counter({reason: len(rows) - room}) if len(rows) > room else Counter())
    found: list[int] = rows[:room].tolist()
    return found


def rows_ahead(table: pa.Table, ahead: np.ndarray) -> list[Ahead]:
    """The devices of some rows, each with its host, how many rows and the latest of their times."""
    rows = table.filter(pa.array(ahead))
    hosts = rows["host"].to_pylist() if "host" in rows.column_names else [None] * rows.num_rows
    found: dict[str, Ahead] = {}
    for device, host, at_ms in zip(rows["gpu_uuid"].to_pylist(), hosts, rows[schema.TIME].to_pylist(), strict=True):
        one = found.get(device) or Ahead(device, host or "", 0, 0)
        found[device] = Ahead(device, one.host or host or "", one.rows + 1, max(one.last_ms, at_ms))
    return list(found.values())


def is_by_index(labels: Columns[str, tuple[str, ...]]) -> bool:
    """Whether a file knows its GPUs by their index only, and not their host. `labels`: the columns of each label."""
    return "host" not in labels and labels.get("gpu_uuid") == labels.get("gpu_index")


def one_host_notes(files: Sequence[tuple[str, tuple[int, int]]]) -> list[str]:
    """A note where files whose GPUs are all put on the one host the user named are of the same time."""
    ordered = sorted((span, name) for name, span in files)
    for (before, name), (after, other) in pairwise(ordered):
        if after[0] <= before[1]:
            shared = f"{name} and {other} are of the same time, and --host names one host for all files"
            return [f"{shared}: if they are of several hosts, import the files of each by themselves, with its --host"]
    return []


def refuse_two_models(given: Given, models: Iterable[tuple[str | None, ...]]) -> None:
    """A fault where a GPU known by its index on a host that the user named has two models. `models`: by device.

    The model that the user named stands in rows that have none.
    """
    known: dict[str, str] = {}
    start, named = f"{device_prefix(given.labels['host'])}:", given.labels.get("gpu_model")
    for device, model in sorted((d, m) for d, m in models if d and m and m != named and d.startswith(start)):
        before = known.setdefault(device, model)
        if _model(before) != _model(model):
            raise InputError(
                f"{device} has two models in these files, {before!r} and {model!r}: GPUs of two hosts, as --host names"
                " one host for all files, or one GPU that was replaced by another",
                hint="import the files of each host by themselves, with its --host; those from before and after a GPU"
                " was replaced one after the other",
            )


def _model(name: str) -> str:
    """A model as drivers of several versions and the catalog call it."""
    gpu = find_gpu(name)
    return name.removeprefix("NVIDIA ") if isinstance(gpu, Unknown) else gpu.name


def _notes(bound: Bound) -> list[str]:
    out = []
    for column, sources in bound.absent.items():
        hits = [hit for source in sources for hit in nearest(source, bound.unused, 1)]
        close = f"; nearest in the file: {hits[0]!r}" if hits else ""
        out.append(f"the map reads {column} from {sources[0]!r}, which the file lacks{close}")
    out += [f"column {name!r} is not used; did you mean {close!r}?" for name, close in bound.suggestions.items()]
    return out + columns_note(bound)


def _local_times(found: Counter[str], zone: str) -> list[str]:
    out = []
    if rows := found[AMBIGUOUS_TIME]:
        out.append(f"{rows} times occur twice in {zone} when clocks are set back; write times in UTC")
    if rows := found[IMPOSSIBLE_TIME]:
        out.append(f"{rows} times do not exist in {zone}: clocks are set forward over them; check --tz")
    return out


def row_numbers(first: int, count: int, wrong_rows: list[tuple[int, str]], per_row: int = 1) -> np.ndarray:
    """The numbers in the file, from 1, of the good rows from the `first` on; wrong rows between them count too.

    `per_row`: how many of these rows are made of one row of the file.
    """
    place = np.arange(first, first + count, dtype=np.int64)
    place = (place if per_row == 1 else place // per_row) + 1
    if not wrong_rows:
        return place
    wrong = np.sort(np.array([number for number, _ in wrong_rows], dtype=np.int64))
    return place + np.searchsorted(wrong - np.arange(len(wrong)), place, side="right")
