"""Can this GPU be cut into slices (MIG), into how many, and which slice would hold a job?"""

from __future__ import annotations

from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import find_gpu, load_gpus
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


class Slice(msgspec.Struct, frozen=True):
    """One profile: its share of the board's compute and memory, and its name where a public list gives it."""

    name: str | None
    compute: int
    compute_ratio: float
    memory_ratio: float


@cache
def _file() -> _File:
    path = data_dir("gpuledger.catalog", "data", "mig.toml")
    file = load_toml(path, _File)
    for key, board in file.gpus.items():
        shape = file.shapes.get(board.shape)
        if key not in load_gpus():
            raise FactError(str(path), f"gpus.{key}", "not in the GPU catalog", hint="use a key of the catalog")
        if shape is None or (board.names and len(board.names) != len(shape.profiles)):
            hint = "name a shape of this file, and all of its profiles or none"
            raise FactError(str(path), f"gpus.{key}", f"shape {board.shape!r}, {len(board.names)} names", hint=hint)
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


def source() -> str:
    """Source of the list of GPUs."""
    return _file().source


def slices_of(gpu_key: str) -> tuple[Slice, ...] | Unknown:
    """The profiles of a GPU of the catalog, smallest first."""
    board = _file().gpus.get(gpu_key)
    if board is None:
        name = load_gpus()[gpu_key].name if gpu_key in load_gpus() else gpu_key
        return Unknown(f"{name} is not among the GPUs that support MIG")
    shape = _file().shapes[board.shape]
    names: tuple[str | None, ...] = board.names or (None,) * len(shape.profiles)
    return tuple(
        Slice(name, compute, compute / shape.compute_slices, memory / shape.memory_slices)
        for name, (compute, memory) in zip(names, shape.profiles, strict=True)
    )


def smallest_slice(gpu_key: str, compute_ratio: float, memory_ratio: float) -> Slice | Unknown:
    """The smallest slice with this share of the board's compute and memory."""
    found = slices_of(gpu_key)
    if isinstance(found, Unknown):
        return found
    for one in found:
        if one.compute_ratio >= compute_ratio and one.memory_ratio >= memory_ratio:
            return one
    return Unknown(
        f"no slice of {gpu_key} holds {compute_ratio:.0%} of its compute and {memory_ratio:.0%} of its memory"
    )
