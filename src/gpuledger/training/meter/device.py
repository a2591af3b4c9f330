"""Where does a loop run and under whose name, and what do torch and the driver report about the device?"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import secrets
import socket
import sys
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from gpuledger.catalog.gpus import find_gpu
from gpuledger.devices.attribution import attribute, command_name
from gpuledger.devices.device import Source
from gpuledger.training.meter.observed import NOT_A_GPU, Identity, LoaderFacts, MemoryFacts, Place
from gpuledger.training.runtime import first_line, gpu_uuid
from gpuledger.units import Unknown

# What launchers call a run that all its ranks share.
_SHARED_ID = ("TORCHELASTIC_RUN_ID", "MASTER_PORT")


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
    return Place("cuda", facts.name, find_gpu(facts.name), gpu_uuid(torch, device), None, int(facts.total_memory))


def weakly(thing: Any) -> Callable[[], Any]:
    """A reference that does not keep the thing alive: a meter must not keep its model."""
    try:
        return weakref.ref(thing)
    except TypeError:  # None, and what takes no weak references
        return lambda: thing


def memory_of(torch: Any, device: Any, total: int | Unknown) -> MemoryFacts | Unknown:
    """The most that torch held so far."""
    if isinstance(total, Unknown):
        return total
    stats: Mapping[str, Any] = torch.cuda.memory_stats(device)
    return MemoryFacts(
        allocated_bytes=int(stats.get("allocated_bytes.all.peak", 0)),
        reserved_bytes=int(stats.get("reserved_bytes.all.peak", 0)),
        total_bytes=total,
        retries=int(stats.get("num_alloc_retries", 0)),
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
    parts = () if model is None else model.modules()
    return any(hasattr(m, "_orig_mod") or getattr(m, "_compiled_call_impl", None) is not None for m in parts)


def identify(
    run_id: str | None, labels: Mapping[str, str] | None, rank: int, size: int, environ: Mapping[str, str] | None = None
) -> Identity:
    """Who runs: the same labels a recording next to the job finds, and one run id for all ranks."""
    around = os.environ if environ is None else environ
    host = socket.gethostname()
    found = attribute(around, host=host, command=command_name(sys.orig_argv), given=labels)
    own = dict(found.labels)
    own["run_id"] = run_id or own.get("run_id") or _new_id(around, size)
    return Identity(own["run_id"], rank, size, host, own)


def _new_id(environ: Mapping[str, str], size: int) -> str:
    """Ranks cannot agree on a random name without waiting for each other: take what their launcher gave them all."""
    now = dt.datetime.now(tz=dt.UTC)
    given = next((environ[k] for k in _SHARED_ID if environ.get(k, "none") not in {"", "none"}), None)
    return f"{now:%Y%m%d}-{given}" if given and size > 1 else f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


class Energy:
    """The board's own energy counter, read at both ends of the timed steps: one reading takes milliseconds."""

    def __init__(self, gpu_uuid: str | None, source: Callable[[], Source] | None = None) -> None:
        self._uuid, self._open = gpu_uuid, source or _nvml
        self._source: Source | None = None
        self._read: Callable[[], Any] | None = None
        self._begin_mj = 0.0
        self.why = "the energy counter was not read at the start" if gpu_uuid else NOT_A_GPU.why

    def begin(self) -> None:
        """Read the counter for the first time."""
        if self._uuid is None:
            return
        try:
            self._source = self._open()
            read = self._counter(self._source)
            self._begin_mj = 0.0 if read is None else float(read())
            self._read = read
        except Exception as error:  # noqa: BLE001 - the driver's own errors; a figure is missing, the job goes on
            self.why = f"the driver does not report energy: {first_line(error)}"

    def _counter(self, source: Source) -> Callable[[], Any] | None:
        boards = (d for d in source.devices if d.facts.gpu_uuid == self._uuid and d.facts.gpu_instance_id is None)
        board = next(boards, None)
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
        if self._read is None:
            return Unknown(self.why)
        try:
            return (float(self._read()) - self._begin_mj) / 1000
        except Exception as error:  # noqa: BLE001 - the driver's own errors; a figure is missing, the job goes on
            return Unknown(f"the driver no longer reports energy: {error}")

    def close(self) -> None:
        """Release the driver."""
        if self._source is not None:
            with contextlib.suppress(Exception):
                self._source.close()
            self._source = None


def _nvml() -> Source:
    from gpuledger.devices.nvml import NvmlSource

    return NvmlSource()
