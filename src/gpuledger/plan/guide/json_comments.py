"""How is a JSON file with // comments read, and what is said where it is broken?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from gpuledger.errors import FactError, FileFault, map_os_error

MEND = "mend the JSON at the place named above; // comments are allowed"


@dataclass(frozen=True)
class _Constant:
    """NaN or an infinity, kept until the field it stands in is known."""

    name: str


def read_json(file: Traversable | Path) -> Any:
    """The file as plain data; comments from // to the end of the line and between /* and */ are left out."""
    path = str(file)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise map_os_error(error, path, "read the configuration") from error
    except UnicodeDecodeError as error:
        raise FileFault(path, f"not UTF-8 text: {error.reason}", hint="save the file as UTF-8") from error
    return parse(text, path)


def parse(text: str, path: str) -> Any:
    """The text as plain data; a fault names the file, the line and the column."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise FactError(path, key, "the key is there twice", hint="keep one of the two")
            if isinstance(value, _Constant):
                hint = "write a finite number, or leave the field out"
                raise FactError(path, key, f"{value.name} is no JSON number", hint=hint)
            found[key] = value
        return found

    try:
        return json.loads(without_comments(text), parse_constant=_Constant, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FactError(path, "syntax", f"{error.msg} at {where}{_shown(text, error.lineno)}", hint=MEND) from error
    except RecursionError as error:
        raise FactError(path, "syntax", "nested too deeply", hint="a configuration has four levels") from error


def _shown(text: str, line: int) -> str:
    lines = text.splitlines()
    found = lines[line - 1].strip() if line <= len(lines) else ""
    return f" (found {found[:60]!r})" if found else " (the file ends there)"


def without_comments(text: str) -> str:
    """The same text with blanks for comments, so that lines and columns stay what they are."""
    out: list[str] = []
    at, end = 0, len(text)
    while at < end:
        two = text[at : at + 2]
        if text[at] == '"':
            stop = _string_end(text, at)
            out.append(text[at:stop])
        elif two == "//":
            stop = text.find("\n", at)
            stop = end if stop < 0 else stop
            out.append(" " * (stop - at))
        elif two == "/*":
            stop = text.find("*/", at + 2)
            stop = end if stop < 0 else stop + 2
            out.append("".join("\n" if c == "\n" else " " for c in text[at:stop]))
        else:
            stop = at + 1
            out.append(text[at])
        at = stop
    return "".join(out)


def _string_end(text: str, start: int) -> int:
    """One past the closing quote; a // inside a string is no comment."""
    at = start + 1
    while at < len(text) and text[at] not in '"\n':
        at += 2 if text[at] == "\\" else 1
    return min(at + 1, len(text))
