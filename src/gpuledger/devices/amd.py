"""What do AMD GPUs (MI200, MI300 and later) report through amdsmi?

Only readings that mean the same as on NVIDIA fill a column: how long any kernel ran (gfx activity), how long memory
was read or written (umc activity), power, energy, clocks, memory, temperatures. amdsmi has no activity of single pipes.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Iterator
from typing import Any

from gpuledger.devices import gpm
from gpuledger.devices.device import DEVICES, TRY_REPLAY, Device, Driver, Facts, Field, Held, Value, Verdict
from gpuledger.errors import DeviceError, MissingExtra
from gpuledger.units import MIB

# Status codes of amdsmi.h.
_NEVER = frozenset({2, 3, 10, 31})  # not supported, not yet implemented, no permission, not found
_GONE = frozenset({32, 34})  # library not initialised, driver not loaded
_FILES = ("/dev/kfd",)
MICROWATTS = 1_000_000
LEAST_MICROWATTS = 100_000
_NO_PIPES = "amdsmi counts no activity of single pipes; rocprofiler does, with a daemon"


class NotSaid(Exception):
    """The driver answered that it has no such reading."""


class AmdDevice(Device):
    """One AMD GPU, or one partition of it."""

    def __init__(self, api: Any, facts: Facts, handle: Any, files: tuple[str, ...] = ()) -> None:
        self._api, self._handle = api, handle
        self.files = files
        self.facts = facts
        self.absent: dict[str, str] = dict.fromkeys(gpm.columns(), _NO_PIPES)
        self.absent["throttle_bits"] = "AMD numbers the reasons differently from NVML"
        self.fields = tuple(self._fields())

    def _fields(self) -> Iterator[Field]:
        clocks, heat = self._api.AmdSmiClkType, self._api.AmdSmiTemperatureType
        yield Field(("gpu_util_ratio", "mem_copy_util_ratio"), self._activity, "fast")
        yield Field(("power_w",), self._power, "fast")
        yield Field(("power_limit_w",), self._power_limit, "slow")
        yield Field(("sm_clock_mhz",), lambda: (self._clock(clocks.GFX),), "fast")
        yield Field(("mem_clock_mhz",), lambda: (self._clock(clocks.MEM),), "slow")
        yield Field(("fb_used_bytes", "fb_free_bytes"), self._memory, "slow")
        yield Field(("gpu_temp_c",), lambda: (self._temperature(heat.HOTSPOT),), "slow")
        yield Field(("mem_temp_c",), lambda: (self._temperature(heat.VRAM),), "slow")
        yield Field(("energy_mj",), self._energy, "slow", "counter")

    def _activity(self) -> tuple[Value, ...]:
        said = self._api.amdsmi_get_gpu_activity(self._handle)
        busy, memory = _number(said, "gfx_activity"), _number(said, "umc_activity")
        if busy is None and memory is None:
            raise NotSaid
        return tuple(None if v is None else min(v / 100, 1.0) for v in (busy, memory))

    def _power(self) -> tuple[Value, ...]:
        said = self._api.amdsmi_get_power_info(self._handle)
        # MI300 fills the current power, MI200 the average; the second die of a package says 0 for both.
        for name in ("current_socket_power", "average_socket_power", "socket_power"):
            if found := _number(said, name):
                return (float(found),)
        raise NotSaid

    def _power_limit(self) -> tuple[Value, ...]:
        """The power cap in force."""
        found = _number(self._api.amdsmi_get_power_cap_info(self._handle), "power_cap")
        if not found:
            raise NotSaid  # the second die of a package has no cap of its own
        # Microwatts on a Linux machine, watts on the host of virtual ones.
        return (found / MICROWATTS if found >= LEAST_MICROWATTS else float(found),)

    def _clock(self, kind: Any) -> Value:
        said = self._api.amdsmi_get_clock_info(self._handle, kind)
        found = _number(said, "clk", "cur_clk")
        if found is None:
            raise NotSaid
        return found

    def _memory(self) -> tuple[Value, ...]:
        said = self._api.amdsmi_get_gpu_vram_usage(self._handle)
        used, total = _number(said, "vram_used"), _number(said, "vram_total")
        if used is None or total is None:
            raise NotSaid
        return int(used * MIB), int((total - used) * MIB)

    def _temperature(self, sensor: Any) -> Value:
        found = self._api.amdsmi_get_temp_metric(self._handle, sensor, self._api.AmdSmiTemperatureMetric.CURRENT)
        if not isinstance(found, (int, float)):
            raise NotSaid
        return found

    def _energy(self) -> tuple[Value, ...]:
        said = self._api.amdsmi_get_energy_count(self._handle)
        ticks, tick_uj = _number(said, "energy_accumulator", "power"), _number(said, "counter_resolution")
        if not ticks or not tick_uj:
            raise NotSaid  # a counter at 0 is the second die of a package, whose energy the first one counts
        return (int(ticks * tick_uj / 1000),)

    def judge(self, error: Exception) -> Verdict:
        if isinstance(error, NotSaid):
            return Verdict("unsupported", "the AMD driver answers N/A")
        code = getattr(error, "err_code", None)
        said = str(getattr(error, "err_info", "") or error)
        if code in _GONE:
            return Verdict("lost", f"amdsmi: {said}")
        if code in _NEVER:
            return Verdict("unsupported", f"this device or driver does not have it (amdsmi: {said})")
        return Verdict("passing", f"{type(error).__name__}: {said}")

    def holders(self) -> list[Held]:
        found = self._api.amdsmi_get_gpu_process_list(self._handle)
        return [Held(int(p["pid"]), _vram(p)) for p in found if isinstance(p, dict) and "pid" in p]


class AmdSource:
    """The AMD driver of this host and all its devices; `api` is amdsmi or something that answers like it."""

    def __init__(self, api: Any = None) -> None:
        self._files = _FILES if api is None else ()
        self._api = api = _load() if api is None else api
        self.notes: list[str] = []
        try:
            api.amdsmi_init(api.AmdSmiInitFlags.INIT_AMD_GPUS)
            handles = api.amdsmi_get_processor_handles()
        except api.AmdSmiException as error:
            hint = f"see what amd-smi says; the user may need the groups render and video; {TRY_REPLAY}"
            raise DeviceError(f"the AMD driver does not answer: {error}", hint=hint) from error
        self.devices = tuple(self._device(i, h) for i, h in enumerate(handles))
        self.driver = f"AMD {self._driver(handles[0])}" if handles else "AMD"
        if not self.devices:
            self.close()
            raise DeviceError(
                "the AMD driver shows no GPU", hint=f"in a container, pass /dev/kfd and /dev/dri; {TRY_REPLAY}"
            )

    def _device(self, index: int, handle: Any) -> AmdDevice:
        uuid = self._api.amdsmi_get_gpu_device_uuid(handle)
        model = self._api.amdsmi_get_gpu_asic_info(handle).get("market_name")
        facts = Facts(index, uuid, model if model and model != "N/A" else None)
        return AmdDevice(self._api, facts, handle, self._files)

    def _driver(self, handle: Any) -> str:
        try:
            return str(self._api.amdsmi_get_gpu_driver_info(handle)["driver_version"])
        except (self._api.AmdSmiException, KeyError):
            return "driver of unknown version"

    def close(self) -> None:
        """Let the driver go."""
        with contextlib.suppress(self._api.AmdSmiException):
            self._api.amdsmi_shut_down()


def _number(said: dict[str, Any], *names: str) -> float | int | None:
    """The first of these entries that is a number; amdsmi writes N/A where it has none."""
    for name in names:
        found = said.get(name)
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return found
    return None


def _vram(process: dict[str, Any]) -> int | None:
    """Bytes of GPU memory a process holds."""
    memory = process.get("memory_usage")
    found = _number(memory if isinstance(memory, dict) else process, "vram_mem", "mem")
    return None if found is None else int(found)


def _load() -> Any:
    try:
        # Without ROCm the import prints to stdout and raises whatever it stumbles over.
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module("amdsmi")
    except ImportError as error:
        raise MissingExtra("recording AMD GPUs (amdsmi)", "amd") from error
    except Exception as error:
        hint = f"install ROCm with amd-smi-lib; {TRY_REPLAY}"
        raise DeviceError(f"amdsmi is installed but does not load: {error}", hint=hint) from error


DEVICES.register("amd")(Driver(lambda _rest, _clock: AmdSource()))
