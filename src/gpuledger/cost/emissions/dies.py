"""Whose is the energy of a board with several dies? Its first die reports it for all of them.

The dies of a board follow each other on their host: 0 and 1 are one board of two, 2 and 3 the next. Each counts an
equal part of what the board drew, as MIG slices count theirs by share, so that owners add up to the fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from gpuledger.catalog.gpus import find_gpu
from gpuledger.cost.charges import Charge, grouped
from gpuledger.cost.money import split_whole
from gpuledger.units import Unknown

Board = tuple[str, int]


def shared_by_dies(charges: Sequence[Charge]) -> tuple[list[Charge], int]:
    """The charges with the energy of boards divided among their dies, and the number of such boards."""
    out, boards = list[Charge](), 0
    for board, members in grouped(charges, _board).items():
        parts = None if board is None else _divided(members)
        out += members if parts is None else parts
        boards += parts is not None
    return out, boards


def _board(charge: Charge) -> Board | None:
    """The board of a die, by its place on its host; None where a device is a board, or its place is unknown."""
    device = charge.device
    dies = _dies(device.gpu_model)
    if dies == 1 or device.gpu_instance_id or not device.host or not (device.gpu_index or "").isdecimal():
        return None
    return device.host, int(device.gpu_index or 0) // dies


@cache
def _dies(model: str | None) -> int:
    gpu = find_gpu(model) if model else Unknown("no model name")
    return 1 if isinstance(gpu, Unknown) else gpu.dies


def _divided(members: Sequence[Charge]) -> list[Charge] | None:
    """Equal parts by die, within a die by time; None where not exactly one of all its dies reports energy."""
    dies = grouped(members, lambda c: c.device.gpu_uuid)
    reporting = [uuid for uuid, own in dies.items() if any(c.sums.get("energy_ms", 0) for c in own)]
    if len(dies) != _dies(members[0].device.gpu_model) or len(reporting) != 1:
        return None
    drawn = sum(c.sums.get("energy_mj", 0) for c in dies[reporting[0]])
    seen = [c.sums.get("observed_ms", 0) for c in members]
    each = {uuid: sum(c.sums.get("observed_ms", 0) for c in own) for uuid, own in dies.items()}
    lengths = [each[c.device.gpu_uuid] for c in members]
    if not all(each.values()):
        return None
    whole = max(each.values())
    weights = {i: ms * whole // length for i, (ms, length) in enumerate(zip(seen, lengths, strict=True))}
    parts = split_whole(drawn, weights)
    return [
        replace(c, sums={**c.sums, "energy_mj": parts.get(i, 0), "energy_ms": seen[i]}) for i, c in enumerate(members)
    ]
