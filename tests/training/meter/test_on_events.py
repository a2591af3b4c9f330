"""Does a whole loop on a GPU's events give each phase its time, without a wait? The GPU is faked, the loop is real."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from test_events import FakeCuda  # noqa: E402
from torch import nn  # noqa: E402

from gpuledger.training.meter.device import Energy  # noqa: E402
from gpuledger.training.meter.steps import Steps  # noqa: E402
from gpuledger.training.meter.totals import SizeCache  # noqa: E402

pytestmark = pytest.mark.torch


class OnEvents:
    """torch, but its cuda is one whose clock a test moves."""

    def __init__(self) -> None:
        self.cuda = FakeCuda()
        self.cuda.get_sync_debug_mode = lambda: 0
        self.cuda.set_sync_debug_mode = lambda _mode: None

    def __getattr__(self, name):
        return getattr(torch, name)

    def empty(self, *args, pin_memory=False, **kwargs):
        assert pin_memory
        return torch.empty(*args, **kwargs)


def test_a_loop_on_events():
    fake = OnEvents()
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = Steps(
        fake, model, SimpleNamespace(type="cuda"), warmup=3, count=True, sizes=SizeCache(), energy=Energy(None)
    )
    cuda = fake.cuda
    steps.attach()
    for _ in range(40):
        steps.begins("data_wait")
        cuda.clock_ms += 2
        steps.has_batch(torch.ones(8, 8))
        cuda.clock_ms += 1
        out = model(torch.ones(8, 8))
        cuda.clock_ms += 3
        out.sum().backward()
        cuda.clock_ms += 4
        optimizer.step()
        steps.ends()
        cuda.reached = max(0, cuda.recorded - 30)  # the device is some steps behind
        assert cuda.synchronized == 0
    steps.detach()
    assert 0 < steps.totals.timed < 40
    steps.marks.finish()
    steps.losses.look()
    steps.watch.close()
    assert cuda.synchronized == 1, "only after the loop"
    means = {p: round(1000 * s, 6) for p, s in steps.totals.mean(steps.totals.device_s).items()}
    assert means == {
        "data_wait": 2, "h2d": 1, "forward": 3, "backward": 0, "optimizer": 0, "sync": 0, "other": 4,
    }  # fmt: skip
    assert steps.counted.work.forward_flop == 2 * 8 * 8 * 8
    assert steps.losses.last is not None
    assert steps.debug.done
