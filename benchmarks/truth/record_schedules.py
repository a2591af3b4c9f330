"""What does gpuledger say about real loads of known parts, recorded by its own recorder on a real GPU?

    PYTHONPATH=src python benchmarks/truth/record_schedules.py OUT [--only NAME...] [--seconds-factor 1.0]

Needs a GPU with activity counters (Hopper or later), torch, and what gpuledger itself needs; no network. Takes about 8
minutes. Each step runs its load in this process while `python -m gpuledger record` samples at 10 Hz in another, into a
lake of its own; then `audit --json` is asked. Written after every step, so that nothing is lost when time runs out:

    OUT/results.json     buckets, class and first advice of each step; each schedule compared with its parts
    OUT/samples.csv.gz   the recorded samples, and
    OUT/truth.json       what really ran: together a recording of the truth set (README.md)

--device replay:FILE --dry tries the script without a GPU: loads sleep, and the recorder plays a file.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loads import LOADS, Runner

from recording import NO_WORKLOAD

HZ = 10
START_LIMIT_S = 60.0


@dataclass(frozen=True)
class Step:
    """Parts as (load, seconds), one after the other, again and again."""

    name: str
    parts: tuple[tuple[str, float], ...]
    repeat: int = 1
    whole_of: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


def bouncing(period: float, duty: float, seconds: float) -> Step:
    """A matrix product that runs for `duty` of each period."""
    parts = (("gemm", period * duty), ("wait", period * (1 - duty)))
    return Step(f"bounce_{period:g}s_{100 * duty:.0f}pct", parts, round(seconds / period), (), ("starved",))


STEPS = (
    Step("gemm", (("gemm", 15.0),), accepted=("compute-bound",)),
    Step("copy", (("copy", 15.0),), accepted=("memory-bound",)),
    Step("gemm_copy", (("gemm", 2.0), ("copy", 2.0)), 10, ("gemm", "copy")),
    Step("fp32", (("fp32", 12.0),), accepted=("compute-bound",)),
    Step("tiny", (("tiny", 12.0),), accepted=("launch-bound",)),
    Step("wait", (("wait", 12.0),), accepted=("idle-held", "idle")),
    Step("five_blocks", tuple((load, 8.0) for load in LOADS), 2, LOADS),
    *(bouncing(period, 0.5, 24.0) for period in (0.4, 1.0, 2.0, 6.0)),
    *(bouncing(period, 0.5, 40.0) for period in (10.0, 20.0)),
    bouncing(2.0, 0.2, 24.0),
    bouncing(10.0, 0.2, 40.0),
)


class Recorder:
    """`gpuledger record` in a process of its own, until the block ends."""

    def __init__(self, lake: Path, step: Step, device: str) -> None:
        labels = [f"workload=train-{step.name.replace('_', '-')}", "namespace=truth"]
        options = ["--lake", str(lake), "--hz", str(HZ), "--device", device]
        options += [word for label in labels for word in ("--label", label)]
        self._command = [sys.executable, "-m", "gpuledger", "record", *options]
        self._said: list[str] = []
        self._ready = threading.Event()

    def __enter__(self) -> Recorder:
        pipe = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        self._process = subprocess.Popen(self._command, text=True, **pipe)
        threading.Thread(target=self._listen, daemon=True).start()
        if not self._ready.wait(START_LIMIT_S) or self._process.poll() is not None:
            self._process.kill()
            raise RuntimeError(f"the recorder did not start: {''.join(self._said).strip()}")
        return self

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._said.append(line)
            self._ready.set()
        self._ready.set()

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(START_LIMIT_S)


def measure(step: Step, runner: Runner, lake: Path, device: str, factor: float) -> dict[str, Any]:
    """Run and record one step; what really ran."""
    rounds = max(1, round(step.repeat * factor)) if step.repeat > 1 else 1
    stretch = factor if step.repeat == 1 else 1.0
    ran: dict[str, list[float]] = {}
    with Recorder(lake, step, device):
        start_at = time.time()
        for load, seconds in step.parts * rounds:
            before = time.perf_counter()
            flop = runner.run(load, seconds * stretch)
            spent = ran.setdefault(load, [0.0, 0.0])
            spent[0] += time.perf_counter() - before
            spent[1] += flop
        end_at = time.time()
    seconds = end_at - start_at
    facts = {
        "tflop_per_s": sum(flop for _, flop in ran.values()) / seconds / 1e12,
        "seconds": seconds,
        "start_at": start_at,
        "end_at": end_at,
        "parts": {load: {"seconds": s, "tflop": flop / 1e12} for load, (s, flop) in ran.items()},
    }
    if step.accepted:
        facts["accepted_classes"] = list(step.accepted)
    return facts


def audit(lake: Path) -> dict[str, Any]:
    """What the audit says, in short."""
    command = [sys.executable, "-m", "gpuledger", "audit", "--lake", str(lake), "--price", "1", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        return {"failed": (ran.stderr or ran.stdout).strip()[-500:]}
    found = json.loads(ran.stdout)
    return {
        "samples": found["samples"],
        "bucket_pct": {bucket: round(pct, 2) for bucket, pct in found["bucket_pct"].items()},
        "classes": [{"class": b["class"], "evidence": b["evidence"]} for b in found["behaviours"]],
        "first": found["first"],
        "advice": [r["id"] for r in found["recommendations"]],
    }


def samples(lake: Path, name: str, facts: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """The lake's rows in the columns of the truth set; rows before and after the load are gaps."""
    import pyarrow.parquet as pq

    from gpuledger.devices.replay.doors import layouts

    layout = next(known for known in layouts() if known.name == "h200_recording")
    for path in sorted(lake.glob("samples/**/*.parquet")):
        table = pq.ParquetFile(path).read()  # the file alone: the folder's name is not a column
        kept = [c for c in layout.columns if c.column in table.column_names]
        limit = ["power_limit_w"] if "power_limit_w" in table.column_names else []
        for row in table.select(["at_ms", *limit, *(c.column for c in kept)]).to_pylist():
            at = _seconds(row["at_ms"])
            inside = facts["start_at"] <= at < facts["end_at"]
            values = {c.name: _cell(row[c.column], c.multiply) for c in kept}
            yield {"t": f"{at:.3f}", "workload": name if inside else NO_WORKLOAD, **values} | {
                column: _cell(row[column], 1.0) for column in limit
            }


