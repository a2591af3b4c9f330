"""Which speed factors do the measured runs ask for? Run by plan_models.py --calibrate; needs torch and transformers.

Memory and kernels: least relative error on the runs marked "calibrate". Depthwise convolutions: least relative error on
every other measured image model that has them, by name; the others check it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from plan_cases import config_json
from plan_runs import GPU, measured_runs, serves, setup_of
from scipy.optimize import minimize, minimize_scalar

from gpuledger.catalog.gpus import get_gpu
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import factors
from gpuledger.plan.speed.steps import compute_peak
from gpuledger.plan.speed.traced import soft_max
from gpuledger.plan.tracing import configured_model, traced_step
from gpuledger.units import Unknown

BEST_COMPUTE = 0.702  # gpuledger calibrate on one H200: a bf16 product's share of the dense peak
CALIBRATES = "calibrate"


@dataclass(frozen=True)
class Part:
    """One micro-batch of a run: seconds at the peak of products and of memory, kernels, and what was measured."""

    name: str
    compute_s: float
    memory_s: float
    depthwise_s: float
    kernels: int
    measured_s: float

    def ratio(self, memory: float, kernel: float, depthwise: float) -> float:
        """Planned over measured seconds with these factors; 0: depthwise convolutions take no time."""
        slow = self.depthwise_s / depthwise if depthwise else 0.0
        return soft_max(self.compute_s + self.memory_s / memory + slow, self.kernels * kernel) / self.measured_s


def parts(runs: Iterable[dict[str, Any]]) -> Iterator[Part]:
    """The traced micro-batches of runs."""
    gpu = get_gpu(GPU)
    peak = compute_peak(gpu, "bf16")
    assert not isinstance(peak, Unknown), peak
    bandwidth = gpu.memory_bandwidth_bytes_per_s.value
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            file = Path(folder) / "config.json"
            file.write_text(json.dumps(config_json(run)), encoding="utf-8")
            how = {**setup_of(run), "accumulate": True, "sequence": run["run"].get("sequence", 1)}
            step = traced_step(configured_model(file), Setup(mode="train", **how))
            if isinstance(step, Unknown):
                print(f"{run['name']}: {step.why}", file=sys.stderr)
                continue
            yield Part(
                name=run["name"],
                compute_s=(step.product_flop + step.attention_flop) / peak / BEST_COMPUTE,
                memory_s=step.moved_bytes / bandwidth,
                depthwise_s=step.depthwise_bytes / bandwidth,
                kernels=step.kernels,
                measured_s=(run["step_s"] - run["optimizer_s"]) / run["run"].get("accumulate", 2),
            )


def calibrate() -> list[str]:
    """The factors as they are written in efficiency_factors.toml, and how the halves of depthwise models do."""
    marked = list(parts(run for _, run in measured_runs() if run["split"] == CALIBRATES))

    def error(at: Any) -> float:
        memory, kernel = np.exp(at)
        return _error(marked, lambda one: one.ratio(memory, kernel, 0.0))

    starts = [np.log([memory, kernel]) for memory in (0.4, 0.6, 0.8) for kernel in (2e-5, 3e-5, 4e-5)]
    best = min((minimize(error, start, method="Nelder-Mead") for start in starts), key=lambda found: found.fun)
    memory, kernel = np.exp(best.x)
    return ["[traced]", f"compute_ratio = {BEST_COMPUTE}", f"memory_ratio = {memory:.3f}",
            f"per_kernel_s = {kernel:.2e}", *_depthwise()]  # fmt: skip


def _error(found: list[Part], ratio: Callable[[Part], float]) -> float:
    """The mean absolute logarithm of planned over measured."""
    return float(np.mean([abs(np.log(ratio(one))) for one in found]))


def _depthwise() -> list[str]:
    """Fitted with the other factors as they are shipped."""
    facts = factors().traced
    images = (run for _, run in measured_runs() if "sequence" not in run["run"] and not serves(run))
    all_images = parts(run for run in images if "model_type" in run["config"])
    found = sorted((one for one in all_images if one.depthwise_s), key=lambda one: one.name)
    half, other = found[::2], found[1::2]

    def error(own: list[Part], ratio: float) -> float:
        return _error(own, lambda one: one.ratio(facts.memory_ratio, facts.per_kernel_s, ratio))

    best = float(minimize_scalar(lambda at: error(half, np.exp(at)), bounds=np.log([1e-3, 1.0]), method="bounded").x)
    ratio = float(np.exp(best))
    said = [
        f"# {what} {', '.join(one.name for one in own)}: mean error {error(own, 0.0):.3f} -> {error(own, ratio):.3f}"
        for what, own in (("fitted to", half), ("checked on", other))
    ]
    return [f"depthwise_ratio = {ratio:.3f}", *said]
