"""Does every name and number in a user's mapping file mean something, and what is wrong with a file it does not fit?"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from pathlib import Path

from gpuledger.errors import FactError, NotSaid, UnknownKind, nearest
from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping.rules import ASKS, EPOCH_UNITS, PARSE_KINDS, Mapping, TimeRule, ValueRule
from gpuledger.telemetry.mapping.wide import template
from gpuledger.telemetry.measures import factor_of, units_of

START_A_MAP = "start a mapping file with gpuledger import --explain FILE --write-map map.toml, then pass --map map.toml"
_AMOUNT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")
_A_DAY = dt.datetime(2026, 2, 23, 13, 47, 59, tzinfo=dt.UTC)


def check_mapping(path: str | Path, mapping: Mapping) -> None:
    """Refuse a mapping file that breaks its own rules, naming the key and the nearest name."""
    _check_time(path, mapping.time)
    for name, sources in mapping.labels.items():
        _check_label(path, f"labels.{name}", name)
        _check_sources(path, f"labels.{name}", sources)
    for place, rule in enumerate(mapping.values, 1):
        _check_value(path, f"values[{place}]", rule)
    for name, value in mapping.constants.items():
        if name in schema.readings():
            constant_reading(path, name, value)
        else:
            _check_label(path, f"constants.{name}", name)
    for name in mapping.asks:
        _check_known(path, "asks", "question", name, ASKS)
    if mapping.wide:
        template(path, mapping.wide.pattern)


def constant_reading(path: str | Path, column: str, value: str | float) -> float:
    """A reading of all rows, in the unit of the schema: a number in that unit, or text with a unit such as "700 W"."""
    key, about = f"constants.{column}", schema.columns()[column]
    if about.kind == "counter":
        raise FactError(path, key, "a counter that never grows has no meaning", hint="remove it")
    if isinstance(value, str):
        found = _AMOUNT.fullmatch(value)
        if found is None:
            raise FactError(path, key, f"{value!r} is not a number with a unit", hint=f"for example {about.unit!r}")
        factor = factor_of(found[2], column) if found[2] else None
        if found[2] and factor is None:
            raise FactError(path, key, f"{column} cannot be given in {found[2]!r}", hint=_units_hint(column))
        number = factor.of(float(found[1])) if factor else float(found[1])
    else:
        number = float(value) if abs(value) < 1e300 else math.inf
    low, high = about.min or 0.0, about.max or 0.0
    if not low <= number <= high:
        problem = f"{value} is outside {low:g} to {high:g} {about.unit}"
        raise FactError(path, key, problem, hint="give it in that unit, or as text with its own unit")
    return number


def _check_time(path: str | Path, rule: TimeRule) -> None:
    if rule.unit:
        _check_known(path, "time.unit", "unit of epoch numbers", rule.unit, EPOCH_UNITS)
    if len(rule.join) == 1:
        raise FactError(path, "time.join", "one column is not a join", hint=f"write sources = [{rule.join[0]!r}]")
    for layout in rule.formats:
        try:
            read = dt.datetime.strptime(_A_DAY.strftime(layout), layout)
        except (ValueError, UnicodeError, re.error) as error:
            problem = f"{layout!r} cannot be read: {error}"
            hint = "write it as Python's strptime does, for example %d.%m.%Y %H:%M:%S"
            raise FactError(path, "time.formats", problem, hint=hint) from error
        if read.date() != _A_DAY.date():
            problem = f"{layout!r} does not give year, month and day"
            hint = 'if the date is in a column of its own: join = ["date", "time"]'
            raise FactError(path, "time.formats", problem, hint=hint)


def _check_value(path: str | Path, key: str, rule: ValueRule) -> None:
    if rule.column not in schema.readings():
        if rule.column in schema.labels():
            hint = f"it is a label: write {rule.column} = [...] under [labels]"
            raise FactError(path, f"{key}.column", f"{rule.column!r} is not a reading", hint=hint)
        _check_known(path, f"{key}.column", "schema column", rule.column, schema.readings())
    _check_sources(path, f"{key}.sources", rule.sources)
    for name in ("multiply", "divide"):
        factor = getattr(rule, name)
        if not math.isfinite(factor) or factor == 0:
            raise FactError(path, f"{key}.{name}", f"{factor} is not a factor", hint="give a number other than 0")
    scaled = rule.multiply != 1 or rule.divide != 1
    if rule.unit and scaled:
        raise FactError(path, f"{key}.unit", "the factor follows from the unit", hint="remove multiply and divide")
    if rule.unit and factor_of(rule.unit, rule.column) is None:
        raise FactError(
            path, f"{key}.unit", f"{rule.column} cannot be read in {rule.unit!r}", hint=_units_hint(rule.column)
        )
    if rule.parse:
        _check_parse(path, f"{key}.parse", rule, scaled)


def _check_parse(path: str | Path, key: str, rule: ValueRule, scaled: bool) -> None:
    _check_known(path, key, "kind of parse", rule.parse, PARSE_KINDS)
    fits = {"mig_profile": rule.column == "slice_ratio", "hex": schema.columns()[rule.column].type == "int64"}
    if not fits[rule.parse]:
        raise FactError(
            path, key, f"{rule.parse!r} cannot fill {rule.column}", hint=f"it reads {PARSE_KINDS[rule.parse]}"
        )
    if scaled or rule.unit:
        raise FactError(path, key, "what is parsed has no unit", hint="remove unit, multiply and divide")


def _check_label(path: str | Path, key: str, name: str) -> None:
    if name in schema.readings() and key.startswith("labels"):
        hint = f'it is a reading: write [[values]] with column = "{name}"'
        raise FactError(path, key, f"{name!r} is not a label", hint=hint)
    if name in (schema.TIME, "time"):
        hint = "where the time stands is said under [time]; one time for the whole file is given with --at TIME"
        raise FactError(path, key, f"{name!r} is not a label", hint=hint)
    readings = () if key.startswith("labels") else schema.readings()
    _check_known(path, key, "label", name, (*schema.labels(), *readings))


def _check_sources(path: str | Path, key: str, sources: tuple[str, ...]) -> None:
    if not sources:
        raise FactError(path, key, "names no column of the file", hint="list the names the column may have")


def _check_known(path: str | Path, key: str, kind: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        close = nearest(name, names)
        more = f", and {len(names) - 24} more" if len(names) > 24 else ""
        hint = f"nearest: {', '.join(close)}" if close else f"known: {', '.join(names[:24])}{more}"
        raise FactError(path, key, f"no {kind} is called {name!r}", hint=hint)


def _units_hint(column: str) -> str:
    known = units_of(column)
    return f"its units: {', '.join(known)}" if known else "it has no unit: leave it out"


def asking(path: str | Path, asked: list[str], mapping: Mapping) -> NotSaid:
    """The fault for what this kind of file never says and only the user knows."""
    words = {
        "time": "when its readings were taken",
        "date": "on which day it starts",
        "start": "when the seconds it counts start",
        "every": "how far they are apart",
        "host": "which host it is from",
        "gpu_model": "which GPU it is of",
    }
    *others, last = (words[name] for name in asked)
    lacks = f"{', '.join(others)} and {last}" if others else last
    options = " ".join(ASKS[name] for name in asked)
    return NotSaid(path, f"read as {mapping.title}, it does not say {lacks}", hint=f"add {options}")


def missing(path: str | Path, missing: list[str], names: list[str], mapping: Mapping) -> UnknownKind:
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
        hint=f"name the column in {mapping.file}; gpuledger import --explain shows what each column is read as"
        if mapping.file
        else "rename the column in the file, or name it in a mapping file (docs/mapping-files.md): --map map.toml"
        if {"time", "gpu_uuid"} & {*missing}
        else f"rename the column in the file, or {START_A_MAP}",
    )


def no_reading(path: str | Path, names: list[str], mapping: Mapping) -> UnknownKind:
    """The fault for a file with times and GPUs, and nothing read of them."""
    wanted = list(dict.fromkeys(s for rule in mapping.values for s in rule.sources))
    if not wanted:
        problem = f"{mapping.file or mapping.title} names no reading"
        return UnknownKind(path, problem, hint="add [[values]] with column and sources for each reading")
    near = [f"{w!r} (nearest in the file: {hits[0]!r})" for w in wanted if (hits := nearest(w, names, 1))]
    shown = near[:3] or [repr(w) for w in wanted[:6]]
    more = ", ..." if len(wanted) > len(shown) else ""
    return UnknownKind(
        path,
        f"read as {mapping.title}, it has not one reading; looked for {', '.join(shown)}{more}",
        hint="gpuledger import --explain FILE shows how each column is read",
    )
