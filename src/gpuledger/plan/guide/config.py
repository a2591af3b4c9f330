"""Which instances, sizes, priorities and workloads does the configuration hold?

Three JSON files, comments allowed (JSON5). The shipped ones are the reference; a folder of the user's own is laid over
them, entry by entry and field by field: what it leaves out stays as shipped, `null` removes an entry.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.catalog.files import data_dir, read_text
from gpuledger.errors import FactError, FileFault, GpuledgerError, map_os_error, nearest
from gpuledger.plan.guide import schema
from gpuledger.plan.guide.checks import absent, check, faults

INSTANCES, MODELS, WORKLOADS = "gpu_instances.json", "model_config.json", "workloads.json"
# The sections of each file, and what an entry of each is.
SECTIONS: dict[str, dict[str, Any]] = {
    INSTANCES: {"gpu_instances": schema.Instance},
    MODELS: {
        "model_sizes": schema.SizeClass,
        "precisions": schema.PrecisionKind,
        "workload_types": schema.WorkloadKind,
        "priorities": schema.Priority,
        "use_cases": schema.UseCase,
    },
    WORKLOADS: {
        "workloads": schema.Workload,
        "workload_sets": tuple[str, ...],
        "workload_set_purposes": schema.SetPurpose,
    },
}
# The field of the configuration where a section is not called the same.
_FIELDS = {
    "gpu_instances": "instances", "model_sizes": "sizes", "workload_types": "kinds", "workload_sets": "sets",
    "workload_set_purposes": "purposes",
}  # fmt: skip
NOTES = ("about", "illustrative")
SCRIPTS = ("gpu_migration_analyzer.py", "config_viewer.py")
_JSON5_FAULT = re.compile(r"<string>:(\d+) (.*) at column (\d+)")


@dataclass(frozen=True)
class Config:
    """The three files, checked; `where` names their folder, `files` the file of each section, `notes` the defaults
    that were filled in, `changed` the fields that are not as shipped."""

    where: str
    illustrative: bool
    instances: Mapping[str, schema.Instance]
    sizes: Mapping[str, schema.SizeClass]
    precisions: Mapping[str, schema.PrecisionKind]
    kinds: Mapping[str, schema.WorkloadKind]
    priorities: Mapping[str, schema.Priority]
    use_cases: Mapping[str, schema.UseCase]
    workloads: Mapping[str, schema.Workload]
    sets: Mapping[str, tuple[str, ...]]
    purposes: Mapping[str, schema.SetPurpose]
    files: Mapping[str, str]
    notes: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()


@dataclass
class _Reading:
    """What was read so far: raw entries and checked ones by section, and what was wrong."""

    raw: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    faults: list[GpuledgerError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    illustrative: bool = True


def reference_dir() -> Path:
    """The folder of the shipped files."""
    return data_dir("gpuledger.plan", "reference")


def load_config(folder: Path | str | None = None) -> Config:
    """The configuration of a folder, or the shipped reference; the first fault is raised."""
    config, found = examine(folder)
    if config is None:
        raise found[0]
    return config


@cache
def reference() -> Config:
    """The shipped reference configuration."""
    return load_config()


def examine(folder: Path | str | None = None) -> tuple[Config | None, tuple[GpuledgerError, ...]]:
    """The configuration where it is sound, and every fault where it is not."""
    reading = _Reading()
    for name in SECTIONS:
        _take(reading, name, reference_dir().joinpath(name), shipped=True)
    for name, file in _own_files(Path(folder), reading).items() if folder is not None else ():
        _take(reading, name, file, shipped=False)
    for section, kind in ((s, kind) for sections in SECTIONS.values() for s, kind in sections.items()):
        made = reading.made.setdefault(section, {})
        for key, raw in reading.raw.get(section, {}).items():
            if found := faults(raw, kind, reading.files.get(section, section), f"{section}.{key}"):
                reading.faults += found
            else:
                made[key] = msgspec.convert(raw, kind)
    reading.faults += () if reading.faults else check(reading.made, reading.files)
    if reading.faults:
        return None, tuple(reading.faults)
    where = "the shipped reference configuration" if folder is None else str(folder)
    fields: dict[str, Any] = {_FIELDS.get(section, section): entries for section, entries in reading.made.items()}
    fields |= {"files": reading.files, "notes": tuple(reading.notes), "changed": frozenset(reading.changed)}
    return Config(where, reading.illustrative, **fields), ()


def _own_files(folder: Path, reading: _Reading) -> dict[str, Path]:
    found = {name: folder / name for name in SECTIONS if (folder / name).exists()}
    missing = [name for name in SECTIONS if name not in found]
    if not folder.is_dir():
        hint = f"gpuledger config init {folder} makes it; without a folder the shipped reference is used"
        reading.faults.append(FileFault(folder, "no such folder", hint=hint))
    elif not found:
        hint = f"gpuledger config init {folder} writes all three"
        reading.faults.append(FileFault(folder, f"it holds none of {', '.join(SECTIONS)}", hint=hint))
    elif missing:
        reading.notes.append(f"{folder} has no {' and no '.join(missing)}: the shipped reference is used in its place")
    return found


def _take(reading: _Reading, name: str, file: Path, *, shipped: bool) -> None:
    """Lay one file over what was read before."""
    try:
        raw = parse(read_text(file, "read the configuration"), str(file))
        sections = _sections(raw, name, str(file))
    except GpuledgerError as error:
        reading.faults.append(error)
        return
    if name == INSTANCES and not shipped:
        reading.illustrative = raw.get("illustrative") is True
    for section, entries in sections.items():
        reading.files[section] = str(file)
        held = reading.raw.setdefault(section, {})
        for key, value in entries.items():
            if not shipped and isinstance(value, dict):
                before = held.get(key) or {}
                reading.changed |= {f"{section}.{key}.{n}" for n, v in value.items() if v != before.get(n)}
            if value is None:
                held.pop(key, None)
            elif not shipped and isinstance(value, dict) and isinstance(held.get(key), dict):
                if left_out := absent(SECTIONS[name][section], value):
                    named = ", ".join(left_out[:3]) + (f" and {len(left_out) - 3} more" if len(left_out) > 3 else "")
                    reading.notes.append(f"{section}.{key}: {named} not given: taken from the shipped reference")
                held[key] = _over(held[key], value)
            else:
                held[key] = value


def parse(text: str, path: str) -> Any:
    """JSON text, comments allowed, as plain data; a fault names the file, the line and the column."""

    def once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise FactError(path, key, "the key is there twice", hint="keep one of the two")
            if isinstance(value, float) and not math.isfinite(value):
                hint = "write a finite number, or leave the field out"
                raise FactError(path, key, f"{value} is not a JSON number", hint=hint)
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except ValueError:
        import json5  # a hundred times slower, and only comments need it
    except RecursionError as error:
        raise FactError(path, "syntax", "nested too deeply", hint="a configuration has four levels") from error
    try:
        return json5.loads(text, object_pairs_hook=once)
    except ValueError as error:
        found = _JSON5_FAULT.match(str(error))
        lines = text.splitlines()
        line = lines[int(found[1]) - 1].strip()[:60] if found and int(found[1]) <= len(lines) else ""
        problem = f"{found[2]} at line {found[1]}, column {found[3]}" if found else "no JSON at line 1, column 1"
        shown = f" (found {line!r})" if line else " (the file ends there)"
        hint = "fix the JSON at the place named above; // comments are allowed"
        raise FactError(path, "syntax", problem + shown, hint=hint) from error


def _sections(raw: Any, name: str, path: str) -> dict[str, dict[str, Any]]:
    """The sections of a file. One of bare instances is taken for its only section."""
    allowed = SECTIONS[name]
    if not isinstance(raw, dict):
        hint = f"allowed: an object with {', '.join(allowed)}"
        raise FactError(path, "$", f"{type(raw).__name__} at the top", hint=hint)
    if name == INSTANCES and raw and "gpu_instances" not in raw and all(isinstance(v, dict) for v in raw.values()):
        raw = {"gpu_instances": raw}
    for key, value in raw.items():
        if key in NOTES or key.startswith(("_", "$")):
            continue
        if key not in allowed:
            near = nearest(key, allowed)
            hint = f"did you mean {near[0]}?" if near else f"allowed: {', '.join(allowed)}"
            raise FactError(path, key, "no such section", hint=hint)
        if not isinstance(value, dict):
            raise FactError(path, key, f"{value!r} is not allowed", hint="allowed: an object of entries by name")
    return {key: raw[key] for key in allowed if key in raw}


def _over(shipped: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The shipped entry with the user's fields; notes on a field or GPU that is replaced go with it."""
    merged = {**shipped, **own}
    if isinstance(shipped.get("scenario"), dict) and isinstance(own.get("scenario"), dict):
        merged["scenario"] = {**shipped["scenario"], **own["scenario"]}
    if corrections := shipped.get("corrections"):
        kept = {k: v for k, v in corrections.items() if k not in own}
        merged["corrections"] = kept | dict(own.get("corrections", {}))
    if "gpu_type" in own and own["gpu_type"] != shipped.get("gpu_type"):
        for name in ("catalog_gpu", "market_instances", "memory_bandwidth_gb_per_s"):
            if name not in own:
                merged.pop(name, None)
    return merged


def init_config(folder: Path, *, scripts: bool = False, force: bool = False) -> list[Path]:
    """Write the shipped files; with `scripts` into config/, and two scripts next to it.

    A file that is there already is left alone unless `force` is given.
    """
    shipped = reference_dir()
    config = folder / "config" if scripts else folder
    wanted = {config / name: shipped.joinpath(name) for name in SECTIONS}
    wanted |= {folder / name: shipped.joinpath(f"{name}.txt") for name in SCRIPTS} if scripts else {}
    there = [path for path in wanted if path.exists()]
    if there and not force:
        raise FileFault(there[0], "the file is there already", hint="name another folder, or force its replacement")
    try:
        config.mkdir(parents=True, exist_ok=True)
        for path, source in wanted.items():
            path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise map_os_error(error, folder, "write the configuration") from error
    return list(wanted)
