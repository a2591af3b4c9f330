"""How many dies of boards with several can be given back, and how many must be bought?

The driver shows each die as a GPU, but a board is bought, rented and given back whole. Samples do not show which dies
share a board, so that only numbers are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from gpuledger.catalog.gpus import Gpu
from gpuledger.units import Unknown


def whole_boards(gpu: Gpu) -> str:
    """Why numbers of a GPU with several dies are rounded."""
    return f"a board of {gpu.name} has {gpu.dies} dies, and only whole boards are bought, rented or given back"


def rounded_words(gpus: Iterable[Gpu | Unknown]) -> str:
    """The same for those of the GPUs that have several dies, to be put behind other words; empty where none has."""
    found = {whole_boards(gpu): None for gpu in gpus if isinstance(gpu, Gpu) and gpu.dies > 1}
    return "".join(f"; {words}" for words in found)


def kept(now: int, needed: int, gpu: Gpu) -> int:
    """How many dies stay where `needed` of them would do: those given back are whole boards."""
    return now - (now - needed) // gpu.dies * gpu.dies


def bought(needed: int, gpu: Gpu) -> int:
    """How many dies the boards have that hold the needed ones."""
    return math.ceil(needed / gpu.dies) * gpu.dies


def assumed(gpus: Iterable[Gpu | Unknown]) -> Iterator[str]:
    """What a plan of such GPUs assumes."""
    for gpu in {g.key: g for g in gpus if isinstance(g, Gpu) and g.dies > 1}.values():
        yield f"{whole_boards(gpu)}; which dies share a board is not in the samples"
