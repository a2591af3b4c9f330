"""What does a user of `torch.utils.flop_counter` divide by, what does our meter, and what does a pencil say?

One step of small models on the processor. MFU is FLOP over time and peak, so an error in FLOP is the same error in MFU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from meter_overhead import JOBS, Decoder
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from gpuledger.train import Meter
from gpuledger.units import Unknown

STEPS = 3
CHANNELS, GROUPS, SIDE, KERNEL, IMAGES, CONVOLUTIONS = 64, 32, 16, 3, 4, 3

WHY = (
    "`FlopCounterMode` counts what ran: exact for a plain GPT, and with recompute the right figure for HFU, not MFU.",
    "It has no formula for the processor's fused attention (for those of GPUs it does), and it counts the backward",
    "pass of a grouped convolution as if it were dense. The meter uses torch's formulas, adds the missing one, counts",
    "groups as they are, and for MFU takes a backward pass as at most twice its forward pass. Its HFU takes half the",
    "square for fused causal attention.",
)


@dataclass(frozen=True)
class Case:
    """A model, its batch, its loss, and the FLOP of a step by hand."""

    name: str
    model: nn.Module
    batch: torch.Tensor
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    pencil_flop: float
    fused: bool = False


class Recomputed(nn.Module):
    """A layer that keeps its input only."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> Any:
        """The layer, run again in the backward pass."""
        return checkpoint(self.layer, x, use_reentrant=False)


def gpt(name: str, *, recompute: bool = False, fused: bool = False) -> Case:
    """A small GPT. By hand: 6 FLOP per token and weight, 12 per layer, token pair and width of attention."""
    layers, width, heads, length, rows, vocabulary = JOBS["small"]
    model = Decoder(layers, width, heads, vocabulary)
    if recompute:
        model.blocks = nn.ModuleList(Recomputed(block) for block in model.blocks)
    weights = layers * 12 * width**2 + vocabulary * width
    pencil = 6 * rows * length * weights + 12 * layers * rows * length**2 * width
    return Case(name, model, torch.randint(0, vocabulary, (rows, length)), _next_token, float(pencil), fused)


def grouped() -> Case:
    """Grouped convolutions. By hand: each is three products; the first one's input needs no gradient."""
    convolutions = [nn.Conv2d(CHANNELS, CHANNELS, KERNEL, padding=1, groups=GROUPS) for _ in range(CONVOLUTIONS)]
    one = 2 * IMAGES * SIDE**2 * CHANNELS * (CHANNELS // GROUPS) * KERNEL**2
    batch = torch.randn(IMAGES, CHANNELS, SIDE, SIDE)
    return Case(
        "grouped convolutions", nn.Sequential(*convolutions), batch, _energy, float(one * (3 * CONVOLUTIONS - 1))
    )


def _next_token(out: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(out[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def _energy(out: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return out.square().mean()


def compared(case: Case) -> dict[str, Any]:
    """Torch's counter around one step, and the meter around a loop of three."""
    kernels = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH] if case.fused else [SDPBackend.MATH]
    with sdpa_kernel(kernels, set_priority=True):
        with FlopCounterMode(display=False) as counter:
            case.loss(case.model(case.batch), case.batch).backward()
        optimizer = torch.optim.SGD(case.model.parameters(), lr=1e-4)
        with Meter(case.model) as meter:
            for batch in meter([case.batch] * STEPS):
                optimizer.zero_grad()
                case.loss(case.model(batch), batch).backward()
                optimizer.step()
    work = meter.report(show=False).seen.work
    known = not isinstance(work, Unknown)
    return {
        "name": case.name,
        "pencil_flop": case.pencil_flop,
        "torch_flop": counter.get_total_flops(),
        "model_flop": work.model_flop if known else None,
        "hardware_flop": work.hardware_flop if known else None,
        "why": "" if known else work.why,
    }


def measure(_: argparse.Namespace) -> dict[str, Any]:
    """Every case once: counts do not vary."""
    torch.manual_seed(0)
    cases = (gpt("GPT"), gpt("GPT, recompute", recompute=True), gpt("GPT, fused attention", fused=True), grouped())
    return {"rows": [compared(case) for case in cases], "torch": torch.__version__}


def lines(found: dict[str, Any]) -> list[str]:
    """FLOP of a step by hand, and how far off each count is."""
    out = [
        f"One training step of small models on a processor, torch {found['torch']}. An error in FLOPs is the same",
        "error in model FLOPs utilization (MFU). By hand: the products of the forward and the backward pass, none of",
        "them twice. Hardware FLOPs utilization (HFU) also counts what is computed again.",
        "",
        "| step | GFLOP by hand | `FlopCounterMode` | gpuledger, for MFU | gpuledger, for HFU |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in found["rows"]:
        cells = [_off(row[name], row["pencil_flop"]) for name in ("torch_flop", "model_flop", "hardware_flop")]
        out.append(f"| {row['name']} | {row['pencil_flop'] / 1e9:.3f} | {' | '.join(cells)} |")
    return [*out, "", *WHY]


def _off(flop: float | None, pencil: float) -> str:
    return "unknown" if flop is None else f"{100 * (flop / pencil - 1):+.1f} %"
