"""Which column of a source fills which column of the schema?"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FactError, FileFault, UnknownName, nearest
from gpuledger.telemetry import schema

_FORMER_NAMES = {"s0": "export36"}  # as documented for version 0.1


class TimeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the instant stands and how it may be written; ISO 8601 and epoch numbers are always read."""

    sources: tuple[str, ...]
    formats: tuple[str, ...] = ()


class ValueRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reading: the source names it may have, and the factor to the schema's unit."""

    column: str
    sources: tuple[str, ...]
    multiply: float = 1.0
    divide: float = 1.0
    parse: str = ""


class Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping file: how one layout of telemetry is read.

    `labels`: by schema column the source columns it may stand in, the first filled cell of a row counting.
    `exporter_pods`: names of the exporter's own pods, which hold no GPU.
    """

    name: str
    title: str
    detect: tuple[str, ...]
    required: tuple[str, ...]
    time: TimeRule
    labels: dict[str, tuple[str, ...]]
    values: tuple[ValueRule, ...] = ()
    ignored: tuple[str, ...] = ()
    includes: str = ""
    blank_from: float = float("inf")
    blank_text: tuple[str, ...] = ("",)
    exporter_pods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bound:
    """A mapping applied to the columns a file really has."""

    mapping: Mapping
    time: str
    labels: dict[str, tuple[str, ...]]
    values: dict[str, tuple[str, ValueRule]]
    unused: tuple[str, ...]
    suggestions: dict[str, str]

    def source_columns(self) -> list[str]:
        """The columns worth reading."""
        return list(dict.fromkeys([self.time, *self.label_columns(), *(source for source, _ in self.values.values())]))

    def label_columns(self) -> list[str]:
        """The source columns of the labels, each once."""
        return list(dict.fromkeys(source for sources in self.labels.values() for source in sources))


@cache
def shipped() -> dict[str, Mapping]:
    """The mapping files of the package by name, the specific before the general."""
    raw = [load_toml(f, Mapping) for f in data_dir(__package__, "maps").iterdir() if f.name.endswith(".toml")]
    found = {m.name: m for m in [*raw, _own()]}
    return {m.name: _with_included(m, found) for m in sorted(found.values(), key=lambda m: (-len(m.detect), m.name))}


def load_mapping(name_or_path: str) -> Mapping:
    """A shipped mapping by name, or a user's own file."""
    name_or_path = _FORMER_NAMES.get(name_or_path, name_or_path)
    if name_or_path in shipped():
        return shipped()[name_or_path]
    path = Path(name_or_path)
    if not path.exists():
        raise UnknownName("mapping", name_or_path, shipped())
    mapping = _with_included(load_toml(path, Mapping), dict(shipped()))
    for rule in mapping.values:
        _check_name(path, "values.column", "schema column", rule.column, tuple(schema.columns()))
    for name in mapping.labels:
        _check_name(path, f"labels.{name}", "label", name, schema.labels())
    return mapping


def _check_name(path: Path, field: str, kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        close = nearest(name, known) or known
        raise FactError(path, field, f"no {kind} is called {name!r}", hint=f"nearest: {', '.join(close)}")


def bind(path: str | Path, names: list[str], mapping: Mapping | None = None) -> Bound:
    """The mapping that fits a file's columns, or a fault that names what is missing and the nearest names."""
    chosen = mapping or _detect(path, names)
    present = set(names)
    time = next((s for s in chosen.time.sources if s in present), "")
    there = {c: tuple(s for s in sources if s in present) for c, sources in chosen.labels.items()}
    labels = {c: sources for c, sources in there.items() if sources}
    values = {
        rule.column: (hit, rule)
        for rule in chosen.values
        if (hit := next((s for s in rule.sources if s in present), ""))
    }
    missing = [r for r in chosen.required if not _has(r, present, time, labels)]
    if missing:
        raise _missing(path, missing, names, chosen)
    bound = Bound(chosen, time, labels, values, (), {})
    used = {*bound.source_columns(), *chosen.ignored}
    unused = tuple(n for n in names if n not in used)
    absent = {s: None for rule in chosen.values if rule.column not in values for s in rule.sources}
    suggestions = {n: hits[0] for n in unused if (hits := nearest(n, absent, 1))}
    return replace(bound, unused=unused, suggestions=suggestions)


def _own() -> Mapping:
    """The lake's own column names, so that exported samples can come back."""
    readings = tuple(ValueRule(column=c, sources=(c,)) for c in schema.readings())
    return Mapping(
        name="gpuledger",
        title="gpuledger's own columns",
        detect=(schema.TIME, "gpu_uuid"),
        required=(schema.TIME, "gpu_uuid"),
        time=TimeRule(sources=(schema.TIME,)),
        labels={c: (c,) for c in schema.labels()},
        values=readings,
    )


def _with_included(mapping: Mapping, found: dict[str, Mapping]) -> Mapping:
    """The mapping with the value rules of the one it includes."""
    if not mapping.includes:
        return mapping
    other = found[mapping.includes]
    return msgspec.structs.replace(
        mapping,
        values=mapping.values + other.values,
        blank_from=other.blank_from,
        blank_text=other.blank_text,
        exporter_pods=mapping.exporter_pods or other.exporter_pods,
    )


def _matches(pattern: str, names: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(n, pattern) for n in names)


def _detect(path: str | Path, names: list[str]) -> Mapping:
    """The most specific mapping all of whose marks are there; failing that, the one most of whose marks are."""
    for mapping in shipped().values():
        if all(_matches(mark, names) for mark in mapping.detect):
            return mapping
    close = {
        m.name: sum(bool(_matches(d, names) or nearest(d, names, 1)) for d in m.detect) for m in shipped().values()
    }
    best = max(close, key=lambda name: close[name])
    if close[best]:
        return shipped()[best]
    wanted = "; ".join(f"{m.title}: {', '.join(m.detect)}" for m in shipped().values())
    raise FileFault(
        path,
        f"no known layout has these columns: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}",
        hint=f"rename the columns, or describe them in a mapping file and pass --map FILE (known ones need {wanted})",
    )


def _has(required: str, present: set[str], time: str, labels: dict[str, tuple[str, ...]]) -> bool:
    if required == "time":
        return bool(time)
    if required == "a DCGM_FI_* column":
        return _matches("DCGM_FI_*", sorted(present))
    return required in present or required in labels


def _missing(path: str | Path, missing: list[str], names: list[str], mapping: Mapping) -> FileFault:
    """The fault for required columns that are not there."""
    parts = []
    for column in missing:
        otherwise = mapping.time.sources if column == "time" else (column,)
        spelled = mapping.labels.get(column, otherwise)
        hits = [h for w in spelled for h in nearest(w, names, 1)]
        called = f" (also read under the name {', '.join(spelled)})" if tuple(spelled) != (column,) else ""
        parts.append(f"{column!r}{called}" + (f" (nearest in the file: {hits[0]!r})" if hits else ""))
    return FileFault(
        path,
        f"read as {mapping.title}, it lacks the required column{'s' * (len(parts) > 1)} {', '.join(parts)}",
        hint="rename the column in the file, or describe the layout in a mapping file and pass --map FILE",
    )
