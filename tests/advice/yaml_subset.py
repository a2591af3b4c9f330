"""Enough of YAML to tell whether a snippet's structure holds: maps, lists, scalars and block text."""

from __future__ import annotations

import json
from typing import Any

Line = tuple[int, int, str]


def parse(text: str) -> Any:
    """The document, or a ValueError that names the line."""
    found = [(n, raw) for n, raw in enumerate(text.splitlines(), 1) if raw.strip() and not raw.lstrip().startswith("#")]
    lines = [(n, len(raw) - len(raw.lstrip(" ")), raw.strip()) for n, raw in found]
    for n, raw in found:
        if "\t" in raw:
            raise ValueError(f"line {n}: a tab")
    value, rest = _block(lines, lines[0][1] if lines else 0)
    if rest:
        raise ValueError(f"line {rest[0][0]}: indentation")
    return value


def _block(lines: list[Line], indent: int) -> tuple[Any, list[Line]]:
    is_list = bool(lines) and lines[0][2].startswith("- ")
    out: Any = [] if is_list else {}
    while lines and lines[0][1] == indent:
        n, _, text = lines[0]
        if text.startswith("- ") != is_list:
            raise ValueError(f"line {n}: a list and a map mixed")
        if is_list:
            item = [(n, indent + 2, text[2:]), *lines[1:]]
            value, lines = _block(item, indent + 2) if ": " in text or text.endswith(":") else (text[2:], lines[1:])
            out.append(value)
            continue
        key, colon, scalar = text.partition(":")
        if not colon or (scalar and not scalar.startswith(" ")):
            raise ValueError(f"line {n}: no key")
        out[key], lines = _value(n, scalar.strip(), lines[1:], indent)
    if lines and lines[0][1] > indent:
        raise ValueError(f"line {lines[0][0]}: indentation")
    return out, lines


def _value(n: int, scalar: str, lines: list[Line], indent: int) -> tuple[Any, list[Line]]:
    if scalar.startswith("|"):
        taken = [one for one in lines if one[1] > indent]
        return parse("\n".join(" " * (i - taken[0][1]) + t for _, i, t in taken)), lines[len(taken) :]
    if scalar:
        if scalar[0] in '[{"':
            try:
                return json.loads(scalar), lines
            except json.JSONDecodeError:
                raise ValueError(f"line {n}: {scalar}") from None
        return scalar, lines
    if not lines or lines[0][1] <= indent:
        raise ValueError(f"line {n}: nothing below it")
    return _block(lines, lines[0][1])
