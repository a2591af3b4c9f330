"""How near do the memory and speed plans come for families no formula was written for?

    PYTHONPATH=src python benchmarks/plan_models.py [--measured FILE] [--update FILE] [--calibrate] [--formula]

Every run of benchmarks/data/models_h200.json (benchmarks/models_on_gpu.py on one H200) goes through `plan fit` and
`plan throughput` as a user would give it: a config.json. Rows marked "calibrate" in model_cases.toml set the speed
factors; the errors of speed are those of the others. No factor of memory is fitted, but the stand-ins for GPU kernels
were corrected by these runs, so only the fresh ones check memory. --formula plans memory without tracing, where
formulas know the type. What is traced is the installed transformers: the runs were measured with the release the file
names, and a release that writes a model differently (T5, Mamba 2) keeps different tensors.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gpuledger import plan
from gpuledger.catalog.gpus import get_gpu
from gpuledger.errors import InputError
from gpuledger.plan.memory.facts import overheads
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import factors
from gpuledger.plan.speed.steps import compute_peak
from gpuledger.plan.speed.traced import soft_max
from gpuledger.plan.tracing import configured_model, traced_step
from gpuledger.units import count

HERE = Path(__file__).parent
PARTS = (
    "",
    "fresh_",
    "last_",
    "confirm_",
    "autocast_",
    "diffusion_",
    "check_",
    "settled_",
    "unseen_",
    "further_",
    "third_",
)
MEASURED = [HERE / "data" / f"models_{part}h200.json" for part in PARTS]
GPU = "h200-sxm-141gb"
SEEN = """\
For memory these runs are not held out: the stand-ins for GPU kernels (which attention is fused, what a bias and
a dropout keep, in which layout an output lies) were corrected where they showed a difference. The fresh runs below
are the check of memory. Seconds are those of one session: steps of small models, which wait for the processor,
differed by up to a third, one by half, between sessions."""
FRESH = """\
Families measured after stand-ins and factors were settled; neither was changed for them. The range of speed is the
outer twentieths of the held-out runs above; it was widened from tenths after these runs had been seen."""
LAST = """\
Families chosen and measured when stand-ins, factors and the range of speed were settled: the check of speed and its
range, and of torch's peak. The range of memory was widened after they had been seen."""
CONFIRM = """\
Families chosen and measured after that, with many runs under autocast, whose gaps vary most: the check of the range of
memory of traced runs, which held all of theirs. Two of the formula's runs under autocast lay outside the range of that
time (13 of 15 inside); formulas have had a wider range under autocast since, which is the one shown here. So is the
formula's range of speed, which was set anew later; before, 12 of these runs lay inside."""
AUTOCAST = """\
Types with a checked formula, all under autocast, chosen and measured after formulas had been given their wider range
under autocast: the check of that range of memory. The formula's range of speed of that time held 7 of these 12 runs:
four plans were 10 to 22 % too fast, and the one for experts in plain torch (deepseek_v2) 3.7 times. The range has been
set anew by all runs there are, and models with experts have one of their own; these are shown here and were not
checked on further runs."""
DIFFUSION = """\
Denoisers and an autoencoder of diffusers (0.42.1), training, in two sessions. Code, factors and both ranges were
committed before results of the first (Stable Diffusion 1.5, XL and 3) had been seen; all plans of the second were
written down before it. Neither stand-ins nor factors were changed since. The ranges of that time held all 19 runs in
memory and 18 in speed: an autoencoder ran at about half the planned rate. Autoencoders have had a wider range of speed
since, which is the one shown here. FLUX in 16 bits ended with a CUDA error when cuDNN's attention was on, so all FLUX
runs were measured without it. Rates are images per second."""
DENOISED = """\
Image makers without gradients: one pass of a denoiser, or from latents to pixels. No factor of speed was fitted to such
passes. The first autoencoder took 2.2 times the planned memory: cuDNN lays images and weights out anew for every
convolution (measured apart: input, output and weights once more), which is counted since, and the allocator leaves
gaps. Five further passes of three autoencoders then took torch's planned peak to 18 % less; the range of the total was
set anew by all six. The first and second autoencoder for 1,024 x 1,024 pixels ran at 0.4 times the planned rate: their
attention has one head of 512, which no fused kernel takes."""
CHECK = """\
Image makers, and decoders and encoders of types with a formula, chosen and measured later. Memory was planned before:
all but one of these runs lay in the printed range and within 2 % of torch's peak. The one, past its window, was planned
7.5 % low by its formula and is traced since. Speed was planned by formula where one was checked, which held 4 of 8 such
runs: small steps wait for the processor. Speed is traced since wherever transformers is installed, as shown here.
What cuDNN moves for a convolution counts as traffic since, and both ranges of image makers were set anew."""
SETTLED = """\
Runs chosen and measured when all of that was settled: the check of it. Memory: the ranges set before held all 12 runs,
and torch's peak was met within 4 %. Speed: they held 9; a small decoder ran faster than planned (0.65 and 0.68), which
lowered the range's low end, and recomputation under autocast could not be traced then."""
MARKS = """Ratios are planned over measured. Runs marked * set the speed factors and are not in the figures above; fresh
ones are marked +, the last ones ++, the confirming ones +++, formulas under autocast #, models of diffusers ##,
those of the last check ###, those measured when all was settled ####, and those of the three rounds of other types
@, @@ and @@@."""
UNSEEN = """\
Types that none of the other runs has, chosen when all of the above was settled. As planned before: torch's peak within
10 % in 20 of 21, total in the printed range in 20, speed in 19. The one was WavLM, 10.8 % too high: autocast did not
reach into torch's own multi-head attention, which it does since."""
FURTHER = """\
25 more types, chosen and measured after that. Two of them (DeBERTa, FNet) cannot run so on the GPU either, as planned;
one did not run for want of a device argument; of one (Switch) activations are unknown to the plan. Of the others, as
planned before: torch's peak within 10 % in all 21, total in the printed range in 19, speed in 17. The allocator's
gaps took most of a small image model, so half a gigabyte of them is within the range since; models that read images or
sound have a range of speed of their own since."""
THIRD = """\
22 more types, chosen and measured after that. One class is not in transformers, and of one the activations are unknown.
As planned before: torch's peak within 10 % in 19 of 20, total in the printed range in 19, speed in 17 (by the range of
all). The one was Wav2Vec2-Conformer, 17 % too high: a learned bias whose rows lie in one piece is fused, which was then
measured by itself and is counted so since. Small steps were faster in this session than planned: they wait for the
processor."""
SPLITS = {"calibrate": " *", "fresh": " +", "last": " ++", "confirm": " +++", "autocast": " #", "diffusion": " ##",
          "denoised": " ##", "check": " ###", "settled": " ####",
          "unseen": " @", "further": " @@", "third": " @@@"}  # fmt: skip
