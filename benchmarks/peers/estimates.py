"""How near do `accelerate estimate-memory` and `gpuledger plan fit` come to what training took on a real GPU?

Only runs that corrected nothing in our planner (`plan_models.py` says which). accelerate looks its models up on the
Hugging Face Hub; here its own functions get the same configuration from a folder, and everything after that is theirs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from installed import version_of
from plan_runs import GPU, measured_files, setup_of

from gpuledger import plan
from gpuledger.errors import InputError

CHECKING = ("fresh", "last", "confirm")
ROWS = ("float32", "float16")  # the rows of accelerate's table that have a figure for training
METHODS = {
    "gpuledger": "`gpuledger plan fit`",
    "float32": "accelerate, `Training using Adam`, float32 row",
    "float16": "accelerate, `Training using Adam`, float16 row",
}

LIMITS = (
    "accelerate adds up weights, gradients and Adam's states of the base model. It takes no batch size and no sequence",
    "length, so activations are missing: read its figure as a floor. In return a model's name is all it needs, and it",
    "downloads the configuration; `plan fit` needs a configuration or a name of its catalog, and the batch.",
)


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Planned over taken by run, for each."""
    files = [json.loads(file.read_text(encoding="utf-8")) for file in measured_files()]
    runs = [r for file in files for r in file["runs"] if r["split"] in CHECKING and "error" not in r]
    found: dict[str, Any] = {"device": files[0]["device"], "rows": [], "failed": []}
    here = found["accelerate"] = version_of("accelerate", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        for run in runs[: asked.runs]:
            file = Path(folder) / run["name"] / "config.json"
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps({**run["config"], "architectures": [run["class"]]}), encoding="utf-8")
            taken = run["peak_reserved_bytes"] + run["outside_torch_bytes"]
            row = {"name": run["name"], "run": run["run"], "taken_gb": taken / 1e9}
            try:
                row["gpuledger"] = plan.fit(file, GPU, **setup_of(run)).statement.total_bytes / taken
                row |= {name: size / taken for name, size in theirs(file.parent).items()} if here else {}
            except (InputError, OSError, ValueError, KeyError, RuntimeError) as error:
                found["failed"].append(f"{run['name']}: {type(error).__name__}: {str(error).splitlines()[0]}")
                continue
            found["rows"].append(row)
    return found


def theirs(folder: Path) -> dict[str, int]:
    """Bytes of training by row of accelerate's table, as its command makes them."""
    from accelerate.commands import estimate

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    asked = SimpleNamespace(model_name=str(folder), library_name="transformers", trust_remote_code=False, dtypes=ROWS)
    looked_up, estimate.verify_on_hub = estimate.verify_on_hub, lambda *_: SimpleNamespace(config=config)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return {row[0]: max(row[3].values()) for row in estimate.gather_data(asked)}
    finally:
        estimate.verify_on_hub = looked_up


def lines(found: dict[str, Any]) -> list[str]:
    """Median and worst error of each."""
    rows = found["rows"]
    models = len({row["name"] for row in rows})
    out = [
        f"Training steps of {models} models ({len(rows)} runs) on one {found['device']}: memory planned against memory",
        "taken, with what lies outside torch. Our estimate was fitted to none of these runs.",
        "",
    ]
    if not found["accelerate"]:
        out += ["Not installed, so not compared: accelerate.", ""]
    out += ["| estimate | median error | worst error | too low by over 10 % |", "|---|---:|---|---:|"]
    for method, words in METHODS.items():
        ratios = [row[method] for row in rows if method in row]
        if ratios:
            errors = [100 * abs(ratio - 1) for ratio in ratios]
            worst = max((row for row in rows if method in row), key=lambda row: abs(row[method] - 1))
            low = sum(ratio < 0.9 for ratio in ratios)
            cells = (
                f"{statistics.median(errors):.1f} % | {max(errors):.0f} % ({worst['name']}) | {low} of {len(ratios)}"
            )
            out.append(f"| {words} | {cells} |")
    out += ["", *LIMITS]
    if found["failed"]:
        out += ["", f"Left out ({len(found['failed'])}): {'; '.join(found['failed'])}."]
    return out
