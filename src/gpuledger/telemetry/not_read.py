"""Which metrics or columns of a file are not read, in one line?"""

from __future__ import annotations

from collections.abc import Iterable

from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping import OWN_HEADERS, Bound, is_not_needed
from gpuledger.telemetry.measures import factor_of, header_unit, units_of
from gpuledger.units import count, some

SHOWN = 3
_OF_GPUS = ("dcgm", "gpu", "nvidia", "amd", "rocm", "accelerator")


def metrics_note(names: Iterable[str], *, listed: bool = True) -> list[str]:
    """The note on metrics that are not read; none where there are none. `listed`: `import --explain` lists all."""
    return _note(names, "metric", listed=listed)


def columns_note(bound: Bound) -> list[str]:
    """Notes on columns that look like a reading and are dropped, and on other ones of an exporter's layout; what a
    user's own map leaves out was left out on purpose, and a table with its own headers has named it already.
    """
    if bound.mapping.file or bound.mapping.name == OWN_HEADERS:
        return []
    needed = [name for name in bound.unused if not is_not_needed(name, bound.mapping)]
    dropped = {name: why for name in needed if (why := _why(name, bound))}
    notes = [f"column {name!r} is not read: {why}" for name, why in dropped.items()]
    rest = [name for name in needed if name not in dropped] if bound.mapping.not_needed else []
    return notes + _note(rest, "column")


def _why(name: str, bound: Bound) -> str:
    """Why a column is no reading that looks like one, and like one that no other column fills; else empty."""
    from gpuledger.telemetry.mapping.suggest import suggest  # only what is not read needs it

    found, header = suggest(name) or suggest(name.lower().replace("average", "")), header_unit(name)
    if found is None or not units_of(found.column) or found.column in {*bound.values, *bound.fixed}:
        return ""
    if header and factor_of(header.unit, found.column) is None:
        return f"{header.unit} is not a unit of {found.column}"
    return "nothing states its unit" if found.rule is None else f"{bound.mapping.title} has no such column"


def _note(names: Iterable[str], kind: str, *, listed: bool = True) -> list[str]:
    found = sorted(dict.fromkeys(names), key=_unlikely)
    if not found:
        return []
    rest = " (import --explain lists all)" if listed and len(found) > SHOWN else ""
    return [f"{count(len(found), kind)} not read: {some(found, SHOWN)}{rest}"]


def _unlikely(name: str) -> int:
    """How unlikely it is that a GPU's reading has this name."""
    from gpuledger.telemetry.mapping.suggest import suggest  # only what is not read needs it

    found = suggest(name)
    if found is not None and found.column in schema.readings():
        return 0
    return 1 if any(word in name.lower() for word in _OF_GPUS) else 2