def _seconds(at: Any) -> float:
    return at.timestamp() if hasattr(at, "timestamp") else at / 1000


def _cell(value: float | None, multiply: float) -> str:
    return "" if value is None else f"{value / multiply:.8g}"


def against_parts(results: Mapping[str, Any], truth: Mapping[str, Any]) -> dict[str, Any]:
    """Each bucket of a schedule next to what its parts, each recorded alone, make of the same times."""
    found = {}
    for step in STEPS:
        audits = [results.get(name, {}).get("bucket_pct") for name in (step.name, *step.whole_of)]
        if not step.whole_of or any(a is None for a in audits):
            continue
        spent = truth[step.name]["parts"]
        shares = [spent[load]["seconds"] / truth[step.name]["seconds"] for load in step.whole_of]
        found[step.name] = {
            bucket: [pct, round(sum(s * a.get(bucket, 0.0) for s, a in zip(shares, audits[1:], strict=True)), 2)]
            for bucket, pct in audits[0].items()
        }
    return found


def info(dry: bool) -> dict[str, Any]:
    """The GPU, as record_truth.py describes it."""
    if dry:
        return {"gpu": "NVIDIA H200", "power_limit_w": 700.0, "sample_hz": HZ}
    import record_truth

    return {**record_truth.info(), "sample_hz": HZ, "recorded_with": "gpuledger record"}


def write(out: Path, facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], results: Mapping[str, Any]) -> None:
    """All that is known so far; each file is replaced whole."""
    compared = against_parts(results, facts["workloads"])
    texts = {"truth.json": facts, "results.json": {"steps": results, "whole_and_parts_pct": compared}}
    for name, content in texts.items():
        _replace(out / name, json.dumps(content, indent=1).encode())
    columns = list(dict.fromkeys(column for row in rows for column in row))
    plain = out / "samples.part"
    with gzip.open(plain, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    plain.replace(out / "samples.csv.gz")


def _replace(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seconds-factor", type=float, default=1.0, help="shorter steps, to try it out: 0.1")
    parser.add_argument("--device", default="nvml", help="as of gpuledger record")
    parser.add_argument("--dry", action="store_true", help="loads only sleep")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"info": info(args.dry), "workloads": {}}
    rows: list[dict[str, Any]] = []
    results: dict[str, Any] = {}
    runner = Runner(args.dry)
    for step in STEPS:
        if args.only and step.name not in args.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            lake = Path(folder, "lake")
            ran = measure(step, runner, lake, args.device, args.seconds_factor)
            facts["workloads"][step.name] = ran
            results[step.name] = audit(lake)
            rows += samples(lake, step.name, ran)
        write(args.out, facts, rows, results)
        short = {k: v for k, v in results[step.name].items() if k not in ("advice", "classes")}
        klass = [c["class"] for c in results[step.name].get("classes", [])]
        print(
            json.dumps({step.name: {"tflop_per_s": round(ran["tflop_per_s"], 1), "class": klass, **short}}), flush=True
        )
    print(json.dumps({"whole_and_parts_pct": against_parts(results, facts["workloads"])}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
