"""What if amdsmi answered from a script?"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from gpuledger.devices.clock import Clock
from gpuledger.devices.replay.faults import Codes, Fault, FaultPlan
from gpuledger.devices.replay.script import Board
from gpuledger.units import MIB

_CODES = Codes(lost=34, unsupported=2, refused=10)
_TICK_UJ = 15.259
_NA = "N/A"


class _Error(Exception):
    """amdsmi's own error carries a code and a text."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.err_code = code
        self.err_info = f"AMDSMI status {code}"


class _Clocks(IntEnum):
    GFX = 0
    MEM = 4


class _Sensors(IntEnum):
    HOTSPOT = 1
    VRAM = 2


class _Metric(IntEnum):
    CURRENT = 0


class _Flags(IntEnum):
    INIT_AMD_GPUS = 2


class FakeAmd:
    """Boards that play their scripts through the calls of amdsmi."""

    AmdSmiException = _Error
    AmdSmiClkType = _Clocks
    AmdSmiTemperatureType = _Sensors
    AmdSmiTemperatureMetric = _Metric
    AmdSmiInitFlags = _Flags

    def __init__(
        self, boards: Sequence[Board], clock: Clock | None = None, faults: Sequence[Fault] = (), init_error: int = 0
    ) -> None:
        self._boards, self._clock = list(boards), clock or Clock()
        self._plan = FaultPlan(faults, _CODES, self._clock.sleep)
        self._init_error = init_error
        self._opened_s = self._clock.monotonic()

    def _said(self, call: str, handle: int, column: str) -> Any:
        now = self._clock.monotonic() - self._opened_s
        if code := self._plan.code(call, handle, now):
            raise _Error(code)
        script = self._boards[handle].script
        value = script.energy_mj(now) if column == "energy_mj" else script.level(column, now)
        return _NA if value is None else value

    def amdsmi_init(self, _flags: int) -> None:
        if self._init_error:
            raise _Error(self._init_error)

    def amdsmi_shut_down(self) -> None:
        """Close the driver."""

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(len(self._boards)))

    def amdsmi_get_gpu_device_uuid(self, handle: int) -> str:
        return self._boards[handle].uuid

    def amdsmi_get_gpu_asic_info(self, handle: int) -> dict[str, Any]:
        return {"market_name": self._boards[handle].model}

    def amdsmi_get_gpu_driver_info(self, _handle: int) -> dict[str, Any]:
        return {"driver_version": "6.12.12"}

    def amdsmi_get_gpu_activity(self, handle: int) -> dict[str, Any]:
        call = "amdsmi_get_gpu_activity"
        busy, memory = (self._said(call, handle, c) for c in ("gpu_util_ratio", "mem_copy_util_ratio"))
        return {
            "gfx_activity": busy if busy == _NA else round(100 * busy),
            "umc_activity": memory if memory == _NA else round(100 * memory),
            "mm_activity": _NA,
        }

    def amdsmi_get_power_info(self, handle: int) -> dict[str, Any]:
        power = self._said("amdsmi_get_power_info", handle, "power_w")
        return {"current_socket_power": power if power == _NA else round(power), "average_socket_power": _NA}

    def amdsmi_get_power_cap_info(self, handle: int) -> dict[str, Any]:
        cap = self._said("amdsmi_get_power_cap_info", handle, "power_limit_w")
        if cap == _NA:
            raise _Error(_CODES.unsupported)
        return {"power_cap": round(cap * 1e6), "default_power_cap": _NA}

    def amdsmi_get_clock_info(self, handle: int, kind: int) -> dict[str, Any]:
        column = "mem_clock_mhz" if kind == _Clocks.MEM else "sm_clock_mhz"
        return {"clk": self._said("amdsmi_get_clock_info", handle, column)}

    def amdsmi_get_gpu_vram_usage(self, handle: int) -> dict[str, Any]:
        used = self._said("amdsmi_get_gpu_vram_usage", handle, "fb_used_bytes")
        return {
            "vram_used": used if used == _NA else int(used / MIB),
            "vram_total": self._boards[handle].memory_bytes // MIB,
        }

    def amdsmi_get_temp_metric(self, handle: int, sensor: int, _metric: int) -> Any:
        column = "mem_temp_c" if sensor == _Sensors.VRAM else "gpu_temp_c"
        return self._said("amdsmi_get_temp_metric", handle, column)

    def amdsmi_get_energy_count(self, handle: int) -> dict[str, Any]:
        energy = self._said("amdsmi_get_energy_count", handle, "energy_mj")
        ticks = energy if energy == _NA else int(energy * 1000 / _TICK_UJ)
        return {"energy_accumulator": ticks, "counter_resolution": _TICK_UJ}

    def amdsmi_get_gpu_process_list(self, handle: int) -> list[dict[str, Any]]:
        found = self._boards[handle].holders().items()
        return [{"pid": pid, "memory_usage": {"vram_mem": _NA if m is None else m}} for pid, m in found]
