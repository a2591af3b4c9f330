"""Which types of models were measured on a GPU, and how wide is the range of a type that was not?

    PYTHONPATH=src python benchmarks/measured_types.py            write src/gpuledger/plan/data/measured_types.toml
    PYTHONPATH=src python benchmarks/measured_types.py --check    exit with 1 where that file is not up to date

Types are those of all runs in benchmarks/data/models_*_h200.json. The range is set by first plans: those of
benchmarks/data/models_*_planned.json, made before any run of their type had been measured (plan_cases.py), over what
was measured then. The rules:

- Speed: from the outermost of n first plans to the other. The next one lies outside with a chance of 2 in n + 1.
- Memory, where every run must lie inside: planned over taken is assumed to fall off as a power beyond the outer tenth,
  so its logarithm, the error, falls off exponentially. The rate is the slowest that the outer errors allow with a
  confidence of SURE, and the range ends where one in BEYOND lies outside. Both directions are pooled, because what
  counts too much for one type counts too little for the next, and half a gigabyte of the allocator's gaps does not
  count as an error. A power of the error itself fits no better and is unstable: its end moved from 1.27 to 1.47 when 27
  nearer plans joined, and lies between 1.26 and 44 by how much of the outer part is taken.

Neither torch nor a GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scipy.stats import chi2

from gpuledger.plan.memory.facts import overheads

HERE = Path(__file__).parent
OUT = HERE.parent / "src" / "gpuledger" / "plan" / "data" / "measured_types.toml"
BEYOND, SURE = 500, 0.95
TAIL_SHARE, LEAST_ROWS = 0.1, 20
HEAD = """\
# Which types of models were measured on a GPU, and how far off were first plans of types not measured until then?
# Made by benchmarks/measured_types.py from benchmarks/data: do not edit.
version = 1
"""


def load(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def measured_runs(data: Path) -> dict[str, list[dict[str, Any]]]:
    """All runs that ended well, by file."""
    files = sorted(data.glob("models_*h200.json"))
    return {file.name: [run for run in load(file)["runs"] if "error" not in run] for file in files}


def type_of(config: dict[str, Any]) -> str:
    """The `model_type` of a configuration, or the class of a model of diffusers."""
    return str(config.get("model_type") or config["_class_name"])


def first_plans(data: Path, runs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Plans written down before, each with the run that followed; those without a run are left out."""
    rows = []
    for plan in (plan for file in sorted(data.glob("models_*_planned.json")) for plan in load(file)["plans"]):
        same = [run for run in runs.get(plan["measured_in"], ())
                if (run["name"], run["run"]) == (plan["name"], plan["run"])]  # fmt: skip
        if not same or "not_planned" in plan:
            continue
        per_s = same[0]["samples_per_s"] * (same[0]["run"].get("sequence", 1) if plan["unit"] == "token" else 1)
        taken = same[0]["peak_reserved_bytes"] + same[0]["outside_torch_bytes"]
        rows.append({
            "name": plan["name"], "split": plan["split"], "run": same[0],
            "type": type_of(same[0]["config"]), "unit": plan["unit"],
            "planned": plan["total_bytes"], "taken": taken,
            "in_range": plan["total_low_bytes"] <= taken <= plan["total_high_bytes"],
            "peak_ratio": plan["peak_bytes"] / same[0]["peak_allocated_bytes"],
            "speed_ratio": plan["per_s"] / per_s,
            "speed_in_range": plan["low_per_s"] <= per_s <= plan["high_per_s"],
        })  # fmt: skip
    return rows


def tail(errors: Iterable[float]) -> float:
    """The error that at most one in BEYOND exceeds, with the outer tenth falling off exponentially."""
    ordered = sorted(errors, reverse=True)
    if len(ordered) < LEAST_ROWS:
        raise SystemExit(f"{len(ordered)} first plans are too few for a range: {LEAST_ROWS} are needed")
    outer = round(TAIL_SHARE * len(ordered))
    start = ordered[outer]
    excess = statistics.fmean(error - start for error in ordered[:outer])
    largest = excess * 2 * outer / chi2.ppf(1 - SURE, 2 * outer)  # the sum of exponential excesses is a gamma variate
    return float(start + largest * math.log(outer / len(ordered) * BEYOND))


def memory(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The range of memory: either direction, with half a gigabyte of the allocator's gaps apart."""
    gaps = overheads().error.traced.gaps_bytes
    ratios = [row["planned"] / row["taken"] for row in rows]
    errors = [max(math.log(row["planned"] / row["taken"]), -math.log(row["planned"] / (row["taken"] - gaps)), 0.0)
              for row in rows]  # fmt: skip
    wide = math.exp(tail(errors))
    return {
        "words": "first plans of {models} types, made before any of their runs on a GPU, were {least} to {most} of "
        f"what was taken (one H200); the range is wider, for at most one in {BEYOND} to lie outside",
        "rows": len(rows), "models": len({row["type"] for row in rows}), "least": min(ratios), "most": max(ratios),
        **_cuts(1 / wide, statistics.median(ratios), wide), "gaps_bytes": gaps,
        "source": "benchmarks/models_on_gpu.py, plan_cases.py and measured_types.py", "as_of": "2026-11",
    }  # fmt: skip


def speed(of: str, ratios: list[float]) -> dict[str, Any]:
    """The range of speed: the outermost."""
    return {"of": of, "rows": len(ratios), **_cuts(min(ratios), statistics.median(ratios), max(ratios))}


def _cuts(low: float, middle: float, high: float) -> dict[str, float]:
    """Rounded outward, so that the outermost stay inside."""
    return {"p10": math.floor(1000 * low) / 1000, "p50": middle, "p90": math.ceil(1000 * high) / 1000}


def written(data: Path) -> str:
    """The file as it must be for this data."""
    runs = measured_runs(data)
    rows = first_plans(data, runs)
    types = sorted({type_of(run["config"]) for found in runs.values() for run in found})
    groups = {"all": [row["speed_ratio"] for row in rows if row["unit"] == "token"],
              "images_or_sound": [row["speed_ratio"] for row in rows if row["unit"] != "token"]}  # fmt: skip
    lines = [HEAD + "types = [", *(f"    {_value(name)}," for name in types), "]", "", "[first.memory]"]
    lines += [f"{name} = {_value(value)}" for name, value in memory(rows).items()]
    for of, ratios in groups.items():
        lines += ["", "[[first.speed]]", *(f"{name} = {_value(value)}" for name, value in speed(of, ratios).items())]
    return "\n".join(lines) + "\n"


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    return f"{value:.3f}" if isinstance(value, float) else f"{value:_}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="the folder of runs and plans")
    given = parser.parse_args()
    text = written(given.data)
    if not given.check:
        OUT.write_text(text, encoding="utf-8")
        return 0
    if OUT.read_text(encoding="utf-8") == text:
        return 0
    print(f"{OUT.name} is not what the data says: run python benchmarks/measured_types.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
