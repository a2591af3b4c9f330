"""Who does the time of a live recording belong to, and which processes are of the run?

Labels come from the surroundings: Kubernetes, Slurm, the container, the process (attribution.toml). Labels given by
the user win. The visible-devices variables name the devices a job was given.

A process belongs to the tree of a root when an ancestor does. Processes whose parents have ended are recognized in
other ways: they were seen in the tree before, they share a session or process group that the tree opened, or they
carry the run's variable in their environment. A process number that was used again is another process.
"""

from __future__ import annotations

import contextlib
import pwd
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.devices.device import Device, Facts

# Kubernetes ends names of pods with letters of this set: a hash of the template, then five at random.
_POD_SUFFIX = re.compile(r"(-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$|-\d+$")
_CONTAINER_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
D = TypeVar("D", bound=Device)
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    label: str
    system: str
    env: tuple[str, ...]
    when: tuple[str, ...] = ()
    file: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    rules: tuple[_Rule, ...]


@cache
def _rules() -> tuple[_Rule, ...]:
    return load_toml(data_dir(__package__, "attribution.toml"), _File).rules


@dataclass(frozen=True)
class Attribution:
    """Labels, and where each was found."""

    labels: dict[str, str]
    found_in: dict[str, str]


def attribute(
    environ: Mapping[str, str],
    *,
    host: str,
    command: str = "",
    given: Mapping[str, str] | None = None,
    process: Path = Path("/proc/self"),
) -> Attribution:
    """The labels of a process in its surroundings; `given` ones win, `command` names an otherwise unnamed job."""
    labels: dict[str, str] = {}
    found_in: dict[str, str] = {}

    def keep(label: str, value: str, where: str) -> None:
        if value and label not in labels:
            labels[label], found_in[label] = value, where

    for label, value in (given or {}).items():
        keep(label, value, "given")
    for rule in _rules():
        if rule.when and not any(environ.get(name) for name in rule.when):
            continue
        for name in rule.env:
            keep(rule.label, environ.get(name, "").strip(), f"{rule.system}: {name}")
        if rule.file:
            keep(rule.label, _text(process / "root" / rule.file).strip(), f"{rule.system}: /{rule.file}")
    # The deployment, job or set a pod belongs to is in its name.
    keep("workload", _POD_SUFFIX.sub("", labels.get("pod", "")), "Kubernetes: name of the pod")
    keep("workload", command, "process: command")
    keep("container", container_id(process)[:12], "process: cgroup")
    keep("host", host, "host name")
    return Attribution(labels, found_in)


def container_id(process: Path = Path("/proc/self")) -> str:
    """The id of the container a process runs in; empty outside of one."""
    for file in ("cgroup", "mountinfo"):
        if found := _CONTAINER_ID.search(_text(process / file)):
            return found[0]
    return ""


def _text(file: Path) -> str:
    """A file of /proc, or near it; empty where it is not there or not ours to read."""
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def visible_devices(environ: Mapping[str, str], devices: Sequence[Facts]) -> set[str] | None:
    """The names of the devices a job may see; None where nothing limits it."""
    listed = next((environ[name] for name in _VISIBLE if name in environ), None)
    if listed is None:
        return None
    wanted = [w.strip() for w in listed.split(",") if w.strip()]
    return {d.name for d in devices if any(_is_meant(d, w) for w in wanted)}


def _is_meant(device: Facts, wanted: str) -> bool:
    if wanted.isdigit():
        return device.index == int(wanted)
    names = (device.gpu_uuid, *device.other_names)
    # A prefix of the UUID is enough for CUDA. A board named as a whole has all its instances.
    return len(wanted) > 4 and any(n.startswith(wanted) for n in names)


def own_rank_only(environ: Mapping[str, str], devices: Sequence[D]) -> Sequence[D]:
    """One of several ranks on a host records its own device, so that no device is recorded twice; else all."""
    rank, ranks = environ.get("LOCAL_RANK", ""), environ.get("LOCAL_WORLD_SIZE", "")
    if not (rank.isdigit() and ranks.isdigit() and int(ranks) > 1):
        return devices
    visible = visible_devices(environ, [d.facts for d in devices])
    mine = [d for d in devices if visible is None or d.facts.name in visible]
    return [mine[int(rank)]] if int(rank) < len(mine) else devices


