"""Whose time is the time of a device under recording?

Who holds the devices is checked while the work runs. Around a job (`of_job`) a device is the job's while one of its
processes holds it, while no process does, and where the job was given it by name. Other processes that hold it share
its time, and have it alone where the job does not hold it. Watching a whole host, a device belongs to the processes
that hold it, each named by its own surroundings; several of them share its time.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from gpuledger.devices.attribution import ProcessTree, attribute, environment, visible_devices
from gpuledger.devices.device import Device, Facts, Held, Row
from gpuledger.recording.holders import Attendance, Belongs, Labels, Process, Processes
from gpuledger.recording.runs import Holder

LOOK_EVERY_S = 1.0
# The first looks follow each other closely, so that a short command is seen as well.
FIRST_LOOK_S = 0.1
LOOKS_PER_AGE = 4
# Looking may take a twentieth of the time, no more.
LONGEST_SHARE = 20
# Labels that stay on a device without an owner: they name its place, not its user.
OF_THE_PLACE = ("host", "region", "node_group", "cluster")


class OwnerTimes:
    """Who owned one device, from when on. Stamps are odd after the clock was set back: each kind has its own times."""

    def __init__(self, owners: list[Labels]) -> None:
        self.now = owners
        self._kinds: tuple[list[tuple[int, list[Labels]]], list[tuple[int, list[Labels]]]] = ([], [])
        self._kind = 0

    def change(self, at_ms: int, owners: list[Labels]) -> None:
        """From this stamp on these are the owners."""
        kind, times = at_ms & 1, self._kinds[at_ms & 1]
        if kind != self._kind:
            times.clear()
        self._kind, self.now = kind, owners
        if not times or times[-1][1] != owners:
            times.append((at_ms, owners))

    def at(self, at_ms: int) -> list[Labels]:
        """The owners at a stamp; before the first look those of the first."""
        times = self._kinds[at_ms & 1]
        if not times:
            return self.now
        return times[max(0, bisect_right(times, at_ms, key=lambda t: t[0]) - 1)][1]

    def forget(self, until_ms: int) -> None:
        """Rows up to this stamp will not be asked for again."""
        times = self._kinds[until_ms & 1]
        del times[: max(0, bisect_right(times, until_ms, key=lambda t: t[0]) - 1)]


class _Watch:
    """One device while it is watched."""

    def __init__(self, device: Device, given: bool | None, owners: list[Labels]) -> None:
        self.device, self.given = device, given
        self.times = OwnerTimes(owners)
        self.who = Attendance()
        self.owned: bool | None = None
        self.silent = ""


class Ownership:
    """Names the owners of each device's rows.

    `around_command`: the run is a command that is started later; `follow` says which process it is. `other_run` gives
    the labels of another recording of the same lake that a process belongs to.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        labels: Mapping[str, str],
        given: Mapping[str, str],
        environ: Mapping[str, str],
        now: Callable[[], float],
        *,
        of_job: bool = True,
        around_command: bool = False,
        other_run: Callable[[int], Labels | None] = lambda _pid: None,
        proc: Path = Path("/proc"),
    ) -> None:
        self._labels, self._given = dict(labels), dict(given)
        self._now, self._of_job, self._proc, self._other_run = now, of_job, proc, other_run
        self._place = {k: v for k, v in labels.items() if k in OF_THE_PLACE}
        run_id = self._labels.get("run_id", "") if of_job else ""
        self._tree = ProcessTree(None if around_command or not of_job else os.getpid(), run_id, proc)
        self._processes = Processes(self._tree, self._name, run_id, proc)
        visible = visible_devices(environ, [d.facts for d in devices]) if of_job else None
        self._watches = {
            d.facts.name: _Watch(d, given, self._owners([], given))
            for d in devices
            for given in [None if visible is None else d.facts.name in visible]
        }
        self._started = not around_command
        self._began_s = now()
        self._due_s = self._began_s
        self._lock = threading.Lock()

    def owned(self, facts: Facts) -> bool:
        """Whether some of the device's time is the job's."""
        watch = self._watches[facts.name]
        return watch.given is not False if watch.owned is None else watch.owned

    def labels(self, facts: Facts) -> list[Labels]:
        """The labels of a device's rows as of the last look, one set for each owner; at least one."""
        return self._watches[facts.name].times.now

    def holders(self, facts: Facts) -> tuple[Holder, ...]:
        """Who was seen on the device."""
        return tuple(stay.note() for stay in self._watches[facts.name].who.stays.values())

    def here(self, facts: Facts) -> tuple[Holder, ...]:
        """Who was on the device at the last look."""
        with self._lock:
            return self._watches[facts.name].who.here()

    def times(self, facts: Facts) -> tuple[float, float, str]:
        """For how long the device was the run's, for how long with others, and why holders are not known."""
        watch = self._watches[facts.name]
        return round(watch.who.run_s, 3), round(watch.who.shared_s, 3), watch.silent

    def split(self, facts: Facts, rows: list[Row]) -> list[tuple[list[Labels], list[Row]]]:
        """The rows of a device in order of time, cut where its owners change."""
        times = self._watches[facts.name].times
        with self._lock:
            owners = [times.at(_at_ms(row)) for row in rows]
            if rows:
                times.forget(_at_ms(rows[-1]))
        cut = groupby(zip(owners, rows, strict=True), key=lambda pair: pair[0])
        return [(who, [row for _, row in some]) for who, some in cut]

    def follow(self, pid: int, at_ms: int) -> None:
        """The run's command has been started as this process."""
        with self._lock:
            self._tree.plant(pid)
            self._started, self._began_s = True, self._now()
        self.look(at_ms, force=True)

    def look(self, at_ms: int, *, force: bool = False) -> None:
        """See who holds the devices: often at first, then every second."""
        with self._lock:
            now = self._now()
            if not force and now < self._due_s:
                return
            for watch in self._watches.values():
                self._look_at(watch, at_ms, now)
            pace = min(LOOK_EVERY_S, max(FIRST_LOOK_S, (now - self._began_s) / LOOKS_PER_AGE))
            self._due_s = now + max(pace, LONGEST_SHARE * (self._now() - now))

    def end(self, at_ms: int) -> None:
        """The recording is over: count the time since the last look."""
        with self._lock:
            for watch in self._watches.values():
                watch.who.pass_time(at_ms, self._now())

    def _look_at(self, watch: _Watch, at_ms: int, now_s: float) -> None:
        try:
            self._see(watch, watch.device.holders(), at_ms, now_s)
        except Exception as error:  # noqa: BLE001 - a driver library may raise anything, and the recording goes on
            watch.silent = f"{type(error).__name__}: {error}"
        else:
            watch.silent = ""

    def _see(self, watch: _Watch, held: Sequence[Held], at_ms: int, now_s: float) -> None:
        if not self._started:
            self._processes.were_before(h.pid for h in held)
        found = self._processes.recognize(held, watch.device.files, now_s)
        owners = self._owners([p for p, _ in found], watch.given)
        of_run = self._of_job and self._labels in owners
        watch.times.change(at_ms, owners)
        watch.who.see(found, at_ms, now_s, of_run=of_run)
        if self._started:
            watch.owned = of_run or bool(watch.owned)

    def _owners(self, found: Sequence[Process], given: bool | None) -> list[Labels]:
        """The label sets of those who share the device; `given`: whether the job was given it, None: nothing says so.

        A process that cannot be recognized may be the job's: then the device is counted as the job's.
        """
        others: list[Labels] = []
        for process in found:
            if process.belongs is Belongs.OTHER and process.labels not in others:
                others.append(process.labels)
        if not self._of_job:
            return others or [self._labels]
        ours = {p.belongs for p in found} - {Belongs.OTHER}
        if Belongs.RUN in ours or given or (given is None and (ours or not others)):
            return [self._labels, *others]
        return others or [self._place]

    def _name(self, process: Process) -> Labels:
        """The labels of a process that is not the job's, as far as we may look at it."""
        if process.visible and (found := self._other_run(process.pid)) is not None:
            return found
        given, command = self._given, process.program
        if self._of_job:
            given, command = self._place, f"other: {process.program or 'not visible here'} (pid {process.pid})"
        if not process.visible:
            return {**self._place, "workload": command}
        environ, folder = environment(process.pid, self._proc), self._proc / str(process.pid)
        host = self._labels.get("host", "")
        return attribute(environ, host=host, command=command, given=given, process=folder).labels


def _at_ms(row: Row) -> int:
    return int(row[0] or 0)
