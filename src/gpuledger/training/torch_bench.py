"""How does torch run the work a calibration times, and how does the driver report power?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gpuledger.devices.device import Device, Source
from gpuledger.errors import DeviceError
from gpuledger.training.calibrate import Job, Precision
from gpuledger.training.runtime import first_line
from gpuledger.units import GIB, Unknown

LOOK_EVERY_S = 0.02
LEAST_N = 1024
COPY_BYTES = 4 * GIB
BUSY_FROM_RATIO = 0.01
Meanwhile = Callable[[], None]


def open_benches(source: Source, torch: Any) -> list[TorchBench]:
    """A bench for every whole GPU that torch can use; fails with the next step where there is none."""
    if not torch.cuda.is_available():
        built = getattr(torch.version, "cuda", None)
        why = f"this torch is built for CUDA {built} and finds no GPU" if built else "this torch is built without CUDA"
        raise DeviceError(why, hint="check nvidia-smi; install a torch with CUDA: pip install torch")
    boards = {d.facts.gpu_uuid: d for d in source.devices if d.facts.gpu_instance_id is None}
    out = []
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        uuid = f"GPU-{facts.uuid}" if hasattr(facts, "uuid") else ""
        if uuid not in boards and len(boards) == 1 and torch.cuda.device_count() == 1:
            uuid = next(iter(boards))  # an old torch has no UUID; with one GPU it must be this one
        if uuid in boards:
            out.append(TorchBench(torch, f"cuda:{index}", boards[uuid], source.driver))
    if not out:
        hint = "calibrate measures whole boards: switch MIG off, or unset CUDA_VISIBLE_DEVICES"
        raise DeviceError("torch and the driver have no whole GPU in common", hint=hint)
    return out


class TorchBench:
    """One torch device and the same board as the driver knows it. On a CPU the wall clock is used."""

    def __init__(self, torch: Any, device: str, board: Device, driver: str) -> None:
        self._torch, self._device = torch, torch.device(device)
        self.gpu_uuid, self.gpu_model = board.facts.gpu_uuid, board.facts.gpu_model or "no model name"
        self.made_with = {"torch": str(torch.__version__), "cuda": str(torch.version.cuda), "driver": driver}
        self._board = board
        self._readings = {c: (f.read, i) for f in board.fields for i, c in enumerate(f.columns)}
        self._held: list[Any] = []
        self._own = {os.getpid()}
        self._no_room: type[Exception] = getattr(torch, "OutOfMemoryError", MemoryError)

    def product(self, kind: Precision) -> Job | Unknown:
        """A square product, halved until it fits."""
        n = kind.n
        while True:
            try:
                once = self._multiply(kind, n)
                once()
                self._settle()
            except (RuntimeError, AttributeError, NotImplementedError, TypeError, ValueError) as error:
                self._forget()
                if isinstance(error, self._no_room) and n > LEAST_N:
                    n //= 2
                    continue
                return Unknown(f"torch cannot multiply {kind.name} here: {first_line(error)}")
            return Job(2.0 * n**3, n, self._timed(once, kind.how == "matmul_tf32"), self._forget)

    def _multiply(self, kind: Precision, n: int) -> Callable[[], object]:
        torch, dtype = self._torch, getattr(self._torch, kind.dtype)
        if kind.how == "int_mm":
            a, b = (torch.randint(-128, 128, (n, n), dtype=dtype, device=self._device) for _ in range(2))
            return lambda: torch._int_mm(a, b.t())  # noqa: SLF001 - torch has no public name for it
        a, b = (torch.randn((n, n), dtype=torch.float32, device=self._device).to(dtype) for _ in range(2))
        if kind.how == "scaled_mm":
            one = torch.ones((), dtype=torch.float32, device=self._device)
            scaled = torch._scaled_mm  # noqa: SLF001 - torch has no public name for it
            return lambda: scaled(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        out = torch.empty((n, n), dtype=dtype, device=self._device)
        return lambda: torch.matmul(a, b, out=out)

    def copy(self) -> Job | Unknown:
        """A copy from one half of a buffer to the other; it reads and writes every byte once."""
        torch = self._torch
        try:
            free = torch.cuda.mem_get_info(self._device)[0] if self._device.type == "cuda" else GIB
            size = min(COPY_BYTES, free // 4)
            a, b = (torch.ones(size, dtype=torch.uint8, device=self._device) for _ in range(2))
        except RuntimeError as error:
            self._forget()
            return Unknown(f"torch cannot hold the buffers: {first_line(error)}")
        return Job(2.0 * size, size, self._timed(lambda: b.copy_(a), False), self._forget)

    def _timed(self, once: Callable[[], object], tf32: bool) -> Callable[[int, Meanwhile], float]:
        def run(times: int, meanwhile: Meanwhile) -> float:
            with self._fp32_products("high" if tf32 else "highest"):
                if self._device.type != "cuda":
                    begun = time.perf_counter()
                    for _ in range(times):
                        once()
                    meanwhile()
                    return time.perf_counter() - begun
                return self._on_gpu(once, times, meanwhile)

        return run

    def _on_gpu(self, once: Callable[[], object], times: int, meanwhile: Meanwhile) -> float:
        """Timed by events on the device, so that launches cost nothing while the queue is filled."""
        with self._torch.cuda.device(self._device):
            begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(times):
                once()
            end.record()
            while not end.query():
                meanwhile()
                time.sleep(LOOK_EVERY_S)
            return float(begin.elapsed_time(end)) / 1000

    @contextmanager
    def _fp32_products(self, precision: str) -> Iterator[None]:
        """fp32 products in full ("highest") or on the tensor pipe in TF32 ("high"); as before afterwards."""
        before = self._torch.get_float32_matmul_precision()
        self._torch.set_float32_matmul_precision(precision)
        try:
            yield
        finally:
            self._torch.set_float32_matmul_precision(before)

    def power_w(self) -> float | Unknown:
        """The power the driver reports for the board."""
        return self._read("power_w")

    def _read(self, column: str) -> float | Unknown:
        if column not in self._readings:
            return Unknown(f"the driver has no {column} for this board")
        read, place = self._readings[column]
        try:
            value = read()[place]
        except Exception as error:  # noqa: BLE001 - the driver's own errors, judged by the device
            return Unknown(self._board.judge(error).why)
        return Unknown(f"the driver gave no {column}") if value is None else float(value)

    def strangers(self) -> str:
        """Other processes on the board, or a board that is busy by itself."""
        others = sorted(self._pids() - self._own)
        busy = self._read("gpu_util_ratio")
        if not isinstance(busy, Unknown) and busy > BUSY_FROM_RATIO:
            return f"utilization is {busy:.0%}" + _held_by(others)
        return _held_by(others).removeprefix(", ")

    def hold(self) -> None:
        """Open the device, hold a MiB, and let the clocks settle."""
        before = self._pids()
        self._held.append(self._torch.zeros(1 << 20, dtype=self._torch.uint8, device=self._device))
        self._settle()
        time.sleep(0.5)
        # In a container the driver knows this process by another number: the one that just appeared.
        self._own |= self._pids() - before

    def _pids(self) -> set[int]:
        try:
            return set(self._board.processes())
        except Exception:  # noqa: BLE001 - some containers hide processes; then utilization must do
            return set()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def _settle(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)

    def _forget(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.empty_cache()


def _held_by(pids: Sequence[int]) -> str:
    if not pids:
        return ""
    return f", process{'es' * (len(pids) > 1)} {', '.join(map(str, pids[:5]))} hold{'s' * (len(pids) == 1)} it"
