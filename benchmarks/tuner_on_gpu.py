"""Does the tuner find what an exhaustive grid finds, and what does it make of a naive loop? On a real GPU, with torch.

    python benchmarks/tuner_on_gpu.py --out training.json

Results are written after each part, so that a run cut short keeps what it had. Parts: worked (the naive loop), the
three jobs of examples/tuning_jobs.py against their grids, idle (waiting for data, before and after), claims.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch

from gpuledger.cost.pricing import PriceChoice, price_for
from gpuledger.training.job import TrainingJob
from gpuledger.training.tune import grid
from gpuledger.training.tune.choices import Plan, load_plan
from gpuledger.training.tune.encode import figures
from gpuledger.training.tune.ladder import TrialFailed
from gpuledger.training.tune.machine import TorchMachine
from gpuledger.training.tune.tuner import tune

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
import naive_training  # noqa: E402
import training_claims  # noqa: E402
import tuning_jobs  # noqa: E402

PLAN_FILE = HERE / "tuner_plans.toml"
MIN_LEFT_S = 20
# The four steps of the published case, and the two that go with them.
WORKED_AXES = ("precision", "loader", "batch", "logging", "compile", "fused")


class JobPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which axes a grid can afford, and which choices of them."""

    axes: tuple[str, ...]
    choices: tuple[str, ...] = ()
    parts: tuple[int, ...] = ()

    def of(self, plan: Plan) -> Plan:
        """The plan cut down to these."""
        kept = []
        for axis in plan.only(self.axes).axes:
            choices = tuple(c for c in axis.choices if not self.choices or c.name in self.choices)
            parts = self.parts if axis.parts and self.parts else axis.parts
            kept.append(msgspec.structs.replace(axis, choices=choices, parts=parts))
        return msgspec.structs.replace(plan, axes=tuple(kept))


class Log:
    """Words with the seconds since the beginning."""

    def __init__(self) -> None:
        self.begun = time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self.begun

    def __call__(self, words: str) -> None:
        print(f"{self.seconds():7.1f} s  {words}", flush=True)


def market(device: str) -> Any:
    """What the market asks for this GPU."""
    return price_for(device, PriceChoice())


def worked(plan: Plan, cap_s: float, say: Log) -> dict[str, Any]:
    """The naive loop, tuned."""
    found = tune(naive_training.job, plan.only(WORKED_AXES), budget_s=cap_s - 25, price=market, say=say)
    return figures(found)


def against_grid(job: TrainingJob, plan: Plan, cap_s: float, say: Log) -> dict[str, Any]:
    """The tuner unaided, then every combination of the same choices."""
    begun = say.seconds()
    found = tune(job, plan, budget_s=cap_s / 2, say=say)
    machine = TorchMachine(job, 2)
    short = msgspec.structs.replace(plan, window_s=plan.window_s / 2)
    all_of = grid.measure(machine, short, found.climb.start, found.climb.winner, say.seconds, begun + cap_s, say)
    over = all_of.winner_over_best
    return {
        "tuning": figures(found),
        "grid": {
            "points": [msgspec.to_builtins(p) for p in all_of.points],
            "possible": all_of.possible,
            "whole": all_of.whole,
            "best": msgspec.to_builtins(all_of.best),
            "best_samples_per_s": all_of.best_per_s,
            "winner_samples_per_s": all_of.winner_per_s,
            "winner_over_best": over.ratio,
            "winner_over_best_low": over.low,
            "winner_over_best_high": over.high,
        },
    }


