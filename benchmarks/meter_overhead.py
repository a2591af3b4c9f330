"""What does the training meter cost a loop? The same loop with and without it, in turns.

    python benchmarks/meter_overhead.py [--job small|language] [--device cuda|cpu] [--seconds 60] [--steps 40] [--json]

Blocks of steps run in fours: without, with, with, without the meter, and the other way round, so that a steady drift
falls on both alike. Each four gives one ratio. Told is the middle of the means of any two of them (Hodges and Lehmann)
with its 95 % interval (Wilcoxon's signed ranks), which a hiccup cannot move and which is nearly as narrow as a mean's.
How many fours there are depends on the time given, never on what they show. Needs torch. The bar is half a percent of
a step. On a processor the time is that of the process, not of the wall: what else runs there would drown the bar.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from gpuledger.training.meter.meter import Meter

BAR_PCT = 0.5
WARM_STEPS = 8
LEAST_FOURS = 6
# Layers, width, heads, sequence, batch, vocabulary.
JOBS = {
    "tiny": (2, 64, 2, 64, 4, 512),
    "small": (4, 256, 4, 128, 8, 2048),
    "language": (16, 2048, 32, 2048, 4, 32768),
}


class Block(nn.Module):
    """Attention and an MLP, each after a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """A causal language model."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores of the next token."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Loop:
    """A training loop over batches that are on the device already: in bf16 on a GPU, in fp32 on a processor."""

    def __init__(self, job: str, device: str) -> None:
        layers, width, heads, length, batch, vocabulary = JOBS[job]
        torch.manual_seed(0)
        self.device = torch.device(device)
        with self.device:
            self.model = Decoder(layers, width, heads, vocabulary)
            self._batches = [torch.randint(0, vocabulary, (batch, length + 1)) for _ in range(4)]
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=self.device.type == "cuda")

    def batches(self, steps: int) -> Iterable[torch.Tensor]:
        """As many batches as steps."""
        return (self._batches[i % len(self._batches)] for i in range(steps))

    def train(self, batches: Iterable[torch.Tensor]) -> None:
        """Forward, backward, update; nothing is asked of the device."""
        for tokens in batches:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
                scores = self.model(tokens[:, :-1])
                loss = nn.functional.cross_entropy(scores.flatten(0, 1).float(), tokens[:, 1:].flatten())
            loss.backward()
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)

    def settle(self) -> None:
        """Wait for the device."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def block_s(loop: Loop, batches: Callable[[], Iterable[torch.Tensor]], meter: Meter | None) -> float:
    """Seconds of one block of steps, with the meter or without."""
    clock = time.perf_counter if loop.device.type == "cuda" else time.process_time
    loop.settle()
    begun = clock()
    loop.train(batches() if meter is None else meter(batches()))
    loop.settle()
    return clock() - begun


def overhead(loop: Loop, meter: Meter, seconds: float, steps: int) -> dict[str, Any]:
    """Blocks in fours for some seconds, and what they say."""
    loop.train(meter(loop.batches(WARM_STEPS)))  # the meter counts FLOPs here, and everything is loaded

    def four(first: bool) -> tuple[float, float]:
        took: dict[bool, list[float]] = {False: [], True: []}
        for with_meter in (first, not first, not first, first):
            took[with_meter].append(block_s(loop, lambda: loop.batches(steps), meter if with_meter else None))
        return math.prod(took[False]) ** 0.5, math.prod(took[True]) ** 0.5

    begun = time.monotonic()
    four(False)  # the caches are warm after it
    fours = max(LEAST_FOURS, math.floor(seconds / (time.monotonic() - begun)) - 1)
    pairs = [four(number % 2 == 1) for number in range(fours)]
    return judged([plain for plain, _ in pairs], [metered for _, metered in pairs], steps)


