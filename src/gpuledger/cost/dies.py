"""Whose is the energy of a board with several dies? Every die's owner has a part of what one die reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuledger.cost.money import split_whole
from gpuledger.cost.pieces import Device, Piece
from gpuledger.ledger.read.dies import Held, die_boards, dies_of

# The time of a die that counts a part of its board's energy.
SHARED_MS = "die_shared_ms"


def shared_by_dies(pieces: Sequence[Piece], devices: Sequence[Device]) -> list[Piece]:
    """The pieces with the energy of boards divided among their dies. `devices`: by piece the device it is of."""
    out = list(pieces)
    if not any(dies_of(device.gpu_model) > 1 for device in devices):
        return out
    for board in die_boards([_held(p, d) for p, d in zip(pieces, devices, strict=True)]):
        if board.weights is None:
            continue
        drawn = sum(pieces[i].sums.get("energy_mj", 0) for i in board.members)
        parts = split_whole(drawn, dict(zip(board.members, board.weights, strict=True)))
        for i in board.members:
            seen = pieces[i].sums["observed_ms"]
            own = {"energy_mj": parts[i], "energy_ms": seen, SHARED_MS: seen}
            out[i] = replace(pieces[i], sums={**pieces[i].sums, **own})
    return out


def _held(piece: Piece, device: Device) -> Held:
    uuid, instance = piece.device
    return Held(
        uuid, instance, device.gpu_model, device.host, device.gpu_index, piece.sums["observed_ms"],
        piece.sums.get("energy_ms", 0),
    )  # fmt: skip