BEST_COMPUTE = 0.702  # gpuledger calibrate on one H200: a bf16 product's share of the dense peak


def setup_of(run: dict[str, Any]) -> dict[str, Any]:
    """A run as parameters of a plan."""
    how = {name: value for name, value in run["run"].items() if name != "accumulate"}
    if how.get("mode") == "serve":  # one pass was measured
        return {**how, "guidance": False, "denoising_steps": 1}
    return {"scheme": "mixed", **how, "accumulate": run["run"].get("accumulate", 2) > 1}


def words(run: dict[str, Any]) -> str:
    """A run in a few words."""
    how, kind = run["run"], run["run"].get("scheme", "mixed")
    if how.get("mode") == "serve":
        return f"one pass, {count(how['batch'], 'image')}"
    size = f"{how['sequence']} x {how['micro_batch']}" if "sequence" in how else f"{how['micro_batch']} at a time"
    single, full = how.get("accumulate") == 1, how.get("attention") == "full"
    said = (("recompute", how.get("recompute")), ("one micro-batch", single), ("full attention", full))
    more = [word for word, there in said if there]
    return ", ".join([kind, size, *more])


def compared(run: dict[str, Any], folder: Path, *, trace: str) -> dict[str, Any]:
    """One run beside its plans."""
    file = folder / run["name"] / "config.json"
    file.parent.mkdir(exist_ok=True)
    named = {"architectures": [run["class"]]} if "model_type" in run["config"] else {}
    file.write_text(json.dumps({**run["config"], **named}), encoding="utf-8")
    how = {**setup_of(run), "trace": trace}
    fit = plan.fit(file, GPU, **how).statement
    if fit.at_least:
        raise InputError("a part of its memory is unknown", hint="; ".join(fit.not_known.values()))
    tensors = fit.total_bytes - fit.per_gpu_bytes["overhead"] + overheads().workspace_bytes.value
    taken = run["peak_reserved_bytes"] + run["outside_torch_bytes"]
    serves = how.get("mode") == "serve"
    batches = None if serves else run["run"].get("accumulate", 2)
    speed = plan.throughput(file, GPU, micro_batches=batches, **how).statement
    rate, unit = (speed.images.rate, "image") if serves else (speed.train.rate, speed.train.unit)
    per_s = run["run"]["batch"] / run["step_s"] if serves else run["samples_per_s"]
    per_s *= run["run"].get("sequence", 1) if unit == "token" else 1
    return {
        "name": run["name"], "family": run["config"].get("model_type", run["class"]), "run": words(run),
        "split": "denoised" if serves else run["split"],
        "allocated_gb": run["peak_allocated_bytes"] / 1e9, "memory_ratio": tensors / run["peak_allocated_bytes"],
        "taken_gb": taken / 1e9, "total_ratio": fit.total_bytes / taken,
        "in_range": fit.low_bytes <= taken <= fit.high_bytes,
        "unit": unit, "measured_per_s": per_s, "speed_ratio": rate.per_s / per_s,
        "speed_in_range": rate.low_per_s <= per_s <= rate.high_per_s,
    }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> list[str]:
    """All runs as a Markdown table, the calibrating ones last."""
    lines = ["| model (family) | run | peak GB | memory | total | in range | measured /s | speed | in range |",
             "|---|---|---:|---:|---:|---|---:|---:|---|"]  # fmt: skip
    for row in sorted(rows, key=lambda row: row["split"] == "calibrate"):
        mark, rate = SPLITS.get(row["split"], ""), row["measured_per_s"]
        lines.append(
            f"| {row['name']} ({row['family']}){mark} | {row['run']} | {row['allocated_gb']:.2f} "
            f"| {row['memory_ratio']:.3f} | {row['total_ratio']:.3f} | {'yes' if row['in_range'] else 'no'} "
            f"| {rate:{',.0f' if rate >= 10 else '.2g'}} {row['unit']}s | {row['speed_ratio']:.2f} "
            f"| {'yes' if row['speed_in_range'] else 'no'} |"
        )
    return lines


