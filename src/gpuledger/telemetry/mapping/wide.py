"""Which columns of a wide row are one GPU's?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from gpuledger.errors import FactError, FileFault, nearest
from gpuledger.telemetry import schema

READING = "reading"
GPU, HOST = "gpu", "gpu host"  # columns of tables that sources make long
_HINT = 'for example pattern = "gpu{gpu_index}_{reading}"'


class Template(msgspec.Struct, frozen=True):
    """A pattern of column names: the labels it names, and how it matches."""

    pattern: str
    labels: tuple[str, ...]
    regex: re.Pattern[str]


class WidePlan(msgspec.Struct, frozen=True):
    """A wide file taken apart: columns of all GPUs, and by GPU (its labels) the source column of each reading."""

    labels: tuple[str, ...]
    shared: tuple[str, ...]
    readings: tuple[str, ...]
    gpus: dict[tuple[str, ...], dict[str, str]]

    @property
    def names(self) -> list[str]:
        """The columns of the long table."""
        return [*self.shared, *self.labels, *self.readings]


def plan_of(names: Iterable[str], columns: Iterable[tuple[str, str, str, str]]) -> WidePlan:
    """The plan for columns whose GPU, host ("" where it is not said) and reading are known; of two, the first stays."""
    gpus: dict[tuple[str, ...], dict[str, str]] = {}
    for gpu, host, reading, column in columns:
        gpus.setdefault((gpu, host), {}).setdefault(reading, column)
    readings = tuple(dict.fromkeys(r for of in gpus.values() for r in of))
    labels = (GPU, HOST) if any(host for _, host in gpus) else (GPU,)
    return WidePlan(labels, tuple(n for n in names if n not in (GPU, HOST)), readings, gpus)


@lru_cache(maxsize=64)
def template(path: str | Path, pattern: str) -> Template:
    """A pattern such as `gpu{gpu_index}_{reading}`: each name in braces is a label, `reading` the rest of the name."""
    pieces = re.split(r"\{([^{}]*)\}", pattern)
    texts, names = pieces[::2], pieces[1::2]
    for name in names:
        if name != READING and name not in schema.labels():
            close = nearest(name, [*schema.labels(), READING])
            hint = f"nearest: {', '.join(close)}" if close else _HINT
            raise FactError(path, "wide.pattern", f"no label is called {name!r}", hint=hint)
    twice = next((n for n in names if names.count(n) > 1), "")
    problem = (
        f"{{{twice}}} stands twice in {pattern!r}" if twice
        else f"{pattern!r} lacks {{reading}}, the part of the name that says what was read" if READING not in names
        else f"{pattern!r} names no GPU" if len(names) < 2
        else f"{pattern!r} has two names without text between them" if "" in texts[1:-1]
        else f"{pattern!r} has a brace too many" if any(b in t for t in texts for b in "{}")
        else ""
    )  # fmt: skip
    if problem:
        raise FactError(path, "wide.pattern", problem, hint=_HINT)
    parts = [re.escape(texts[0])]
    for name, text in zip(names, texts[1:], strict=True):
        parts += [f"(?P<{name}>{_matching(name)})", re.escape(text)]
    return Template(pattern, tuple(n for n in names if n != READING), re.compile("".join(parts), re.DOTALL))


def _matching(name: str) -> str:
    return r"\d{1,4}" if name == "gpu_index" else ".+" if name == READING else ".+?"


def plan_wide(path: str | Path, names: list[str], pattern: str) -> WidePlan:
    """Which columns belong to which GPU; a fault where none fits the pattern."""
    made = template(path, pattern)
    gpus: dict[tuple[str, ...], dict[str, str]] = {}
    shared: list[str] = []
    readings: dict[str, None] = {}
    for name in names:
        found = made.regex.fullmatch(name)
        if found is None:
            shared.append(name)
            continue
        reading = found[READING]
        gpus.setdefault(tuple(found[label] for label in made.labels), {})[reading] = name
        readings[reading] = None
    if not gpus:
        seen = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise FileFault(
            path, f"no column fits the pattern {pattern!r} of the map: {seen}", hint="fix pattern under [wide]"
        )
    clash = next((n for n in [*made.labels, *readings] if n in shared), "")
    if clash:
        problem = f"the pattern {pattern!r} makes a column {clash!r}, and the file has one too"
        raise FileFault(path, problem, hint="make the pattern longer, or rename that column")
    clash = next((n for n in made.labels if n in readings), "")
    if clash:
        problem = f"the pattern {pattern!r} gives {clash!r} both as a label and as a reading"
        raise FileFault(path, problem, hint="fix pattern under [wide]")
    return WidePlan(made.labels, tuple(shared), tuple(readings), gpus)
