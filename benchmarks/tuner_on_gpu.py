"""Does the tuner find what an exhaustive grid finds, and what does it make of a naive loop? On a real GPU, with torch.

    python benchmarks/tuner_on_gpu.py --out training.json

Results are written after each step, grid point and claim; SIGTERM, SIGINT and the time limit end it with what it has
(`unfinished` names the parts that are not whole). Parts: worked (the naive loop), the three jobs of
examples/tuning_jobs.py against their grids, idle (waiting for data, before and after), claims.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import torch

from gpuledger.cost.pricing import PriceChoice, price_for
from gpuledger.training.job import TrainingJob
from gpuledger.training.tune.choices import Plan, load_plan
from gpuledger.training.tune.machine import TorchMachine
from gpuledger.training.tune.trials import TrialFailed
from gpuledger.training.tune.tuner import figures, tune

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
import naive_training  # noqa: E402
import training_claims  # noqa: E402
import tuner_grid as grid  # noqa: E402
import tuning_jobs  # noqa: E402
from kept_results import Ended, Results, ending  # noqa: E402

PLAN_FILE = HERE / "tuner_plans.toml"
MIN_LEFT_S = 20
# Of each part, for what cannot be interrupted: a model that is being built, a pair that is under way.
MARGIN_S = 10
CAPS_S = {"worked": 300.0, "language_model": 240.0, "tuned": 250.0, "images": 560.0}
# Of a part, for the tuner; the rest is for the grid.
TUNER_RATIO = 0.6
PARTS = ("worked", "language_model", "images", "tuned", "claims", "idle")
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


Keep = Callable[[Any], None]


def worked(plan: Plan, cap_s: float, say: Log, keep: Keep) -> dict[str, Any]:
    """The naive loop, tuned."""

    def watch(found: Any) -> None:
        keep(figures(found))

    return figures(tune(naive_training.job, plan.only(WORKED_AXES), budget_s=cap_s, price=market, say=say, watch=watch))


def against_grid(job: TrainingJob, plan: Plan, cap_s: float, say: Log, keep: Keep) -> dict[str, Any]:
    """The tuner unaided, then every combination of the same choices."""
    begun = say.seconds()
    found = tune(
        job, plan, budget_s=cap_s * TUNER_RATIO, say=say, watch=lambda so_far: keep({"tuning": figures(so_far)})
    )
    told = {"tuning": figures(found)}
    keep(told)
    machine = TorchMachine(job, 2)
    short = msgspec.structs.replace(plan, window_s=plan.window_s / 2)

    def watch(points: tuple[grid.Point, ...], possible: int) -> None:
        keep(told | {"grid": _points(points, possible)})

    start, winner = found.climb.start, found.climb.winner
    all_of = grid.measure(machine, short, start, winner, say.seconds, begun + cap_s, say, watch)
    over = all_of.winner_over_best
    return told | {
        "grid": _points(all_of.points, all_of.possible)
        | {
            "best": msgspec.to_builtins(all_of.best),
            "best_samples_per_s": all_of.best_per_s,
            "winner_samples_per_s": all_of.winner_per_s,
            "winner_over_best": over.ratio,
            "winner_over_best_low": over.low,
            "winner_over_best_high": over.high,
        },
    }


def _points(points: tuple[grid.Point, ...], possible: int) -> dict[str, Any]:
    listed = [msgspec.to_builtins(point) for point in points]
    return {"points": listed, "possible": possible, "whole": len(points) == possible, "winner_over_best": None}


def idle(say: Log, keep: Keep) -> dict[str, Any]:
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
        keep(out)
    return out


def claims(results: Results, args: argparse.Namespace, say: Log, keep: Keep) -> dict[str, Any]:
    """One claim after the other; one that fails does not stop the rest."""
    out: dict[str, Any] = {}
    for name, claim in training_claims.CLAIMS.items():
        if args.seconds - say.seconds() < MIN_LEFT_S / 2:
            raise Ended(f"no time was left for {name}")
        say(f"claims: {name}")
        try:
            out[name] = claim()
        except Exception:  # noqa: BLE001 - the other claims still count
            results.setdefault("failed", {})[f"claims.{name}"] = traceback.format_exc()
            say(traceback.format_exc())
        keep(out)
    return out


def measure_all(args: argparse.Namespace, results: Results, plan: Plan, say: Log) -> None:
    """The parts asked for, within the time there is."""
    plans = msgspec.toml.decode(PLAN_FILE.read_bytes(), type=dict[str, JobPlan])
    caps = CAPS_S | dict(args.cap)
    for part in args.parts.split(","):
        left = args.seconds - say.seconds()
        if left < MIN_LEFT_S:
            say(f"{part}: no time left")
            continue
        say(f"== {part}")
        begun, cap_s = say.seconds(), min(caps.get(part, 60.0), left) - MARGIN_S

        def keep(found: Any, part: str = part) -> None:
            results.keep(part, found, cut_short="the run ended in the middle of it")

        try:
            if part == "worked":
                found = worked(plan, cap_s, say, keep)
            elif part == "idle":
                found = idle(say, keep)
            elif part == "claims":
                found = claims(results, args, say, keep)
            else:
                found = against_grid(getattr(tuning_jobs, part), plans[part].of(plan), cap_s, say, keep)
        except (Exception, TrialFailed):  # noqa: BLE001 - the other parts still count
            results.setdefault("failed", {})[part] = traceback.format_exc()
            say(traceback.format_exc())
        else:
            results.keep(part, found)
        finally:
            results.setdefault("spent_s", {})[part] = say.seconds() - begun
            results.write()


def _cap(text: str) -> tuple[str, float]:
    part, _, seconds = text.partition("=")
    if part not in CAPS_S:
        raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(CAPS_S)}")
    return part, float(seconds)


def main() -> None:
    """Run, and keep what was found however it ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("training.json"))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=560, help="for all parts together")
    parser.add_argument("--window", type=float, default=None, help="seconds of one window")
    parser.add_argument(
        "--cap", action="append", default=[], type=_cap, metavar="PART=S", help=f"most seconds of a part; {CAPS_S}"
    )
    args = parser.parse_args()
    unknown = set(args.parts.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"--parts: no part is called {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    say, plan, results = Log(), load_plan(), Results(args.out)
    if args.window:
        plan = msgspec.structs.replace(plan, window_s=args.window)
    results["made_with"] = {
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "command": " ".join(["python", "benchmarks/tuner_on_gpu.py", *(Path(word).name for word in sys.argv[1:])]),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    try:
        with ending(args.seconds):
            measure_all(args, results, plan, say)
    except Ended as ended:
        results["ended"] = str(ended)
        results.write()
        say(f"{ended}; {args.out} has what was found")
    say("done")


if __name__ == "__main__":
    main()