def summary(rows: list[dict[str, Any]], split: str, what: str) -> list[str]:
    """What holds over all runs of a split."""
    held = [row for row in rows if row["split"] == split]
    if not held:
        return [f"- no {what} runs"]
    memory, total, speed = (
        np.array([row[name] for row in held]) for name in ("memory_ratio", "total_ratio", "speed_ratio")
    )
    near = np.mean(np.abs(memory - 1) <= 0.1)

    def cut(values: Any) -> str:
        return ", ".join(f"p{q} {np.quantile(values, q / 100):.3f}" for q in (10, 50, 90))

    return [
        (
            f"- memory, {len(held)} {what} runs of {len({row['name'] for row in held})} models: {100 * near:.0f} % "
            f"within 10 % of torch's peak, the furthest {100 * np.max(np.abs(memory - 1)):.1f} % off"
        ),
        (
            f"- total (with what lies outside torch and the allocator's gaps): {cut(total)}; "
            f"{sum(row['in_range'] for row in held)} of {len(held)} inside the printed range"
        ),
        (
            f"- speed: median error {100 * np.median(np.abs(speed - 1)):.0f} %; {cut(speed)}; "
            f"{sum(row['speed_in_range'] for row in held)} of {len(held)} inside the printed range"
        ),
    ]


