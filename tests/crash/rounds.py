"""Which rounds make up a run with a number of kills, and what did they find?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crash.drill import Drill, Verdict
from crash.faults import CHANGES, READ_ONLY, TAKES_SPACE, Call, full_from, full_once, kill_at, tear_at, unsynced_at
from crash.growing import GrowingDrill
from crash.operations import Operation
from crash.processes import Commands

AnyDrill = Drill | GrowingDrill
Round = Callable[[], Verdict]
# Calls that change which files there are. Writes only fill files that have no name in a manifest yet: there are many of
# them, and a sample will do.
NAMES = CHANGES & ~Call.WRITE
# Of the kills that are not at an exact call: by turns a torn write, random moments, a second kill, a fresh process.
_KINDS = ("write", "moment", "twice", "moment", "write", "fresh")
# Rounds per kill that is wanted, at most: a command that is quick may end before its moment comes.
_MOST = 4


@dataclass
class Tally:
    """What the rounds of one operation found."""

    name: str
    rounds: int = 0
    kills: int = 0
    lost: int = 0
    doubled: int = 0
    inconsistent: int = 0
    tracebacks: int = 0
    left_behind: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, kind: str, verdict: Verdict) -> None:
        """Count one round."""
        self.rounds += 1
        self.kills += verdict.kills
        self.lost += verdict.lost
        self.doubled += verdict.doubled
        self.inconsistent += len(verdict.inconsistent)
        self.tracebacks += len(verdict.tracebacks)
        self.left_behind += len(verdict.left_behind)
        if not verdict.good:
            self.faults.append(f"{self.name}, {kind}, {verdict.hit}: {verdict}")


def open_drill(commands: Commands, operation: Operation, folder: Path, data: Path) -> AnyDrill:
    """The drill for an operation."""
    return (GrowingDrill if operation.grows else Drill)(commands, operation, folder, data)


def kills(
    drill: AnyDrill, wanted: int, chance: random.Random, *, exact: bool, so_far: Callable[[], int] | None = None
) -> Iterator[tuple[str, Round]]:
    """Rounds with about this many kills in all. Most are at calls that change names: every one of them if there is
    room. Each such round is killed at one, and on its second attempt at another.

    `so_far`: how many kills there were. Some commands end before their moment comes; more rounds then follow.
    """
    left = wanted
    if exact:
        calls = list(range(1, drill.calls(NAMES) + 1))
        chance.shuffle(calls)
        for one, other in list(zip(calls, reversed(calls), strict=True))[: max(1, wanted * 2 // 5)]:
            left -= 2
            faults = kill_at(one, NAMES), kill_at(other, NAMES)
            yield f"calls {one} and {other} of {len(calls)}", lambda faults=faults: drill.killed_at(*faults)
    for number in range(left if so_far is None else _MOST * wanted):
        if so_far is not None and so_far() >= wanted:
            return
        kind = _KINDS[number % len(_KINDS)]
        if kind in {"write", "twice"} and not exact:
            kind = "moment"
        yield kind, _round(drill, kind, chance)


def _round(drill: AnyDrill, kind: str, chance: random.Random) -> Round:
    def some_call() -> int:
        return chance.randint(1, max(1, drill.calls(CHANGES)))

    if kind == "write":
        return lambda: drill.killed_at(tear_at(some_call()))
    if kind == "twice":
        return lambda: drill.killed_at(kill_at(some_call()), tear_at(some_call()))
    return lambda: drill.killed_after(chance, fresh=kind == "fresh")


def failures(drill: AnyDrill, wanted: int, chance: random.Random) -> Iterator[tuple[str, Round]]:
    """Rounds in which calls fail: a disk full from a call on or only at one, a failing sync, a read-only lake."""
    space, syncs = drill.calls(TAKES_SPACE), drill.calls(Call.SYNC)
    if wanted < 1:
        return
    yield "read-only", lambda: drill.failing(READ_ONLY)
    for number in range(wanted - 1):
        at = chance.randint(1, max(1, syncs if number % 3 == 2 else space))
        name, fault = (("full from", full_from), ("full once", full_once), ("sync fails", unsynced_at))[number % 3]
        yield f"{name} call {at}", lambda fault=fault, at=at: drill.failing(fault(at))


def table(tallies: list[Tally]) -> str:
    """What was found, as a Markdown table."""
    head = ("operation", "rounds", "kills", "rows lost", "doubled", "inconsistent readers", "tracebacks", "left behind")
    rows = [
        (t.name, t.rounds, t.kills, t.lost, t.doubled, t.inconsistent, t.tracebacks, t.left_behind) for t in tallies
    ]
    totals = [sum(int(row[i]) for row in rows) for i in range(1, len(head))]
    lines = [head, ("---", *["---:"] * (len(head) - 1)), *rows, ("all", *totals)]
    return "\n".join("| " + " | ".join(f"{c:,}" if isinstance(c, int) else c for c in line) + " |" for line in lines)
