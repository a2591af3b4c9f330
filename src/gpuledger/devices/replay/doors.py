"""How is a recording or a scenario sampled as if it were a GPU?

source = open_replay("recording.csv.gz")          # a source of devices, to hand to a sampler
api = from_csv("recording.csv.gz", faults=[...])  # an object that answers like pynvml
api = from_scenario(Scenario([...]), gpus=8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuledger.devices.clock import Clock
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.faults import Fault
from gpuledger.devices.replay.script import Board, Looped, Scenario
from gpuledger.devices.replay.tape import load_tapes

# What an H200 does: its utilization counter is refreshed each 0.2 s.
UTIL_PERIOD_S = 0.2


def boards_from_csv(path: str | Path, *, loop: bool = True) -> list[Board]:
    """The devices of a recording, each playing its tape."""
    found = load_tapes(path)
    return [
        Board(Looped(tape) if loop else tape, uuid=uuid, model=model or "unknown model")
        for (uuid, model), tape in found.items()
    ]


def from_csv(
    path: str | Path, *, clock: Clock | None = None, loop: bool = True, faults: Sequence[Fault] = ()
) -> FakeNvml:
    """pynvml, answered from a recording."""
    return FakeNvml(boards_from_csv(path, loop=loop), clock, faults)


def from_scenario(
    scenario: Scenario, *, gpus: int = 1, clock: Clock | None = None, loop: bool = False, faults: Sequence[Fault] = ()
) -> FakeNvml:
    """pynvml, answered from a scenario on some GPUs alike."""
    board = Board(Looped(scenario) if loop else scenario, util_period_s=UTIL_PERIOD_S)
    return FakeNvml([replace(board, uuid=f"GPU-replay-{i}") for i in range(gpus)], clock, faults)


def simulated(scenario: Scenario, *, gpus: int = 1, clock: Clock | None = None, loop: bool = True) -> NvmlSource:
    """GPUs that play a scenario, read through the code that reads real GPUs; give it to `record` as its device."""
    return NvmlSource(from_scenario(scenario, gpus=gpus, clock=clock, loop=loop))


def open_replay(path: str | Path, clock: Clock | None = None, faults: Sequence[Fault] = ()) -> NvmlSource:
    """The devices of a recording, read through the code that reads real GPUs."""
    return NvmlSource(from_csv(path, clock=clock, faults=faults))
