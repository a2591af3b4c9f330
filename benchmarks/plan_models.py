"""How near do the memory and speed plans come for families no formula was written for?

    PYTHONPATH=src python benchmarks/plan_models.py [--update]   print the page; write it and the figures of the guide
    PYTHONPATH=src python benchmarks/plan_models.py --check      exit with 1 where page, guide or ranges are not current
    PYTHONPATH=src python benchmarks/plan_models.py --keep       plan every measured run again (needs torch)
    PYTHONPATH=src python benchmarks/plan_models.py --calibrate  print the speed factors (needs torch)

Every run of benchmarks/data/models_*h200.json (benchmarks/models_on_gpu.py on one H200) goes through `plan fit` and
`plan throughput` as a user would give it: a config.json. --keep writes what is planned today into
benchmarks/data/models_plans.json; all else reads that file and needs no torch. Rows marked "calibrate" in
model_cases.toml set the speed factors; the errors of speed are those of the others. No factor of memory is fitted, but
the stand-ins for GPU kernels were corrected by these runs; plans made before a type was measured are listed apart.
What is traced is the installed transformers: the runs were measured with the release the file names, and a release that
writes a model differently (T5, Mamba 2) keeps different tensors.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import plan_pages
import plan_ranges
from plan_runs import GPU, PLANS, kept_plans, key, measured_runs, setup_of


def keep(only: list[str]) -> int:
    """Plan every measured run as a user would, or those of some models, and write the plans down."""
    import torch
    import transformers
    from plan_cases import planned

    plans: list[dict[str, Any]] = []
    before = {key(one["measured_in"], one): one for one in kept_plans()["plans"]} if only else {}
    with tempfile.TemporaryDirectory() as folder:
        for file, run in measured_runs():
            if only and run["name"] not in only:
                plans.append(before[key(file, run)])
                continue
            found = planned(run, Path(folder))
            if "not_planned" not in found:
                found |= _groups(Path(folder) / run["name"] / "config.json", run)
            plans.append({"measured_in": file, **{name: found[name] for name in KEPT if name in found}})
            print(f"{len(plans)} {run['name']}", file=sys.stderr, flush=True)
    facts = {"version": 1, "gpu": GPU, "torch": torch.__version__, "transformers": transformers.__version__}
    lines = ",\n".join(f"  {json.dumps(one)}" for one in plans)
    head = json.dumps(facts)[1:-1]
    PLANS.write_text(f'{{{head}, "plans": [\n{lines}\n]}}\n', encoding="utf-8")
    return 0


KEPT = ("name", "run", "peak_bytes", "total_bytes", "memory_of", "unit", "per_s", "speed_of", "speed_traced",
        "not_planned")  # fmt: skip


def _groups(file: Path, run: dict[str, Any]) -> dict[str, Any]:
    """Whose errors the ranges of this run are taken from."""
    from gpuledger import plan
    from gpuledger.plan.fitting.sources import errors_of
    from gpuledger.plan.speed.ranges import traced_errors, train_errors
    from gpuledger.plan.tracing import is_traced

    model, _, setup = plan.asked(file, GPU, **setup_of(run))
    trains = setup.mode == "train"
    errors = train_errors(model, setup) if trains else traced_errors(model)
    traced = not trains or is_traced(model, setup)
    return {"memory_of": errors_of(model, setup), "speed_of": errors.of, "speed_traced": traced}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--update", action="store_true", help="write the page, and the figures of the guide")
    action.add_argument("--check", action="store_true", help="compare page, guide and shipped ranges with the runs")
    action.add_argument("--keep", action="store_true", help="plan every measured run again and keep the plans")
    action.add_argument("--calibrate", action="store_true", help="print the factors the calibrating runs ask for")
    parser.add_argument("--only", nargs="*", default=[], help="with --keep: plan these models again, keep the others")
    given = parser.parse_args()
    if given.keep:
        return keep(given.only)
    if given.calibrate:
        from plan_factors import calibrate

        print("\n".join(calibrate()))
        return 0
    if given.check:
        problems = [*plan_ranges.problems(), *plan_pages.problems()]
        print("\n".join(problems), file=sys.stderr)
        return 1 if problems else 0
    if given.update:
        plan_pages.update()
        return 0
    print(plan_pages.page(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
