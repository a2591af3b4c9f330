"""How far off is the planner, in memory and in speed?

    python benchmarks/plan_errors.py [--shared FOLDER] [--measured FILE] [--json]

Memory: beside published tables, and beside what torch took on one H200 (benchmarks/memory_on_gpu.py). Speed: beside
measured serving (a file in the shared folder; left out where that is not there), published training runs, and the same
H200. Ratios are predicted over measured. Rows that calibrated the factors are marked and never in the quantiles.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from plan_rows import (
    CALIBRATING_MODELS,
    MEASURED,
    SERVING,
    TRUTH,
    case_model,
    formula_runs,
    measured_cases,
    published_runs,
    serving_rows,
    truth_runs,
)

from gpuledger.catalog.gpus import get_gpu
from gpuledger.plan.fitting.sources import errors_of
from gpuledger.plan.guide.schema import dense_model
from gpuledger.plan.memory.facts import overheads
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import factors, way
from gpuledger.plan.speed.throughput import prefill_rate, step_s, train_rate
from gpuledger.units import Unknown

# Rajbhandari et al. 2020, figure 1: 7.5 B parameters on 64 GPUs, GB of model states by ZeRO stage.
ZERO_GB = (120.0, 31.4, 16.6, 1.9)


def published_memory() -> list[dict[str, Any]]:
    """Model states against the ZeRO paper."""
    rows = []
    for stage, published in enumerate(ZERO_GB):
        parts = memory(dense_model("7.5B", 7_500_000_000), Setup(mode="train", count=64, zero=stage)).parts
        ours = sum(parts[name] for name in ("weights", "gradients", "optimizer")) / 1e9
        rows.append({"row": f"ZeRO {stage}, 7.5 B, 64 GPUs", "published_gb": published, "ours_gb": ours})
    return rows


def measured_memory(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Torch's peaks beside what is predicted today (not what was when they were measured)."""
    rows = []
    for case in measured["cases"]:
        if "peak_allocated_bytes" not in case or "error" in case:
            continue
        need = memory(case_model(case), Setup(**case["setup"]))
        tensors = need.total_bytes - need.parts["overhead"] + overheads().workspace_bytes.value
        taken = case["peak_reserved_bytes"] + case["outside_torch_bytes"]
        rows.append({
            "row": case_words(case),
            "mode": case["setup"]["mode"],
            "model": case["model"],
            "of": errors_of(case_model(case), Setup(**case["setup"])),
            "planned_bytes": need.total_bytes,
            "taken_bytes": taken,
            "allocated_gb": case["peak_allocated_bytes"] / 1e9,
            "tensors_ratio": tensors / case["peak_allocated_bytes"],
            "taken_gb": taken / 1e9,
            "total_ratio": need.total_bytes / taken,
        })  # fmt: skip
    return rows


def case_words(case: dict[str, Any]) -> str:
    """A measured case in a few words."""
    setup = case["setup"]
    if case["kind"] == "serve":
        return f"{case['model']} serve, context {setup['context']}, batch {setup['batch']}"
    extra = [setup["scheme"], f"{setup['sequence']} x {setup['micro_batch']}"]
    extra += [word for word, there in (("recompute", setup["recompute"]), ("LoRA", setup["lora_rank"])) if there]
    extra += ["full attention"] if setup["attention"] == "full" else []
    extra += ["no accumulation"] if case["accumulate"] == 1 else []
    return f"{case['model']} train, {', '.join(extra)}"


def quantiles(ratios: list[float]) -> dict[str, float]:
    """p10, p50 and p90, and how many."""
    ordered = sorted(ratios)
    cuts = statistics.quantiles(ordered, n=10, method="inclusive") if len(ordered) > 1 else ordered * 9
    return {"rows": len(ordered), "p10": cuts[0], "p50": cuts[4], "p90": cuts[8]}


def serving_errors(shared: Path) -> dict[str, Any]:
    """Tokens written a second by model and GPU; the quantiles are of held-out models."""
    by_row: dict[tuple[str, str, bool], list[float]] = defaultdict(list)
    groups: dict[str, list[float]] = defaultdict(list)
    for row in serving_rows(shared):
        predicted = step_s(row.load, factors().decode, way(row.gpu, row.setup.tensor), row.setup.tensor)
        ratio = row.step_s / predicted
        by_row[row.model.name, row.gpu_label, row.calibrates].append(ratio)
        for group in (row.group, row.kind, "all"):
            groups[group] += [] if row.calibrates else [ratio]
    return {
        "by_model": [
            {"row": f"{name}, {gpu}", "held_out": not calibrates, **quantiles(ratios)}
            for (name, gpu, calibrates), ratios in sorted(by_row.items(), key=lambda pair: (pair[0][2], pair[0]))
        ],
        "held_out": {name: quantiles(ratios) for name, ratios in sorted(groups.items()) if ratios},
    }


