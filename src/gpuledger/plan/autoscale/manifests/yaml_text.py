"""How is plain data written as YAML? As little of it as manifests need; text is quoted where it could be misread."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def yaml_text(value: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """A document, under comments."""
    lines = [*(f"# {line}" for line in comments), *_lines(value, 0)]
    return "\n".join(lines) + "\n"


def _lines(value: Mapping[str, Any] | Sequence[Any], depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entry(f"{pad}{_scalar(key)}:", item, depth)
        return
    for item in value:
        if isinstance(item, Mapping | list | tuple) and item:
            first, *rest = _lines(item, depth + 1)
            yield f"{pad}- {first.strip()}"
            yield from rest
        else:
            yield f"{pad}- {_scalar(item)}"


def _entry(head: str, item: Any, depth: int) -> Iterator[str]:
    if isinstance(item, Mapping | list | tuple):
        if not item:
            yield f"{head} {'{}' if isinstance(item, Mapping) else '[]'}"
        else:
            yield head
            yield from _lines(item, depth + 1)
    elif isinstance(item, str) and "\n" in item:
        yield f"{head} |-"
        yield from ("  " * (depth + 1) + line for line in item.splitlines())
    else:
        yield f"{head} {_scalar(item)}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.casefold() not in _WORDS else json.dumps(text)
