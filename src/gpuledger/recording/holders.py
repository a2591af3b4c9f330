"""Which processes hold the devices under recording, and does each belong to the run?

The driver lists processes by number. A number that exists here, of a process that has the driver's files open, is that
process; any other number proves nothing: in a container the driver may list the numbers of the machine, or one number
for all processes of the container. Where the run's own process was recognized the numbers do match, and one that is
not visible is of another's process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from gpuledger.devices.attribution import ProcessTree, program, status, user, uses_file
from gpuledger.devices.device import Held
from gpuledger.recording.runs import Holder

NAMED_AGAIN_S = 5.0
KEPT_HOLDERS = 64
HIDDEN = "not known: the process is not visible from here"
# It stands between the driver and the processes that compute, which are listed as well.
_GO_BETWEENS = frozenset({"nvidia-cuda-mps-server"})
# A process may end between the driver's list and our look: only one that is listed again was hidden all the time.
_LISTED_AGAIN = 2

Labels = Mapping[str, str]


class Belongs(Enum):
    """Whose process it is."""

    RUN = "run"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass
class Process:
    """A process on a device.

    `visible`: it is one of those we can see. `here_before`: its number was listed before the command was started.
    """

    pid: int
    started: int
    program: str
    user: str
    belongs: Belongs
    visible: bool
    here_before: bool = False
    labels: Labels = field(default_factory=dict)
    named_s: float = 0.0


# The labels of a process that is not the run's.
Naming = Callable[[Process], Labels]


class Processes:
    """Recognizes the processes a driver lists."""

    def __init__(self, tree: ProcessTree, naming: Naming, run_id: str, proc: Path) -> None:
        self._tree, self._naming, self._run_id, self._proc = tree, naming, run_id, proc
        self._known: dict[int, Process] = {}
        self._before: set[int] = set()
        self._unseen: dict[int, int] = {}
        self._numbers_match = False

    def were_before(self, pids: Iterable[int]) -> None:
        """These were listed before the run's command was started."""
        self._before.update(pids)

    def recognize(self, held: Sequence[Held], files: Sequence[str], now_s: float) -> list[tuple[Process, Held]]:
        """The processes behind a driver's list, but for go-betweens."""
        found = [(self._recognize(h.pid, files, now_s), h) for h in held if h.pid > 0]
        self._numbers_match |= any(p.belongs is Belongs.RUN for p, _ in found)
        return [(p, h) for p, h in found if p.program not in _GO_BETWEENS]

    def _recognize(self, pid: int, files: Sequence[str], now_s: float) -> Process:
        here, known = status(pid, self._proc), self._known.get(pid)
        if known is not None and known.visible and (here is None or here.started == known.started):
            if known.belongs is Belongs.OTHER and here is not None and now_s - known.named_s >= NAMED_AGAIN_S:
                self._name(known, now_s)
            return known
        if here is None or (files and uses_file(pid, files, self._proc) is False):
            process = self._hidden(pid)
        else:
            belongs = Belongs.RUN if self._tree.includes(pid) else Belongs.OTHER
            process = Process(pid, here.started, program(pid, self._proc), user(pid, self._proc), belongs, visible=True)
        if process.belongs is Belongs.OTHER:
            self._name(process, now_s)
        process.here_before = pid in self._before
        self._known[pid] = process
        return process

    def _hidden(self, pid: int) -> Process:
        self._unseen[pid] = self._unseen.get(pid, 0) + 1
        strange = self._numbers_match and self._unseen[pid] >= _LISTED_AGAIN
        return Process(pid, 0, "", "", Belongs.OTHER if strange else Belongs.UNKNOWN, visible=False)

    def _name(self, process: Process, now_s: float) -> None:
        process.labels, process.named_s = self._naming(process), now_s
        if self._run_id and process.labels.get("run_id") == self._run_id:
            process.belongs = Belongs.RUN  # another process of the same job


@dataclass
class Stay:
    """The time a process was seen on a device."""

    process: Process
    first_ms: int
    last_ms: int
    memory_bytes: int | None = None
    shared_s: float = 0.0

    def note(self) -> Holder:
        """The same for the notes of the recording."""
        who = self.process
        return Holder(
            pid=who.pid,
            user=who.user or HIDDEN,
            program=who.program or HIDDEN,
            ours=who.belongs is Belongs.RUN,
            matched=who.belongs is not Belongs.UNKNOWN,
            here_before=who.here_before,
            visible=who.visible,
            first_ms=self.first_ms,
            last_ms=self.last_ms,
            memory_bytes=self.memory_bytes,
            shared_s=round(self.shared_s, 3),
        )


@dataclass
class Attendance:
    """Who was on one device, and for how long the run had it, alone or shared."""

    stays: dict[tuple[int, int], Stay] = field(default_factory=dict)
    run_s: float = 0.0
    shared_s: float = 0.0
    _here: list[Stay] = field(default_factory=list)
    _since_s: float | None = None
    _of_run: bool = False

    def see(self, found: Sequence[tuple[Process, Held]], at_ms: int, now_s: float, *, of_run: bool) -> None:
        """From now on these are on the device; `of_run`: its time is the run's as well."""
        self.pass_time(at_ms, now_s)
        self._here = [stay for who, held in found if (stay := self._stay(who, held, at_ms)) is not None]
        self._of_run = of_run

    def here(self) -> tuple[Holder, ...]:
        """Who was on the device at the last look."""
        return tuple(stay.note() for stay in self._here)

    def pass_time(self, at_ms: int, now_s: float) -> None:
        """Count the time since the last look for those who were there then."""
        passed = 0.0 if self._since_s is None else max(0.0, now_s - self._since_s)
        self._since_s = now_s
        others = [s for s in self._here if s.process.belongs is Belongs.OTHER]
        for stay in self._here:
            stay.last_ms = at_ms
        if self._of_run:
            self.run_s += passed
            self.shared_s += passed if others else 0.0
            for stay in others:
                stay.shared_s += passed

    def _stay(self, who: Process, held: Held, at_ms: int) -> Stay | None:
        key = (who.pid, who.started)
        if key not in self.stays:
            if len(self.stays) >= KEPT_HOLDERS:
                return None
            self.stays[key] = Stay(who, at_ms, at_ms)
        stay = self.stays[key]
        stay.process, stay.last_ms = who, at_ms
        stay.memory_bytes = max((m for m in (stay.memory_bytes, held.memory_bytes) if m is not None), default=None)
        return stay
