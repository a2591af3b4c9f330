"""What is wrong with a file that a mapping does not fit?"""

from __future__ import annotations

from pathlib import Path

from gpuledger.errors import NotSaid, UnknownKind, nearest
from gpuledger.telemetry.mapping.rules import ASKS, Mapping


def asking(path: str | Path, asked: list[str], mapping: Mapping) -> NotSaid:
    """The fault for what this kind of file never says and only the user knows."""
    words = {
        "time": "when its readings were taken",
        "date": "on which day it starts",
        "every": "how far they are apart",
        "host": "which host it is from",
        "gpu_model": "which GPU it is of",
    }
    *others, last = (words[name] for name in asked)
    lacks = f"{', '.join(others)} and {last}" if others else last
    options = " ".join(ASKS[name] for name in asked)
    return NotSaid(path, f"read as {mapping.title}, it does not say {lacks}", hint=f"add {options}")


def missing(path: str | Path, missing: list[str], names: list[str], mapping: Mapping) -> UnknownKind:
    """The fault for required columns that are not there."""
    parts = []
    for column in missing:
        wanted = mapping.labels.get(column, mapping.time.sources if column == "time" else (column,))
        hits = [h for w in wanted for h in nearest(w, names, 1)]
        called = f" (also read under the name {', '.join(wanted)})" if tuple(wanted) != (column,) else ""
        parts.append(f"{column!r}{called}" + (f" (nearest in the file: {hits[0]!r})" if hits else ""))
    return UnknownKind(
        path,
        f"read as {mapping.title}, it lacks the required column{'s' * (len(parts) > 1)} {', '.join(parts)}",
        hint=f"name the column in {mapping.file}; gpuledger import --explain shows what each column is read as"
        if mapping.file
        else "rename the column in the file, or describe the layout in a mapping file and pass --map FILE",
    )


def no_reading(path: str | Path, names: list[str], mapping: Mapping) -> UnknownKind:
    """The fault for a file with times and GPUs, and nothing read of them."""
    wanted = list(dict.fromkeys(s for rule in mapping.values for s in rule.sources))
    if not wanted:
        problem = f"{mapping.file or mapping.title} names no reading"
        return UnknownKind(path, problem, hint="add [[values]] with column and sources for each reading")
    near = [f"{w!r} (nearest in the file: {hits[0]!r})" for w in wanted if (hits := nearest(w, names, 1))]
    shown = near[:3] or [repr(w) for w in wanted[:6]]
    more = ", ..." if len(wanted) > len(shown) else ""
    return UnknownKind(
        path,
        f"read as {mapping.title}, it has not one reading; looked for {', '.join(shown)}{more}",
        hint="gpuledger import --explain FILE shows how each column is read",
    )
