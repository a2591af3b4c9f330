"""Which devices are dies of one board, and whose is what one of them reports for all?

The dies of a board follow each other on their host: 0 and 1 are one board of two, 2 and 3 the next. One of them reports
the power and energy of the board. Each counts an equal part, as MIG slices count theirs by share, so that owners add up
to the fleet; within a die, owners count by time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np

from gpuledger.catalog.gpus import find_gpu
from gpuledger.lake.names import Names
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.columns import Rows
from gpuledger.telemetry import schema
from gpuledger.units import Unknown

# The labels of a device as `Held` has them.
DIE = (*schema.DEVICE, "gpu_model", "host", "gpu_index")
_SUMS = ("observed_ms", "power_ms", "power_uj", "energy_ms", "energy_mj")


class Held(NamedTuple):
    """What was held of a device: which, where, for how long, and for how long it reports power or energy."""

    gpu_uuid: str
    gpu_instance_id: str | None
    gpu_model: str | None
    host: str | None
    gpu_index: str | None
    observed_ms: int
    reported_ms: int


class DieBoard(msgspec.Struct, frozen=True):
    """A board of several dies that were all seen, by the places of what was held of them.

    `weights`: the part of each in what one die reports for all of them; None where it is not exactly one die.
    """

    members: tuple[int, ...]
    dies: int
    weights: tuple[int, ...] | None


@cache
def dies_of(model: str | None) -> int:
    """How many dies of a model share a board."""
    gpu = find_gpu(model) if model else Unknown("no model name")
    return 1 if isinstance(gpu, Unknown) else gpu.dies


def die_boards(held: Sequence[Held]) -> list[DieBoard]:
    """The boards of which every die is there; devices that are boards, or whose place is unknown, are in none."""
    places: dict[tuple[str, int], list[int]] = {}
    for i, one in enumerate(held):
        dies = dies_of(one.gpu_model)
        if dies > 1 and not one.gpu_instance_id and one.host and (one.gpu_index or "").isdecimal():
            places.setdefault((one.host, int(one.gpu_index or 0) // dies), []).append(i)
    found = []
    for members in places.values():
        dies = dies_of(held[members[0]].gpu_model)
        if len({held[i].gpu_uuid for i in members}) == dies:
            found.append(DieBoard(tuple(members), dies, _weights([held[i] for i in members])))
    return found


def _weights(members: Sequence[Held]) -> tuple[int, ...] | None:
    """Equal parts by die, within a die by time."""
    seen: dict[str, int] = {}
    for one in members:
        seen[one.gpu_uuid] = seen.get(one.gpu_uuid, 0) + one.observed_ms
    if len({one.gpu_uuid for one in members if one.reported_ms}) != 1 or not all(seen.values()):
        return None
    longest = max(seen.values())
    return tuple(one.observed_ms * longest // seen[one.gpu_uuid] for one in members)


class Dies:
    """The dies of boards that have several, added up from lines, whoever owned them."""

    def __init__(self) -> None:
        self.sums = Accumulator()

    def add(self, rows: Rows, models: Names) -> None:
        """Take a block of lines."""
        several = np.array([*(dies_of(text) > 1 for text in models.texts), False])[rows["gpu_model"]]
        if several.any():
            self.sums.add([rows[c][several] for c in DIE], {c: rows[c][several] for c in _SUMS})

    def found(self, names: Mapping[str, Names]) -> list[tuple[Held, Mapping[str, int]]]:
        """Each of them and its sums."""
        keys, columns = self.sums.total()
        if not keys:
            return []
        uuid, instance, model, host, index = (names[c].text(k) for c, k in zip(DIE, keys, strict=True))
        values = {c: v.tolist() for c, v in columns.items()}
        out: list[tuple[Held, Mapping[str, int]]] = []
        for i in range(len(uuid)):
            own = {c: int(v[i]) for c, v in values.items()}
            reported = max(own["power_ms"], own["energy_ms"])
            out.append(
                (Held(uuid[i] or "", instance[i], model[i], host[i], index[i], own["observed_ms"], reported), own)
            )
        return out
