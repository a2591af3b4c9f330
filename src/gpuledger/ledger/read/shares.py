"""How are the lines of many days added up on a cluster, to the same figures?

Each share of the days is added up where it is read; sums are whole numbers, so what comes back is added to the rest in
any order. Labels are numbered as each reader meets them, so their texts come along.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.engines.choosing import in_use
from gpuledger.lake.engines.engine import Local, everywhere
from gpuledger.lake.layout import Lake
from gpuledger.lake.processes import Progress
from gpuledger.ledger.day_writer import DAYS
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.dies import DIE
from gpuledger.ledger.read.rollup import OWN, PLACE, Added
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.telemetry import schema

# Below this many bytes of lines, sending the sums takes longer than adding them up here.
BYTES_WORTH_SHARES = 200 << 20
_ROW_BYTES = 32


class DaysTask(msgspec.Struct, frozen=True):
    """Days to add up, as they were posted."""

    lake: str
    scope: Scope
    limits: Thresholds | None
    days: tuple[PostedDay, ...]
    labels: tuple[str, ...]


class DaysAdded(msgspec.Struct, frozen=True):
    """Their sums; `names`: the texts of each label by its numbers there."""

    sums: bytes
    names: dict[str, list[str | None]]
    full: list[str]
    cut_by_share: bool


def added_up(books: Books, kept_apart: tuple[str, ...]) -> Added:
    """The lines in scope by account and device: here, or in shares of days where an engine has room for them."""
    engine = in_use()
    if isinstance(engine, Local) or (size := _size(books)) < BYTES_WORTH_SHARES:
        return Added().read(books, kept_apart)
    several = min(engine.at_once(size // _ROW_BYTES, 0), len(books.days))
    if several < 2:
        return Added().read(books, kept_apart)
    where = everywhere(books.lake.root)
    tasks = [
        DaysTask(where, books.scope, books.limits, tuple(some), kept_apart) for some in _shares(books.days, several)
    ]
    # A file that never changes: the manifest may, while this reads.
    with engine.runner(several, [_first_file(books)]) as runner:
        done = dict(runner.run(add_days, tasks, lambda _stage, _rows: None))
    whole = Added()
    for number in sorted(done):
        _take(whole, done[number], books, kept_apart)
    return whole


def _first_file(books: Books) -> Path:
    first = books.days[0]
    return Ledger(books.lake).places(first, DAYS if first.daily else "lines")[0]


def _size(books: Books) -> int:
    ledger = Ledger(books.lake)
    files = (file for day in books.days for file in ledger.files_of(day, DAYS if day.daily else "lines"))
    return sum(file.stat().st_size for file in files if file.exists())


def _shares(days: Sequence[PostedDay], several: int) -> list[Sequence[PostedDay]]:
    """Neighboring days together: what a day's last samples stand for may reach into the next."""
    edges = [round(i * len(days) / several) for i in range(several + 1)]
    return [days[first:last] for first, last in pairwise(edges)]


def add_days(task: DaysTask, progress: Progress) -> DaysAdded:
    """Add up some days in a process of its own."""
    books = Books(Lake(task.lake), task.scope, task.limits, task.days)
    found = Added().read(books, task.labels)
    progress("add", len(task.days))
    devices = found.devices
    parts = (found.accounts, devices.seen, devices.held, devices.dies.sums)
    sums = (*(part.handed_over() for part in parts), devices.days)
    names = {label: books.names[label].texts for label in (*task.labels, *PLACE, *DIE)}
    return DaysAdded(pickle.dumps(sums), names, sorted(found.full), books.cut_by_share)


def _take(whole: Added, part: DaysAdded, books: Books, labels: tuple[str, ...]) -> None:
    """Add what came back to the rest, under the numbers labels have here."""
    numbers = {
        label: np.array([*(books.names[label].number(t) for t in texts), -1], dtype=np.int64)
        for label, texts in part.names.items()
    }
    accounts, seen, held, dies, days = pickle.loads(part.sums)  # noqa: S301 - made by this very version, on order
    for into, (keys, columns), names in (
        (whole.accounts, accounts, (*labels, "", *("" for _ in OWN))),
        (whole.devices.seen, seen, schema.DEVICE),
        (whole.devices.held, held, (*schema.DEVICE, "")),
        (whole.devices.dies.sums, dies, DIE),
    ):
        if keys:
            into.add(_renumbered(keys, names, numbers), columns)
    whole.devices.days += [
        (_renumbered(keys, ("", *schema.DEVICE, *PLACE), numbers), columns) for keys, columns in days
    ]
    whole.full |= frozenset(part.full)
    books.cut_by_share |= part.cut_by_share


def _renumbered(keys: Sequence[np.ndarray], names: Sequence[str], numbers: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Keys with the numbers that labels have here; without a label a key is a number of its own."""
    return [numbers[name][key] if name else key for key, name in zip(keys, names, strict=True)]
