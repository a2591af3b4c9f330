"""What may go wrong with a device while it is sampled?

Times are seconds since the driver was opened. `call` is the name of a call (nvmlDeviceGetPowerUsage), or of a single
activity metric (NVML_GPM_METRIC_FP16_UTIL). `gpu` None means every GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LostGpu:
    """From then on every call of the GPU fails as lost."""

    at_s: float
    gpu: int | None = 0


@dataclass(frozen=True)
class Unsupported:
    """The GPU does not have it."""

    call: str
    gpu: int | None = None


@dataclass(frozen=True)
class Refused:
    """The user may not ask for it."""

    call: str
    gpu: int | None = None


@dataclass(frozen=True)
class DriverError:
    """The call fails `times` times from then on, with this code of the library (999: unknown error)."""

    call: str
    at_s: float = 0.0
    times: int = 1
    code: int = 999
    gpu: int | None = None


@dataclass(frozen=True)
class SlowCall:
    """The call takes this long, `times` times from then on."""

    call: str
    seconds: float
    at_s: float = 0.0
    times: int = 1
    gpu: int | None = None


@dataclass(frozen=True)
class ClockStep:
    """The wall clock is set forward or back. For the clock of a test, not for a device."""

    at_s: float
    step_s: float


Fault = LostGpu | Unsupported | Refused | DriverError | SlowCall


@dataclass(frozen=True)
class Codes:
    """What the library calls these conditions."""

    lost: int
    unsupported: int
    refused: int


class FaultPlan:
    """Decides, call by call, what goes wrong."""

    def __init__(self, faults: Sequence[Fault], codes: Codes, sleep: Callable[[float], None]) -> None:
        self._faults = list(faults)
        self._codes, self._sleep = codes, sleep
        self._left = {id(f): f.times for f in faults if isinstance(f, (DriverError, SlowCall))}

    def code(self, call: str, gpu: int, now_s: float) -> int:
        """The error code the call must end with, 0 for none; a slow call has slept when this returns."""
        found = 0
        for fault in self._faults:
            if fault.gpu is not None and fault.gpu != gpu:
                continue
            found = found or self._apply(fault, call, now_s)
        return found

    def _apply(self, fault: Fault, call: str, now_s: float) -> int:
        if isinstance(fault, LostGpu):
            return self._codes.lost if now_s >= fault.at_s else 0
        if isinstance(fault, (Unsupported, Refused)):
            code = self._codes.unsupported if isinstance(fault, Unsupported) else self._codes.refused
            return code if fault.call == call else 0
        if fault.call != call or now_s < fault.at_s or self._left[id(fault)] <= 0:
            return 0
        self._left[id(fault)] -= 1
        if isinstance(fault, SlowCall):
            self._sleep(fault.seconds)
            return 0
        return fault.code
