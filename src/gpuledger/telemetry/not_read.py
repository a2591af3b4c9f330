"""Which metrics or columns of a file are not read, in one line?"""

from __future__ import annotations

from collections.abc import Iterable

from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping import Bound, is_not_needed
from gpuledger.units import count, some

SHOWN = 3
_OF_GPUS = ("dcgm", "gpu", "nvidia", "amd", "rocm", "accelerator")


def metrics_note(names: Iterable[str], *, listed: bool = True) -> list[str]:
    """The note on metrics that are not read; none where there are none. `listed`: `import --explain` lists all."""
    return _note(names, "metric", listed=listed)


def columns_note(bound: Bound) -> list[str]:
    """The note on columns of an exporter's layout; what a user's own map leaves out was left out on purpose."""
    if not bound.mapping.not_needed or bound.mapping.file:
        return []
    return _note((n for n in bound.unused if not is_not_needed(n, bound.mapping)), "column")


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
