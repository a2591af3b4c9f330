"""What did this call of the driver say, and if it failed, is the field missing, the device lost, or was it bad luck?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpuledger.devices.device import Device, Field, Value


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
        out: list[Value] = []
        for probe in probes:
            out.extend(self.read(probe))
        return out

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
