"""Which factors turn the planner's rooflines into measured rates?

    python benchmarks/plan_calibrate.py [--shared ../shared/data]

Prints the sections of src/gpuledger/plan/data/efficiency_factors.toml: decode from the serving file, train and prefill
from benchmarks/data/memory_h200.json. Only the calibrating rows of plan_split.toml and the models named below are
used; the errors printed are those of the others. Factors cannot be better than what was measured of bare products and
copies (gpuledger calibrate on one H200).
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from plan_rows import ServingRow, case_model, measured_cases, published_runs, serving_rows

from gpuledger.catalog.gpus import get_gpu
from gpuledger.plan.links import all_reduce_s, way
from gpuledger.plan.memory_setup import Setup
from gpuledger.plan.throughput_products import optimizer_s, rated
from gpuledger.units import Unknown

# gpuledger calibrate on one H200: a bf16 product reaches 0.702 of the dense peak, a copy 0.896 of the bandwidth.
BEST_COMPUTE, BEST_MEMORY = 0.702, 0.896
DECODE = ("memory", "experts", "spread", "compute", "layers", "moe_layers", "collectives", "sequences", "step")
CALIBRATING_MODELS = ("small", "llama-3.2-1b")
SERVED = "(ml-energy/leaderboard v3, vLLM), never better than bare products and copies on one H200"
RAN = "(benchmarks/memory_on_gpu.py): products, and the traffic of the rest"
ROUNDS = 30
SMALL_ERROR = 0.05


def features(row: ServingRow) -> list[float]:
    """The parts of a step's time, each to be multiplied by its factor."""
    load, group = row.load, row.setup.tensor
    return [
        load.memory_s, load.experts_s, load.experts_s if group > 1 else 0.0, load.compute_s, load.layers,
        load.moe_layers, load.collectives, load.sequences, 1.0,
    ]  # fmt: skip


def link_s(row: ServingRow) -> float:
    """What the collectives' bytes take: known from the links, not calibrated."""
    over = way(row.gpu, row.setup.tensor)
    return row.load.collectives * all_reduce_s(row.load.collective_bytes, row.setup.tensor, over)


