"""What do NVIDIA GPUs report through NVML?

Costs on an H200: utilization, power and clocks 2 us each; memory 0.2 ms; activity 0.05 ms per sample and 1.8 ms for its
metrics; energy 4.4 ms. The PCIe counter of its own takes 21 ms and is not asked: the activity counters have PCIe too.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from gpuledger.devices import gpm
from gpuledger.devices.device import DEVICES, TRY_REPLAY, Device, Driver, Facts, Field, Held, Value, Verdict
from gpuledger.errors import DeviceError


class NvmlDevice(Device):
    """One NVIDIA board, or one MIG instance of it (then `mig` is its own handle)."""

    def __init__(self, api: Any, facts: Facts, handle: Any, mig: Any = None, files: tuple[str, ...] = ()) -> None:
        self._api, self._handle, self._mig, self._own = api, handle, mig, handle if mig is None else mig
        self.files = files
        self.facts = facts
        self.absent: dict[str, str] = {"xid": "NVML reports driver errors as events only; see dmesg"}
        self._gpm: gpm.GpmReader | None = None
        self.fields = tuple(self._fields())

    def _fields(self) -> Iterator[Field]:
        api, board = self._api, self._handle
        if self._mig is None:
            yield Field(("gpu_util_ratio", "mem_copy_util_ratio"), self._utilization, "fast")
            yield Field(("power_w",), lambda: (api.nvmlDeviceGetPowerUsage(board) / 1000,), "fast")
            yield Field(("energy_mj",), lambda: (api.nvmlDeviceGetTotalEnergyConsumption(board),), "slow", "counter")
            yield Field(("power_limit_w",), self._power_limit, "slow")
        else:
            self.absent |= {
                "gpu_util_ratio": "NVML has no utilization of a MIG instance; engine_ratio is its activity",
                "mem_copy_util_ratio": "NVML has no utilization of a MIG instance; dram_ratio is its activity",
                "power_w": "power is measured for the whole board and cannot be split among MIG instances",
                "energy_mj": "energy is counted for the whole board and cannot be split among MIG instances",
                "power_limit_w": "the power limit holds for the whole board and cannot be split among MIG instances",
            }
        yield Field(("sm_clock_mhz",), lambda: (api.nvmlDeviceGetClockInfo(board, api.NVML_CLOCK_SM),), "fast")
        yield Field(("mem_clock_mhz",), lambda: (api.nvmlDeviceGetClockInfo(board, api.NVML_CLOCK_MEM),), "slow")
        yield Field(("fb_used_bytes", "fb_free_bytes"), self._memory, "slow")
        yield Field(("gpu_temp_c",), lambda: (self._either(_TEMPERATURE, board, api.NVML_TEMPERATURE_GPU),), "slow")
        yield Field(("mem_temp_c",), self._memory_temperature, "slow")
        if self._has_throttle_reasons():
            yield Field(("throttle_bits",), lambda: (self._either(_THROTTLE, board),), "slow")
        else:
            self.absent["throttle_bits"] = "this GPU or driver reports no clock event reasons"
        yield Field(("pcie_replays",), lambda: (api.nvmlDeviceGetPcieReplayCounter(board),), "rare")
        remapped = ("remapped_correctable_rows", "remapped_uncorrectable_rows", "row_remap_failures")
        yield Field(remapped, self._remapped, "rare")
        yield from self._activity()

    def _activity(self) -> Iterator[Field]:
        try:
            if not self._api.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice:
                raise self._api.NVMLError(self._api.NVML_ERROR_NOT_SUPPORTED)
            instance = None if self._mig is None else int(self.facts.gpu_instance_id or 0)
            self._gpm = gpm.GpmReader(self._api, self._handle, instance, self.absent)
            yield Field(gpm.columns(), self._gpm.read, "slow", "mean")
        except self._api.NVMLError as error:
            why = f"activity counters without a daemon need a Hopper GPU or newer and driver 520 or newer ({error})"
            self.absent |= dict.fromkeys(gpm.columns(), f"{why}; DCGM has them on older ones")

    def _utilization(self) -> tuple[Value, ...]:
        rates = self._api.nvmlDeviceGetUtilizationRates(self._handle)
        return rates.gpu / 100, rates.memory / 100

    def _power_limit(self) -> tuple[Value, ...]:
        """The limit in force: the lowest of what the user, the board and the rack set."""
        found = self._api.nvmlDeviceGetEnforcedPowerLimit(self._handle)
        return (found / 1000 if found else None,)

    def _has_throttle_reasons(self) -> bool:
        """Whether any reason can ever be reported: a GPU that reports none would read as never throttled."""
        if not any(hasattr(self._api, name) for name in _THROTTLE):
            return False
        try:
            return self._either(_THROTTLE_KNOWN, self._handle) != 0
        except self._api.NVMLError:
            return True  # which ones there are is not known; the reading itself will show

    def _memory(self) -> tuple[Value, ...]:
        memory = self._api.nvmlDeviceGetMemoryInfo(self._own)
        return memory.used, memory.free

    def _memory_temperature(self) -> tuple[Value, ...]:
        (found,) = self._api.nvmlDeviceGetFieldValues(self._handle, [self._api.NVML_FI_DEV_MEMORY_TEMP])
        if found.nvmlReturn != self._api.NVML_SUCCESS:
            raise self._api.NVMLError(found.nvmlReturn)
        return (found.value.uiVal,)

    def _remapped(self) -> tuple[Value, ...]:
        correctable, uncorrectable, _pending, failed = self._api.nvmlDeviceGetRemappedRows(self._handle)
        return correctable, uncorrectable, failed

    def _either(self, names: tuple[str, str], *args: Any) -> Value:
        """The newer call of two, or the older where the driver lacks it."""
        newer, older = (getattr(self._api, n, None) for n in names)
        if newer is None:
            return older(*args) if older is not None else None
        try:
            return newer(*args)
        except self._api.NVMLError_FunctionNotFound:
            if older is None:
                raise
            return older(*args)

    def judge(self, error: Exception) -> Verdict:
        api, code = self._api, getattr(error, "value", None)
        if code in (api.NVML_ERROR_GPU_IS_LOST, api.NVML_ERROR_RESET_REQUIRED, api.NVML_ERROR_UNINITIALIZED):
            return Verdict("lost", f"NVML: {error}")
        if code == api.NVML_ERROR_NO_PERMISSION:
            return Verdict("unsupported", "no permission: the driver keeps this reading for administrators")
        if code in (api.NVML_ERROR_NOT_SUPPORTED, api.NVML_ERROR_FUNCTION_NOT_FOUND, api.NVML_ERROR_INVALID_ARGUMENT):
            return Verdict("unsupported", f"this device or driver does not have it (NVML: {error})")
        return Verdict("passing", f"{type(error).__name__}: {error}")

    def holders(self) -> list[Held]:
        """The processes that compute on the device now."""
        found = self._api.nvmlDeviceGetComputeRunningProcesses(self._own)
        return [Held(int(p.pid), None if p.usedGpuMemory is None else int(p.usedGpuMemory)) for p in found]

    def close(self) -> None:
        if self._gpm is not None:
            self._gpm.close()


_TEMPERATURE = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature")
_THROTTLE = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
_THROTTLE_KNOWN = ("nvmlDeviceGetSupportedClocksEventReasons", "nvmlDeviceGetSupportedClocksThrottleReasons")
# Native Linux, and WSL.
_FILES = ("/dev/nvidia", "/dev/dxg")


class NvmlSource:
    """The NVIDIA driver of this host and all its devices; `api` is pynvml or something that answers like it."""

    def __init__(self, api: Any = None) -> None:
        self._files = _FILES if api is None else ()
        self._api = api = importlib.import_module("pynvml") if api is None else api
        self.notes: list[str] = []
        try:
            api.nvmlInit()
        except api.NVMLError as error:
            raise _no_driver(api, error) from error
        try:
            self.driver = f"NVIDIA {self._text(api.nvmlSystemGetDriverVersion())}"
            self.devices = tuple(self._find())
        except api.NVMLError as error:
            api.nvmlShutdown()
            raise _no_driver(api, error) from error
        if not self.devices:
            api.nvmlShutdown()
            said = f" ({'; '.join(self.notes)})" if self.notes else ""
            hint = f"in a container, start it with GPUs (docker run --gpus all); {TRY_REPLAY}"
            raise DeviceError(f"the NVIDIA driver shows no GPU that answers{said}", hint=hint)

    @staticmethod
    def _text(value: str | bytes) -> str:
        return value.decode() if isinstance(value, bytes) else value

    def _find(self) -> Iterator[NvmlDevice]:
        for index in range(self._api.nvmlDeviceGetCount()):
            try:
                yield from self._board(index)
            except self._api.NVMLError as error:
                self.notes.append(f"GPU {index} does not answer and is left out: {error}")

    def _board(self, index: int) -> Iterator[NvmlDevice]:
        api = self._api
        handle = api.nvmlDeviceGetHandleByIndex(index)
        uuid, model = self._text(api.nvmlDeviceGetUUID(handle)), self._text(api.nvmlDeviceGetName(handle))
        instances = list(self._instances(handle))
        if not instances:
            yield NvmlDevice(api, Facts(index, uuid, model), handle, files=self._files)
            return
        slices = self._slices(handle)
        for number, mig in instances:
            share = self._share(mig, slices)
            if share is None:
                self.notes.append(f"GPU {index}: the driver does not say how many MIG slices instance {number} has")
            names = (self._text(api.nvmlDeviceGetUUID(mig)),)
            yield NvmlDevice(api, Facts(index, uuid, model, str(number), share, names), handle, mig, self._files)

    def _share(self, mig: Any, slices: int) -> float | None:
        try:
            return self._api.nvmlDeviceGetAttributes_v2(mig).gpuInstanceSliceCount / slices if slices else None
        except self._api.NVMLError:
            return None

    def _instances(self, handle: Any) -> Iterator[tuple[int, Any]]:
        """The MIG instances of a board by number; compute instances that share one are listed once."""
        api = self._api
        try:
            if api.nvmlDeviceGetMigMode(handle)[0] != api.NVML_DEVICE_MIG_ENABLE:
                return
            places = range(api.nvmlDeviceGetMaxMigDeviceCount(handle))
        except api.NVMLError:
            return
        seen: set[int] = set()
        for place in places:
            try:
                mig = api.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
                number = api.nvmlDeviceGetGpuInstanceId(mig)
            except api.NVMLError:
                continue
            if number not in seen:
                seen.add(number)
                yield number, mig

    def _slices(self, handle: Any) -> int:
        """How many MIG slices the whole board has: what its largest profile takes; 0 where the driver does not say."""
        found = 0
        for profile in range(self._api.NVML_GPU_INSTANCE_PROFILE_COUNT):
            try:
                found = max(found, self._api.nvmlDeviceGetGpuInstanceProfileInfo(handle, profile).sliceCount)
            except self._api.NVMLError:
                continue
        return found

    def close(self) -> None:
        """Let the driver go; one that is gone already needs no goodbye."""
        for step in (*(d.close for d in self.devices), self._api.nvmlShutdown):
            with contextlib.suppress(self._api.NVMLError):
                step()


def _no_driver(api: Any, error: Exception) -> DeviceError:
    """The driver's refusal in our words."""
    code = getattr(error, "value", None)
    if code == api.NVML_ERROR_LIBRARY_NOT_FOUND:
        hint = f"install the NVIDIA driver, or start the container with GPUs (docker run --gpus all); {TRY_REPLAY}"
        return DeviceError("no NVIDIA driver was found here (libnvidia-ml.so.1 is missing)", hint=hint)
    if code == api.NVML_ERROR_DRIVER_NOT_LOADED:
        hint = f"load it (sudo modprobe nvidia; nvidia-smi shows the state); {TRY_REPLAY}"
        return DeviceError("the NVIDIA driver is installed but not loaded", hint=hint)
    if code == api.NVML_ERROR_NO_PERMISSION:
        hint = f"ls -l /dev/nvidia* shows who may (often the group video); {TRY_REPLAY}"
        return DeviceError("no permission to open the NVIDIA driver", hint=hint)
    if code == api.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        hint = f"the driver was upgraded under a running kernel module: reboot or reload it; {TRY_REPLAY}"
        return DeviceError("the NVIDIA driver and its library have different versions", hint=hint)
    return DeviceError(f"the NVIDIA driver does not answer: {error}", hint=f"see what nvidia-smi says; {TRY_REPLAY}")


DEVICES.register("nvml")(Driver(lambda _rest, _clock: NvmlSource()))
