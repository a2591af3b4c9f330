"""Which measurement of a part counts, where several runs of tuner_on_gpu.py measured it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

JOBS = ("language_model", "images", "tuned")
PARTS = ("worked", *JOBS, "claims", "idle")
GPU = "H200"
Results = dict[str, Any]


def read(file: Path) -> Results:
    """What one run wrote, on the GPU these pages are about; or what was kept of several."""
    try:
        found: Results = json.loads(file.read_text(encoding="utf-8"))
        gpus = {run["gpu"] for run in made_by(found, [])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SystemExit(f"{file}: not what benchmarks/tuner_on_gpu.py writes ({error!r})") from error
    if other := [gpu for gpu in gpus if GPU not in gpu]:
        raise SystemExit(f"{file} was measured on {', '.join(other)}; these pages are about the {GPU}")
    return found


def made_by(found: Results, parts: list[str]) -> list[Results]:
    """The runs behind a file: one, or those that kept results were joined from."""
    if "runs" in found:
        return [{**run, "parts": [part for part in run["parts"] if part in parts]} for run in found["runs"]]
    return [{**found["made_with"], "parts": parts}]


def whole(found: Results, part: str) -> bool:
    """Whether a part was measured to its end: not cut short, its grid complete, start and winner compared."""
    if part not in found or part in found.get("unfinished", {}):
        return False
    if part in JOBS:
        grid = found[part].get("grid") or {}
        return bool(grid.get("whole")) and grid.get("winner_over_best") is not None
    return part != "worked" or bool(found[part]["total"])


def joined(files: list[Results]) -> Results:
    """The results of several runs; a part that was run again counts as in the last of them that finished it."""
    out: Results = {"unfinished": {}}
    runs: list[Results] = []
    for found in files:
        parts = [part for part in PARTS if part in found and (whole(found, part) or not whole(out, part))]
        for run in runs:
            run["parts"] = [part for part in run["parts"] if part not in parts]
        runs += made_by(found, parts)
        out |= {part: found[part] for part in parts}
        cut = {part: why for part, why in out["unfinished"].items() if part not in parts}
        out["unfinished"] = cut | {part: why for part, why in found.get("unfinished", {}).items() if part in parts}
    return out | {"runs": [run for run in runs if run["parts"]]}
