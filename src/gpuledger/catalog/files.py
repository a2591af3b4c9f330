"""How do the facts get from a data file into memory, checked whole, and which of them does a name mean?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from gpuledger import bounds
from gpuledger.arguments import takes
from gpuledger.errors import FactError, FileFault, UnknownName, map_os_error, nearest
from gpuledger.settings import NESTED, convert, data_dir, parse_toml, read_toml
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


def load_toml(file: Path, kind: type[T]) -> T:
    """The file as a validated struct; an error names the file, the field and the value."""
    return convert(read_toml(file), kind, str(file))


def read_text(file: Path, doing: str) -> str:
    """The text of a file; `doing` says what failed where it cannot be read."""
    try:
        return bounds.read_text(file, "utf-8-sig", bounds.DOCUMENT_MIB)
    except OSError as error:
        raise map_os_error(error, str(file), doing) from error
    except UnicodeDecodeError as error:
        raise FileFault(str(file), f"not UTF-8 text: {error.reason}", hint="save the file as UTF-8") from error


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
Read = Callable[[Path], Iterable[tuple[str, str, E]]]


def fold(name: str) -> str:
    """A name as names are compared: letter case and outer blanks aside."""
    return name.strip().casefold()


class Catalog(Generic[E]):
    """The entries of a folder of TOML files by name and by every spelling, with those of another folder over them.

    `read`: the entries of one file, each after the field that names it and its name. `twice`: what is wrong with a
    name that is there twice. `more`: what else a person may give instead of a name. `folded`: a name as names are
    compared here. `alike`: whether a name that nothing has may be a misspelling of an entry's.
    """

    def __init__(
        self, kind: str, folder: Path, read: Read[E], twice: str, more: str = "",
        folded: Callable[[str], str] = fold, alike: Callable[[str, E], bool] | None = None,
    ) -> None:  # fmt: skip
        self._kind, self._folder, self._read, self._twice, self._more = kind, folder, read, twice, more
        self._folded, self._alike = folded, alike
        self._loaded: dict[Path | None, tuple[Mapping[str, E], Mapping[str, E]]] = {}

    @takes()
    def load(self, extra_dir: Path | None = None) -> Mapping[str, E]:
        """All entries by name; a file in `extra_dir` adds entries, or replaces shipped ones of the same name."""
        return self._both(extra_dir)[0]

    @takes()
    def find(self, name: str, extra_dir: Path | None = None) -> E | Unknown:
        """The entry with exactly this name or alias (as names are compared here), never a part of one."""
        found = self._both(extra_dir)[1].get(self._folded(name))
        if found is None:
            near = ", ".join(self.suggest(name, extra_dir)) or "none"
            return Unknown(f"{name!r} is not in the catalog; nearest: {near}")
        return found

    def suggest(self, name: str, extra_dir: Path | None = None) -> list[str]:
        """Names to try instead: entries whose names hold this text first ("h100"), then those spelled like it."""
        wanted, entries = fold(name), self.load(extra_dir).values()
        owner = {s: e.name for e in entries if self._alike is None or self._alike(name, e) for s in e.spellings()}
        holding = [s for s in owner if wanted and wanted in fold(s)]
        near = [owner[s] for s in (*holding, *nearest(wanted, owner, limit=12))]
        return list(dict.fromkeys(near))[:SUGGESTIONS]

    @takes()
    def get(self, name: str, extra_dir: Path | None = None) -> E:
        """As `find`, for a name a person typed: an error with names to try instead where there is none."""
        found = self.find(name, extra_dir)
        if isinstance(found, Unknown):
            error = UnknownName(self._kind, name, self.load(extra_dir), near := self.suggest(name, extra_dir))
            error.hint += self._more if near else ""
            raise error
        return found

    def _both(self, extra_dir: Path | None) -> tuple[Mapping[str, E], Mapping[str, E]]:
        if extra_dir not in self._loaded:
            entries: dict[str, tuple[str, E]] = {}
            for folder in (self._folder, extra_dir) if extra_dir else (self._folder,):
                entries |= self._entries(folder)
            by_name = {name: entry for name, (_, entry) in sorted(entries.items())}
            by_spelling = _by_spelling(entries.values(), self._folded)
            self._loaded[extra_dir] = MappingProxyType(by_name), MappingProxyType(by_spelling)
        return self._loaded[extra_dir]

    def _entries(self, folder: Path) -> dict[str, tuple[str, E]]:
        found: dict[str, tuple[str, E]] = {}
        for file in toml_files(folder, f"read {self._kind} files"):
            for field, name, entry in self._read(file):
                if name in found:
                    raise FactError(str(file), field, f"{name!r} {self._twice}", hint="give one another name")
                found[name] = str(file), entry
        return found


def toml_files(folder: Path, doing: str) -> list[Path]:
    """The *.toml files of a folder, by name."""
    try:
        return sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    except OSError as error:
        raise map_os_error(error, str(folder), doing) from error


def _by_spelling(entries: Iterable[tuple[str, E]], folded: Callable[[str], str]) -> dict[str, E]:
    """Entries by every folded spelling; each comes with the path of its file. One name must not mean two things."""
    index: dict[str, E] = {}
    for path, entry in entries:
        for spelling in entry.spellings():
            other = index.setdefault(folded(spelling), entry)
            if other is not entry:
                problem = f"{spelling!r} already means {other.spellings()[0]}"
                raise FactError(path, "aliases", problem, hint="keep the name in one of the two places")
    return index
