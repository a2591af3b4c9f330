"""Does HFU from the training meter agree with the FLOPs that the GPU's own counters show, on the same run?

    python benchmarks/hfu_on_gpu.py [--seconds 15] [--overhead 120] [--out RESULT.json]

Trains a language model of about a billion parameters in bf16 with the meter, the recorder beside it in a process of its
own. Compared are the hardware FLOPs the meter counted and those the pipe counters show, over the same time: within
15 %. Then the meter's cost on the same loop and, for a third of that time, on one of short steps. What is known is
written after each of them. Needs a GPU with activity counters (Hopper or later). A rehearsal without one:
--device cpu --job tiny --telemetry replay:tests/data/h200_replay.csv.gz --overhead 10
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from gpuledger.efficiency.window import activity_mhz, make_window, pipe_state
from meter_overhead import JOBS, WARM_STEPS, Loop, cost_us, host_cost_pct, overhead, steps_by_kind

from gpuledger.advice.build import audit_statement
from gpuledger.catalog.gpus import Gpu, get_gpu
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.counted import with_counted
from gpuledger.efficiency.statement import to_json
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.measures import PIPES
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.pipes import realized
from gpuledger.training.meter.meter import Meter
from gpuledger.training.meter.report import to_json as report_json
from gpuledger.units import Unknown

BAR_PCT = 15.0
# Counters lag: the first part of the run still shows what was before.
LAG_MS = 1500
READ = ("sm_clock_mhz", "power_w", "gpu_util_ratio", "engine_ratio", "sm_ratio", "dram_ratio", "throttle_bits",
        "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s", *(f"{p}_ratio" for p in PIPES))  # fmt: skip
RECORDER = """
import sys
from gpuledger.recording.record import record
with record(sys.argv[1], device=sys.argv[2], of_job=False, labels={"tensor_precision": "bf16"}):
    print("ready", flush=True)
    sys.stdin.read()
"""


def recorder(lake: Path, device: str) -> subprocess.Popen[str]:
    """A recorder that runs until its input is closed."""
    started = subprocess.Popen(
        [sys.executable, "-c", RECORDER, str(lake), device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    if started.stdout.readline().strip() != "ready":
        sys.exit("the recorder did not start: is there a GPU?")
    return started


def run_with_meter(loop: Loop, lake: Path, seconds: float) -> tuple[dict[str, Any], int, int]:
    """Train for some seconds under the meter; its report, and the time it stands for."""
    meter = Meter(loop.model, lake=lake, run_id="hfu")
    loop.train(meter(loop.batches(WARM_STEPS)))
    loop.settle()
    step_s = max(meter.observed().phases_s["forward"] * 3, 1e-3)
    steps = max(10, round(seconds / step_s))
    # Timed steps of the warm-up are few; the run's own begin here.
    start_ms = time.time_ns() // 1_000_000
    deadline = time.monotonic() + seconds

    def until_over() -> Any:
        for i, batch in enumerate(loop.batches(10 * steps)):
            if i % 4 == 3 and time.monotonic() > deadline:
                return
            yield batch

    loop.train(meter(until_over()))
    loop.settle()
    end_ms = time.time_ns() // 1_000_000
    made = meter.report(show=True)
    meter.finish()
    return report_json(made), start_ms, end_ms


def counters_tflops(lake: Lake, gpu: Gpu, start_ms: int, end_ms: int) -> dict[str, Any]:
    """FLOPs by pipe activity in the samples of a stretch of time."""
    tables = [pq.read_table(lake.path(p), columns=["at_ms", *READ]) for p in lake.manifest().parts]
    rows = {c: np.concatenate([_column(t, c) for t in tables]) for c in ("at_ms", *READ)}
    order = np.argsort(rows["at_ms"], kind="stable")
    rows = {c: v[order] for c, v in rows.items()}
    at = rows["at_ms"]
    step = float(np.median(np.diff(at)))
    span = np.minimum(np.diff(at, append=at[-1] + step), 2.5 * step)
    inside = (at >= start_ms + LAG_MS) & (at <= end_ms)
    window = make_window({c: rows[c] for c in READ}, span / 1000).take(inside)
    found = realized(gpu, activity_mhz(window), "bf16", pipe_state(window))
    if isinstance(found, Unknown):
        return {"not_known": found.why, "samples": int(inside.sum())}
    means = {c: window.mean(c) for c in ("tensor_ratio", "sm_clock_mhz", "gpu_util_ratio", "power_w", "dram_ratio")}
    return {
        "tflops": found.tflops,
        "low_tflops": found.low_tflops,
        "high_tflops": found.high_tflops,
        "notes": list(found.notes),
        "samples": int(inside.sum()),
        "seconds": float(window.span_s.sum()),
        "means": means,
    }


def _column(table: Any, name: str) -> np.ndarray:
    return np.array([np.nan if v is None else float(v) for v in table[name].to_pylist()], dtype=np.float64)


def statement(lake: Lake) -> dict[str, Any]:
    """The same run as the efficiency statement and the audit tell it."""
    post_lake(lake, load_thresholds())
    made = to_json(with_counted(efficiency_statement(lake), lake, Scope()))
    advice = audit_statement(lake)
    return {
        "counted": made.get("counted"),
        "rfu_counters_pct": made["rfu_counters_pct"],
        "measured_advice": [r.id for r in advice.recommendations if "training meter" in r.source],
    }


def costs(found: dict[str, Any], loop: Loop, args: argparse.Namespace) -> None:
    """What the meter costs: this loop, one of short steps, and the host's time by itself."""
    cost = found["meter_cost"] = cost_us(args.device)
    # A block of about half a second: long against what its two ends cost, short against drift.
    meter = Meter(loop.model)
    row = found["overhead"] = overhead(loop, meter, args.overhead, 4 if args.job == "language" else 20)
    row["steps_by_kind"] = steps_by_kind(meter)
    row["host_cost_pct"] = host_cost_pct(cost, row["steps_by_kind"], row["step_ms"])
    keep(found, args.out)
    if args.job == "language":
        short = Loop("small", args.device)
        meter = Meter(short.model)
        row = found["overhead_short_steps"] = overhead(short, meter, args.overhead / 3, 80)
        row["steps_by_kind"] = steps_by_kind(meter)
        row["host_cost_pct"] = host_cost_pct(cost, row["steps_by_kind"], row["step_ms"])


