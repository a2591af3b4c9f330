"""Who does the time of a live recording belong to?

Labels come from what the surroundings say: Kubernetes, Slurm, the container, the process (attribution.toml). Labels
given by the user win. The visible-devices variables name the devices a job was given.
"""

from __future__ import annotations

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
    keep("workload", _workload_of(labels.get("pod", "")), "Kubernetes: name of the pod")
    keep("workload", command, "process: command")
    keep("container", container_id(process)[:12], "process: cgroup")
    keep("host", host, "host name")
    return Attribution(labels, found_in)


def _workload_of(pod: str) -> str:
    """The deployment, job or set a pod belongs to, by its name."""
    return _POD_SUFFIX.sub("", pod)


def container_id(process: Path = Path("/proc/self")) -> str:
    """The id of the container a process runs in; empty outside of one."""
    for file in ("cgroup", "mountinfo"):
        if found := _CONTAINER_ID.search(_text(process / file)):
            return found[0]
    return ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
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
