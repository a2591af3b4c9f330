"""Which instances, sizes, priorities and workloads does the configuration hold?

Three JSON files. The shipped ones are the reference; a folder of the user's own is laid over them, entry by entry and
field by field: what it leaves out stays as shipped, `null` removes an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gpuledger.catalog.files import data_dir
from gpuledger.errors import FactError, FileFault, GpuledgerError, nearest
from gpuledger.plan.guide.config_checks import check
from gpuledger.plan.guide.config_faults import absent, entry, faults
from gpuledger.plan.guide.json_comments import read_json
from gpuledger.plan.guide.schema import (
    Instance,
    PrecisionKind,
    Priority,
    SetPurpose,
    SizeClass,
    UseCase,
    Workload,
    WorkloadKind,
)

INSTANCES, MODELS, WORKLOADS = "gpu_instances.json", "model_config.json", "workloads.json"
# The sections of each file, and what an entry of each is.
SECTIONS: dict[str, dict[str, Any]] = {
    INSTANCES: {"gpu_instances": Instance},
    MODELS: {
        "model_sizes": SizeClass,
        "precisions": PrecisionKind,
        "workload_types": WorkloadKind,
        "priorities": Priority,
        "use_cases": UseCase,
    },
    WORKLOADS: {"workloads": Workload, "workload_sets": tuple[str, ...], "workload_set_purposes": SetPurpose},
}
BESIDE = ("about", "illustrative")


@dataclass(frozen=True)
class Config:
    """The three files, checked; `where` says whose they are, `files` where each section was read, `notes` what was
    taken for granted while reading."""

    where: str
    illustrative: bool
    instances: Mapping[str, Instance]
    sizes: Mapping[str, SizeClass]
    precisions: Mapping[str, PrecisionKind]
    kinds: Mapping[str, WorkloadKind]
    priorities: Mapping[str, Priority]
    use_cases: Mapping[str, UseCase]
    workloads: Mapping[str, Workload]
    sets: Mapping[str, tuple[str, ...]]
    purposes: Mapping[str, SetPurpose]
    files: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass
class _Reading:
    """What was read so far: raw entries and checked ones by section, and what was wrong."""

    raw: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    faults: list[GpuledgerError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def attempt(self, do: Callable[[], Any]) -> Any:
        """Do it, or note why it cannot be done."""
        try:
            return do()
        except GpuledgerError as error:
            self.faults.append(error)
            return None


def reference_dir() -> Traversable:
    """The folder of the shipped files."""
    return data_dir("gpuledger.plan", "reference")


def load_config(folder: Path | str | None = None) -> Config:
    """The configuration of a folder, or the shipped reference; the first fault is raised."""
    config, faults = examine(folder)
    if config is None:
        raise faults[0]
    return config


def examine(folder: Path | str | None = None) -> tuple[Config | None, tuple[GpuledgerError, ...]]:
    """The configuration where it is sound, and every fault where it is not."""
    reading = _Reading()
    for name in SECTIONS:
        _take(reading, name, reference_dir().joinpath(name), shipped=True)
    illustrative = True
    if folder is not None:
        own = _own_files(Path(folder), reading)
        illustrative = INSTANCES not in own or _says_illustrative(own[INSTANCES])
        for name, file in own.items():
            _take(reading, name, file, shipped=False)
    _make(reading)
    if not reading.faults:
        reading.faults += check(reading.made, reading.files)
    if reading.faults:
        return None, tuple(reading.faults)
    return _config(reading, folder, illustrative), ()


@cache
def reference() -> Config:
    """The shipped reference configuration."""
    return load_config()


def _own_files(folder: Path, reading: _Reading) -> dict[str, Path]:
    if not folder.is_dir():
        hint = f"gpuledger config init {folder} makes it; without a folder the shipped reference is used"
        reading.faults.append(FileFault(folder, "no such folder", hint=hint))
        return {}
    found = {name: folder / name for name in SECTIONS if (folder / name).exists()}
    missing = [name for name in SECTIONS if name not in found]
    if not found:
        hint = f"gpuledger config init {folder} writes all three"
        reading.faults.append(FileFault(folder, f"it holds none of {', '.join(SECTIONS)}", hint=hint))
    elif missing:
        reading.notes.append(f"{folder} has no {' and no '.join(missing)}: the shipped reference is used in its place")
    return found


def _says_illustrative(file: Path) -> bool:
    """Whether the user's file of prices still says that they are the guide's."""
    try:
        raw = read_json(file)
    except GpuledgerError:
        return False  # found again, and told, where the file is taken
    return isinstance(raw, dict) and raw.get("illustrative") is True


def _take(reading: _Reading, name: str, file: Traversable | Path, *, shipped: bool) -> None:
    """Lay one file over what was read before."""
    raw = reading.attempt(lambda: read_json(file))
    if raw is None:
        return
    sections = reading.attempt(lambda: _sections(raw, name, str(file)))
    for section, entries in (sections or {}).items():
        reading.files[section] = str(file)
        held = reading.raw.setdefault(section, {})
        for key, value in entries.items():
            if value is None:
                held.pop(key, None)
            elif not shipped and isinstance(value, dict) and isinstance(held.get(key), dict):
                if left_out := absent(SECTIONS[name][section], value):
                    reading.notes.append(_filled(f"{section}.{key}", left_out))
                held[key] = _over(held[key], value)
            else:
                held[key] = value


def _filled(entry_name: str, left_out: list[str]) -> str:
    named = ", ".join(left_out[:3]) + (f" and {len(left_out) - 3} more" if len(left_out) > 3 else "")
    return f"{entry_name}: {named} not given: taken from the shipped reference"


def _sections(raw: Any, name: str, path: str) -> dict[str, dict[str, Any]]:
    """The sections of a file. One of bare instances is taken for its only section, as the guide writes it."""
    allowed = SECTIONS[name]
    if not isinstance(raw, dict):
        raise FactError(
            path, "$", f"{type(raw).__name__} at the top", hint=f"allowed: an object with {', '.join(allowed)}"
        )
    if name == INSTANCES and raw and "gpu_instances" not in raw and all(isinstance(v, dict) for v in raw.values()):
        raw = {"gpu_instances": raw}
    for key, value in raw.items():
        if key in BESIDE or key.startswith(("_", "$")):
            continue
        if key not in allowed:
            near = nearest(key, allowed)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(allowed)}"
            raise FactError(path, key, "no such section", hint=hint)
        if not isinstance(value, dict):
            raise FactError(path, key, f"{value!r} is not allowed", hint="allowed: an object of entries by name")
    return {key: raw[key] for key in allowed if key in raw}


def _over(shipped: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The shipped entry with the user's fields; what was said of a field or GPU that is replaced goes with it."""
    merged = {**shipped, **own}
    if isinstance(shipped.get("scenario"), dict) and isinstance(own.get("scenario"), dict):
        merged["scenario"] = {**shipped["scenario"], **own["scenario"]}
    if corrections := shipped.get("corrections"):
        merged["corrections"] = {k: v for k, v in corrections.items() if k not in own} | dict(
            own.get("corrections", {})
        )
    if "gpu_type" in own and own["gpu_type"] != shipped.get("gpu_type"):
        for name in ("catalog_gpu", "market_instances", "memory_bandwidth_gb_per_s"):
            if name not in own:
                merged.pop(name, None)
    return merged


def _make(reading: _Reading) -> None:
    for sections in SECTIONS.values():
        for section, kind in sections.items():
            made = reading.made.setdefault(section, {})
            path = reading.files.get(section, section)
            for key, raw in reading.raw.get(section, {}).items():
                if found := faults(raw, kind, path, f"{section}.{key}"):
                    reading.faults += found
                else:
                    made[key] = entry(raw, kind, path, f"{section}.{key}")


def _config(reading: _Reading, folder: Path | str | None, illustrative: bool) -> Config:
    made = reading.made
    return Config(
        where="the shipped reference configuration" if folder is None else str(folder),
        illustrative=illustrative,
        instances=made["gpu_instances"],
        sizes=made["model_sizes"],
        precisions=made["precisions"],
        kinds=made["workload_types"],
        priorities=made["priorities"],
        use_cases=made["use_cases"],
        workloads=made["workloads"],
        sets=made["workload_sets"],
        purposes=made["workload_set_purposes"],
        files=dict(reading.files),
        notes=tuple(reading.notes),
    )
