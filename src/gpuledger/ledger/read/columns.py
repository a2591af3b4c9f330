"""Which labels and numbers stand in a file of the books, as plain arrays?

Read from Arrow's buffers: Arrow's own ways to NumPy import pandas where it is installed, half a second of a statement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.lake.names import Names, present
from gpuledger.ledger.book_files import TEMPORARY, book_groups, read_book
from gpuledger.ledger.lines import BEFORE, KNOWN, OBSERVED
from gpuledger.ledger.read.adding import some
from gpuledger.units import PPM

if TYPE_CHECKING:
    from concurrent.futures import Executor

# A file's rows: numbers by column; a label is the number of its text in `Names`, -1 where there is none.
Rows = dict[str, np.ndarray]
_Read = tuple[pa.Table, Rows]
_AHEAD = 2
_SMALL = 1 << 18  # bytes: to hand such a file to a thread takes as long as to read it


class Wanted(msgspec.Struct, frozen=True):
    """Labels and numbers to read; `maybe` are numbers that may be NULL. What an older file lacks is 0 or NULL."""

    labels: Mapping[str, Names]
    numbers: Sequence[str]
    maybe: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """All of them, also by the names they had before, and what stands in for NULL."""
        before = [BEFORE[n] for n in self.maybe if n in BEFORE]
        more = [] if OBSERVED in self.numbers or not self.knows else [OBSERVED]
        return [*self.labels, *self.numbers, *self.maybe, *before, *more]

    @property
    def knows(self) -> bool:
        """Whether a time is among the numbers that NULL makes the time observed."""
        return any(n in KNOWN for n in self.numbers)


def read_files(files: Iterable[str], wanted: Wanted) -> Iterator[tuple[str, Rows]]:
    """Whole files one after the other. The next large ones are read while one is in use: it needs little of Python."""
    with ExitStack() as stack:
        waiting, pool = deque[tuple[str, Callable[[], _Read]]](), None
        for file in files:
            read: Callable[[], _Read] = partial(_read, file, wanted)
            if not file.endswith(TEMPORARY) and Path(file).stat().st_size >= _SMALL:
                pool = pool or stack.enter_context(_readers())
                read = pool.submit(read).result
            waiting.append((file, read))
            if len(waiting) > _AHEAD:
                yield _labelled(*waiting.popleft(), wanted)
        while waiting:
            yield _labelled(*waiting.popleft(), wanted)


@contextmanager
def _readers() -> Iterator[Executor]:
    """Threads that read ahead; what they have not begun when nobody wants it any more, they leave."""
    from concurrent.futures import ThreadPoolExecutor  # seldom wanted, and long to load

    pool = ThreadPoolExecutor(_AHEAD)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _read(file: str, wanted: Wanted) -> _Read:
    """A file and its numbers; one of few rows takes longer when each of its columns is a task of its own."""
    table = read_book(Path(file), wanted.columns, list(wanted.labels))
    return table, _numbers(table, wanted)


def _labelled(file: str, read: Callable[[], _Read], wanted: Wanted) -> tuple[str, Rows]:
    """The file and its rows, or what went wrong. Labels are numbered here: two threads would count them twice."""
    table, numbers = read()
    return file, _labels(table, wanted) | numbers


def read_groups(files: Iterable[str], wanted: Wanted) -> Iterator[tuple[str, Rows]]:
    """The same a row group at a time: bounded memory where most columns of many rows are read."""
    for file in files:
        for table in book_groups(Path(file), wanted.columns, list(wanted.labels)):
            yield file, _labels(table, wanted) | _numbers(table, wanted)


def table_rows(table: pa.Table, wanted: Wanted) -> Rows:
    """Lines that were just posted, as those of a file."""
    table = table.unify_dictionaries()
    return _labels(table, wanted) | _numbers(table, wanted)


def joined(pieces: Sequence[Rows]) -> Rows:
    """Pieces with the same columns made one."""
    return {c: np.concatenate([piece[c] for piece in pieces]) for c in pieces[0]} if pieces else {}


def kept(rows: Rows, wanted: np.ndarray) -> Rows:
    """Some of the rows."""
    return rows if wanted.all() else {c: values[wanted] for c, values in rows.items()}


def _labels(table: pa.Table, wanted: Wanted) -> Rows:
    there = set(table.column_names) if table.num_rows else set()
    none = np.full(table.num_rows, -1)
    return {name: names.numbered(table[name]) if name in there else none for name, names in wanted.labels.items()}


def _numbers(table: pa.Table, wanted: Wanted) -> Rows:
    """The numbers of a file. Columns of zeros are one array, and so are times that are all of the time observed."""
    size, there, rows = table.num_rows, set(table.column_names), Rows()
    observed = _whole(table[OBSERVED]) if wanted.knows and OBSERVED in there and size else None
    zero = np.zeros(size, np.int64)
    zero.flags.writeable = False
    for name in (*wanted.numbers, *wanted.maybe):
        found = name if name in there else BEFORE.get(name, name)
        if found not in there or not size:
            rows[name] = np.full(size, np.nan) if name in wanted.maybe else zero
        elif observed is not None and (name in KNOWN or name == OBSERVED):
            rows[name] = _time_known(table[found], observed, zero)
        else:
            values = _whole(table[found])
            rows[name] = values if some(values) else zero
    return rows


def _whole(column: pa.ChunkedArray) -> np.ndarray:
    parts = [as_numbers(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if len(parts) != 1 else parts[0]


def _time_known(column: pa.ChunkedArray, observed: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """A time known: where NULL, all of the time observed. In milliseconds, so it passes a float without rounding."""
    if column.null_count == len(column):
        return observed
    known = _whole(column)
    if column.null_count:
        return np.where(np.isnan(known), observed, known).astype(np.int64)
    if not some(known):
        return zero
    return observed if known[0] == observed[0] and np.array_equal(known, observed) else known


def as_numbers(values: pa.Array) -> np.ndarray:
    """Whole numbers; as floats with NaN for NULL where there are any."""
    if values.type != pa.int64():
        raise pa.ArrowTypeError(f"a column of {values.type} where whole numbers are expected")
    found = np.frombuffer(values.buffers()[1], np.int64, len(values), values.offset * 8)
    return np.where(present(values), found, np.nan) if values.null_count else found


_SEVENTHS = 7


def exact_share(ppm: np.ndarray) -> np.ndarray:
    """Shares of a board from whole ppm; MIG cuts boards into sevenths, which whole ppm cannot hold. NaN stays NaN."""
    sevenths = np.rint(ppm * _SEVENTHS / PPM)
    return np.where(np.abs(ppm * _SEVENTHS - sevenths * PPM) < _SEVENTHS, sevenths / _SEVENTHS, ppm / PPM)


def sliced_wall_ms(
    board: np.ndarray, device: np.ndarray, share: np.ndarray, observed_ms: np.ndarray, boards: int
) -> tuple[np.ndarray, np.ndarray]:
    """By board the time it was seen as slices, and the sum of share x time over its slices of known share.

    `device` counts the slices. The time is that of the slice seen longest; slices that follow one another hold more
    than that together, and never more than all of the board at a time.
    """
    known = ~np.isnan(share)
    board, device, share, observed = board[known], device[known], share[known], observed_ms[known]
    held = np.bincount(board, share * observed, minlength=boards)
    of_device = np.bincount(device, observed, minlength=1)
    longest = np.zeros(boards)
    np.maximum.at(longest, board, of_device[device])
    return np.maximum(longest, held), held


def slice_scale(
    board: np.ndarray, device: np.ndarray, share: np.ndarray, observed_ms: np.ndarray, boards: int
) -> np.ndarray:
    """By board the factor that makes its slices' share x reading add up to the board's reading, once.

    Energy and power are read for the whole board and repeated for each slice, whatever part of the board is in use.
    """
    wall, held = sliced_wall_ms(board, device, share, observed_ms, boards)
    return np.divide(wall, held, out=np.ones(boards), where=held > 0)
