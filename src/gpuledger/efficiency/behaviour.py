"""What does the mean hide: is the GPU starved, at a limit, waiting, or pretending to be busy?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.efficiency.causes import Condition
from gpuledger.efficiency.signals import Signals
from gpuledger.errors import FactError

NOT_KNOWN = "not known"
Basis = Literal["counters", "utilization"]
Class = Literal[
    "starved", "steady-partial", "launch-bound", "memory-bound", "compute-bound", "sync-bound", "spinning", "idle",
    "idle-held",
]  # fmt: skip
# Histogram bins of twenty: utilization below 10 %, and from 90 % on.
_LOW, _HIGH = 2, 18
# With less of the engine's time than this, "while a kernel runs" is too little to judge by.
_ENGINE_FLOOR = 1e-4


@dataclass(frozen=True)
class Behaviour:
    """A class, what shows it in words and numbers, and the kind of evidence it rests on."""

    klass: str
    evidence: tuple[str, ...]
    confidence: Literal["counters", "utilization", "none"]


class Wording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a figure reads in a sentence."""

    words: str
    unit: Literal["percent", "GB/s", "times", "number"]

    def say(self, value: float) -> str:
        """The figure in words."""
        if self.unit == "percent":
            text = f"{100 * value:.0f} %" if value >= 0.0995 or value == 0 else f"{100 * value:.1f} %"
        elif self.unit == "GB/s":
            text = f"{value / 1e9:.1f} GB/s"
        else:
            text = f"{value:.1f}" if value < 100 else f"{value:.0f}"
        return self.words.format(value=text)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A class and what shows it."""

    klass: Class = msgspec.field(name="class")
    by: Basis
    says: str
    note: str = ""
    all: tuple[Condition, ...] = ()
    any: tuple[Condition, ...] = ()
    also: tuple[str, ...] = ()

    def named(self) -> tuple[str, ...]:
        """Every figure it names, once."""
        return tuple(dict.fromkeys([c.figure for c in (*self.all, *self.any)] + list(self.also)))

    def fits(self, figures: Mapping[str, float]) -> bool:
        """Whether it fits what is known."""
        return all(c.holds(figures) for c in self.all) and (not self.any or any(c.holds(figures) for c in self.any))


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file: figures, and rules in order."""

    version: int
    figures: dict[str, Wording]
    rules: tuple[Rule, ...]


@cache
def load_rules() -> Rules:
    """The shipped rules."""
    path = data_dir(__package__, "data", "behaviours.toml")
    return check_rules(load_toml(path, Rules), str(path))


def check_rules(rules: Rules, path: str) -> Rules:
    """A rule that names a figure nobody makes can never fit: a mistake."""
    for number, rule in enumerate(rules.rules, 1):
        for name in rule.named():
            if name not in rules.figures:
                known = ", ".join(rules.figures)
                raise FactError(path, f"rules[{number}].{rule.klass}", f"no figure {name!r}", hint=f"use {known}")
    return rules


def classify(signals: Signals, rules: Rules | None = None) -> Behaviour:
    """The class of a stretch of time, by counters where there are any, else by utilization and power."""
    file = rules or load_rules()
    found = figures_of(signals)
    for basis in ("counters", "utilization"):
        for rule in file.rules:
            if rule.by == basis and rule.fits(found):
                return _behaviour(rule, found, file)
    return Behaviour(NOT_KNOWN, ("neither activity nor utilization is recorded",), "none")


def figures_of(signals: Signals) -> dict[str, float]:
    """What the rules look at, as far as it is known."""
    plain = (
        "idle_ratio", "nvlink_ratio", "pcie_bytes_per_s", "held_ratio", "fb_used_ratio", "util_ratio", "mem_copy_ratio",
        "power_ratio", "power_above_idle_ratio", "clock_ratio", "bounces_per_min",
    )  # fmt: skip
    found = {name: value for name in plain if (value := getattr(signals, name)) is not None}
    if signals.util_bins:
        low, high = sum(signals.util_bins[:_LOW]), sum(signals.util_bins[_HIGH:])
        found |= {"util_low_ratio": low, "util_high_ratio": high}
    if signals.power_above_idle_ratio is not None and signals.util_ratio:
        found["power_per_util_ratio"] = signals.power_above_idle_ratio / signals.util_ratio
    return found | _while_running(signals)


def _while_running(signals: Signals) -> dict[str, float]:
    """Activity over the engine's own time. The engine not recorded, utilization stands in for it, or the SMs do.

    Where the engine is all that is recorded it is utilization again: it does not say what runs.
    """
    engine = next((e for e in (signals.engine_ratio, signals.util_ratio, signals.sm_ratio) if e is not None), None)
    # Without fp32 the other vector pipes say little.
    vector = None if signals.fp32_ratio is None else _total(signals.fp32_ratio, signals.fp64_ratio, signals.fp16_ratio)
    integer = signals.integer_ratio
    parts = {
        "sm": signals.sm_ratio,
        "occupancy": signals.occupancy_ratio,
        "tensor": signals.tensor_ratio,
        "vector": vector,
        "compute": None if signals.tensor_ratio is None or vector is None else signals.tensor_ratio + vector,
        "integer": integer,
        # An integer instruction occupies its pipe twice as long as an issue slot.
        "issue": None if vector is None or integer is None else vector + integer / 2,
        "dram": signals.dram_ratio,
    }
    known = {name: value for name, value in parts.items() if value is not None}
    if engine is None or (signals.engine_ratio is None and not known):
        return {}
    found = {"engine_ratio": engine}
    if signals.util_ratio is None:
        found["util_ratio"] = engine
    if engine > _ENGINE_FLOOR:
        found |= {f"{name}_of_engine_ratio": min(1.0, value / engine) for name, value in known.items()}
    return found


def _total(*parts: float | None) -> float:
    return sum(p for p in parts if p is not None)


def _behaviour(rule: Rule, found: Mapping[str, float], file: Rules) -> Behaviour:
    evidence = [rule.says, *(file.figures[name].say(found[name]) for name in rule.named() if name in found)]
    if (idle := found.get("idle_ratio", 0.0)) > 0 and "idle_ratio" not in rule.named():
        evidence.append(f"judged by the rest of the time: {file.figures['idle_ratio'].say(idle)}")
    if rule.klass == "spinning" and "nvlink_ratio" not in found:
        evidence.append("NVLink traffic is not recorded: waiting for other GPUs cannot be told apart from spinning")
    if rule.note:
        evidence.append(rule.note)
    return Behaviour(rule.klass, tuple(evidence), rule.by)
