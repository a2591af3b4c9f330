"""Is the share of a step's FLOPs in convolutions counted as it runs?"""

from __future__ import annotations

import pytest

from gpuledger.training.meter.count import Counting
from gpuledger.training.meter.totals import BatchSize

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def counted(model, batch) -> float:
    counting = Counting(torch, lambda: "forward")
    counting.start()
    model(batch)
    return counting.stop().work("counted", BatchSize(samples=1, tokens=None)).convolution_ratio


def test_by_pencil():
    """A 3 x 3 convolution of 4 to 8 channels on 10 x 10: 2 x 8 x 4 x 9 x 64 FLOP; a product of 512 to 10: 2 x 5120."""
    convolution, linear = torch.nn.Conv2d(4, 8, 3), torch.nn.Linear(512, 10)
    both = torch.nn.Sequential(convolution, torch.nn.Flatten(), linear)
    first, second = 2 * 8 * 4 * 9 * 64, 2 * 512 * 10
    assert counted(both, torch.randn(1, 4, 10, 10)) == pytest.approx(first / (first + second))
    assert counted(linear, torch.randn(1, 512)) == 0
