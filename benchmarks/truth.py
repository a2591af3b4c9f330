"""How near do the counters come to the FLOPs that really ran, and is each workload called what it is?

    python benchmarks/truth.py SAMPLES.csv.gz TRUTH.json [--json | --windows]

SAMPLES holds a row each 0.1 s (the layout h200_recording), TRUTH the FLOPs each workload counted itself. With --json:
{"workloads": {name: {true_tflops, power_tflops, counters_tflops, low_tflops, high_tflops, class}}}. counters_tflops is
told the precision where TRUTH tells it; low and high are as if it were not told. power_tflops is what power alone
would say: power / limit x the measured matrix product. Without --json a table, the bars, and exit code 1 below a bar.
--windows prints what each workload's samples come down to, as the tests keep it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gpuledger.catalog.gpus import get_gpu
from gpuledger.physics.behavior import classify
from gpuledger.physics.pipes import Realized, precision_name, realized
from gpuledger.physics.signals import from_window
from gpuledger.efficiency.window import Window, activity_mhz, make_window, pipe_state
from gpuledger.errors import FileFault, GpuledgerError, map_os_error
from gpuledger.testing.tape import layouts
from gpuledger.units import Unknown

# Counters lag: the first part of a workload still shows what ran before.
LAG_S = 0.8
# The pipe is active for padding too; an add counts as a fused multiply-add.
RANGE_ONLY = ("convolution", "vector")
MATRIX = ("bf16", "fp16", "tf32", "fp32", "fp64")
ABOVE_TFLOPS, WORST, MEDIAN, SPREAD = 5.0, 0.15, 0.08, 4.0


Samples = dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]


def read_samples(path: Path) -> Samples:
    """Times and readings in the schema's units, by workload."""
    layout = next(known for known in layouts() if known.name == "h200_recording")
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise map_os_error(error, path, "read samples") from error
    if not rows or not {layout.time, "workload"} <= set(rows[0]):
        raise FileFault(path, "no rows with t and workload", hint="record some: python benchmarks/record_truth.py OUT")
    found = {}
    for name in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == name]
        columns = {
            c.column: np.array([float(r[c.name] or math.nan) for r in mine]) * c.multiply
            for c in layout.columns
            if c.name in rows[0]
        }
        found[name] = (np.array([float(r[layout.time]) for r in mine]) * layout.time_s, columns)
    return found


def window_of(times_s: np.ndarray, columns: dict[str, np.ndarray]) -> Window:
    """The workload's samples after the lag; each stands for the time since the one before."""
    step = float(np.median(np.diff(times_s))) if len(times_s) > 1 else 0.1
    span_s = np.minimum(np.diff(times_s, prepend=times_s[0] - step), 2.5 * step)
    return make_window(columns, span_s).take(times_s >= times_s[0] + LAG_S)


def judge(name: str, facts: dict[str, Any], window: Window, info: dict[str, Any]) -> dict[str, Any]:
    """One workload's figures."""
    gpu = get_gpu(info["gpu"])
    limit_w, gemm = info.get("power_limit_w") or gpu.board_power_w.value, info.get("measured_bf16_gemm_tflops")
    activity, state = activity_mhz(window), pipe_state(window)
    told = realized(gpu, activity, facts.get("precision"), state)
    untold = realized(gpu, activity, None, state)
    if isinstance(told, Unknown) or isinstance(untold, Unknown):
        raise FileFault(name, f"no FLOPs from these counters: {told or untold}", hint="record the activity counters")
    assert isinstance(told, Realized)
    power_w, behaviour = window.mean("power_w"), classify(from_window(window, gpu, limit_w))
    return {
        "true_tflops": facts.get("tflop_per_s"),
        "power_tflops": power_w / limit_w * gemm if power_w is not None and gemm else None,
        "counters_tflops": told.tflops,
        "low_tflops": untold.low_tflops,
        "high_tflops": untold.high_tflops,
        "class": behaviour.klass,
        "evidence": list(behaviour.evidence),
        "precision": precision_name(facts.get("precision")),
        "family": facts.get("family"),
        "accepted_classes": facts.get("accepted_classes"),
        "uncounted": facts.get("uncounted"),
    }


