"""Which process takes which pieces of files, and which days can it finish by itself?

Where files say of what times their rows are, pieces are taken by falling time. A day is complete once no piece that is
left can have rows of it: it is finished at once, from memory, by the process that took it. Days of which two processes
have rows wait until all rows are taken.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from gpuledger.lake.processes import Progress, T
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.runs import Handed
from gpuledger.lake.taking import Piece, Taken, Taker

# What all processes together hold of rows until their day is complete; more is spilled.
MEMORY_BYTES = 9 << 27
# What finishing a row takes, in terms of what taking it does: at once, or with all that was left; and handing it on.
_FINISHING, _FINISHING_LATE, _HANDING = 0.95, 1.6, 0.3
# How often shares are made more even; many pieces are even enough.
_STEPS, _FEW_PIECES, _FEW_GROUPS = 16, 256, 8
_BY = (-16, -4, -1, 1, 4, 16)


class Handing(msgspec.Struct, frozen=True):
    """The days whose rows a group gives to another and gets from another, and the folder where both find them."""

    gives: list[int]
    gets: list[int]
    folder: str

    def file(self, day: int) -> Path:
        """Where the rows of a day are noted."""
        return Path(self.folder) / f"given-{day}.json"

    def give(self, sorter: DaySorter, day: int) -> None:
        """Put the rows of a day where another process finds them."""
        aside = self.file(day).with_suffix(".part")
        aside.write_bytes(msgspec.json.encode(sorter.given(day)))
        aside.replace(self.file(day))

    def get(self, sorter: DaySorter, day: int) -> bool:
        """Take the rows of a day from another process, if it has put them there by now."""
        if not self.file(day).exists():
            return False
        sorter.take_over(msgspec.json.decode(self.file(day).read_bytes(), type=Handed))
        return True


class Group(msgspec.Struct, frozen=True):
    """Pieces for one process, by falling time. `whole`: the days of which it has all rows.

    `gives`: days whose rows it hands on to the group before it, which has the rest; `gets`: those handed on to it.
    """

    pieces: list[Piece]
    whole: list[int]
    gives: list[int] = []
    gets: list[int] = []

    def handing(self, folder: str) -> Handing:
        """How rows are handed on, in a folder that all groups know."""
        return Handing(self.gives, self.gets, folder)


def days_of(pieces: Sequence[Piece]) -> set[int]:
    """The days of which pieces may have rows."""
    return {day for piece in pieces if piece.days for day in range(piece.days[0], piece.days[1] + 1)}


def grouped(pieces: Sequence[Piece], several: int) -> list[Group] | None:
    """The pieces for a number of processes at most; None where a piece may have rows of any time."""
    if not pieces or any(piece.days is None for piece in pieces):
        return None
    ordered = sorted(pieces, key=lambda p: (*(p.days or (0, 0))[::-1], p.first_ms), reverse=True)
    rows = sum(piece.rows for piece in ordered)
    starts, before = [0], 0
    for place, piece in enumerate(ordered):
        if place and before >= rows * len(starts) / several:
            starts.append(place)
        before += piece.rows
    best = _cut(ordered, starts)
    few = len(ordered) <= _FEW_PIECES and len(starts) <= _FEW_GROUPS and len(days_of(ordered)) <= _FEW_PIECES
    for _ in range(_STEPS if few else 0):  # each moves one start by some pieces
        tries = [[*starts[:i], starts[i] + step, *starts[i + 1 :]] for i in range(1, len(starts)) for step in _BY]
        cuts = [(_cost(cut), at, cut) for at in tries if _rising([*at, len(ordered)]) for cut in [_cut(ordered, at)]]
        if not cuts or min(cuts)[0] >= _cost(best):
            break
        _, starts, best = min(cuts)
    return best


def _rising(numbers: Sequence[int]) -> bool:
    return all(before < after for before, after in pairwise(numbers))


def _cut(ordered: Sequence[Piece], starts: Sequence[int]) -> list[Group]:
    """Groups that begin at some pieces. The day in which one ends and the next begins is handed on, if that is less
    work than to leave it until all rows are taken.
    """
    parts = [list(ordered[first:last]) for first, last in pairwise([*starts, len(ordered)])]
    seen = [days_of(part) for part in parts]
    times = Counter(day for mine in seen for day in mine)
    plain = [
        Group(part, sorted((day for day in mine if times[day] == 1), reverse=True))
        for part, mine in zip(parts, seen, strict=True)
    ]
    both = [sorted(mine & others) for mine, others in pairwise(seen)]
    passed = [days if len(days) == 1 and times[days[0]] == 2 else [] for days in both]
    handing = [
        msgspec.structs.replace(group, gives=gives, gets=gets)
        for group, gives, gets in zip(plain, [[], *passed], [*passed, []], strict=True)
    ]
    return handing if _cost(handing) < _cost(plain) else plain


def _cost(groups: Sequence[Group]) -> float:
    """About how long all of it takes: the longest group, then what is left for all of them together."""
    rows, days = defaultdict[int, float](float), all_days(groups)
    for piece in (piece for group in groups for piece in group.pieces):
        for day in (own := days_of([piece])):
            rows[day] += piece.rows / len(own)
    took, left = list[float](), set(days)
    for group in groups:
        ready = {*finishable(group, days), *next_to_others(group, groups)}
        given = sum(p.rows for p in group.pieces if not days_of([p]).isdisjoint(group.gives))
        left -= ready
        took.append(sum(p.rows for p in group.pieces) + _FINISHING * sum(rows[d] for d in ready) + _HANDING * given)
    return max(took) + _FINISHING_LATE * sum(rows[day] for day in left) / len(groups)


def all_days(groups: Sequence[Group]) -> set[int]:
    """The days of which groups may have rows."""
    return days_of([piece for group in groups for piece in group.pieces])


def finishable(group: Group, days: Set[int]) -> list[int]:
    """The days of a group that can be posted there: the first samples of the day after, if any of the `days` of all
    groups is that, are known there too.
    """
    whole = set(group.whole)
    return [day for day in (*group.whole, *group.gets) if day + 1 in whole or day + 1 not in days]


def next_to_others(group: Group, groups: Sequence[Group]) -> dict[int, int]:
    """The days of a group that can mostly be posted there, as it has the beginning of the day after, which it shares
    with others: by day the instant from which on these others may have samples of the day after.
    """
    mine, out = days_of(group.pieces), dict[int, int]()
    others = [piece for other in groups if other is not group for piece in other.pieces]
    for day in (day for day in group.whole if day + 1 in mine and day + 1 not in group.whole):
        out[day] = min(piece.first_ms for piece in others if day + 1 in days_of([piece]))
    return out


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a group of pieces: what each of them held by its number, the days that are finished, and all rows
    of which others do not know.
    """

    taken: dict[int, Taken]
    finished: list[int]
    handed: Handed


