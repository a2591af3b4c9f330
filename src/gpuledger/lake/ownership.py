"""Whose time is the time of a device under recording?

Around a job (`of_job`) the devices are the job's, except those it cannot see or that only strangers hold: these have
no owner. Watching a whole host, a device belongs to the processes that hold it, each named by its own surroundings;
several of them share its time.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpuledger.lake.runs import Holder
from gpuledger.telemetry.live.attribution import attribute, command_name, family, strangers_only, visible_devices
from gpuledger.telemetry.live.device import Device, Facts

LOOK_EVERY_S = 10.0
KEPT_HOLDERS = 64
# Labels that stay on a device nobody owns: they say where it stands, not whom it serves.
_OF_THE_PLACE = ("host", "region", "node_group", "cluster")
_HIDDEN = "not known: the process is not visible from here"


class Ownership:
    """Names the owners of each device's rows."""

    def __init__(
        self,
        devices: Sequence[Device],
        labels: Mapping[str, str],
        given: Mapping[str, str],
        environ: Mapping[str, str],
        now: Callable[[], float],
        *,
        of_job: bool = True,
        proc: Path = Path("/proc"),
    ) -> None:
        self._devices, self._labels, self._given = devices, dict(labels), dict(given)
        self._now, self._of_job, self._proc = now, of_job, proc
        self._place = {k: v for k, v in labels.items() if k in _OF_THE_PLACE}
        self._visible = visible_devices(environ, [d.facts for d in devices]) if of_job else None
        self._strange: set[str] = set()
        self._owners: dict[str, list[dict[str, str]]] = {}
        self._holders: dict[str, dict[int, Holder]] = {}
        self._looked_s = -LOOK_EVERY_S
        self._pid = os.getpid()

    def owned(self, facts: Facts) -> bool:
        """Whether the device's time is the job's."""
        if self._visible is not None:
            return facts.name in self._visible
        return facts.name not in self._strange

    def labels(self, facts: Facts) -> list[dict[str, str]]:
        """The labels of a device's rows, one set for each owner; at least one."""
        if self._of_job:
            return [self._labels if self.owned(facts) else self._place]
        return self._owners.get(facts.name) or [self._labels]

    def holders(self, facts: Facts) -> tuple[Holder, ...]:
        """Who was seen on the device."""
        return tuple(self._holders.get(facts.name, {}).values())

    def look(self, *, force: bool = False) -> None:
        """See who holds the devices, every ten seconds at most."""
        if not force and self._now() - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = self._now()
        ours: set[int] = set()
        for device in self._devices:
            # Who holds a device is nice to know; that it cannot be told must not stop the recording.
            with contextlib.suppress(Exception):
                pids = device.processes()
                if pids and not ours:
                    ours = family(self._pid, self._proc)
                self._see(device.facts.name, pids, ours)

    def _see(self, name: str, pids: Sequence[int], ours: set[int]) -> None:
        seen = self._holders.setdefault(name, {})
        for pid in pids:
            if pid not in seen and len(seen) < KEPT_HOLDERS:
                seen[pid] = Holder(pid, self._user(pid), self._program(pid) or _HIDDEN, pid in ours)
        if self._of_job and strangers_only(pids, ours, self._proc):
            self._strange.add(name)
        elif any(pid in ours for pid in pids):
            self._strange.discard(name)
        if not self._of_job:
            found = [self._owner(pid) for pid in pids if (self._proc / str(pid)).is_dir()]
            self._owners[name] = list({tuple(sorted(o.items())): o for o in found}.values())

    def _owner(self, pid: int) -> dict[str, str]:
        """The labels of a process, as far as we may look at it."""
        folder = self._proc / str(pid)
        raw = _bytes(folder / "environ").decode(errors="replace")
        environ = dict(pair.split("=", 1) for pair in raw.split("\0") if "=" in pair)
        host = self._labels.get("host", "")
        return attribute(environ, host=host, command=self._program(pid), given=self._given, process=folder).labels

    def _user(self, pid: int) -> str:
        try:
            return pwd.getpwuid((self._proc / str(pid)).stat().st_uid).pw_name
        except (OSError, KeyError):
            return _HIDDEN

    def _program(self, pid: int) -> str:
        """What a process runs; its arguments are left out, they may hold secrets."""
        folder = self._proc / str(pid)
        argv = [w for w in _bytes(folder / "cmdline").decode(errors="replace").split("\0") if w]
        return command_name(argv) or _bytes(folder / "comm").decode(errors="replace").strip()


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
