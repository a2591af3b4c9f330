"""What is there to try, on this machine and for this job?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.errors import FactError, UnknownName
from gpuledger.settings import Layer
from gpuledger.training.tune.settings import Settings

# Why a choice is left out where a need is not met.
_LACKS = {
    "cuda": "needs an NVIDIA or AMD GPU",
    "tf32": "this device has no TF32",
    "bf16": "this device has no bf16",
    "no-bf16": "this device has bf16, which needs no loss scaling",
    "convolutions": "the model has no 2-d convolutions",
}


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to try."""

    name: str
    set: dict[str, Any]
    needs: tuple[str, ...] = ()


class Axis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Things of one kind, of which one is kept; `parts` instead of choices for the batch.

    `opens_s`: how long opening one may take. Axes with it are tried when the others have settled.
    """

    name: str
    title: str
    choices: tuple[Choice, ...] = ()
    parts: tuple[int, ...] = ()
    opens_s: float = 0.0


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to try, and when a step counts as a gain."""

    version: int
    axes: tuple[Axis, ...]
    min_gain_ratio: float
    looks: tuple[int, ...]
    p: float
    window_s: float
    parity_updates: int
    parity_tolerance_ratio: float
    memory_margin_ratio: float
    max_rounds: int
    patience: int
    hopeless_ratio: float
    origin: str = ""

    def only(self, names: Sequence[str]) -> Plan:
        """The same plan with these axes alone; with all of them where none is named."""
        known = {axis.name: axis for axis in self.axes}
        for name in names:
            if name not in known:
                raise UnknownName("axis of the tuner", name, known)
        return msgspec.structs.replace(self, axes=tuple(a for a in self.axes if not names or a.name in names))


LAYER = Layer("tuning", Plan, "gpuledger.training", "tune.toml")


def load_plan(file: Path | None = None) -> Plan:
    """The plan in force: the shipped one with the user's own where there are any, of `file` where given."""
    plan = LAYER.load(file)
    source = plan.origin or LAYER.file
    for index, axis in enumerate(plan.axes):
        if bool(axis.choices) == bool(axis.parts):
            problem = f"{axis.name!r} has {'both' if axis.choices else 'neither'} choices and parts"
            raise FactError(str(source), f"$.axes[{index}]", problem, hint="give one of the two")
        for choice in axis.choices:
            unknown = set(choice.set) - set(Settings.__struct_fields__)
            if unknown:
                known = ", ".join(Settings.__struct_fields__)
                problem = f"{choice.name!r} sets {', '.join(sorted(unknown))}"
                raise FactError(str(source), f"$.axes[{index}].choices", problem, hint=f"known settings: {known}")
    if not plan.looks or plan.looks[0] < 2 or list(plan.looks) != sorted(set(plan.looks)):
        hint = "give rising whole numbers from 2 on, for example [3, 5, 8]"
        raise FactError(str(source), "$.looks", f"{list(plan.looks)} are not numbers of pairs to look at", hint=hint)
    return plan


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine and a job have: CUDA, TF32, bf16, convolutions, cores for the loader."""

    cuda: bool = False
    tf32: bool = False
    bf16: bool = True
    convolutions: bool = False
    cores: int = 1

    def lacks(self, choice: Choice, settings: Settings) -> str:
        """Why a choice cannot be tried here; empty where it can."""
        for need in choice.needs:
            if need.startswith("below-"):
                most = int(need.removeprefix("below-"))
                met, why = self.cores < most, f"there are {self.cores} cores, enough for more workers"
            elif need.startswith("cores-"):
                wanted = int(need.removeprefix("cores-"))
                met, why = self.cores >= wanted, f"{wanted} workers need as many cores; there are {self.cores}"
            elif need == "every-step":
                met, why = settings.logging == "every-step", "the loop does not wait for its loss"
            else:
                met = not self.bf16 if need == "no-bf16" else bool(getattr(self, need))
                why = _LACKS[need]
            if not met:
                return why
        return ""


def candidates(axis: Axis, settings: Settings, means: Means) -> tuple[dict[str, Settings], dict[str, str]]:
    """The settings an axis offers besides the current ones, by name, and what is left out with the reason."""
    if axis.parts:
        whole = settings.effective_batch
        # Less than half of the current batch cannot gain: passes get smaller and more numerous.
        sizes = [size for part in axis.parts if whole % part == 0 and 2 * (size := whole // part) >= settings.batch]
        found = {f"batch {size}": settings.having({"batch": size}) for size in sizes}
        return {name: made for name, made in found.items() if made != settings}, {}
    offered: dict[str, Settings] = {}
    left_out: dict[str, str] = {}
    for choice in axis.choices:
        if why := means.lacks(choice, settings):
            left_out[choice.name] = why
        # Pinned memory only speeds up copies to a GPU.
        elif (made := settings.having({n: v for n, v in choice.set.items() if n != "pin" or means.cuda})) != settings:
            offered[choice.name] = made
    return offered, left_out
