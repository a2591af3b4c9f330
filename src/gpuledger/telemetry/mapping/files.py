"""Which mapping files are there, and is each of them sound?"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.arguments import takes
from gpuledger.catalog.files import convert, data_dir, load_toml
from gpuledger.errors import FactError, UnknownName, map_os_error, nearest
from gpuledger.settings import read_toml
from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping.checks import check_mapping
from gpuledger.telemetry.mapping.rules import Mapping, TimeRule, ValueRule, WideRule

OWN = "gpuledger"  # the lake's own columns
_FORMER_NAMES = {"s0": "export36"}  # as documented for version 0.1
_MOST_INCLUDES = 16
# What load_mapping fills in itself.
_NOT_KEYS = ("file", "own_rules")


@cache
def shipped() -> dict[str, Mapping]:
    """The mapping files of the package by name, the specific before the general."""
    maps = data_dir("gpuledger.telemetry", "maps")
    raw = [load_toml(f, Mapping) for f in maps.iterdir() if f.name.endswith(".toml")]
    found = {m.name: m for m in [*raw, _own()]}
    ordered = sorted(found.values(), key=lambda m: (-len(m.detect), m.name))
    return {m.name: _joined(m, found[m.includes]) if m.includes else m for m in ordered}


@takes()
def load_mapping(name_or_path: str) -> Mapping:
    """A shipped mapping by name, or a user's own file; one that breaks its own rules is refused with the key."""
    name_or_path = _FORMER_NAMES.get(name_or_path, name_or_path)
    if name_or_path in shipped():
        return shipped()[name_or_path]
    path = Path(name_or_path)
    try:
        there = path.exists()
    except (OSError, ValueError):  # a name no file can have
        there = False
    if not there:
        raise UnknownName("mapping", name_or_path, shipped())
    return _with_included(path, _read(path), (path,))


def _own() -> Mapping:
    """The lake's own column names, so that exported samples can come back."""
    readings = tuple(ValueRule(column=c, sources=(c,)) for c in schema.readings())
    return Mapping(
        name=OWN,
        title="gpuledger's own columns",
        detect=(schema.TIME, "gpu_uuid"),
        required=(schema.TIME, "gpu_uuid"),
        time=TimeRule(sources=(schema.TIME,)),
        labels={c: (c,) for c in schema.labels()},
        values=readings,
    )


def _read(path: Path) -> Mapping:
    """A user's file by itself."""
    if path.is_dir():
        raise map_os_error(IsADirectoryError(), path, "read the mapping file")
    raw = read_toml(path)
    _check_keys(path, raw)
    made = convert(_lists(raw), Mapping, str(path))
    made = msgspec.structs.replace(
        made, file=str(path), own_rules=len(made.values), name=made.name or path.stem, title=made.title or path.name
    )
    check_mapping(path, made)
    return made


def _with_included(path: Path, mapping: Mapping, chain: tuple[Path, ...]) -> Mapping:
    """The mapping with the value rules of the one it includes, and of those that one includes."""
    if not mapping.includes:
        return mapping
    if mapping.includes in shipped():
        return _joined(mapping, shipped()[mapping.includes])
    other = path.parent / mapping.includes
    if not other.is_file():
        close = nearest(mapping.includes, [*shipped(), *(f.name for f in path.parent.glob("*.toml"))])
        hint = f"did you mean {' or '.join(close)}?" if close else f"name one of {', '.join(shipped())}, or a file"
        raise FactError(path, "includes", f"no mapping is called {mapping.includes!r}", hint=hint)
    if any(other.samefile(p) for p in chain) or len(chain) >= _MOST_INCLUDES:
        names = " -> ".join(p.name for p in (*chain, other))
        raise FactError(path, "includes", f"the files include each other: {names}", hint="remove one of the includes")
    return _joined(mapping, _with_included(other, _read(other), (*chain, other)))


def _joined(mapping: Mapping, other: Mapping) -> Mapping:
    """A mapping with the value rules of another below its own, and its blanks where it names none itself."""
    plain = Mapping()
    return msgspec.structs.replace(
        mapping,
        values=mapping.values + other.values,
        blank_from=other.blank_from if mapping.blank_from == plain.blank_from else mapping.blank_from,
        exporter_pods=mapping.exporter_pods or other.exporter_pods,
        not_needed=mapping.not_needed or other.not_needed,
        blank_text=other.blank_text if mapping.blank_text == plain.blank_text else mapping.blank_text,
    )


def _check_keys(path: Path, raw: dict[str, Any]) -> None:
    """Every key of the file is one that means something."""
    tables: list[tuple[str, object, type[msgspec.Struct]]] = [("", raw, Mapping), ("time.", raw.get("time"), TimeRule)]
    tables.append(("wide.", raw.get("wide"), WideRule))
    rules = raw.get("values")
    tables += [(f"values[{n}].", rule, ValueRule) for n, rule in enumerate(rules if isinstance(rules, list) else [], 1)]
    for where, table, kind in tables:
        known = [f for f in kind.__struct_fields__ if f not in _NOT_KEYS]
        for key in table if isinstance(table, dict) else ():
            if key not in known:
                close = nearest(key, known)
                hint = f"did you mean {' or '.join(close)}?" if close else f"known here: {', '.join(known)}"
                raise FactError(path, f"{where}{key}", "a mapping file has no such key", hint=hint)


def _lists(raw: dict[str, Any]) -> dict[str, Any]:
    """The same file with a list wherever a single name stands for one."""
    labels, time, rules = raw.get("labels"), raw.get("time"), raw.get("values")
    if isinstance(labels, dict):
        raw |= {"labels": {name: _list(sources) for name, sources in labels.items()}}
    if isinstance(time, dict):
        raw |= {"time": {key: value if key == "unit" else _list(value) for key, value in time.items()}}
    if isinstance(rules, list):
        raw |= {"values": [r | {"sources": _list(r.get("sources"))} if isinstance(r, dict) else r for r in rules]}
    return raw


def _list(value: object) -> object:
    return [value] if isinstance(value, str) else value
