"""Which factors turn the planner's rooflines into measured rates?

    python benchmarks/plan_calibrate.py [--shared FOLDER]

Prints the sections of src/gpuledger/plan/data/efficiency_factors.toml: decode from the serving file, train and prefill
from benchmarks/data/memory_h200.json. Only the calibrating rows of plan_split.toml and the models named below are
used; the errors printed are those of the others (of train and prefill: with the factors that are in the file now, so
put new factors there first and run it again). Factors cannot be better than what was measured of bare products and
copies (gpuledger calibrate on one H200).
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from plan_rows import CALIBRATING_MODELS, ServingRow, case_model, measured_cases, serving_rows

from gpuledger.catalog.gpus import get_gpu
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import all_reduce_s, way
from gpuledger.plan.speed.steps import optimizer_s, rated
from gpuledger.units import Unknown

# gpuledger calibrate on one H200: a bf16 product reaches 0.702 of the dense peak, a copy 0.896 of the bandwidth.
BEST_COMPUTE, BEST_MEMORY = 0.702, 0.896
DECODE = ("memory", "experts", "spread", "compute", "layers", "moe_layers", "collectives", "sequences", "step")
SERVED = "(ml-energy/leaderboard v3, vLLM), never better than bare products and copies on one H200"
RAN = "(benchmarks/memory_on_gpu.py): products, and the traffic of the rest"
DATED = 'as_of = "2026-11"'
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


def products_toml(measured: dict[str, Any]) -> str:
    """The sections [train], and [prefill] as the forward third of it."""
    gpu = get_gpu("h200-sxm")
    parts, seconds, mine = [], [], []
    for case in measured["cases"]:
        if case["kind"] != "train" or "error" in case:
            continue
        setup, model, times = Setup(**case["setup"]), case_model(case), case["accumulate"]
        each = rated(model, gpu, setup)
        assert not isinstance(each, Unknown)
        parts.append([times * each.compute_s, times * each.traffic_s / BEST_MEMORY, times * each.layers])
        seconds.append(case["step_s"] - optimizer_s(model, gpu, setup, BEST_MEMORY))
        mine.append(case["model"] in CALIBRATING_MODELS)
    use = np.array(mine)
    compute, traffic, layer = fit(np.array(parts)[use], np.array(seconds)[use], np.array([1 / BEST_COMPUTE, 0, 0]))
    words = f'source = "fitted to {int(use.sum())} training runs of Hugging Face models on one H200 {RAN}'
    third = "the forward third of [train]; nothing of it was fitted to prompts"
    common = [f"compute_ratio = {1 / compute:.3f}", f"memory_ratio = {BEST_MEMORY}"]
    used = f'calibrated_on = "{", ".join(CALIBRATING_MODELS)}"'
    train = [
        "[train]",
        *common,
        f"traffic_per_kept = {traffic:.2f}",
        f"per_layer_s = {layer:.3e}",
        f'{words}"',
        DATED,
        used,
    ]
    prefill = [
        "[prefill]", *common, f"traffic_per_kept = {traffic / 3:.2f}", f"per_layer_s = {layer / 3:.3e}",
        f'source = "{third}"', DATED, used,
    ]  # fmt: skip
    return "\n".join([*train, "", *prefill])


def held_out_toml(measured: dict[str, Any], shared: Path) -> str:
    """The errors of [train] and [prefill], with the factors that are in the file now."""
    from plan_errors import prefill_errors, training_errors

    out = []
    for section, rows in (("train", training_errors(measured, shared)), ("prefill", prefill_errors(measured))):
        groups: dict[str, list[float]] = defaultdict(list)
        for row in rows:
            if row["held_out"]:
                groups[row.get("of", "all")].append(row["ours_per_s"] / row["measured_per_s"])
        out += [spread_toml(section, name, groups[name]) for name in sorted(groups)]
    return "\n".join(out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shared",
        type=Path,
        default=Path(os.environ.get("GPULEDGER_OUTSIDE", "outside")),
        help="folder of the files that are not shipped",
    )
    given = parser.parse_args()
    print(decode_toml(serving_rows(given.shared)))
    measured = measured_cases()
    if measured is None:
        print("# train and prefill: run benchmarks/memory_on_gpu.py on a GPU first", file=sys.stderr)
        return 0
    print(products_toml(measured))
    print(held_out_toml(measured, given.shared))
    return 0


if __name__ == "__main__":
    sys.exit(main())