def calibrate(measured: dict[str, Any], folder: Path) -> list[str]:
    """Factors of least relative error on the calibrating runs; products never better than a bare one."""
    from scipy.optimize import minimize

    gpu, parts = get_gpu(GPU), []
    for run in (run for run in measured["runs"] if run["split"] == "calibrate" and "error" not in run):
        file = folder / run["name"] / "config.json"
        step = traced_step(
            configured_model(file),
            Setup(mode="train", **{**setup_of(run), "accumulate": True, "sequence": run["run"].get("sequence", 1)}),
        )
        peak, seconds = (
            compute_peak(gpu, "bf16"),
            (run["step_s"] - run["optimizer_s"]) / run["run"].get("accumulate", 2),
        )
        compute = (step.product_flop + step.attention_flop) / float(peak) / BEST_COMPUTE
        parts.append((compute, step.moved_bytes / gpu.memory_bandwidth_bytes_per_s.value, step.kernels, seconds))

    def error(at: Any) -> float:
        memory, kernel = np.exp(at)
        ratios = [soft_max(c + b / memory, k * kernel) / s for c, b, k, s in parts]
        return float(np.abs(np.log(ratios)).sum())

    starts = [np.log([memory, kernel]) for memory in (0.4, 0.6, 0.8) for kernel in (2e-5, 3e-5, 4e-5)]
    best = min((minimize(error, start, method="Nelder-Mead") for start in starts), key=lambda found: found.fun)
    memory, kernel = np.exp(best.x)
    return [
        "[traced]",
        f"compute_ratio = {BEST_COMPUTE}",
        f"memory_ratio = {memory:.3f}",
        f"per_kernel_s = {kernel:.2e}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, nargs="*", default=MEASURED, help="what models_on_gpu.py wrote")
    parser.add_argument("--update", type=Path, help="write the table into this Markdown file")
    parser.add_argument("--calibrate", action="store_true", help="print the factors the calibrating runs ask for")
    parser.add_argument("--formula", action="store_true", help="plan memory by formula, where the type is known")
    given = parser.parse_args()
    files, rows = [json.loads(file.read_text(encoding="utf-8")) for file in given.measured], []
    measured = {**files[0], "runs": [run for file in files for run in file["runs"]]}
    with tempfile.TemporaryDirectory() as folder:
        one = partial(compared, folder=Path(folder), trace="never" if given.formula else "auto")
        for run in measured["runs"]:
            try:
                rows += [] if "error" in run else [one(run)]
                print(f"{len(rows)} {run['name']}", file=sys.stderr, flush=True)
            except InputError as error:
                print(f"{run['name']}: {error}", file=sys.stderr)
        if given.calibrate:
            print("\n".join(calibrate(measured, Path(folder))))
    import transformers

    made = f"Measured on one {measured['device']} with torch {measured['torch']} and transformers "
    made += f"{measured['transformers']}; planned with transformers {transformers.__version__}; "
    made += f"speed factors: {factors().traced.source}."
    lines = ["# Plans of many model families, measured", "", made, "", *summary(rows, "held_out", "held-out"), "",
             SEEN, "",
             FRESH, "", *summary(rows, "fresh", "fresh"), "",
             LAST, "", *summary(rows, "last", "last"), "",
             CONFIRM, "", *summary(rows, "confirm", "confirming"), "",
             AUTOCAST, "", *summary(rows, "autocast", "autocast"), "",
             DIFFUSION, "", *summary(rows, "diffusion", "diffusion"), "",
             DENOISED, "", *summary(rows, "denoised", "serving"), "",
             CHECK, "", *summary(rows, "check", "checking"), "",
             SETTLED, "", *summary(rows, "settled", "settled"), "",
             UNSEEN, "", *summary(rows, "unseen", "unseen"), "",
             FURTHER, "", *summary(rows, "further", "further"), "",
             THIRD, "", *summary(rows, "third", "third"), "",
             MARKS, "",
             *table(rows)]  # fmt: skip
    print("\n".join(lines))
    if given.update:
        given.update.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
