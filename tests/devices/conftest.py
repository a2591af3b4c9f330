"""The sampler on scripts, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from gpuledger.devices.device import Facts, Value
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.reading import SamplerReport
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.faults import ClockStep, Fault
from gpuledger.devices.replay.script import Board
from gpuledger.devices.sampler import Sampler


@dataclass
class Played:
    """What came out of a sampler."""

    rows: dict[str, list[dict[str, Value]]]
    report: SamplerReport
    missing: dict[str, dict[str, str]]

    def of(self, device: str = "GPU-replay-0") -> list[dict[str, Value]]:
        return self.rows.get(device, [])

    def column(self, name: str, device: str = "GPU-replay-0") -> list[Value]:
        return [r[name] for r in self.of(device)]


Play = Callable[..., Played]


@pytest.fixture
def play() -> Play:
    def run(
        boards: Sequence[Board],
        seconds: float,
        *,
        hz: float = 10.0,
        faults: Sequence[Fault] = (),
        steps: Sequence[ClockStep] = (),
    ) -> Played:
        clock = VirtualClock(steps=steps)
        source = NvmlSource(FakeNvml(boards, clock, faults))
        rows: dict[str, list[dict[str, Value]]] = {}

        def sink(facts: Facts, columns: tuple[str, ...], found: list[tuple[Value, ...]]) -> None:
            rows.setdefault(facts.name, []).extend(dict(zip(columns, r, strict=True)) for r in found)

        sampler = Sampler(source.devices, sink, hz=hz, clock=clock)
        report = sampler.run(seconds)
        source.close()
        return Played(rows, report, {d.facts.name: d.missing for d in report.devices})

    return run
