"""What can go wrong, and what should the user do next?

    GpuledgerError                 anything we raise on purpose; carries a hint and an exit code
    ├── InputError            2    what was given cannot be used
    │   ├── FileFault         2    a file as a whole: unreadable, empty, a column missing
    │   │   ├── UnknownKind   2    a file of no known kind or layout
    │   │   └── NotSaid       2    a file that lacks what only the user can say
    │   ├── NothingFound      2    a window or filter that holds no data
    │   ├── UnknownName       2    a name that is not registered; suggests the nearest
    │   │   └── UnknownArgument  2  a keyword that a Python call does not take; a TypeError too
    │   ├── FactError         2    a catalog or config file breaks its own rules
    │   └── ServerFault       2    a server does not answer, or not with what was asked for
    ├── LakeError             2    the lake on disk cannot be read or written
    ├── DeviceError           2    a GPU, its driver or its library does not answer
    └── MissingExtra          2    an optional part of gpuledger is not installed

Foreign errors (OSError, pyarrow, duckdb) are mapped to these where they enter, never deeper in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

LONGEST = 1200
MOST_COMPARED = 5000


class GpuledgerError(Exception):
    """Base of all errors: `message` says what and where, `hint` says what to do next."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        message = _shortened(message)
        super().__init__(message)
        self.message = message
        self.hint = _shortened(hint)

    def __str__(self) -> str:
        return f"{self.message}\n  next: {self.hint}" if self.hint else self.message


def _shortened(text: str) -> str:
    """A text that fits a screen: what it quotes of a file may be of any length."""
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST * 3 // 4]} ... ({len(text) - LONGEST:,} letters are not shown) ... {text[-LONGEST // 4 :]}"


class InputError(GpuledgerError):
    """What was given cannot be used."""


class FileFault(InputError):
    """A file as a whole cannot be used; nothing was taken from it."""

    def __init__(self, path: str | Path, message: str, *, hint: str = "") -> None:
        super().__init__(f"{path}: {message}", hint=hint)
        self.path = str(path)


class UnknownKind(FileFault):
    """A file of no kind or layout that can be read."""


class NotSaid(FileFault):
    """A file that lacks what only the user can say: when, from which host, of which GPU."""


class NothingFound(InputError):
    """The window and the filters are fine, and no data is in them."""


class UnknownName(InputError):
    """A name that is not registered."""

    def __init__(self, kind: str, name: str, known: Iterable[str], close: Sequence[str] | None = None) -> None:
        names = sorted(known)
        close = nearest(name, names) if close is None else list(close)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known: {_listed(names)}"
        super().__init__(f"no {kind} is called {name!r}", hint=hint)
        self.kind, self.name, self.nearest = kind, name, close


class UnknownArgument(UnknownName, TypeError):
    """A keyword that a Python call does not take."""

    def __init__(self, call: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"argument of {call}()", name, known)


def _listed(names: Sequence[str], most: int = 24) -> str:
    """The names, and how many more there are; quoted where a comma within one would look like the end of it."""
    shown = [repr(name) if "," in name else name for name in names[:most]]
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join([*shown, *more]) or "none"


class FactError(InputError):
    """A catalog or config file breaks its own rules."""

    def __init__(self, path: str | Path, field: str, problem: str, *, hint: str = "") -> None:
        super().__init__(f"{path}: {field}: {problem}", hint=hint)
        self.path, self.field = str(path), field


class ServerFault(InputError):
    """A server does not answer, or not with what was asked for."""

    def __init__(self, where: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"{where}: {message}", hint=hint)
        self.where = where


class LakeError(GpuledgerError):
    """The lake on disk cannot be read or written."""


class DeviceError(GpuledgerError):
    """A GPU, its driver or its library does not answer."""


# The optional parts that pyproject.toml names.
Extra = Literal[
    "amd", "charts", "otel", "pandas", "plan", "ray", "remote", "stores", "train", "tui", "web", "xlsx"
]  # fmt: skip


class MissingExtra(GpuledgerError):
    """An optional part of gpuledger is not installed."""

    def __init__(self, what: str, extra: Extra) -> None:
        super().__init__(f"{what} needs a part that is not installed", hint=f'pip install "gpuledger[{extra}]"')
        self.extra = extra


def nearest(name: str, known: Iterable[str], limit: int = 3, cutoff: float = 0.6) -> list[str]:
    """The known names most like `name`, best first, ignoring case."""
    import difflib  # only a mistake needs it
    from itertools import islice

    folded = {k.casefold(): k for k in islice(known, MOST_COMPARED)}  # a file may have a million columns
    return [folded[m] for m in difflib.get_close_matches(name.casefold(), list(folded), n=limit, cutoff=cutoff)]


def map_os_error(error: OSError, path: str | Path, doing: str) -> GpuledgerError:
    """The operating system's refusal in our words."""
    if isinstance(error, FileNotFoundError):
        return FileFault(
            path, f"cannot {doing}: no such file or folder", hint="check the path; quote it if it has spaces"
        )
    if isinstance(error, PermissionError):
        return FileFault(path, f"cannot {doing}: permission denied", hint="check who owns it: ls -l shows it")
    if isinstance(error, IsADirectoryError):
        return FileFault(
            path, f"cannot {doing}: it is a folder", hint="name the files in it, for example FOLDER/*.parquet"
        )
    if error.errno == 28:
        return LakeError(
            f"{path}: cannot {doing}: the disk is full",
            hint="free some space and run the same command again; nothing was half-written",
        )
    return LakeError(
        f"{path}: cannot {doing}: {error.strerror or error}", hint="see the message of the operating system above"
    )


def let_go(error: BaseException | None) -> None:
    """Close what a fault still holds: readers that stand half-way in the calls it came through.

    A fault of gpuledger itself keeps them, because a debugger needs their values.
    """
    import traceback  # only a mistake needs it

    expected = isinstance(error, GpuledgerError | OSError | KeyboardInterrupt)
    while expected and error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def entry_at_fault(raw: object, kind: type[Any], field: str, error: msgspec.ValidationError) -> str:
    """The path of what is wrong: [...] becomes the entry that is wrong by itself too, and a missing field is added."""
    before, gap, after = field.partition("[...]")
    steps = re.findall(r"[^.\[\]$]+", before)
    for key in _entries(raw, steps) if gap else ():
        try:
            msgspec.convert(_with_only(raw, [*steps, key]), kind)
        except msgspec.ValidationError as same:
            if str(same) == str(error):
                return entry_at_fault(raw, kind, f"{before}.{key}{after}", error)
    missing = re.match(r"Object missing required field `(\w+)`", str(error))
    return f"{field}.{missing[1]}" if missing else field


def _entries(raw: object, steps: Sequence[str]) -> list[str]:
    for step in steps:
        raw = raw.get(step) if isinstance(raw, dict) else None
    return list(raw) if isinstance(raw, dict) else []


def _with_only(raw: Any, steps: Sequence[str]) -> Any:
    """A copy in which the table on the way to an entry holds that entry alone."""
    first, *rest = steps
    return {**raw, first: _with_only(raw[first], rest)} if rest else {first: raw[first]}
