"""What do all tests of the terminal view need? Live devices that have played for a while."""

from __future__ import annotations

import pwd
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.advice.asking import paying
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import VirtualClock
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.script import Board
from gpuledger.tui.live_devices import LiveDevices
from screens import node_boards, put_process

Make = Callable[..., LiveDevices]


@pytest.fixture(scope="session")
def proc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two processes of ada's: a Slurm job and a server."""
    folder = tmp_path_factory.mktemp("proc")
    put_process(folder, 4001, "python train.py", "SLURM_JOB_ID=77\0SLURM_JOB_NAME=llama-70b\0SLURM_JOB_USER=ada")
    put_process(folder, 4002, "vllm serve")
    put_process(folder, 4003, "ev\x1b[2Jil")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(("ada", "x", uid, uid, "", "/", "/")))
        yield folder


@pytest.fixture(scope="session")
def live(proc: Path) -> Iterator[Make]:
    """Makes live devices that have played for a while: `live(boards("matrix", "idle"), seconds=20)`."""
    made: list[LiveDevices] = []

    def make(found: list[Board], *, seconds: float = 15, price: str | None = "4.00", faults=()) -> LiveDevices:
        clock = VirtualClock()
        terms = paying(proc / "none", price=None if price is None else Decimal(price))
        source = NvmlSource(FakeNvml(found, clock, faults))
        devices = LiveDevices(source, terms, clock=clock, host="node-1", environ={}, proc=proc)
        made.append(devices)
        if seconds:
            devices.sampler.run(seconds)
        return devices

    yield make
    for devices in made:
        devices.close()


@pytest.fixture(scope="session")
def node(live: Make) -> LiveDevices:
    """Five GPUs: two at work for two owners, one that does little, one held, one idle. Its time stands."""
    return live(node_boards())


@pytest.fixture
def own_node(live: Make) -> LiveDevices:
    """The same for one test, whose time may go on."""
    return live(node_boards())
