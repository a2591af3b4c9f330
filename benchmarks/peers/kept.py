"""What do runs that need a GPU or half an hour show? Their kept results: recorders on an H200, growth of a lake."""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from recorder_on_gpu import tools

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
RECORDERS, GROWTH = RESULTS / "recorders_h200.json", RESULTS / "scale.json"
STEP_PCT = 0.05  # a tick of the CPU clock in one turn of 20 s


def recorders(_: argparse.Namespace) -> dict[str, Any]:
    """What `recorder_on_gpu.py` kept."""
    return {"pct": json.loads(RECORDERS.read_text(encoding="utf-8"))} if RECORDERS.is_file() else {}


def recorder_lines(found: dict[str, Any]) -> list[str]:
    """A line per tool, and what it keeps."""
    again = "`python benchmarks/peers/recorder_on_gpu.py --out docs/results/recorders_h200.json` on a GPU"
    if not found:
        return [f"Not measured yet: run {again}."]
    pct = {name: statistics.median(turns) for name, turns in found["pct"].items()}
    least = min(len(turns) for turns in found["pct"].values())
    runs = f"{least} run{'s' if least > 1 else ''} of 20 s"
    out = [
        "One NVIDIA H200 kept busy by matrix products; one reading per second unless the name says otherwise.",
        f"{runs} per tool after its start-up: figures come in steps of {STEP_PCT} %.",
        f"Measured once and kept; to measure again, run {again}.",
        "",
        "| tool | % of a core | what it keeps |",
        "|---|---:|---|",
    ]
    for name, (_, _, keeps) in tools(Path(tempfile.gettempdir())).items():
        out.append(f"| {name} | {_pct(pct.get(name))} | {keeps} |")
    ours = pct["gpuledger record, 1 Hz"]
    less = [name for name, value in pct.items() if value < ours]
    return [
        *out,
        "",
        f"Cheaper than `gpuledger record` at the same rate: {', '.join(less)}.",
        "As run here they keep no samples on disk; `nvidia-smi` prints text.",
    ]


def _pct(value: float | None) -> str:
    if value is None:
        return "not installed"
    return f"{value:.2f}" if value >= STEP_PCT / 2 else f"under {STEP_PCT}"


def growth(_: argparse.Namespace) -> dict[str, Any]:
    """What `scale.py` kept."""
    return {"weeks": json.loads(GROWTH.read_text(encoding="utf-8"))} if GROWTH.is_file() else {}


def growth_lines(found: dict[str, Any]) -> list[str]:
    """The first week next to the last."""
    if not found:
        return ["Not measured yet: run `make bench-scale`."]
    weeks = found["weeks"]
    first, last, rows = weeks[0], weeks[-1], sum(week["rows"] for week in weeks)
    peak = max(week[name]["peak_mib"] for week in weeks for name in ("import", "post", "analyze", "analyze_week"))
    took = [f"{week['import']['seconds'] + week['post']['seconds']:.0f} s" for week in (first, last)]
    whole, recent = (
        [f"{week[name]['seconds']:.1f} s" for week in (first, last)] for name in ("analyze", "analyze_week")
    )
    return [
        f"{len(weeks)} weeks of {first['rows']:,} samples, {rows:,} in all, in one lake, within {peak:,.0f} MiB.",
        "",
        "| `gpuledger` | first week | last week |",
        "|---|---:|---:|",
        f"| import and post what is new | {took[0]} | {took[1]} |",
        f"| statement of all samples so far, nothing new | {whole[0]} | {whole[1]} |",
        f"| statement of the last 7 days | {recent[0]} | {recent[1]} |",
        "",
        "Measured once and kept; details: [Scale](../scale.md). The other tools were not run at this size: their",
        "scripts above read every sample again each time.",
    ]
