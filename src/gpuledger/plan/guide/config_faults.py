"""How is an entry of a configuration file checked, and what is said of one that breaks the rules?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from gpuledger.errors import FactError, InputError, nearest

T = TypeVar("T")

_MISSING = re.compile(r"Object missing required field `(.+?)`")
_EXTRA = re.compile(r"Object contains unknown field `(.+?)`")
_EXPECTED = re.compile(r"Expected `(.+?)`(.*)")
# What msgspec calls a kind of value, as people say it.
_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text in quotes",
    "bool": "true or false",
    "array": "a list",
}


def entry(raw: object, kind: type[T], path: str, field: str) -> T:
    """Plain data as a checked struct; a fault names file, field, the value found and what is allowed."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise _fault(str(error), raw, kind, path, field) from error


def faults(raw: object, kind: Any, path: str, field: str) -> list[FactError]:
    """Every fault of an entry, field by field; none where it is sound."""
    if not isinstance(raw, dict) or not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        try:
            entry(raw, kind, path, field)
        except FactError as error:
            return [error]
        return []
    found: list[FactError] = []
    fields = {f.encode_name: f for f in msgspec.structs.fields(kind)}
    for name, one in fields.items():
        if name in raw:
            found += faults(raw[name], one.type, path, f"{field}.{name}")
        elif one.required:
            found.append(_missing(path, field, name))
    return found + [_extra(path, field, name, fields) for name in raw if name not in fields]


def absent(kind: Any, raw: Mapping[str, Any]) -> list[str]:
    """The fields an entry of this kind cannot do without, and does."""
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return []
    found: list[str] = []
    for one in msgspec.structs.fields(kind):
        name = one.encode_name
        if name not in raw:
            found += [name] if one.required else []
        elif isinstance(raw[name], dict):
            found += [f"{name}.{inner}" for inner in absent(one.type, raw[name])]
    return found


def _missing(path: str, field: str, name: str) -> FactError:
    hint = f"add {name!r} to {field}; gpuledger config init writes files with every field"
    return FactError(path, f"{field}.{name}", "the field is missing", hint=hint)


def _extra(path: str, field: str, name: str, known: Iterable[str]) -> FactError:
    names = sorted(known)
    near = nearest(name, names)
    allowed = f"did you mean {' or '.join(near)}?" if near else f"allowed: {', '.join(names) or 'see the guide'}"
    return FactError(path, f"{field}.{name}", "no such field", hint=allowed)


def _fault(message: str, raw: object, kind: type[Any], path: str, field: str) -> FactError:
    problem, _, where = message.partition(" - at `")
    inner = where.rstrip("`").removeprefix("$").lstrip(".")
    full = ".".join(p for p in (field, inner) if p)
    if found := _MISSING.search(problem):
        return _missing(path, full, found[1])
    if found := _EXTRA.search(problem):
        known = [f.name for f in msgspec.structs.fields(kind)] if not inner else []
        return _extra(path, full, found[1], known)
    value = _found(raw, inner)
    if "Invalid enum value" in problem:
        allowed = "gpu or instance" if full.endswith("price_scope") else "one of the names the guide lists"
        return FactError(path, full, f"{value} is not allowed", hint=f"allowed: {allowed}")
    return FactError(path, full, f"{value} is not allowed", hint=f"allowed: {_allowed(problem)}")


def _allowed(problem: str) -> str:
    found = _EXPECTED.search(problem)
    if not found:
        return problem
    kinds = " or ".join(_KINDS.get(k.strip(), k.strip()) for k in found[1].split("|") if k.strip() != "null")
    rest = found[2].split(", got")[0].strip()
    for sign, words in ((">=", "of at least"), ("<=", "of at most"), (">", "above"), ("<", "below")):
        if rest.startswith(sign):
            return f"{kinds} {words} {rest.removeprefix(sign).strip().removesuffix('.0')}"
    return f"{kinds} {rest}".strip()


def _found(raw: object, inner: str) -> str:
    value = raw
    for step in inner.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def choose(value: str, allowed: Iterable[str], path: str, field: str) -> str:
    """The allowed name that is meant, letter case and hyphens aside."""
    names = list(allowed)
    folded = {fold(name): name for name in names}
    if fold(value) in folded:
        return folded[fold(value)]
    near = nearest(fold(value), list(folded))
    guess = f"did you mean {folded[near[0]]}? " if near else ""
    raise FactError(path, field, f"{value!r} is not allowed", hint=f"{guess}allowed: {', '.join(names)}")


def fold(name: str) -> str:
    """A name as it is compared."""
    return name.strip().casefold().replace("-", "_")


def pick(value: str, allowed: Iterable[str], field: str) -> str:
    """As `choose`, for a value a person gave."""
    try:
        return choose(value, allowed, field, field)
    except FactError as error:
        raise InputError(f"{field} {value!r} is not allowed", hint=error.hint) from None
