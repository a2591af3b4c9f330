"""How long do the analyses of a file take with gpuledger, pandas, Polars, DuckDB and Spark, in one run?"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from installed import version_of

BENCHMARKS = Path(__file__).resolve().parents[1]
NAMES = ("analyze", "pandas", "polars", "duckdb", "spark")
SHOWN = {"analyze": "gpuledger analyze", "pandas": "pandas", "polars": "Polars", "duckdb": "DuckDB", "spark": "Spark"}


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Rows of `benchmarks/files.py` by size; a package that is not installed is named."""
    there = {name: version_of({"spark": "pyspark"}.get(name, name), asked.peers) for name in NAMES[1:]}
    command = [sys.executable, str(BENCHMARKS / "files.py"), "--json", "--repeat", str(asked.repeat)]
    command += ["--gpus", *map(str, asked.gpus), "--only", *(n for n in NAMES if n == "analyze" or there[n])]
    for name in ("polars", "spark"):
        command += [f"--{name}", asked.peers] if there[name] else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[1]} failed with {done.returncode}; what it says is above")
    return {"rows": json.loads(done.stdout), "versions": there, "rounds": asked.repeat, "cores": _cores()}


def lines(found: dict[str, Any]) -> list[str]:
    """Seconds, CPU seconds and memory by size."""
    missing = [SHOWN[name] for name, version in found["versions"].items() if not version]
    said = ", ".join(f"{SHOWN[name]} {version}" for name, version in found["versions"].items() if version)
    rounds = f"{found['rounds']} alternating round{'s' if found['rounds'] > 1 else ''}"
    out = [
        "From a Parquet file of a week to the same figures: headline, per GPU, hour, model and namespace, bands, idle",
        "spells. Each tool runs in a process of its own, from its start to its end. What they have in common agrees to",
        f"1 in 1,000,000. {found['cores']} cores, medians of {rounds} (Spark: one).",
        f"{said}.",
        "",
    ]
    out += [f"Not installed, so not compared: {', '.join(missing)}.", ""] if missing else []
    out += [
        "| samples | tool | seconds | CPU seconds | peak MiB | CPU, x gpuledger |",
        "|---:|---|---:|---:|---:|---:|",
    ]
    for row in found["rows"]:
        ours = row["cpu_s"]["analyze"]
        for name in (n for n in NAMES if n in row["seconds"]):
            cells = (f"{row['seconds'][name]:.1f}", f"{row['cpu_s'][name]:.1f}", f"{row['peak_mib'][name]:,}")
            out.append(f"| {row['rows']:,} | {SHOWN[name]} | {' | '.join(cells)} | {row['cpu_s'][name] / ours:.2f} |")
    return [*out, "", *_sentences(found["rows"])]


def _sentences(rows: list[dict[str, Any]]) -> list[str]:
    """Which took less time or CPU than gpuledger at which size, and what the figures leave out."""
    out = []
    for row in rows:
        for words, of in (("Sooner done than gpuledger", "seconds"), ("Less CPU than gpuledger", "cpu_s")):
            took, ours = row[of], row[of]["analyze"]
            less = [f"{SHOWN[name]} ({took[name] / ours:.2f}x)" for name in NAMES[1:] if took.get(name, ours) < ours]
            out.append(f"{words} at {row['rows']:,} samples: {', '.join(less) or 'none of them'}.")
    first, last = rows[0], rows[-1]
    if first is not last and "spark" in first["cpu_s"]:
        more, grown = last["cpu_s"]["spark"] / first["cpu_s"]["spark"], last["rows"] / first["rows"]
        out.append(f"With {grown:.0f} times the samples Spark took {more:.1f} times the CPU; it is made for clusters.")
    return [
        *out,
        "The scripts compute only the figures named here; the statement also has memory, energy, activity counters and",
        "the evidence behind each figure.",
    ]


def _cores() -> int:
    return len(os.sched_getaffinity(0))
