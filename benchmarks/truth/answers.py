"""What does each method say about each workload of a recording: gpuledger, the field's formulas, any other tool?

An answer of a tool that is not gpuledger comes from a file: {"RECORDING": {"WORKLOAD": {"tflops", "low_tflops",
"high_tflops", "class"}}}.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from front_door import ask, take_in

from recording import BadRecording, Recording, Row, Track, write_telemetry

PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float64": "fp64"}
# Matrix products in fp64 run on the tensor cores, where there are any.
TENSOR_PEAK = {"fp64": "fp64_tensor"}


@dataclass(frozen=True)
class Answer:
    """Realized TFLOP/s with the precision known, the range without it, and the class. None: no answer.

    `told_low_tflops` and `told_high_tflops`: the range with the precision known.
    """

    tflops: float | None
    low_tflops: float | None = None
    high_tflops: float | None = None
    klass: str | None = None
    bucket_pct: Mapping[str, float] | None = None
    told_low_tflops: float | None = None
    told_high_tflops: float | None = None


def precision_of(facts: Mapping[str, Any]) -> str | None:
    """The precision by its short name."""
    given = facts.get("precision")
    return PRECISIONS.get(given, given) if given else None


def by_gpuledger(recording: Recording) -> dict[str, Answer]:
    """Import, `analyze --json` and `audit --json`, once with the precision as a label and once without."""
    known, unknown = (_asked(recording, labels) for labels in (True, False))
    found = {}
    for name in recorded(recording):
        point, spread = known[name], unknown[name]
        ends = spread["low"], spread["high"]
        told = point["low"], point["high"]
        found[name] = Answer(point["middle"], *ends, point["class"], point["bucket_pct"], *told)
    return found


def recorded(recording: Recording) -> list[str]:
    """The workloads that have both a truth and rows."""
    return [name for name in recording.facts if recording.rows.get(name)]


def tracks(recording: Recording, labels: bool) -> list[Track]:
    """One device and one owner per workload."""
    return [
        Track(
            workload=name,
            uuid=f"GPU-{number:04d}",
            rows=recording.settled(name),
            precision=recording.facts[name].get("precision") if labels else None,
            model=recording.info["gpu"],
        )
        for number, name in enumerate(recorded(recording))
    ]


def _asked(recording: Recording, labels: bool) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        lake, telemetry, played = Path(folder, "lake"), Path(folder, "telemetry.csv"), tracks(recording, labels)
        write_telemetry(telemetry, played)
        take_in(lake, telemetry)
        analysis = ask("analyze", "--lake", str(lake))
        audit = ask("audit", "--lake", str(lake), "--price", "1")
    capacity = next(m for m in analysis["capacity"]["by_model"] if m["name"] == recording.info["gpu"])
    peak = capacity["peak_tflops"] / capacity["gpus"]
    per_gpu = {row["gpu_uuid"]: row for row in analysis["per_gpu"]}
    classes = {row["workload"]: row["class"] for row in audit["behaviours"]}
    buckets = {row["gpu_uuid"]: row["bucket_pct"] for row in audit["by_gpu"]}
    found = {}
    for track in played:
        rfu = per_gpu[track.uuid]["means"]["rfu_counters_pct"] or {}
        ends = {end: None if rfu.get(end) is None else rfu[end] / 100 * peak for end in ("low", "middle", "high")}
        found[track.workload] = {**ends, "class": classes.get(track.workload), "bucket_pct": buckets.get(track.uuid)}
    return found


def by_formula(recording: Recording) -> dict[str, dict[str, Answer]]:
    """The field's formulas by name. Each gets the dense peak of the precision that ran, as gpuledger gets its label."""
    peaks = {k: v["value"] for k, v in ask("catalog", "gpu", recording.info["gpu"])["peak_tflops"].items()}

    def peak(name: str) -> float:
        precision = precision_of(recording.facts[name]) or "bf16"
        return peaks[TENSOR_PEAK.get(precision, precision)]

    formulas: dict[str, Callable[[list[Row]], float | None]] = {
        "utilization x peak": lambda rows: _mean(rows, "gpu_util", 100.0),
        "power / limit x peak": lambda rows: _mean(rows, "power_w", recording.info["power_limit_w"]),
        "SM active x peak": lambda rows: _mean(rows, "sm_active", 100.0),
        "tensor active x peak": lambda rows: _mean(rows, "tensor_active", 100.0),
    }
    return {
        title: {
            name: Answer(None if (share := formula(recording.settled(name))) is None else share * peak(name))
            for name in recorded(recording)
        }
        for title, formula in formulas.items()
    }


def _mean(rows: list[Row], column: str, whole: float) -> float | None:
    known = [row[column] for row in rows if column in row]
    return fmean(known) / whole if known else None


def by_file(path: Path, recording: Recording) -> dict[str, Answer]:
    """Another tool's answers."""
    try:
        given = json.loads(path.read_text(encoding="utf-8")).get(recording.name, {})
        rows = {name: given.get(name) or {} for name in recorded(recording)}
        return {
            name: Answer(row.get("tflops"), row.get("low_tflops"), row.get("high_tflops"), row.get("class"))
            for name, row in rows.items()
        }
    except (OSError, ValueError, AttributeError) as error:
        raise BadRecording(f"{path}: not a file of answers ({error}); README.md has the format") from error
