"""Into how many compute slices can this board be cut (MIG)?"""

from __future__ import annotations

from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import find_gpu
from gpuledger.errors import FactError
from gpuledger.units import Unknown


class _Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    compute_slices: int
    memory_slices: int
    profiles: tuple[tuple[int, int], ...]


class _Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    shape: str
    names: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    source: str
    as_of: str
    shapes: dict[str, _Shape]
    gpus: dict[str, _Board]


@cache
def _file() -> _File:
    path = data_dir("gpuledger.catalog", "data", "mig.toml")
    file = load_toml(path, _File)
    for key, board in file.gpus.items():
        if board.shape not in file.shapes:
            raise FactError(str(path), f"gpus.{key}", f"no shape is called {board.shape!r}", hint="name a shape of it")
    return file


def compute_slices(model: str) -> int | Unknown:
    """How many compute slices the whole board has, by any of its names; a MIG device's own name names its board."""
    gpu = find_gpu(model.partition(" MIG ")[0])
    if isinstance(gpu, Unknown):
        return gpu
    board = _file().gpus.get(gpu.key)
    if board is None:
        return Unknown(f"{gpu.name} is not among the GPUs known to support MIG")
    return _file().shapes[board.shape].compute_slices