def made_with(args: argparse.Namespace) -> dict[str, str]:
    """The command and the day, for the page that shows the figures."""
    words = f"--seconds {args.seconds:g} --overhead {args.overhead:g} --job {args.job}"
    gpu = torch.cuda.get_device_name() if args.device == "cuda" else "CPU"
    date = time.strftime("%Y-%m-%d", time.gmtime())
    command = f"python benchmarks/hfu_on_gpu.py {words}"
    return {"command": command, "date": date, "gpu": gpu, "torch": torch.__version__}


def keep(found: dict[str, Any], out: Path | None) -> str:
    """As JSON, and into the file."""
    text = json.dumps(found, indent=1)
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    return text


def main() -> int:
    """Run, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--overhead", type=float, default=120.0, metavar="S", help="seconds for the meter's cost")
    parser.add_argument("--job", choices=sorted(JOBS), default="language")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--telemetry", default="nvml")
    parser.add_argument("--gpu", help="the GPU by the catalog's name, where torch does not tell (a rehearsal)")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.device == "cpu":
        torch.set_num_threads(1)
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="hfu-"))
    beside = recorder(folder, args.telemetry)
    loop = Loop(args.job, args.device)
    report, start_ms, end_ms = run_with_meter(loop, folder, args.seconds)
    time.sleep(1.5)  # the last second's counters
    beside.communicate()
    gpu = get_gpu(args.gpu or report["seen"]["place"]["gpu"] or "h200-sxm-141gb")
    counters = counters_tflops(Lake(folder), gpu, start_ms, end_ms)
    counted = report["hardware_tflops"]
    found: dict[str, Any] = {
        "gpu": gpu.key,
        "torch": torch.__version__,
        "job": {"name": args.job, "parameters": sum(p.numel() for p in loop.model.parameters())},
        "meter": report,
        "counters": counters,
        "hfu_pct": report["hfu_pct"],
        "mfu_pct": report["mfu_pct"],
        "bar_pct": BAR_PCT,
    }
    if "tflops" in counters:
        off = 100 * (counted / counters["tflops"] - 1)
        found |= {"meter_tflops": counted, "counters_tflops": counters["tflops"], "off_pct": off}
        found["within_bar"] = abs(off) <= BAR_PCT
    found["made_with"] = made_with(args)
    keep(found, args.out)
    found["statement"] = statement(Lake(folder))
    keep(found, args.out)
    costs(found, loop, args)
    found["seconds"] = time.monotonic() - began
    print(keep(found, args.out))
    return 0 if found.get("within_bar") else 1


if __name__ == "__main__":
    sys.exit(main())
