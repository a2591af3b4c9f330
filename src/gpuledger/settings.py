"""What did the user set, and what holds where nothing is set?

All settings are in one file, gpuledger.toml. The file that is read is the first of: the one named with `use`, the one
that the environment variable GPULEDGER_CONFIG names (empty: none), the nearest one in the working folder and the
folders above it, and gpuledger/gpuledger.toml in the user's configuration folder.

Default values are in TOML files of the rooms that use them. A `Layer` reads such a file, puts the user's section over
it and checks the result; a setting that does not exist is refused with the nearest name and its line.
"""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from gpuledger.bounds import read_text
from gpuledger.errors import FactError, FileFault, UnknownName, entry_at_fault, map_os_error

T = TypeVar("T")
FoundBy = Literal["given", "environment", "folder", "user", "none"]

FILE = "gpuledger.toml"
VARIABLE = "GPULEDGER_CONFIG"
VERSION = 1
SECTIONS = {
    "classes": "efficiency classes, utilization bands, idle rule and targets",
    "advice": "when each kind of advice applies",
    "grades": "grades of a benchmark",
    "tuning": "what the training tuner tries, and when a step counts as a gain",
    "teams": "the team of each namespace, or of a cluster/namespace",
    "prices": "dollars per GPU-hour, by GPU",
    "budgets": "dollars per month, by team or namespace",
    "alerts": "alert rules, receivers, and who is notified when",
}
NESTED = "lists or tables are nested too deeply"
_HEADER = re.compile(r"\s*\[+\s*([^\[\]#]+?)\s*\]+")
_KEY = re.compile(r"\s*([^=#]+?)\s*=")


class Settings(msgspec.Struct, frozen=True):
    """The user's file as it was read; without one `file` is None and `sections` is empty."""

    file: Path | None
    found_by: FoundBy
    sections: Mapping[str, Mapping[str, Any]]

    def section(self, name: str) -> Mapping[str, Any]:
        """What the user set in a section."""
        return self.sections.get(name, {})

    def table(self, name: str, kind: type[T]) -> T:
        """A section without defaults, checked."""
        return convert(dict(self.section(name)), kind, str(self.file), name)


class Value(msgspec.Struct, frozen=True):
    """One setting in force. `origin` is the file it comes from."""

    name: str
    value: Any
    origin: str
    shipped: bool


_given: Path | None = None


def use(file: Path | None) -> None:
    """Read this file instead of looking for one; None: look again."""
    global _given  # noqa: PLW0603 - one process, one settings file
    _given = file


def in_force() -> Settings:
    """The settings of this process in its working folder."""
    file, found_by = _find()
    if file is None:
        return Settings(None, "none", {})
    return Settings(file, found_by, _sections(file))


def _find() -> tuple[Path | None, FoundBy]:
    if _given is not None:
        return _given, "given"
    if VARIABLE in os.environ:
        named = os.environ[VARIABLE]
        return (Path(named), "environment") if named else (None, "none")
    with contextlib.suppress(OSError):  # the working folder may be gone
        here = Path.cwd()
        for folder in (here, *here.parents):
            if os.path.isfile(folder / FILE):  # noqa: PTH113  (False, not an error, in a folder we may not enter)
                return folder / FILE, "folder"
    with contextlib.suppress(RuntimeError):  # there may be no home
        home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        if os.path.isfile(file := Path(home, "gpuledger", FILE)):  # noqa: PTH113
            return file, "user"
    return None, "none"


