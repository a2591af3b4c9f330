"""What happened while a host was sampled?"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.devices.clock import ClockStep
from gpuledger.devices.device import Facts


@dataclass(frozen=True)
class DeviceReport:
    """One device: what it gave, what it lacks and why, what failed.

    `repeats` are readings that said nothing new and became no row; periods are None where they were not seen.
    """

    facts: Facts
    rows: int
    repeats: int
    silent_ticks: int
    util_period_s: float | None
    power_period_s: float | None
    util_changes: int
    missing: dict[str, str]
    failures: dict[str, int]
    last_errors: dict[str, str]
    slowest_call_ms: dict[str, float]
    lost_at_ms: int | None
    lost_why: str


@dataclass(frozen=True)
class SamplerReport:
    """One run of the sampler over all devices."""

    hz: float
    slow_s: float
    started_ms: int
    ended_ms: int
    ticks: int
    skipped_ticks: int
    cpu_s: float
    clock_steps: tuple[ClockStep, ...]
    faults: tuple[str, ...]
    devices: tuple[DeviceReport, ...]
