"""Which runs of models were measured on a GPU, how is each given to the planner, and what is planned for it today?

Rounds and the files of their runs are in model_rounds.toml. Today's plans lie in data/models_plans.json, written by
`plan_models.py --keep` with torch; what reads them here needs neither torch nor a GPU.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.plan.memory.facts import ErrorsOf, Measured, overheads
from gpuledger.plan.speed.facts import ErrorSpread, factors, spread
from gpuledger.units import count

HERE = Path(__file__).parent
DATA = HERE / "data"
PLANS = DATA / "models_plans.json"
GPU = "h200-sxm-141gb"
SERVING = "denoised"  # the split of passes without gradients, whichever file they are in


class Round(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Runs chosen together: how they are marked in the table, and what is to be known about them.

    `file`: where its runs lie; empty where they lie among those of other rounds.
    """

    split: str
    what: str
    text: str
    mark: str = ""
    file: str = ""


def rounds() -> list[Round]:
    """All rounds, in the order they were measured in."""
    found = tomllib.loads((HERE / "model_rounds.toml").read_text(encoding="utf-8"))
    return msgspec.convert(found["round"], list[Round])


def measured_files() -> list[Path]:
    """What models_on_gpu.py wrote, round by round."""
    return [DATA / one.file for one in rounds() if one.file]


def measured_runs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every run that ended well, with the name of its file."""
    for file in measured_files():
        for run in json.loads(file.read_text(encoding="utf-8"))["runs"]:
            if "error" not in run:
                yield file.name, run


def setup_of(run: dict[str, Any]) -> dict[str, Any]:
    """A run as parameters of a plan."""
    how = {name: value for name, value in run["run"].items() if name != "accumulate"}
    if serves(run):  # one pass was measured
        return {**how, "guidance": False, "denoising_steps": 1}
    return {"scheme": "mixed", **how, "accumulate": run["run"].get("accumulate", 2) > 1}


def serves(run: dict[str, Any]) -> bool:
    """Whether it is a pass without gradients."""
    return bool(run["run"].get("mode") == "serve")


def words(run: dict[str, Any]) -> str:
    """A run in a few words."""
    how, kind = run["run"], run["run"].get("scheme", "mixed")
    if serves(run):
        return f"one pass, {count(how['batch'], 'image')}"
    size = f"{how['sequence']} x {how['micro_batch']}" if "sequence" in how else f"{how['micro_batch']} at a time"
    single, full = how.get("accumulate") == 1, how.get("attention") == "full"
    said = (("recompute", how.get("recompute")), ("one micro-batch", single), ("full attention", full))
    return ", ".join([kind, size, *(word for word, there in said if there)])


def measured_per_s(run: dict[str, Any], unit: str) -> float:
    """Tokens, images or clips per second."""
    if serves(run):
        return float(run["run"]["batch"] / run["step_s"])
    return float(run["samples_per_s"] * (run["run"].get("sequence", 1) if unit == "token" else 1))


def taken_bytes(run: dict[str, Any]) -> int:
    """Torch's reserved memory and what lies outside torch."""
    return int(run["peak_reserved_bytes"] + run["outside_torch_bytes"])


@dataclass(frozen=True)
class Row:
    """One run next to what is planned for it today; ratios are planned over measured."""

    name: str
    family: str
    run: str
    split: str
    peak_bytes: int
    peak_ratio: float
    taken_bytes: int
    planned_bytes: int
    memory_of: ErrorsOf
    unit: str
    per_s: float
    speed_ratio: float
    speed_of: str
    speed_traced: bool

    @property
    def total_ratio(self) -> float:
        """Of the whole memory."""
        return self.planned_bytes / self.taken_bytes

    @property
    def in_range(self) -> bool:
        """Whether the range printed today holds what was taken."""
        errors: Measured = getattr(overheads().error, self.memory_of)
        low, high = errors.span(self.planned_bytes)
        return low <= self.taken_bytes <= high

    @property
    def speed_in_range(self) -> bool:
        """Whether the range printed today holds the measured rate."""
        errors: ErrorSpread = spread((factors().traced if self.speed_traced else factors().train).errors, self.speed_of)
        return errors.p10 <= self.speed_ratio <= errors.p90


def kept_plans() -> dict[str, Any]:
    """What --keep wrote."""
    found: dict[str, Any] = json.loads(PLANS.read_text(encoding="utf-8"))
    return found


def key(file: str, run: dict[str, Any]) -> tuple[str, str, str]:
    """What a run and its plan have in common."""
    return file, run["name"], json.dumps(run["run"], sort_keys=True)


def rows() -> list[Row]:
    """All measured runs that have a plan today."""
    plans = {key(one["measured_in"], one): one for one in kept_plans()["plans"]}
    pairs = ((run, plans[key(file, run)]) for file, run in measured_runs())
    return [_row(run, plan) for run, plan in pairs if "not_planned" not in plan]


def _row(run: dict[str, Any], plan: dict[str, Any]) -> Row:
    per_s = measured_per_s(run, plan["unit"])
    return Row(
        name=run["name"], family=run["config"].get("model_type", run["class"]), run=words(run),
        split=SERVING if serves(run) else run["split"],
        peak_bytes=run["peak_allocated_bytes"], peak_ratio=plan["peak_bytes"] / run["peak_allocated_bytes"],
        taken_bytes=taken_bytes(run), planned_bytes=plan["total_bytes"], memory_of=plan["memory_of"],
        unit=plan["unit"], per_s=per_s, speed_ratio=plan["per_s"] / per_s,
        speed_of=plan["speed_of"], speed_traced=plan["speed_traced"],
    )  # fmt: skip
