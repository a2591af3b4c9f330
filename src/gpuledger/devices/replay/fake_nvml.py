"""What if pynvml answered from a script?

The object has the calls of pynvml that the sampler uses, with their units, structures and errors; constants and
structures are pynvml's own. So the very code that reads a real GPU reads a recording.
"""

# ruff: noqa: N802 - the calls keep NVML's names

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pynvml

from gpuledger.devices import gpm
from gpuledger.devices.clock import Clock
from gpuledger.devices.replay.faults import Codes, Fault, FaultPlan
from gpuledger.devices.replay.script import Board, Script

_CODES = Codes(pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION)
# A sample of the fake holds three numbers: when it was taken, of which board and of which instance (-1: none).
_SAMPLE_NUMBERS = 3
# Calls that give one reading of a board: its column, and how many of the call's units make one of the column's.
_LEVELS = {
    "nvmlDeviceGetPowerUsage": ("power_w", 1000),
    "nvmlDeviceGetEnforcedPowerLimit": ("power_limit_w", 1000),
    "nvmlDeviceGetTemperature": ("gpu_temp_c", 1),
    "nvmlDeviceGetCurrentClocksEventReasons": ("throttle_bits", 1),
    "nvmlDeviceGetPcieReplayCounter": ("pcie_replays", 1),
}


@dataclass(frozen=True)
class _Handle:
    gpu: int
    instance: int | None = None