def idle(say: Log) -> dict[str, Any]:
    """How much of the time a loop waits for its data: the same loop on real files and on one batch kept ready."""
    job, out = naive_training.job, {}
    machine = TorchMachine(job, 1)

    class Ready:
        """The first item again and again: loading costs next to nothing."""

        def __init__(self) -> None:
            self._item = machine.dataset()[0]

        def __len__(self) -> int:
            return len(machine.dataset())

        def __getitem__(self, _: int) -> Any:
            return self._item

    made: dict[int, Any] = {}

    def kept(items: list[Any]) -> Any:
        """One batch, put together once."""
        if len(items) not in made:
            batch = torch.utils.data.default_collate(items)
            made[len(items)] = [part.pin_memory() for part in batch] if training_claims.ON_GPU else batch
        return made[len(items)]

    ready = TorchMachine(replace(job, dataset=Ready, collate=kept), 1)
    many = {"workers": 8, "pin": training_claims.ON_GPU, "prefetch": 4}
    for name, changes in (("0 workers", {}), ("8 workers", many if machine.means.cores >= 8 else {"workers": 1})):
        batch = 64 if training_claims.ON_GPU else 4
        settings = job.settings.having({"precision": "bf16", "logging": "async", "batch": batch, **changes})
        say(f"idle: {name}")
        with_files, without = machine.open(settings), ready.open(settings.having({"workers": 0}))
        pairs = [(with_files.window(0.5), without.window(0.5)) for _ in range(3)]
        shares = [100 * (1 - real / fed) for real, fed in pairs]
        ends = {"idle_low_pct": min(shares), "idle_high_pct": max(shares)}
        out[name] = {"idle_pct": sorted(shares)[1], **ends, "samples_per_s": pairs[1][0]}
        with_files.close()
        without.close()
    return out


def main() -> None:
    """Run the parts asked for, within the time there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("training.json"))
    parser.add_argument("--parts", default="worked,language_model,images,tuned,claims,idle")
    parser.add_argument("--seconds", type=float, default=460, help="for all parts together")
    parser.add_argument("--window", type=float, default=None, help="seconds of one window")
    args = parser.parse_args()
    say, plan = Log(), load_plan()
    if args.window:
        plan = msgspec.structs.replace(plan, window_s=args.window)
    plans = msgspec.toml.decode(PLAN_FILE.read_bytes(), type=dict[str, JobPlan])
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    results["made_with"] = {
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "command": " ".join(["python", "benchmarks/tuner_on_gpu.py", *(Path(word).name for word in sys.argv[1:])]),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    caps = {"worked": 200.0, "language_model": 150.0, "tuned": 90.0, "images": 120.0}
    for part in args.parts.split(","):
        left = args.seconds - say.seconds()
        if left < MIN_LEFT_S:
            say(f"{part}: no time left")
            continue
        say(f"== {part}")
        begun, cap_s = say.seconds(), min(caps.get(part, 60.0), left)
        try:
            if part == "worked":
                results[part] = worked(plan, cap_s - 10, say)
            elif part == "idle":
                results[part] = idle(say)
            elif part == "claims":
                _claims(results.setdefault(part, {}), args, results, say)
            else:
                results[part] = against_grid(getattr(tuning_jobs, part), plans[part].of(plan), cap_s - 10, say)
        except (Exception, TrialFailed):  # noqa: BLE001 - the other parts still count
            results.setdefault("failed", {})[part] = traceback.format_exc()
            say(traceback.format_exc())
        results.setdefault("spent_s", {})[part] = say.seconds() - begun
        args.out.write_text(json.dumps(results, indent=1, default=str))
    say("done")


def _claims(into: dict[str, Any], args: argparse.Namespace, results: dict[str, Any], say: Log) -> None:
    for name, claim in training_claims.CLAIMS.items():
        if args.seconds - say.seconds() < MIN_LEFT_S / 2:
            say(f"claims: no time left for {name}")
            return
        say(f"claims: {name}")
        try:
            into[name] = claim()
        except Exception:  # noqa: BLE001 - the other claims still count
            results.setdefault("failed", {})[f"claims.{name}"] = traceback.format_exc()
            say(traceback.format_exc())
        args.out.write_text(json.dumps(results, indent=1, default=str))


if __name__ == "__main__":
    main()
