"""What is left after a kill, and does doing it again end where an undisturbed run ends?

A round starts from the lake before the operation, kills the operation, and then
1. reads a copy: the rows are those from before or from after, none twice, and `analyze` and `audit` report exactly the
   figures of that state; every row is counted by one line, and no device has more time than there is;
2. runs the operation again: rows and figures equal those of an undisturbed run, and nothing is left behind.
"""

from __future__ import annotations

import functools
import json
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec

from crash import truth
from crash.faults import LAKE, Call, Fault
from crash.operations import Operation, gpuledger
from crash.processes import KILLED, Commands, Outcome
from crash.truth import Held

P = ParamSpec("P")
NO_LAKE = "no lake was found here"


@dataclass(frozen=True)
class State:
    """A lake's rows, and what statements report of them."""

    held: Held
    analyzed: str
    audited: str


@dataclass
class Verdict:
    """What one round found wrong."""

    lost: int = 0
    doubled: int = 0
    inconsistent: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    kills: int = 0
    hit: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.doubled or self.inconsistent or self.tracebacks or self.left_behind)

    def add(self, other: Verdict) -> None:
        """Count what else was found."""
        self.lost += other.lost
        self.doubled += other.doubled
        self.inconsistent += other.inconsistent
        self.tracebacks += other.tracebacks

    def heard(self, what: str, done: Outcome, *expected: int) -> bool:
        """Note how a command ended; returns whether it ended as expected."""
        if done.traceback:
            self.tracebacks.append(f"{what}: {done}")
        elif done.code not in expected:
            self.inconsistent.append(f"{what}: {done}")
        return done.code in expected and not done.traceback


def judged(go: Callable[P, Verdict]) -> Callable[P, Verdict]:
    """A round after which a lake that cannot be read is a finding like any other."""

    @functools.wraps(go)
    def inner(*args: P.args, **more: P.kwargs) -> Verdict:
        try:
            return go(*args, **more)
        except truth.Unreadable as error:
            return Verdict(inconsistent=[str(error)])

    return inner


