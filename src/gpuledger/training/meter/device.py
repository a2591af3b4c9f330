"""On which device does a loop run, and what do torch and the driver say of it?"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from gpuledger.catalog.gpus import find_gpu
from gpuledger.devices.device import Device, Source
from gpuledger.training.meter.observed import LoaderFacts, MemoryFacts, Place
from gpuledger.units import Unknown


def device_of(torch: Any, model: Any | None) -> Any:
    """Where the model's weights are; without a model the GPU in use, else the processor."""
    if model is not None:
        first = next((p for p in model.parameters() if p.device.type != "meta"), None)
        if first is not None:
            return first.device
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def place_of(torch: Any, device: Any) -> Place:
    """The device as the ledger names it."""
    if device.type != "cuda":
        return Place(device.type, f"{device.type}, no GPU", Unknown(f"the loop runs on {device.type}, not on a GPU"))
    facts = torch.cuda.get_device_properties(device)
    uuid = f"GPU-{facts.uuid}" if hasattr(facts, "uuid") else None
    return Place("cuda", facts.name, find_gpu(facts.name), uuid, None, int(facts.total_memory))


def weakly(thing: Any) -> Callable[[], Any]:
    """A way to a thing that does not keep it: a model lives as long as its owner wants, not as long as its meter."""
    try:
        return weakref.ref(thing)
    except TypeError:  # None, and what takes no weak references
        return lambda: thing


def memory_of(torch: Any, device: Any, total: int | Unknown) -> MemoryFacts | Unknown:
    """The most that torch held so far."""
    if isinstance(total, Unknown):
        return total
    said: Mapping[str, Any] = torch.cuda.memory_stats(device)
    return MemoryFacts(
        allocated_bytes=int(said.get("allocated_bytes.all.peak", 0)),
        reserved_bytes=int(said.get("reserved_bytes.all.peak", 0)),
        total_bytes=total,
        retries=int(said.get("num_alloc_retries", 0)),
    )


def loader_facts(loader: Any) -> LoaderFacts | Unknown:
    """How a DataLoader is set up."""
    if loader is None:
        return Unknown("no loader was given to the meter")
    inner = getattr(loader, "base_dataloader", loader)  # accelerate wraps it
    workers = getattr(inner, "num_workers", None)
    if workers is None:
        return LoaderFacts(type(inner).__name__)
    return LoaderFacts(
        kind=type(inner).__name__,
        workers=int(workers),
        pinned=bool(getattr(inner, "pin_memory", False)),
        prefetch=getattr(inner, "prefetch_factor", None),
        persistent=bool(getattr(inner, "persistent_workers", False)),
    )


def is_compiled(model: Any | None) -> bool:
    """Whether torch.compile was put around the model or any part of it."""
    if model is None:
        return False
    parts = model.modules()
    return any(hasattr(m, "_orig_mod") or getattr(m, "_compiled_call_impl", None) is not None for m in parts)


def cpus() -> int:
    """How many processors the job may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Energy:
    """The board's own energy counter, read at both ends of the timed steps: one reading takes milliseconds."""

    def __init__(self, gpu_uuid: str | None, source: Callable[[], Source] | None = None) -> None:
        self._uuid, self._open = gpu_uuid, source or _nvml
        self._source: Source | None = None
        self._read: Callable[[], Any] | None = None
        self.why = "" if gpu_uuid else "this is no GPU"
        self._begin_mj: float | None = None

    def begin(self) -> None:
        """Read the counter for the first time."""
        if self._uuid is None:
            return
        try:
            self._source = self._open()
            self._read = self._counter(self._source)
            self._begin_mj = None if self._read is None else float(self._read())
        except Exception as error:  # noqa: BLE001 - the driver's own errors; a figure is missing, the job goes on
            self.why = f"the driver does not tell energy: {str(error).splitlines()[0]}"

    def _counter(self, source: Source) -> Callable[[], Any] | None:
        board = next((d for d in source.devices if _same(d, self._uuid)), None)
        if board is None:
            self.why = f"the driver has no whole board {self._uuid}: energy is counted for boards only"
            return None
        for field in board.fields:
            if "energy_mj" in field.columns:
                read, place = field.read, field.columns.index("energy_mj")
                return lambda: read()[place]
        self.why = str(board.absent.get("energy_mj", "the driver counts no energy for this board"))
        return None

    def joules(self) -> float | Unknown:
        """What the board used since `begin`."""
        if self._read is None or self._begin_mj is None:
            return Unknown(self.why or "the energy counter was not read at the start")
        try:
            return (float(self._read()) - self._begin_mj) / 1000
        except Exception as error:  # noqa: BLE001 - the driver's own errors; a figure is missing, the job goes on
            return Unknown(f"the driver no longer tells energy: {error}")

    def close(self) -> None:
        """Let the driver go."""
        if self._source is not None:
            with contextlib.suppress(Exception):
                self._source.close()
            self._source = None


def _same(device: Device, uuid: str | None) -> bool:
    return device.facts.gpu_uuid == uuid and device.facts.gpu_instance_id is None


def _nvml() -> Source:
    from gpuledger.devices.nvml import NvmlSource

    return NvmlSource()