def windows(samples: Samples, truth: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Signals, activity x clock and state of every workload, six digits each."""
    gpu = get_gpu(truth["info"]["gpu"])
    found = {}
    for name, (times_s, columns) in samples.items():
        if name == "gap":
            continue
        facts, window = truth["workloads"].get(name, {}), window_of(times_s, columns)
        signals = from_window(window, gpu, truth["info"]["power_limit_w"])
        found[name] = {
            "true_tflops": _short(facts.get("tflop_per_s", 0.0)),
            "precision": facts.get("precision"),
            "family": facts.get("family"),
            "accepted_classes": facts.get("accepted_classes"),
            "signals": {k: _short(getattr(signals, k)) for k in sorted(signals.known())},
            "activity_mhz": {k: _short(v) for k, v in activity_mhz(window).items()},
            "state": {k: _short(v) for k, v in vars(pipe_state(window)).items()},
        }
    return found


def _short(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_short(v) for v in value]
    return value if value is None else float(f"{value:.6g}")


def bars(found: dict[str, dict[str, Any]]) -> dict[str, tuple[bool, str]]:
    """What must hold, whether it does, and the figures."""
    errors = {
        name: w["counters_tflops"] / w["true_tflops"] - 1
        for name, w in found.items()
        if w["precision"] in MATRIX and w["family"] not in RANGE_ONLY and (w["true_tflops"] or 0) > ABOVE_TFLOPS
    }
    counted = {n: w for n, w in found.items() if not w.get("uncounted")}  # the rest is held to its class only
    outside = [n for n, w in counted.items() if not w["low_tflops"] <= (w["true_tflops"] or 0) <= w["high_tflops"]]
    wide = [n for n, w in found.items() if w["high_tflops"] > SPREAD * w["low_tflops"] * (1 + 1e-9)]
    wrong = [n for n, w in found.items() if w["accepted_classes"] and w["class"] not in w["accepted_classes"]]
    result = {
        "every range contains the truth": (not outside, ", ".join(outside) or f"{len(counted)} of {len(counted)}"),
        f"no range wider than {SPREAD:.0f} x": (not wide, ", ".join(wide) or f"{len(found)} of {len(found)}"),
        "every class is an accepted one": (not wrong, ", ".join(wrong) or f"{len(found)} of {len(found)}"),
    }
    if errors:
        worst = max(errors, key=lambda n: abs(errors[n]))
        median = statistics.median(map(abs, errors.values()))
        result |= {
            f"worst error within {WORST:.0%}": (abs(errors[worst]) <= WORST, f"{errors[worst]:+.1%} ({worst})"),
            f"median error within {MEDIAN:.0%}": (median <= MEDIAN, f"{median:.1%} of {len(errors)} rows"),
        }
    return result


def show(found: dict[str, dict[str, Any]]) -> bool:
    """The table and the bars; whether all hold."""
    head = ("workload", "precision", "true", "power", "error", "counters", "error", "low", "high", "class")
    print("{:32s} {:9s} {:>8s} {:>8s} {:>9s} {:>8s} {:>7s} {:>8s} {:>8s}  {}".format(*head))
    for name, w in found.items():
        true, power = w["true_tflops"] or 0.0, w["power_tflops"]
        true_text = f"{'not known':>9s}" if w.get("uncounted") else f"{true:9.1f}"
        of_power = f"{power / true - 1:+9.0%}" if true and power is not None else " " * 9
        of_counters = f"{w['counters_tflops'] / true - 1:+7.1%}" if true else " " * 7
        power_text = f"{power:8.1f}" if power is not None else f"{'-':>8s}"
        print(
            f"{name:32s} {w['precision'] or '-':8s} {true_text} {power_text} {of_power} {w['counters_tflops']:8.1f} "
            f"{of_counters} {w['low_tflops']:8.1f} {w['high_tflops']:8.1f}  {w['class']}"
        )
    checked = bars(found)
    print()
    for bar, (holds, figures) in checked.items():
        print(f"{'holds' if holds else 'FAILS'}  {bar}: {figures}")
    print(
        "pipes.toml was measured on h200_truth too: held out are benchmarks/data/heldout_h200 (docs/results/h200.md)."
    )
    return all(holds for holds, _ in checked.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("truth", type=Path)
    parser.add_argument("--json", action="store_true", help="print figures, not a table")
    parser.add_argument("--windows", action="store_true", help="print what the samples come down to")
    args = parser.parse_args()
    try:
        samples = read_samples(args.samples)
        truth = json.loads(args.truth.read_text(encoding="utf-8"))
        if args.windows:
            print(json.dumps(windows(samples, truth)))
            return 0
        found = {}
        for name, facts in truth["workloads"].items():
            if name not in samples:
                print(f"{name}: no samples, left out", file=sys.stderr)
                continue
            found[name] = judge(name, facts, window_of(*samples[name]), truth["info"])
    except GpuledgerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except (OSError, ValueError, KeyError) as error:
        print(f"{args.truth}: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps({"workloads": found}, indent=1))
        return 0
    return 0 if show(found) else 1


if __name__ == "__main__":
    sys.exit(main())
