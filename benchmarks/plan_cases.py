"""Which memory and speed are planned for a file of cases, written down before any of them runs on a GPU?

    PYTHONPATH=src python benchmarks/plan_cases.py --cases benchmarks/model_cases_fourth.toml --out FILE.json
    PYTHONPATH=src python benchmarks/plan_cases.py --measured benchmarks/data/models_third_h200.json --out FILE.json

Every run goes through `plan fit` and `plan throughput` as a user would give it: a config.json. A run the planner has no
answer for is written down with the reason. --measured plans the runs of a results file instead, as an older commit
did: run it with PYTHONPATH at the sources of that commit. Needs torch and transformers, no GPU.
benchmarks/measured_types.py turns what lies here and what was measured into the range of types never measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from plan_runs import GPU, serves, setup_of

from gpuledger import plan
from gpuledger.errors import InputError
from gpuledger.plan.memory.facts import overheads
from gpuledger.units import Unknown


def runs_of(file: Path) -> list[dict[str, Any]]:
    """The runs of a file of cases, or of what models_on_gpu.py wrote."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        return [run for run in json.loads(text)["runs"] if "error" not in run]
    return [{**{name: case[name] for name in ("name", "split", "class", "config")}, "run": run}
            for case in tomllib.loads(text)["case"] for run in case["runs"]]  # fmt: skip


def config_json(run: dict[str, Any]) -> dict[str, Any]:
    """What transformers writes as config.json for a run; that of a measured one is in its results."""
    fields = run["config"]
    if "model_type" not in fields:  # of diffusers
        return dict(fields)
    if "params" not in run:
        import transformers

        fields = json.loads(transformers.AutoConfig.for_model(**fields).to_json_string(use_diff=True))
    return {**fields, "architectures": [run["class"]]}


def planned(run: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One run with its plans, or why there is none."""
    file = folder / run["name"] / "config.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(config_json(run)), encoding="utf-8")
    kept = ("name", "split", "class", "run", *(() if "params" in run else ("config",)))  # results hold their own
    facts = {name: run[name] for name in kept}
    try:
        fit, unit, rate = _answers(run, file)
    except InputError as error:
        return {**facts, "not_planned": str(error)}
    if fit.at_least or isinstance(rate, Unknown):
        why = [*fit.not_known.values(), *([rate.why] if isinstance(rate, Unknown) else [])]
        return {**facts, "not_planned": why[0]}
    peak = fit.total_bytes - fit.per_gpu_bytes["overhead"] + overheads().workspace_bytes.value
    return {
        **facts, "params": fit.params_total,
        **({"range_from": fit.range_from} if hasattr(fit, "range_from") else {}),  # older commits have one range
        "peak_bytes": int(peak), "total_bytes": fit.total_bytes,
        "total_low_bytes": fit.low_bytes, "total_high_bytes": fit.high_bytes,
        "unit": unit, "per_s": rate.per_s, "low_per_s": rate.low_per_s, "high_per_s": rate.high_per_s,
    }  # fmt: skip


def _answers(run: dict[str, Any], file: Path) -> tuple[Any, str, Any]:
    """The answer about memory, what is counted per second, and the rate or why it is unknown."""
    how = setup_of(run)
    fit = plan.fit(file, GPU, **how).statement
    if serves(run):
        images = plan.throughput(file, GPU, **how).statement.images
        return fit, "image", images if isinstance(images, Unknown) else images.rate
    speed = plan.throughput(file, GPU, micro_batches=run["run"].get("accumulate", 2), **how).statement.train
    return (fit, "", speed) if isinstance(speed, Unknown) else (fit, speed.unit, speed.rate)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given_runs = parser.add_mutually_exclusive_group(required=True)
    given_runs.add_argument("--cases", type=Path, nargs="+", help="files of cases")
    given_runs.add_argument("--measured", type=Path, nargs="+", help="what models_on_gpu.py wrote")
    parser.add_argument("--out", type=Path, required=True, help="where the plans go, as JSON")
    parser.add_argument("--commit", default="", help="the commit whose sources planned, where it is an older one")
    given = parser.parse_args()
    import torch
    import transformers

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for file in given.cases or given.measured:
            for run in runs_of(file):
                rows.append({"measured_in": _measured_in(file), **planned(run, Path(folder))})
                print(f"{len(rows)} {run['name']}: {_words(rows[-1])}", file=sys.stderr, flush=True)
    facts = {"version": 1, "gpu": GPU, "torch": torch.__version__, "transformers": transformers.__version__}
    facts |= {"commit": given.commit} if given.commit else {}
    given.out.write_text(json.dumps({**facts, "plans": rows}, indent=1) + "\n", encoding="utf-8")
    return 0


def _measured_in(file: Path) -> str:
    """The results of models_cases_NAME.toml go to models_NAME_h200.json."""
    if file.suffix == ".json":
        return file.name
    return f"models{file.stem.removeprefix('model_cases')}_h200.json"


def _words(row: dict[str, Any]) -> str:
    if "not_planned" in row:
        return f"not planned: {row['not_planned']}"
    low, middle, high = (row[name] / 1e9 for name in ("total_low_bytes", "total_bytes", "total_high_bytes"))
    speed = f"{row['per_s']:,.1f} ({row['low_per_s']:,.1f} to {row['high_per_s']:,.1f}) {row['unit']}s/s"
    return f"{middle:.1f} GB ({low:.1f} to {high:.1f}), {speed}"


if __name__ == "__main__":
    sys.exit(main())
