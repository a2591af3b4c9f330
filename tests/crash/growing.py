"""What is left of an operation that commits rows again and again, such as a recording, when it is killed?

While it runs its manifest is watched: every row it ever named is committed, and must be there after the kill, once.
Run again it adds rows of its own, and loses none of the earlier ones.
"""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from crash import truth
from crash.drill import Verdict, add_up, judged
from crash.faults import LAKE, Call, Fault
from crash.operations import Operation, gpuledger
from crash.processes import KILLED, Commands, Job, Outcome

LOOK_EVERY_S = 0.005


class GrowingDrill:
    """Rounds of one operation that grows."""

    def __init__(self, commands: Commands, operation: Operation, folder: Path, data: Path) -> None:
        self.commands, self.folder = commands, folder
        self.argv = operation.argv(data)
        self._begin, self._numbers = folder / "begin", 0
        self._begin.mkdir(parents=True)
        operation.prepare(commands, self._begin, data)
        place = self._copy(self._begin)
        done = commands.run(self.argv, place, Fault())
        assert done.code == 0, f"{operation.name}: {done}"
        self._undisturbed = done.happened
        self.seconds = done.seconds
        assert not truth.left_behind(place / LAKE), truth.left_behind(place / LAKE)
        self.rows = truth.held(place / LAKE).count
        assert self.rows

    def _copy(self, start: Path) -> Path:
        self._numbers += 1
        target = self.folder / f"round-{self._numbers}"
        shutil.copytree(start, target)
        return target

    def calls(self, kinds: Call) -> int:
        """How many calls of some kinds an undisturbed run makes; 0 where calls are not counted."""
        return self._undisturbed.calls(kinds) if self._undisturbed else 0

    @judged
    def killed_at(self, *faults: Fault, fresh: bool = False) -> Verdict:
        """A round in which the operation is killed at an exact call, and on each further attempt at another."""
        verdict, place, seen = Verdict(), self._copy(self._begin), Committed()
        for fault in faults:
            job = self.commands.start(self.argv, place, fault, fresh=fresh)
            seen.watch(place / LAKE, job)
            self._ended(verdict, place, job.wait(), seen)
        return self._again(verdict, place, seen)

    @judged
    def killed_after(self, chance: random.Random, *, fresh: bool = False) -> Verdict:
        """A round in which the operation is killed at a random moment."""
        verdict, place, seen = Verdict(), self._copy(self._begin), Committed()
        job = self.commands.start(self.argv, place, fresh=fresh)
        moment = chance.uniform(0.0, self.seconds)
        seen.watch(place / LAKE, job, moment)
        job.kill()
        self._ended(verdict, place, job.wait(), seen)
        verdict.hit = f"after {moment:.3f} s"
        return self._again(verdict, place, seen)

    @judged
    def failing(self, fault: Fault) -> Verdict:
        """A round in which system calls fail instead: what was committed stays, and the failure is reported."""
        verdict, place, seen = Verdict(), self._copy(self._begin), Committed()
        job = self.commands.start(self.argv, place, fault)
        seen.watch(place / LAKE, job)
        done = job.wait()
        verdict.hit = done.happened.hit if done.happened else ""
        verdict.heard("the operation", done, 0, 2)
        found = truth.held(place / LAKE)
        if done.code == 0 and found.count != self.rows:
            verdict.lost += self.rows - found.count
        self._check(verdict, place, seen)
        return self._again(verdict, place, seen)

    def _ended(self, verdict: Verdict, place: Path, done: Outcome, seen: Committed) -> None:
        verdict.kills += done.code == KILLED
        if done.code != KILLED:
            verdict.heard("the operation", done, 0)
        elif done.happened:
            verdict.hit = done.happened.hit
        self._check(verdict, place, seen)

    def _check(self, verdict: Verdict, place: Path, seen: Committed) -> None:
        found = truth.held(place / LAKE)
        verdict.lost += len(seen.keys - found.keys())
        verdict.doubled += truth.doubled_rows(found)
        seen.keys |= found.keys()
        copy = self._copy(place)
        for name in ("analyze", "audit"):
            done = self.commands.run(gpuledger(name, "--json"), copy)
            verdict.heard(name, done, 0 if found.count else 2)
        add_up(verdict, copy / LAKE)
        shutil.rmtree(copy)

    def _again(self, verdict: Verdict, place: Path, seen: Committed) -> Verdict:
        before = truth.held(place / LAKE).count
        if verdict.heard("the operation, again", self.commands.run(self.argv, place), 0):
            if truth.held(place / LAKE).count <= before:
                verdict.inconsistent.append("run again, it added no rows")
            verdict.left_behind = truth.left_behind(place / LAKE)
            self._check(verdict, place, seen)
        shutil.rmtree(place)
        return verdict


class Committed:
    """The rows that a manifest was seen to name."""

    def __init__(self) -> None:
        self.keys: set[tuple[object, ...]] = set()
        self._read: set[Path] = set()
        self._last = (0, 0)

    def watch(self, lake: Path, job: Job, seconds: float = float("inf")) -> None:
        """Look again and again until a command ends or time is up."""
        over = time.monotonic() + seconds
        while time.monotonic() < over and job.alive():
            self.look(lake)
            time.sleep(LOOK_EVERY_S)

    def look(self, lake: Path) -> None:
        """Take in the rows of parts that are new. A part merged in the meantime is found under its new name."""
        try:
            found = (lake / "manifest.json").stat()
        except FileNotFoundError:
            return
        if (found.st_ino, found.st_mtime_ns) == self._last:
            return
        self._last = found.st_ino, found.st_mtime_ns
        for part in truth.parts(lake):
            file = truth.part_file(lake, part)
            if file in self._read:
                continue
            try:
                self.keys |= truth.keys_of(file)
            except FileNotFoundError:
                continue
            self._read.add(file)
