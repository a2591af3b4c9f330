"""Which column of a source fills which column of the schema?"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FactError, NotSaid, UnknownKind, UnknownName, nearest
from gpuledger.telemetry import schema
from gpuledger.times import Instant, Length, instant_ms, length_ms

_FORMER_NAMES = {"s0": "export36"}  # as documented for version 0.1


class TimeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the instant stands and how it may be written; ISO 8601 and epoch numbers are always read.

    `clock`: columns that hold the time of day only.
    """

    sources: tuple[str, ...]
    formats: tuple[str, ...] = ()
    clock: tuple[str, ...] = ()


class ValueRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reading: the source names it may have, and the factor to the schema's unit."""

    column: str
    sources: tuple[str, ...]
    multiply: float = 1.0
    divide: float = 1.0
    parse: str = ""


class Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping file: how one layout of telemetry is read."""

    name: str
    title: str
    detect: tuple[str, ...]
    required: tuple[str, ...]
    time: TimeRule
    labels: dict[str, tuple[str, ...]]
    values: tuple[ValueRule, ...] = ()
    ignored: tuple[str, ...] = ()
    includes: str = ""
    constants: dict[str, str] = {}
    asks: tuple[str, ...] = ()
    blank_from: float = float("inf")
    blank_text: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Given:
    """What the user says about files that do not say it themselves; `every_ms`: how far rows of a GPU are apart."""

    at_ms: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    every_ms: int | None = None


@dataclass(frozen=True)
class Bound:
    """A mapping applied to the columns a file really has.

    `time` is empty where the rows are of the instant `at_ms`, or of the time of day in `clock`. `constants`: labels of
    all rows whose own cell is empty.
    """

    mapping: Mapping
    time: str
    labels: dict[str, str]
    values: dict[str, tuple[str, ValueRule]]
    unused: tuple[str, ...]
    suggestions: dict[str, str]
    constants: dict[str, str] = field(default_factory=dict)
    at_ms: int | None = None
    clock: str = ""

    def source_columns(self) -> list[str]:
        """The columns worth reading."""
        time = [name for name in (self.time, self.clock) if name]
        return list(dict.fromkeys([*time, *self.labels.values(), *(source for source, _ in self.values.values())]))


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
        if rule.column not in schema.columns():
            close = nearest(rule.column, schema.columns())
            raise FactError(
                path, "values.column", f"no schema column is called {rule.column!r}", hint=f"nearest: {close}"
            )
    return mapping


NOTHING_GIVEN = Given()


def given(
    *,
    at: Instant | None = None,
    every: Length | None = None,
    host: str | None = None,
    gpu_model: str | None = None,
) -> Given:
    """What a user said about files, in words."""
    said = {"host": host, "gpu_model": gpu_model}
    at_ms, every_ms = None if at is None else instant_ms(at), None if every is None else length_ms(every)
    return Given(at_ms, {name: text for name, text in said.items() if text}, every_ms)


# How a user says what a file does not.
_OPTIONS = {
    "time": "--at TIME",
    "date": "--at DATE",
    "every": "--every LENGTH",
    "host": "--host NAME",
    "gpu_model": "--gpu-model NAME",
}


def bind(path: str | Path, names: list[str], mapping: Mapping | None = None, said: Given = NOTHING_GIVEN) -> Bound:
    """The mapping that fits a file's columns, or a fault that names what is missing and the nearest names."""
    chosen = mapping or _detect(path, names)
    present = set(names)
    time = next((s for s in chosen.time.sources if s in present), "")
    labels = {c: hit for c, sources in chosen.labels.items() if (hit := next((s for s in sources if s in present), ""))}
    values = {
        rule.column: (hit, rule)
        for rule in chosen.values
        if (hit := next((s for s in rule.sources if s in present), ""))
    }
    constants = chosen.constants | said.labels
    if "gpu_uuid" not in labels and "gpu_index" in labels:  # a GPU known by its index only
        labels["gpu_uuid"] = labels["gpu_index"]
    at_ms = None if time else said.at_ms
    clock = "" if time else next((s for s in chosen.time.clock if s in present), "")
    missing = [r for r in chosen.required if not _has(r, present, time, labels) and not (r == "time" and at_ms)]
    known = {"time": time or at_ms, "every": time or clock or said.every_ms, **labels, **constants}
    asked = [a for a in chosen.asks if not known.get(a)]
    if asked and set(missing) <= set(asked):
        raise _asking(path, ["date" if clock and a == "time" else a for a in asked], chosen)
    if missing:
        raise _missing(path, missing, names, chosen)
    used = {time, clock, *labels.values(), *(s for s, _ in values.values()), *chosen.ignored}
    unused = tuple(n for n in names if n not in used)
    absent = {s: None for rule in chosen.values if rule.column not in values for s in rule.sources}
    suggestions = {n: hits[0] for n in unused if (hits := nearest(n, absent, 1))}
    return Bound(chosen, time, labels, values, unused, suggestions, constants, at_ms, clock)


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
        mapping, values=mapping.values + other.values, blank_from=other.blank_from, blank_text=other.blank_text
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
    raise UnknownKind(
        path,
        f"no known layout has these columns: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}",
        hint=f"rename the columns, or describe them in a mapping file and pass --map FILE (known ones need {wanted})",
    )


def _has(required: str, present: set[str], time: str, labels: dict[str, str]) -> bool:
    if required == "time":
        return bool(time)
    if required == "a DCGM_FI_* column":
        return _matches("DCGM_FI_*", sorted(present))
    return required in present or required in labels


def _asking(path: str | Path, asked: list[str], mapping: Mapping) -> NotSaid:
    """The fault for what this kind of file never says and only the user knows."""
    words = {
        "time": "when its readings were taken",
        "date": "on which day it starts",
        "every": "how far they are apart",
        "host": "which host it is from",
        "gpu_model": "which GPU it is of",
    }
    *others, last = (words[name] for name in asked)
    lacks = f"{', '.join(others)} and {last}" if others else last
    options = " ".join(_OPTIONS[name] for name in asked)
    return NotSaid(path, f"read as {mapping.title}, it does not say {lacks}", hint=f"add {options}")


def _missing(path: str | Path, missing: list[str], names: list[str], mapping: Mapping) -> UnknownKind:
    """The fault for required columns that are not there."""
    parts = []
    for column in missing:
        wanted = mapping.labels.get(column, mapping.time.sources if column == "time" else (column,))
        hits = [h for w in wanted for h in nearest(w, names, 1)]
        called = f" (also read under the name {', '.join(wanted)})" if tuple(wanted) != (column,) else ""
        parts.append(f"{column!r}{called}" + (f" (nearest in the file: {hits[0]!r})" if hits else ""))
    return UnknownKind(
        path,
        f"read as {mapping.title}, it lacks the required column{'s' * (len(parts) > 1)} {', '.join(parts)}",
        hint="rename the column in the file, or describe the layout in a mapping file and pass --map FILE",
    )