def not_negative(a: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Least squares with no factor below zero: every choice of factors that may be above it."""
    best, found = np.inf, np.zeros(a.shape[1])
    for size in range(a.shape[1] + 1):
        for chosen in itertools.combinations(range(a.shape[1]), size):
            part = np.linalg.lstsq(a[:, chosen], y, rcond=None)[0] if size else np.zeros(0)
            error = float(((a[:, chosen] @ part - y) ** 2).sum()) if size else float((y**2).sum())
            if (part >= 0).all() and error < best - 1e-12:
                best, found = error, np.zeros(a.shape[1])
                found[list(chosen)] = part
    return found


def fit(a: np.ndarray, t: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Factors of least relative error, none below `least`; errors are not squared: some rows are far off."""
    weight, found = 1 / t, least
    for _ in range(ROUNDS):
        found = not_negative(a * weight[:, None], (t - a @ least) * weight) + least
        weight = 1 / t / np.sqrt(np.maximum(np.abs(a @ found - t) / t, SMALL_ERROR))
    return found


def spread_toml(section: str, of: str, ratios: list[float]) -> str:
    """Quantiles of predicted over measured rates."""
    p10, p50, p90 = np.quantile(ratios, [0.1, 0.5, 0.9])
    return (
        f'[[{section}.errors]]\nof = "{of}"\nrows = {len(ratios)}\np10 = {p10:.3f}\np50 = {p50:.3f}\np90 = {p90:.3f}\n'
    )


def decode_toml(rows: list[ServingRow]) -> str:
    """The section [decode]."""
    mine = [row for row in rows if row.calibrates]
    a = np.array([features(row) for row in mine])
    t = np.array([row.step_s - link_s(row) for row in mine])
    least = np.zeros(len(DECODE))
    least[[0, 1]], least[3] = 1 / BEST_MEMORY, 1 / BEST_COMPUTE
    f = dict(zip(DECODE, fit(a, t, least), strict=True))
    others = [row for row in rows if not row.calibrates]
    predicted = {id(row): float(np.dot(features(row), list(f.values()))) + link_s(row) for row in others}
    groups: dict[str, list[float]] = defaultdict(list)
    for row in others:
        for group in (row.group, row.kind, "all"):
            groups[group].append(row.step_s / predicted[id(row)])
    names = sorted({row.model.name for row in others})
    used = sorted({row.model.name for row in mine})
    lines = [
        "[decode]",
        f"memory_ratio = {1 / f['memory']:.3f}",
        f"expert_memory_ratio = {1 / f['experts']:.3f}",
        f"spread_experts = {f['spread']:.3f}",
        f"compute_ratio = {1 / f['compute']:.3f}",
        f"per_layer_s = {f['layers']:.3e}",
        f"per_moe_layer_s = {f['moe_layers']:.3e}",
        f"per_collective_s = {f['collectives']:.3e}",
        f"per_sequence_s = {f['sequences']:.3e}",
        f"per_step_s = {f['step']:.3e}",
        f'source = "fitted to {len(mine)} serving measurements on H100 and B200 {SERVED}"',
        'as_of = "2026-11"',
        f'calibrated_on = "{", ".join(used)}"',
        f'held_out = "{len(others)} rows of {", ".join(names)}"',
        "",
    ]
    return "\n".join(lines) + "\n" + "\n".join(spread_toml("decode", name, groups[name]) for name in sorted(groups))


def products_toml(section: str, kind: str, measured: dict[str, object]) -> str:
    """The section [train] or [prefill]."""
    gpu = get_gpu("h200-sxm")
    parts, seconds, mine, names = [], [], [], []
    for case in measured["cases"]:  # type: ignore[attr-defined]
        if case["kind"] != kind or "error" in case:
            continue
        setup, model = Setup(**case["setup"]), case_model(case)
        each = rated(model, gpu, setup)
        assert not isinstance(each, Unknown)
        passes = 4 / 3 if setup.recompute and kind == "train" else 1.0
        times = case["accumulate"] if kind == "train" else 1
        parts.append([times * each[0], times * each[1] * passes / BEST_MEMORY])
        taken = case["step_s"] - _optimizer(setup, model) if kind == "train" else case["prefill_s"]
        seconds.append(taken)
        mine.append(case["model"] in CALIBRATING_MODELS)
        names.append(case["model"])
    a, t, use = np.array(parts), np.array(seconds), np.array(mine)
    compute, traffic = fit(a[use], t[use], np.array([1 / BEST_COMPUTE, 0.0]))
    ratios = list(t[~use] / (a[~use] @ np.array([compute, traffic])))
    others = sorted({name for name, used in zip(names, mine, strict=True) if not used})
    lines = [
        f"[{section}]",
        f"compute_ratio = {1 / compute:.3f}",
        f"memory_ratio = {BEST_MEMORY}",
        f"traffic_per_kept = {traffic:.3f}",
        f'source = "fitted to {int(use.sum())} runs of Hugging Face models on one H200 {RAN}"',
        'as_of = "2026-11"',
        f'calibrated_on = "{", ".join(CALIBRATING_MODELS)}"',
        f'held_out = "{len(ratios)} runs of {", ".join(others)} on one H200"',
        "",
    ]
    return "\n".join(lines) + "\n" + spread_toml(section, "one H200", ratios)


def _optimizer(setup: Setup, model: object) -> float:
    from types import SimpleNamespace

    facts = SimpleNamespace(memory_ratio=BEST_MEMORY)
    return optimizer_s(model, get_gpu("h200-sxm"), setup, facts)  # type: ignore[arg-type]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"), help="folder of the serving file")
    given = parser.parse_args()
    print(decode_toml(serving_rows(given.shared)))
    measured = measured_cases()
    if measured is None:
        print("# train and prefill: run benchmarks/memory_on_gpu.py on a GPU first", file=sys.stderr)
        return 0
    print(products_toml("train", "train", measured))
    print(products_toml("prefill", "serve", measured))
    print(f"# published runs to check against: {', '.join(run.name for run in published_runs())}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