F = TypeVar("F", bound=Finished)


@dataclass(frozen=True)
class ByDay(Generic[T, F]):
    """How groups of pieces are taken and their days finished: the task of a group among all groups, and its work."""

    task: Callable[[Group, Sequence[Group]], T]
    work: Callable[[T, Progress], F]


def take_by_day(
    pieces: Sequence[Piece],
    days: Sequence[int],
    handing: Handing,
    sorter: DaySorter,
    taker: Taker,
    folder: Path,
    finish: Callable[[int], bool],
) -> tuple[dict[int, Taken], list[int]]:
    """Take pieces, which come by falling time, and finish each of these days once all of its rows are there.

    Rows of other days are put aside. Returns what the pieces held, and the days that `finish` did.
    """
    taken, finished, own = dict[int, Taken](), list[int](), {*days, *handing.gives}
    waiting = sorted(own)

    def complete(day: int) -> None:
        if day in handing.gives:
            handing.give(sorter, day)
        elif (day not in handing.gets or handing.get(sorter, day)) and finish(day):
            finished.append(day)

    for piece in pieces:
        assert piece.days is not None
        while waiting and waiting[-1] > piece.days[1]:
            complete(waiting.pop())
        taken[piece.number] = taker.take(piece, folder / f"{piece.number}.log")
        if not set(range(piece.days[0], piece.days[1] + 1)) <= own:
            sorter.put_aside(own)
    while waiting:
        complete(waiting.pop())
    return taken, finished