class Drill:
    """Rounds of one operation."""

    def __init__(self, commands: Commands, operation: Operation, folder: Path, data: Path) -> None:
        self.commands, self.operation, self.data = commands, operation, data
        self.folder = folder
        self._begin, self._numbers = folder / "begin", 0
        self._read_before: dict[tuple[str, bool], Verdict] = {}
        self._ended_before: dict[str, Verdict] = {}
        self._begin.mkdir(parents=True)
        operation.prepare(commands, self._begin, data)
        self.argv = operation.argv(data)
        self.before = self._state(self._copy(self._begin))
        counted = self._copy(self._begin)
        done = commands.run(self.argv, counted, Fault())
        assert done.code == 0, f"{operation.name}: {done}"
        self._undisturbed = done.happened
        self.seconds = done.seconds
        assert not truth.left_behind(counted / LAKE), truth.left_behind(counted / LAKE)
        self.after = self._state(counted)
        self.states = [self.before, *map(self._reached, operation.between(data)), self.after]

    def _copy(self, start: Path) -> Path:
        self._numbers += 1
        target = self.folder / f"round-{self._numbers}"
        shutil.copytree(start, target)
        return target

    def _reached(self, argv: list[str]) -> State:
        """The state that a command leads to."""
        place = self._copy(self._begin)
        done = self.commands.run(argv, place)
        assert done.code == 0, f"{self.operation.name}: {done}"
        return self._state(place)

    def _state(self, folder: Path) -> State:
        """The state of a lake; reading posts it, so the lake is no longer as it was."""
        held = truth.held(folder / LAKE)
        analyzed, audited = (self.commands.run(gpuledger(c, "--json"), folder) for c in ("analyze", "audit"))
        fine = 0 if held.rows is not None else 2
        assert (analyzed.code, audited.code) == (fine, fine), f"{self.operation.name}: {analyzed} {audited}"
        return State(held, analyzed.stdout, audited.stdout)

    def calls(self, kinds: Call) -> int:
        """How many calls of some kinds an undisturbed run makes; 0 where calls are not counted."""
        return self._undisturbed.calls(kinds) if self._undisturbed else 0

    @judged
    def killed_at(self, *faults: Fault, fresh: bool = False) -> Verdict:
        """A round in which the operation is killed at an exact call, and on each further attempt at another."""
        verdict, place = Verdict(), self._copy(self._begin)
        for fault in faults:
            done = self.commands.run(self.argv, place, fault, fresh=fresh)
            verdict.kills += done.code == KILLED
            if done.code != KILLED:  # the fault lay behind its end
                verdict.heard("the operation", done, 0)
            elif done.happened:
                verdict.hit = done.happened.hit
            self._after_kill(verdict, place)
        return self._again(verdict, place)

    @judged
    def killed_after(self, chance: random.Random, *, fresh: bool = False) -> Verdict:
        """A round in which the operation is killed at a random moment."""
        verdict, place = Verdict(), self._copy(self._begin)
        job = self.commands.start(self.argv, place, fresh=fresh)
        moment = chance.uniform(0.0, self.seconds)
        time.sleep(moment)
        job.kill()
        done = job.wait()
        verdict.kills += done.code == KILLED
        verdict.hit = f"after {moment:.3f} s"
        if done.code != KILLED:
            verdict.heard("the operation", done, 0)
        self._after_kill(verdict, place)
        return self._again(verdict, place)

    @judged
    def failing(self, fault: Fault) -> Verdict:
        """A round in which system calls fail instead: the operation reports it (exit 2) or gets by without."""
        verdict, place = Verdict(), self._copy(self._begin)
        done = self.commands.run(self.argv, place, fault)
        verdict.hit = done.happened.hit if done.happened else ""
        if verdict.heard("the operation", done, 0, 2) and done.code == 2 and "next:" not in done.stderr:
            verdict.inconsistent.append(f"the error names no next step: {done.stderr}")
        self._after_kill(verdict, place, must_be=self.after if done.code == 0 else None)
        return self._again(verdict, place)

    def _after_kill(self, verdict: Verdict, place: Path, must_be: State | None = None) -> None:
        """Read a copy, as any user might next; of files that were read before the verdict is known."""
        key = truth.digest(place / LAKE), must_be is not None
        if key not in self._read_before:
            self._read_before[key] = self._read_copy(self._copy(place), must_be)
        verdict.add(self._read_before[key])

    def _read_copy(self, copy: Path, must_be: State | None) -> Verdict:
        verdict, found = Verdict(), truth.held(copy / LAKE)
        states = [s for s in self.states if found.same_as(s.held)]
        if not states:
            verdict.lost += max(
                0, found.lost(self.before.held), min(self.before.held.count, self.after.held.count) - found.count
            )
            verdict.inconsistent.append(f"{found.count} rows are of no state that a kill may leave")
        if must_be is not None and not found.same_as(must_be.held):
            verdict.lost += abs(must_be.held.count - found.count)
            verdict.inconsistent.append("the operation reported success, but its rows are not there")
        verdict.doubled += truth.doubled_rows(found)
        self._read(verdict, copy, found, states)
        shutil.rmtree(copy)
        return verdict

    def _read_end(self, place: Path) -> Verdict:
        """Compare what running it again led to with the end of an undisturbed run."""
        verdict, found = Verdict(), truth.held(place / LAKE)
        if not found.same_as(self.after.held):
            verdict.lost += found.lost(self.after.held)
            verdict.inconsistent.append("after running it again the rows differ from those of an undisturbed run")
        verdict.doubled += truth.doubled_rows(found)
        self._read(verdict, place, found, [self.after])
        return verdict

    def _read(self, verdict: Verdict, place: Path, found: Held, states: list[State]) -> None:
        for name, of in (("analyze", "analyzed"), ("audit", "audited")):
            done = self.commands.run(gpuledger(name, "--json"), place)
            if found.rows is None:
                if verdict.heard(name, done, 2) and NO_LAKE not in done.stderr:
                    verdict.inconsistent.append(f"{name}: {done}")
            elif verdict.heard(name, done, 0) and done.stdout not in [getattr(s, of) for s in states]:
                verdict.inconsistent.append(
                    f"{name} reports figures of no such state: {_difference(done.stdout, getattr(self.after, of))}"
                )
        add_up(verdict, place / LAKE)

    def _again(self, verdict: Verdict, place: Path) -> Verdict:
        """Run the operation again and compare with an undisturbed run."""
        if verdict.heard("the operation, again", self.commands.run(self.argv, place), 0):
            verdict.left_behind = truth.left_behind(place / LAKE)
            key = truth.digest(place / LAKE)
            if key not in self._ended_before:
                self._ended_before[key] = self._read_end(place)
            verdict.add(self._ended_before[key])
        shutil.rmtree(place)
        return verdict


def add_up(verdict: Verdict, lake: Path) -> None:
    """Lines and samples of a lake that has just been posted."""
    lines = truth.lines(lake)
    if lines is None:
        return
    verdict.doubled += truth.doubled_lines(lines)
    for what, wrong in (
        ("rows that no line stands for", truth.unposted_rows(lake)),
        ("samples that lines and their manifest count differently", truth.wrong_counts(lake)),
        ("device-hours with more time than there is", truth.overfull_hours(lines)),
    ):
        if wrong:
            verdict.inconsistent.append(f"{wrong} {what}")


def _difference(got: str, wanted: str) -> str:
    """Where two answers differ first."""
    try:
        pairs = zip(_leaves(json.loads(got)), _leaves(json.loads(wanted)), strict=False)
    except json.JSONDecodeError:
        return got[:200]
    return next((f"{a} instead of {b}" for a, b in pairs if a != b), "lengths differ")


def _leaves(value: object, at: str = "") -> list[str]:
    if isinstance(value, dict):
        return [leaf for name, inner in value.items() for leaf in _leaves(inner, f"{at}.{name}")]
    if isinstance(value, list):
        return [leaf for i, inner in enumerate(value) for leaf in _leaves(inner, f"{at}[{i}]")]
    return [f"{at} = {value!r}"]
