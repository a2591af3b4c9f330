"""How is a statement written as JSON? One shape for every statement.

Every statement is one object with `v` (the version of its shape) and `statement` (its kind). A figure that is unknown
is null where it would be, and the list `not_known` names it: {figure, why, count}, where `figure` is its path with list
places left out. Dollars are strings of unrounded decimals, percentages are numbers, an instant in milliseconds has its
ISO text next to it, a date is YYYY-MM-DD.

A class that reads differently in JSON says so itself: `as_json()` returns the mapping (or the value) to write instead
of its fields, and the same rules apply to what it returns.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import Any

from gpuledger.units import Unknown, utc

Json = dict[str, Any]
Missing = Counter[tuple[str, str]]
Writer = Callable[[Any, str, Missing | None], Any]

_MS = "_ms"
_PCT = "_pct"
_LEAVES = frozenset({float, int, str, bool, type(None)})
# What Python reserves, as everybody else calls it.
_CALLED = {"klass": "class"}


def encode(kind: str, body: object, *, v: int = 1, named: Iterable[tuple[str, str]] = ()) -> Json:
    """A whole statement. `named`: what else is unknown, as (figure, why)."""
    missing: Missing = Counter()
    out = plain(body, missing=missing)
    for figure, why in named:
        missing.setdefault((figure, why), 1)
    out.pop("not_known", None)
    return {"v": v, "statement": kind, **out, "not_known": not_known(missing)}


def not_known(missing: Missing) -> list[Json]:
    """The list of what is unknown."""
    return [{"figure": figure, "why": why, "count": count} for (figure, why), count in missing.items()]


def plain(value: Any, path: str = "", missing: Missing | None = None) -> Any:
    """Anything as JSON holds it; what is unknown becomes None and is counted in `missing` by its path."""
    if type(value) in _LEAVES:
        return value
    return _writer(value.__class__)(value, path, missing)


@cache
def _writer(kind: Any) -> Writer:
    """How values of a class are written: found out once for each."""
    for parents, writer in _WRITERS:
        if issubclass(kind, parents):
            return writer
    if hasattr(kind, "as_json"):
        return lambda value, path, missing: plain(value.as_json(), path, missing)
    if not (names := _names(kind)):
        return lambda value, _path, _missing: _scalar(value)
    plan = [_planned(name) for name in names]
    return lambda value, path, missing: _fields(value, plan, path, missing)


def _unknown(value: Unknown, path: str, missing: Missing | None) -> None:
    if missing is not None:
        missing[path, value.why] += 1


def _items(values: Sequence[object], path: str, missing: Missing | None) -> list[Any]:
    inside = f"{path}[]"
    return [value if type(value) in _LEAVES else plain(value, inside, missing) for value in values]


def as_text(value: Decimal) -> str:
    """An unrounded amount as plain digits, without trailing zeros."""
    if not value:
        return "-0" if value.is_signed() else "0"
    text = str(value)
    if "E" in text:
        text = f"{value:f}"
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text


def iso(at_ms: int) -> str:
    """An instant in milliseconds as ISO text."""
    return f"{utc(at_ms):%Y-%m-%dT%H:%M:%SZ}"


def _scalar(value: object) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        return as_text(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    return value


def _mapping(value: Mapping[Any, object], path: str, missing: Missing | None) -> Json:
    out: Json = {}
    for key, found in value.items():
        name = key if type(key) is str else _key(key)
        out[name] = found if type(found) in _LEAVES else _field(name, found, path, missing)
    return out


def _planned(name: str) -> tuple[str, str, str]:
    """A field, what it is called in JSON, and what its ISO text is called where it is an instant, else nothing."""
    called = _CALLED.get(name, name)
    return name, called, f"{called.removesuffix(_MS)}_utc" if name.endswith(_MS) else ""


def _fields(value: object, plan: Sequence[tuple[str, str, str]], path: str, missing: Missing | None) -> Json:
    out: Json = {}
    for name, called, text in plan:
        found = getattr(value, name)
        out[called] = found if type(found) in _LEAVES else _field(called, found, path, missing)
        if text:
            at = out[called]
            out[text] = None if at is None else iso(at)
    return out


def _field(name: str, value: object, path: str, missing: Missing | None) -> Any:
    if isinstance(value, Decimal):
        return float(value) if name.endswith(_PCT) else as_text(value)
    return plain(value, f"{path}.{name}" if path else name, missing)


def _key(key: object) -> str:
    return str(key.value) if isinstance(key, Enum) else str(key)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass or a msgspec struct; none for anything else."""
    if is_dataclass(kind):
        return tuple(f.name for f in fields(kind))
    return tuple(getattr(kind, "__struct_fields__", ()))


_WRITERS: tuple[tuple[tuple[type, ...], Writer], ...] = (
    ((Unknown,), _unknown),
    ((Mapping,), _mapping),
    ((list, tuple), _items),
    ((set, frozenset), lambda value, path, missing: _items(sorted(value), path, missing)),
)
