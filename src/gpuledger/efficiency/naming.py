"""What is a GPU called where people read it?

People know a GPU by its host and its index there ("node-01/3"); its UUID is for programs and for looking it up.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

_SHORT = 8
_KEPT = 12
_BY_INDEX = ":gpu"  # in the name of a device that came without a UUID: HOST:gpu3


@runtime_checkable
class Placed(Protocol):
    """A row of a statement that is about one GPU."""

    @property
    def gpu_uuid(self) -> str: ...

    @property
    def host(self) -> str | None: ...

    @property
    def gpu_index(self) -> str | None: ...


def gpu_name(gpu: Placed, instance: str | None = None) -> str:
    """Host and index; the host and the start of the UUID where the index is unknown, else the start of the UUID."""
    name = name_of(gpu.gpu_uuid, gpu.host, gpu.gpu_index)
    return f"{name} MIG {instance}" if instance else name


def name_of(gpu_uuid: str, host: str | None, gpu_index: str | None) -> str:
    """The same of a board by its labels."""
    if not host:
        return short_uuid(gpu_uuid)
    return f"{host} ({short_uuid(gpu_uuid)})" if gpu_index is None else f"{host}/{gpu_index}"


def name_with_uuid(gpu: Placed) -> str:
    """The name, and the whole UUID for looking the GPU up."""
    if not gpu.host:
        return gpu.gpu_uuid
    place = gpu.host if gpu.gpu_index is None else gpu_name(gpu)
    return f"{place} ({gpu.gpu_uuid})"


def sort_name(gpu: Placed) -> str:
    """What GPUs sort by: their hosts, and on a host their indices as numbers."""
    return f"{gpu.host or ''}/{(gpu.gpu_index or '').zfill(4)}/{gpu.gpu_uuid}"


def short_uuid(gpu_uuid: str) -> str:
    """Enough of a UUID to find it; a short name stays whole."""
    words = gpu_uuid.removeprefix("GPU-")
    return gpu_uuid if len(words) <= _KEPT or _BY_INDEX in words else words[:_SHORT]