def command_name(argv: Sequence[str]) -> str:
    """What a person would call a command: the script or module an interpreter runs, else the program."""
    if not argv:
        return ""
    name = Path(argv[0]).name
    if re.fullmatch(r"(python|pypy|bash|sh|torchrun|accelerate|deepspeed)[\d.]*", name):
        rest = list(argv[1:])
        for place, word in enumerate(rest):
            if word == "-m" and place + 1 < len(rest):
                return rest[place + 1]
            if word == "-c":
                break
            if word.endswith((".py", ".sh")):
                return Path(word).name
    return name


# Set for a recorded command; whatever it starts inherits it.
RUN_VARIABLE = "GPULEDGER_RUN_ID"
_PROC = Path("/proc")
_LONGEST_LINE = 64


@dataclass(frozen=True)
class Status:
    """What the kernel says about a process. `started` tells two processes with the same number apart."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int


def status(pid: int, proc: Path = _PROC) -> Status | None:
    """The status of a process; None where it is not visible from here."""
    # The command in brackets may hold spaces and brackets itself: fields count from the last one.
    _, _, rest = _text(proc / str(pid) / "stat").rpartition(")")
    fields = rest.split()
    if len(fields) < 2:
        return None
    parent, group, session, started = (int(fields[i]) if len(fields) > i else 0 for i in (1, 2, 3, 19))
    return Status(pid, fields[0], parent, group, session, started)


def lineage(pid: int, proc: Path = _PROC) -> list[Status]:
    """A process and its ancestors, as far as they are visible, the process first."""
    found: list[Status] = []
    while pid > 0 and len(found) < _LONGEST_LINE and (here := status(pid, proc)) is not None:
        found.append(here)
        pid = here.parent
    return found


def environment(pid: int, proc: Path = _PROC) -> dict[str, str]:
    """The environment a process was started with; empty where we may not read it."""
    return dict(pair.split("=", 1) for pair in _text(proc / str(pid) / "environ").split("\0") if "=" in pair)


def program(pid: int, proc: Path = _PROC) -> str:
    """What a process runs; its arguments are left out, they may hold secrets. Empty where it is not visible."""
    folder = proc / str(pid)
    return command_name([w for w in _text(folder / "cmdline").split("\0") if w]) or _text(folder / "comm").strip()


def user(pid: int, proc: Path = _PROC) -> str:
    """Who runs a process; empty where that is not known."""
    try:
        return pwd.getpwuid((proc / str(pid)).stat().st_uid).pw_name
    except (OSError, KeyError):
        return ""


def uses_file(pid: int, prefixes: Sequence[str], proc: Path = _PROC) -> bool | None:
    """Whether a process has a file open whose path starts like this; None where we may not look."""
    try:
        links = list((proc / str(pid) / "fd").iterdir())
    except OSError:
        return None
    for link in links:
        with contextlib.suppress(OSError):  # closed just now
            if str(link.readlink()).startswith(tuple(prefixes)):
                return True
    return False


class ProcessTree:
    """The processes of a run; without a root it is empty."""

    def __init__(self, root: int | None, run_id: str = "", proc: Path = _PROC) -> None:
        self._proc, self._run_id = proc, run_id
        self._members: dict[int, int] = {}
        self._opened: set[tuple[str, int]] = set()
        self._outer: set[tuple[str, int]] = set()
        if root is not None:
            self.plant(root)

    def plant(self, root: int) -> None:
        """From now on the tree grows from this process."""
        found = status(root, self._proc)
        self._members[root] = found.started if found else 0
        # The root's own session and group are shared with whoever started it.
        self._outer |= _circles(found) if found else set()

    def includes(self, pid: int) -> bool:
        """Whether a process belongs to the run; those it came from then do so as well."""
        line = lineage(pid, self._proc)
        place = next((i for i, s in enumerate(line) if self._knows(s)), None)
        if place is None:
            marked = self._run_id and environment(pid, self._proc).get(RUN_VARIABLE) == self._run_id
            if not (marked and self._members):
                return False
            place = 0
        for found in line[: place + 1]:
            self._members[found.pid] = found.started
            self._opened |= _circles(found) - self._outer
        return True

    def _knows(self, found: Status) -> bool:
        if found.pid in self._members:
            return self._members[found.pid] == found.started
        return not self._opened.isdisjoint(_circles(found))


def _circles(found: Status) -> set[tuple[str, int]]:
    """The session and the group of a process; 0 is not one."""
    return {(kind, n) for kind, n in (("session", found.session), ("group", found.group)) if n}
