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


def test_a_convolution_in_groups_counts_each_product_once():
    """By pencil: 8 channels in 4 groups to 8, 3 x 3 on 4 x 4 places; forward, and both gradients."""
    phases = iter(["forward", "backward"])
    phase = [next(phases)]
    counting = Counting(torch, lambda: phase[0])
    image = torch.randn(1, 8, 4, 4, requires_grad=True)
    counting.start()
    out = torch.nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False)(image).sum()
    phase[0] = next(phases)
    out.backward()
    work = counting.stop().work("counted", BatchSize(samples=1, tokens=None))
    one = 2 * 8 * (8 // 4) * 9 * 16
    assert (work.forward_flop, work.hardware_flop, work.model_flop) == (one, 3 * one, 3 * one)
