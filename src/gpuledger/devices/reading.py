"""What did a call of the driver return, how often does a value change, and what happened over a whole run?

A call that failed means that the field is missing, that the device is lost, or bad luck.

A driver refreshes utilization only every so often (on an H200 each 0.2 s, elsewhere up to a second): readings in
between repeat. The period follows from the gaps between changes. A value may stay the same over several refreshes, so
the short gaps count; but a gap seen through ticks is off by up to one tick either way, so the gaps within a tick of the
shortest are averaged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpuledger.devices.clock import ClockStep
from gpuledger.devices.device import Device, Facts, Field, Value


class Lost(Exception):
    """The device is gone for good."""


@dataclass
class Probe:
    """A field while it is being read."""

    field: Field
    answered: bool = False
    gone: bool = False
    failures: int = 0
    last_error: str = ""
    slowest_s: float = 0.0

    @property
    def blank(self) -> tuple[Value, ...]:
        """What a failed reading leaves."""
        return (None,) * len(self.field.columns)


class Reader:
    """Reads the fields of one device; remembers what is missing and what failed."""

    def __init__(self, device: Device, now: Callable[[], float]) -> None:
        self._device, self._now = device, now
        self._unsupported: dict[str, str] = {}

    def missing(self) -> dict[str, str]:
        """Columns the device does not fill, and why."""
        return {**self._device.absent, **self._unsupported}

    def read(self, probe: Probe) -> Sequence[Value]:
        """The values of one field; all None where it failed. Raises Lost where the device is gone."""
        if probe.gone:
            return probe.blank
        try:
            values = probe.field.read()
        except Exception as error:  # noqa: BLE001 - a driver library may raise anything, and the other fields go on
            return self._failed(probe, error)
        probe.answered = True
        return values

    def _failed(self, probe: Probe, error: Exception) -> Sequence[Value]:
        verdict = self._device.judge(error)
        if verdict.judgement == "lost":
            raise Lost(verdict.why) from error
        if verdict.judgement == "unsupported" and not probe.answered:
            probe.gone = True
            self._unsupported.update(dict.fromkeys(probe.field.columns, verdict.why))
            return probe.blank
        probe.failures += 1
        probe.last_error = verdict.why
        return probe.blank

    def read_all(self, probes: Iterable[Probe]) -> list[Value]:
        """The values of several fields in a row."""
        return [value for probe in probes for value in self.read(probe)]

    def read_timed(self, probes: Iterable[Probe]) -> list[Value]:
        """The same, remembering how long the slowest call took."""
        out: list[Value] = []
        for probe in probes:
            start = self._now()
            out.extend(self.read(probe))
            probe.slowest_s = max(probe.slowest_s, self._now() - start)
        return out

    def survey(self, fields: Iterable[Field]) -> list[Probe]:
        """Read each field once; those the device does not have are left out and remembered as missing."""
        probes = [Probe(f) for f in fields]
        self.read_timed(probes)
        return [p for p in probes if not p.gone]


MIN_GAPS = 5
KEPT_GAPS = 256


class Period:
    """Watches one value and estimates how often it is refreshed."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._value: Value = None
        self._changed_s: float | None = None
        self._gaps: deque[float] = deque(maxlen=KEPT_GAPS)
        self._estimate: float | None = None
        self.changes = 0

    def see(self, at_s: float, value: Value) -> bool:
        """Take a reading; whether it differs from the one before."""
        if value == self._value:
            return False
        # The first reading does not count as a change, nor a hole in the readings as a gap between changes.
        if self._value is not None and value is not None:
            self.changes += 1
            if self._changed_s is not None:
                self._gaps.append(at_s - self._changed_s)
                self._estimate = None
            self._changed_s = at_s
        else:
            self._changed_s = None
        self._value = value
        return True

    def seconds(self) -> float | None:
        """The period, or None while too few changes were seen."""
        if len(self._gaps) < MIN_GAPS:
            return None
        if self._estimate is None:
            gaps = sorted(self._gaps)
            shortest = gaps[len(gaps) // 10]
            near = [g for g in gaps if shortest - self._tick_s / 2 <= g <= shortest + 1.05 * self._tick_s]
            self._estimate = sum(near) / len(near)
        return self._estimate


@dataclass(frozen=True)
class DeviceReport:
    """One device: what it gave, what it lacks and why, what failed.

    `repeats_left_out`: readings without news, which became no row. Periods are None where none was seen.
    """

    facts: Facts
    rows: int
    repeats_left_out: int
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