def _sections(file: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        found = file.stat()
    except OSError as error:
        raise map_os_error(error, file, "read the settings") from error
    return _parsed(file, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _parsed(file: Path, _changed_ns: int, _size: int) -> Mapping[str, Mapping[str, Any]]:
    raw = read_toml(file)
    version = raw.pop("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise FactError(file, "version", f"{version!r} is newer than this gpuledger reads", hint="upgrade gpuledger")
    for name, section in raw.items():
        if name not in SECTIONS:
            raise _unknown(file, name, SECTIONS, "section")
        if not isinstance(section, dict):
            raise FactError(file, name, "is not a section", hint=f"write [{name}] on a line of its own")
    return raw


class Layer(msgspec.Struct, Generic[T], frozen=True):
    """A section of the user's file over the file of defaults that a room ships.

    `home`: the table of that file that holds what the user writes directly under the section's name.
    """

    section: str
    kind: type[T]
    package: str
    file: str
    home: str = ""

    def load(self, given: Path | None = None) -> T:
        """The values in force; `given` is a file in the layout of the shipped one, read instead of the user's section.

        Where `kind` has a field `origin`, it becomes the file the user's values come from.
        """
        own, file = self._own(given)
        raw = _over(self._shipped(), own, file, () if given else (self.section,))
        if file is not None and any(_leaves(own)) and "origin" in self.kind.__struct_fields__:  # type: ignore[attr-defined]
            raw["origin"] = str(file)
        return convert(raw, self.kind, str(file or self.file), "" if given else self.section)

    def values(self, *, shipped: bool = False) -> Iterator[Value]:
        """Every setting in force, by its name in the user's file, without sources and versions.

        `shipped`: without the user's own.
        """
        own, file = ({}, None) if shipped else self._own(None)
        changed = {path for path, _ in _leaves(own)}
        for path, value in _leaves(_over(self._shipped(), own, file, (self.section,))):
            if path[-1] not in ("source", "version"):
                name = ".".join((self.section, *(path[1:] if path[0] == self.home else path)))
                origin = str(file) if path in changed else f"{self.package.rpartition('.')[2]}/data/{self.file}"
                yield Value(name, value, origin, shipped=path not in changed)

    def _shipped(self) -> dict[str, Any]:
        return _read_shipped(self.package, self.file)

    def _own(self, given: Path | None) -> tuple[Mapping[str, Any], Path | None]:
        if given is not None:
            return read_toml(given), given
        settings = in_force()
        section, shipped = settings.section(self.section), self._shipped()
        direct = {name: value for name, value in section.items() if name not in shipped} if self.home else {}
        if not direct:
            return section, settings.file
        rest = {name: value for name, value in section.items() if name in shipped}
        return {**rest, self.home: {**rest.get(self.home, {}), **direct}}, settings.file


@cache
def _read_shipped(package: str, file: str) -> dict[str, Any]:
    return read_toml(data_dir(package, "data", file))


def _over(shipped: Any, own: Any, file: Path | None, path: tuple[str, ...]) -> Any:
    """The user's values over the shipped ones; a table the user changed names the user's file as its source."""
    if not isinstance(shipped, dict) or not shipped or not isinstance(own, Mapping):
        return own  # what an empty table may hold is checked by the room that reads it
    for name in own:
        if name not in shipped:
            assert file is not None
            # What is written directly under a section belongs to the table of the same name.
            where = path[1:] if path[:1] == path[1:2] else path
            raise _unknown(file, ".".join((*where, name)), shipped, "setting")
    if own.get("version", 0) > shipped.get("version", 0):
        problem = f"{own['version']} is newer than this gpuledger reads"
        raise FactError(str(file), "version", problem, hint="upgrade gpuledger")
    marked = {"source": file.name} if file and own and "source" in shipped else {}
    return {**shipped, **marked, **{k: _over(shipped[k], v, file, (*path, k)) for k, v in own.items()}}


def _leaves(value: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _leaves(inner, (*path, name))
        else:
            yield (*path, name), inner


def _unknown(file: Path, name: str, known: Mapping[str, Any], what: str) -> FactError:
    last = name.rpartition(".")[2]
    hint = UnknownName(what, last, set(known) - {"source"}).hint
    return FactError(file, name, f"no {what} is called {last!r}{_line(file, name)}", hint=hint)


def changed(**origins: str) -> Iterator[str]:
    """One sentence for each file of the user's own that values were taken from, by what it sets."""
    for what, origin in origins.items():
        if origin:
            yield f"settings: {what.replace('_', ' ')} from {origin}"


def _line(file: Path, name: str) -> str:
    """Where a key or a table of this name stands, in words; empty where it cannot be found."""
    wanted = name.replace("[...]", ".*").split(".")
    table: list[str] = []
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for number, line in enumerate(read_text(file).splitlines(), start=1):
            header, key = _HEADER.match(line), _KEY.match(line)
            if header:
                table = _parts(header[1])
            found = table if header else [*table, *_parts(key[1])] if key else []
            if len(found) == len(wanted) and all(w in ("*", f) for w, f in zip(wanted, found, strict=True)):
                return f" (line {number})"
    return ""


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def data_dir(package: str, *parts: str) -> Path:
    """A folder of data files shipped inside `package`."""
    return Path(import_module(package).__path__[0], *parts)


def read_toml(file: Path) -> dict[str, Any]:
    """A TOML file as plain data."""
    try:
        text = read_text(file)
    except OSError as error:
        raise map_os_error(error, str(file), "read") from error
    except UnicodeDecodeError as error:
        raise FileFault(str(file), f"not UTF-8 text: {error.reason}", hint="save the file as UTF-8") from error
    return parse_toml(text, str(file))


def parse_toml(text: str, path: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """TOML text as plain data."""
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except ValueError as error:  # bad TOML, or a whole number of thousands of digits
        raise FactError(path, "syntax", f"broken TOML: {error}", hint="fix the TOML at the line named above") from error
    except RecursionError as error:
        raise FactError(path, "syntax", NESTED, hint="remove the brackets that only hold brackets") from error


def convert(raw: object, kind: type[T], path: str, section: str = "") -> T:
    """Plain data as a validated struct; an error names the file, the field and the value.

    `section`: the section of the user's file that the data is of.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `")
        field = entry_at_fault(raw, kind, where.rstrip("`") or "$", error)
        problem = "is missing" if "missing required" in problem else f"{problem} (found {value_at(raw, field)})"
        if section:
            inside = field.removeprefix("$").removeprefix(".")
            direct = re.match(rf"{section}\b", inside)
            field = inside if direct else f"{section}{'.' * (inside[:1] != '[')}{inside}"
            problem += _line(Path(path), field)
        raise FactError(path, field, problem, hint="edit that field of the file") from error


def value_at(value: object, field: str) -> str:
    """The value at a path such as $.models[0].name, as far as it can be followed."""
    for step in re.findall(r"[^.\[\]$]+", field):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            break
    with contextlib.suppress(RecursionError):
        return text if len(text := repr(value)) <= 80 else text[:77] + "..."
    return "values within values, too deep to show"