class FakeNvml:
    """Boards that play their scripts; `init_error` makes the driver refuse."""

    def __init__(
        self,
        boards: Sequence[Board],
        clock: Clock | None = None,
        faults: Sequence[Fault] = (),
        init_error: int = 0,
        driver: str = "580.159.04",
    ) -> None:
        self._boards, self._clock = list(boards), clock or Clock()
        self._plan = FaultPlan(faults, _CODES, self._clock.sleep)
        self._init_error, self._driver = init_error, driver
        self._opened_s = self._clock.monotonic()
        self._metrics = {getattr(pynvml, m.metric): m for m in gpm.metrics()}
        self._shares = {m.column: sum(x.column == m.column for x in gpm.metrics()) for m in gpm.metrics()}
        self._buffers: dict[int, Any] = {}
        self.opened = 0

    def __getattr__(self, name: str) -> Any:
        if name in _LEVELS:
            column, unit = _LEVELS[name]
            return lambda handle, *_sensor: round(unit * self._level(name, handle, column))
        if name.startswith("nvml"):
            raise AttributeError(f"the fake has no {name}")
        return getattr(pynvml, name)

    def _now(self) -> float:
        return self._clock.monotonic() - self._opened_s

    def _enter(self, call: str, handle: _Handle) -> tuple[Board, Script]:
        """The board and the script that answers; what is planned to go wrong goes wrong here."""
        if code := self._plan.code(call, handle.gpu, self._now()):
            raise pynvml.NVMLError(code)
        board = self._boards[handle.gpu]
        if handle.instance is None:
            return board, board.script
        return board, next(s for n, _, s in board.instances if n == handle.instance)

    def _level(self, call: str, handle: _Handle, column: str) -> float:
        _, script = self._enter(call, handle)
        value = script.level(column, self._now())
        if value is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value

    def nvmlInit(self) -> None:
        if self._init_error:
            raise pynvml.NVMLError(self._init_error)
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return self._driver

    def nvmlDeviceGetCount(self) -> int:
        return len(self._boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> _Handle:
        self._enter("nvmlDeviceGetHandleByIndex", _Handle(index))
        return _Handle(index)

    def nvmlDeviceGetUUID(self, handle: _Handle) -> str:
        uuid = self._boards[handle.gpu].uuid
        return uuid if handle.instance is None else f"MIG-{uuid.removeprefix('GPU-')}-{handle.instance}"

    def nvmlDeviceGetName(self, handle: _Handle) -> str:
        return self._boards[handle.gpu].model

    def nvmlDeviceGetMigMode(self, handle: _Handle) -> list[int]:
        board, _ = self._enter("nvmlDeviceGetMigMode", handle)
        return [int(bool(board.instances))] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: _Handle) -> int:
        return self._boards[handle.gpu].slices

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: _Handle, index: int) -> _Handle:
        instances = self._boards[handle.gpu].instances
        if index >= len(instances):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return _Handle(handle.gpu, instances[index][0])

    def nvmlDeviceGetGpuInstanceId(self, handle: _Handle) -> int:
        return int(handle.instance or 0)

    def nvmlDeviceGetAttributes_v2(self, handle: _Handle) -> Any:
        slices = next(k for n, k, _ in self._boards[handle.gpu].instances if n == handle.instance)
        return SimpleNamespace(gpuInstanceSliceCount=slices)

    def nvmlDeviceGetGpuInstanceProfileInfo(self, handle: _Handle, profile: int) -> Any:
        board, _ = self._enter("nvmlDeviceGetGpuInstanceProfileInfo", handle)
        if profile != pynvml.NVML_GPU_INSTANCE_PROFILE_7_SLICE:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(sliceCount=board.slices)

    def nvmlDeviceGetUtilizationRates(self, handle: _Handle) -> Any:
        board, script = self._enter("nvmlDeviceGetUtilizationRates", handle)
        found = [self._utilization(board, script, c) for c in ("gpu_util_ratio", "mem_copy_util_ratio")]
        if found[0] is None or board.instances:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return pynvml.c_nvmlUtilization_t(round(100 * found[0]), round(100 * (found[1] or 0.0)))

    def _utilization(self, board: Board, script: Script, column: str) -> float | None:
        """The counter as last refreshed: the share of time over its last period."""
        now, period = self._now(), board.util_period_s
        if not period:
            return script.level(column, now)
        refreshed = int(now / period + 1e-6) * period  # ticks of virtual time are rounded: stay clear of the edge
        return script.mean(column, max(0.0, refreshed - period), refreshed or 1e-9)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: _Handle) -> int:
        _, script = self._enter("nvmlDeviceGetTotalEnergyConsumption", handle)
        energy = script.energy_mj(self._now())
        if energy is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return int(energy)

    def nvmlDeviceGetClockInfo(self, handle: _Handle, kind: int) -> int:
        column = "mem_clock_mhz" if kind == pynvml.NVML_CLOCK_MEM else "sm_clock_mhz"
        return round(self._level("nvmlDeviceGetClockInfo", handle, column))

    def nvmlDeviceGetMemoryInfo(self, handle: _Handle) -> Any:
        board, script = self._enter("nvmlDeviceGetMemoryInfo", handle)
        used, free = (script.level(c, self._now()) for c in ("fb_used_bytes", "fb_free_bytes"))
        if used is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        total = board.memory_bytes if free is None else round(used + free)
        return pynvml.c_nvmlMemory_t(total, total - round(used), round(used))

    def nvmlDeviceGetFieldValues(self, handle: _Handle, fields: Sequence[int]) -> list[Any]:
        _, script = self._enter("nvmlDeviceGetFieldValues", handle)
        out = []
        for number in fields:
            known = number == pynvml.NVML_FI_DEV_MEMORY_TEMP
            value = script.level("mem_temp_c", self._now()) if known else None
            found = pynvml.c_nvmlFieldValue_t()
            found.nvmlReturn = pynvml.NVML_ERROR_NOT_SUPPORTED if value is None else pynvml.NVML_SUCCESS
            found.value.uiVal = round(value or 0)
            out.append(found)
        return out

    def nvmlDeviceGetRemappedRows(self, handle: _Handle) -> tuple[int, int, int, int]:
        found = int(self._level("nvmlDeviceGetRemappedRows", handle, "remapped_correctable_rows"))
        return found, 0, 0, 0

    def nvmlDeviceGetComputeRunningProcesses(self, handle: _Handle) -> list[Any]:
        board, _ = self._enter("nvmlDeviceGetComputeRunningProcesses", handle)
        return [SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in board.holders().items()]

    def nvmlGpmQueryDeviceSupport(self, handle: _Handle) -> Any:
        board, _ = self._enter("nvmlGpmQueryDeviceSupport", handle)
        return SimpleNamespace(isSupportedDevice=int(board.gpm))

    def nvmlGpmSampleAlloc(self) -> Any:
        buffer = (ctypes.c_double * _SAMPLE_NUMBERS)()
        sample = ctypes.cast(buffer, pynvml.c_nvmlGpmSample_t)
        self._buffers[ctypes.addressof(buffer)] = buffer
        return sample

    def nvmlGpmSampleFree(self, sample: Any) -> None:
        del self._buffers[ctypes.cast(sample, ctypes.c_void_p).value or 0]

    def nvmlGpmSampleGet(self, handle: _Handle, sample: Any) -> Any:
        return self._sample("nvmlGpmSampleGet", handle, -1, sample)

    def nvmlGpmMigSampleGet(self, handle: _Handle, instance: int, sample: Any) -> Any:
        return self._sample("nvmlGpmMigSampleGet", handle, instance, sample)

    def _sample(self, call: str, handle: _Handle, instance: int, sample: Any) -> Any:
        self._enter(call, handle)
        numbers = ctypes.cast(sample, ctypes.POINTER(ctypes.c_double))
        numbers[0], numbers[1], numbers[2] = self._now(), handle.gpu, instance
        return sample

    def nvmlGpmMetricsGet(self, request: Any) -> Any:
        first, second = (ctypes.cast(s, ctypes.POINTER(ctypes.c_double)) for s in (request.sample1, request.sample2))
        instance = None if second[2] < 0 else int(second[2])
        handle = _Handle(int(second[1]), instance)
        _, script = self._enter("nvmlGpmMetricsGet", handle)
        for i in range(request.numMetrics):
            slot = request.metrics[i]
            metric = self._metrics[slot.metricId]
            value = script.mean(metric.column, first[0], second[0])
            code = self._plan.code(metric.metric, handle.gpu, self._now())
            if value is None:
                has = metric.column in script.columns
                code = code or (pynvml.NVML_ERROR_NO_DATA if has else pynvml.NVML_ERROR_NOT_SUPPORTED)
            slot.nvmlReturn = code
            slot.value = (value or 0.0) / metric.multiply / self._shares[metric.column]
        return request
