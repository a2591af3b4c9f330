"""How do the facts get from a data file into memory, checked whole, and which of them does a name mean?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from gpuledger.errors import FactError, FileFault, UnknownName, map_os_error, nearest
from gpuledger.settings import NESTED, convert, parse_toml, read_toml
from gpuledger.units import Unknown

__all__ = ["Fact", "convert", "data_dir", "load_toml", "parse_json", "parse_toml"]

T = TypeVar("T")
SUGGESTIONS = 4


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure with its source and date; `verified` is false where the source is second-hand."""

    value: float
    source: str
    as_of: str
    verified: bool = True
    note: str = ""


def data_dir(package: str, *parts: str) -> Traversable:
    """A folder of data files shipped inside `package`."""
    return resources.files(package).joinpath(*parts)


def load_toml(file: Traversable | Path, kind: type[T]) -> T:
    """The file as a validated struct; an error names the file, the field and the value."""
    return convert(read_toml(file), kind, str(file))


def read_text(file: Traversable | Path, doing: str) -> str:
    """The text of a file; `doing` says what failed where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise map_os_error(error, str(file), doing) from error
    except UnicodeDecodeError as error:
        raise FileFault(str(file), f"not UTF-8 text: {error.reason}", hint="save the file as UTF-8") from error


def toml_files(folder: Traversable | Path, doing: str) -> list[Traversable | Path]:
    """The *.toml files of a folder, by name."""
    try:
        return sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    except OSError as error:
        raise map_os_error(error, str(folder), doing) from error


def parse_json(text: str, path: str, parse_float: Callable[[str], Any] = float) -> Any:
    """JSON text as plain data."""
    try:
        return json.loads(text, parse_float=parse_float)
    except json.JSONDecodeError as error:
        problem = f"broken JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise FileFault(path, problem, hint="fix that line, or fetch the file again") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise FileFault(path, f"broken JSON: {error}", hint="write a smaller number") from error
    except RecursionError as error:
        raise FactError(path, "syntax", NESTED, hint="remove the brackets that only hold brackets") from error


def check_date(as_of: str, path: str, field: str) -> None:
    """A fact is dated to the month or the day."""
    if not re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", as_of):
        raise FactError(path, field, f"as_of is {as_of!r}", hint="give the date as YYYY-MM or YYYY-MM-DD")


class Entry(Protocol):
    """A thing of a catalog: it has a name, and maybe others."""

    @property
    def name(self) -> str:
        """What it is called."""

    def spellings(self) -> tuple[str, ...]:
        """Everything it is called."""


E = TypeVar("E", bound=Entry)


def fold(name: str) -> str:
    """A name as names are compared: letter case and outer blanks aside."""
    return name.strip().casefold()


def by_spelling(entries: Iterable[tuple[str, E]]) -> dict[str, E]:
    """Entries by every folded spelling; each comes with the path of its file. One name must not mean two things."""
    index: dict[str, E] = {}
    for path, entry in entries:
        for spelling in entry.spellings():
            other = index.setdefault(fold(spelling), entry)
            if other is not entry:
                problem = f"{spelling!r} already means {other.spellings()[0]}"
                raise FactError(path, "aliases", problem, hint="keep the name in one of the two places")
    return index


def not_found(name: str, entries: Mapping[str, Entry]) -> Unknown:
    """Why a name means nothing here."""
    near = ", ".join(_suggest(name, entries)) or "none"
    return Unknown(f"{name!r} is not in the catalog; nearest: {near}")


def unknown_name(kind: str, name: str, entries: Mapping[str, Entry], more: str = "") -> UnknownName:
    """The error for a name a person typed, with names to try instead."""
    error = UnknownName(kind, name, entries)
    if near := _suggest(name, entries):
        error.nearest, error.hint = near, f"did you mean {' or '.join(near)}?{more}"
    return error


def _suggest(name: str, entries: Mapping[str, Entry]) -> list[str]:
    """Names to try instead: entries whose names hold this text first ("h100"), then those spelled like it."""
    wanted = fold(name)
    owner = {s: entry.name for entry in entries.values() for s in entry.spellings()}
    holding = [s for s in owner if wanted and wanted in fold(s)]
    near = [owner[s] for s in (*holding, *nearest(wanted, owner, limit=12))]
    return list(dict.fromkeys(near))[:SUGGESTIONS]