def training_errors(measured: dict[str, Any] | None, shared: Path) -> list[dict[str, Any]]:
    """Tokens (or images) trained a second: published runs, then one H200. `of`: whose range each has."""
    rows = []
    for run in (*published_runs(), *(truth_runs(shared) if (shared / TRUTH).is_file() else ()), *formula_runs()):
        ours = train_rate(run.model, run.gpu, run.setup, run.micro_batches)
        assert not isinstance(ours, Unknown), ours
        held = run.model.name not in CALIBRATING_MODELS
        found = {"measured_per_s": run.tokens_per_s, "ours_per_s": ours.rate.per_s, "of": ours.rate.errors_of}
        rows.append({"row": run.name, "held_out": held, **found})
    gpu = get_gpu("h200-sxm")
    for case in measured["cases"] if measured else ():
        if "tokens_per_s" not in case or "error" in case:
            continue
        ours = train_rate(case_model(case), gpu, Setup(**case["setup"]), case["accumulate"])
        assert not isinstance(ours, Unknown), ours
        held = case["model"] not in CALIBRATING_MODELS
        found = {"measured_per_s": case["tokens_per_s"], "ours_per_s": ours.rate.per_s, "of": ours.rate.errors_of}
        rows.append({"row": f"H200: {case_words(case)}", "held_out": held, **found})
    return rows


def prefill_errors(measured: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Tokens of prompts a second on one H200."""
    rows = []
    for case in measured["cases"] if measured else ():
        if "prefill_tokens_per_s" in case and "error" not in case:
            ours = prefill_rate(case_model(case), get_gpu("h200-sxm"), Setup(**case["setup"]))
            assert not isinstance(ours, Unknown), ours
            found = {"measured_per_s": case["prefill_tokens_per_s"], "ours_per_s": ours.per_s}
            rows.append({"row": f"H200: {case_words(case)}", "held_out": True, **found})
    return rows


def show(title: str, rows: list[dict[str, Any]], columns: dict[str, str]) -> None:
    """A table of plain text."""
    print(f"\n{title}")
    wide = max(len(row["row"]) for row in rows)
    heads = {name: name.replace("_per_s", "/s").replace("_", " ") for name in columns}
    print(" " * wide + "  " + "  ".join(f"{heads[name]:>12}" for name in columns))
    for row in rows:
        cells = "  ".join(f"{row[name]:>12{shape}}" if name in row else " " * 12 for name, shape in columns.items())
        print(f"{row['row']:<{wide}}  {cells}{'' if row.get('held_out', True) else '  calibrated on'}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shared",
        type=Path,
        default=Path(os.environ.get("GPULEDGER_OUTSIDE", "outside")),
        help="folder of the files that are not shipped",
    )
    parser.add_argument("--measured", type=Path, default=MEASURED, help="what memory_on_gpu.py wrote")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    measured = measured_cases(given.measured)
    found: dict[str, Any] = {
        "published_memory": published_memory(),
        "training": training_errors(measured, given.shared),
    }
    found["measured_memory"] = measured_memory(measured) if measured else []
    found["prefill"] = prefill_errors(measured)
    found["serving"] = serving_errors(given.shared) if (given.shared / SERVING).is_file() else None
    for row in (*found["training"], *found["prefill"]):
        row["ratio"] = row["ours_per_s"] / row["measured_per_s"]
    if given.json:
        print(json.dumps(found, indent=1))
        return 0
    report(found, given)
    return 0


def report(found: dict[str, Any], given: argparse.Namespace) -> None:
    """Both error tables."""
    print("MEMORY: predicted over published or measured")
    show("Model states, the ZeRO paper", found["published_memory"], {"published_gb": ".1f", "ours_gb": ".2f"})
    if found["measured_memory"]:
        columns = {"allocated_gb": ".2f", "tensors_ratio": ".3f", "taken_gb": ".2f", "total_ratio": ".3f"}
        show("One H200: tensors over torch's peak allocated, total over all that was taken",
             found["measured_memory"], columns)  # fmt: skip
        for mode in ("train", "serve"):
            for name in ("tensors_ratio", "total_ratio"):
                cut = quantiles([row[name] for row in found["measured_memory"] if row["mode"] == mode])
                words = f"p10 {cut['p10']:.3f}, p50 {cut['p50']:.3f}, p90 {cut['p90']:.3f} of {cut['rows']} runs"
                print(f"{mode}, {name}: {words}")
    else:
        print(f"\nnothing measured on a GPU: no {given.measured}")
    print("\nSPEED: predicted over measured tokens a second")
    rates = {"measured_per_s": ",.0f", "ours_per_s": ",.0f", "ratio": ".3f"}
    show("Training", found["training"], rates)
    if found["prefill"]:
        show("Reading prompts", found["prefill"], rates)
    if found["serving"] is None:
        print(f"\nserving: left out, there is no {given.shared / SERVING}")
        return
    columns = {"rows": "d", "p10": ".2f", "p50": ".2f", "p90": ".2f"}
    show("Serving, by model and GPU", found["serving"]["by_model"], columns)
    held = [{"row": name, **cut} for name, cut in found["serving"]["held_out"].items()]
    show("Serving, models that calibrated nothing", held, columns)


if __name__ == "__main__":
    sys.exit(main())