def cost_us(device: str, blocks: int = 60, steps: int = 100) -> dict[str, float]:
    """The host's time for one step of the meter, by itself, timed, watched but not timed, and resting: the best block
    of a loop of hardly any work, in time of the process: what else runs on the machine hardly touches it.
    """
    model = nn.Linear(1, 1, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    batch = torch.ones(1, 1, device=device)

    def block(batches: Iterable[torch.Tensor]) -> float:
        if batch.is_cuda:
            torch.cuda.synchronize()
        begun = time.process_time()
        for inputs in batches:
            model(inputs).sum().backward()
            optimizer.step()
        return time.process_time() - begun

    meters = {name: Meter(model, count=False, warmup=0) for name in ("timed", "untimed", "resting")}
    for name, meter in meters.items():
        held_to(meter, name)
        block(meter(batch for _ in range(steps)))
    best = dict.fromkeys(("plain", *meters), math.inf)
    for _ in range(blocks):
        best["plain"] = min(best["plain"], block(batch for _ in range(steps)))
        for name, meter in meters.items():
            best[name] = min(best[name], block(meter(batch for _ in range(steps))))
    for meter in meters.values():
        meter.finish()
    cost = {name: 1e6 * (best[name] - best["plain"]) / steps for name in meters}
    return {
        "timed_step_us": cost["timed"],
        "untimed_step_us": cost["untimed"],
        "resting_step_us": cost["resting"],
        "least_step_ms_within_bar": cost["timed"] / 1000 / (BAR_PCT / 100),
        "blocks": blocks,
    }


def held_to(meter: Meter, kind: str) -> None:
    """Make all steps of a meter of one kind, from its second block on."""
    steps = meter.steps
    steps._adapt = lambda: None  # type: ignore[method-assign]  # noqa: SLF001
    steps.every = {"timed": 1, "untimed": 10**9, "resting": 2}[kind]
    if kind == "resting":
        steps.rests.rest_steps = lambda _step_s: 10**9  # type: ignore[method-assign]
        steps.rests.most_ms = 10**12
    else:
        steps._decide = lambda: None  # type: ignore[method-assign]  # noqa: SLF001


def steps_by_kind(meter: Meter) -> dict[str, int]:
    """How many steps after the warm-up were timed, watched but not timed, and left alone."""
    seen, warmup = meter.observed(), meter.steps.warmup
    watched = seen.watched_steps or 0
    return {
        "timed": seen.timed_steps,
        "untimed": watched - seen.timed_steps,
        "resting": max(seen.steps - warmup, 0) - watched,
    }


def middle(logs: list[float]) -> tuple[float, float, float]:
    """The middle of the means of any two, and its 95 % interval."""
    n = len(logs)
    pairs = sorted((logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n))
    spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    out = max(0, math.floor(n * (n + 1) / 4 - 1.96 * spread - 0.5))
    return statistics.median(pairs), pairs[out], pairs[len(pairs) - 1 - out]


def judged(plain: list[float], metered: list[float], steps: int) -> dict[str, Any]:
    """The ratio of each four; their middle and its interval."""
    logs = [math.log(m / p) for p, m in zip(plain, metered, strict=True)]
    found, low, high = (100 * (math.exp(x) - 1) for x in middle(logs))
    return {
        "overhead_pct": found,
        "low_pct": low,
        "high_pct": high,
        "mean_pct": 100 * (math.exp(statistics.fmean(logs)) - 1),
        "best_pct": 100 * (min(metered) / min(plain) - 1),
        "spread_pct": 100 * statistics.stdev(logs),
        "step_ms": 1000 * statistics.median(plain) / steps,
        "fours": len(logs),
        "steps_a_block": steps,
        "bar_pct": BAR_PCT,
        "within_bar": found <= BAR_PCT,
        "interval_within_bar": high <= BAR_PCT,
    }


def host_cost_pct(cost: dict[str, float], kinds: dict[str, int], step_ms: float) -> float:
    """What the meter's work on the host is of a step, if none of it is hidden behind the device: each kind of step as
    often as it came.
    """
    mean_us = sum(cost[f"{kind}_step_us"] * times for kind, times in kinds.items()) / max(sum(kinds.values()), 1)
    return mean_us / 1000 / step_ms * 100


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", choices=sorted(JOBS), default="small")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.device == "cpu":
        torch.set_num_threads(1)
    loop = Loop(args.job, args.device)
    meter = Meter(loop.model)
    found = overhead(loop, meter, args.seconds, args.steps)
    seen = meter.report(show=not args.json).seen
    cost = found["meter_cost"] = cost_us(args.device)
    found["steps_by_kind"] = steps_by_kind(meter)
    found["host_cost_pct"] = host_cost_pct(cost, found["steps_by_kind"], found["step_ms"])
    found |= {"job": args.job, "device": seen.place.name, "own_pct": 100 * seen.own_ratio, "timed": seen.timed_steps}
    meter.finish()
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        between = f"{found['low_pct']:+.3f} to {found['high_pct']:+.3f}"
        print(f"overhead {found['overhead_pct']:+.3f} % ({between}) of a step of {found['step_ms']:.2f} ms")
    return 0 if found["within_bar"] else 1


if __name__ == "__main__":
    sys.exit(main())
