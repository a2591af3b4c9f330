"""What does the mean hide: is the GPU starved, at a limit, waiting, or pretending to be busy?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Literal

import msgspec
import numpy as np

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FactError
from gpuledger.physics.causes import Condition
from gpuledger.physics.signals import Signals

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


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file: figures, and rules in order."""

    version: int
    figures: dict[str, Wording]
    rules: tuple[Rule, ...]


@cache
def load_rules() -> Rules:
    """The shipped rules."""
    path = data_dir(__package__, "data", "behaviors.toml")
    return check_rules(load_toml(path, Rules), str(path))


def check_rules(rules: Rules, path: str) -> Rules:
    """A rule that names a figure that does not exist can never fit: a mistake."""
    for number, rule in enumerate(rules.rules, 1):
        for name in rule.named():
            if name not in rules.figures:
                known = ", ".join(rules.figures)
                raise FactError(path, f"rules[{number}].{rule.klass}", f"no figure {name!r}", hint=f"use {known}")
    return rules


_UNSEEN = Behaviour(NOT_KNOWN, ("neither activity nor utilization is recorded",), "none")


def classify(signals: Signals, rules: Rules | None = None) -> Behaviour:
    """The class of a stretch of time, by counters where there are any, else by utilization and power."""
    return classify_all([signals], rules)[0]


def classify_all(signals: Sequence[Signals], rules: Rules | None = None) -> list[Behaviour]:
    """The classes of many stretches of time, all at once."""
    if not signals:
        return []
    file = rules or load_rules()
    names = [f.name for f in fields(Signals) if f.name != "util_bins"]
    known = {n: np.array([np.nan if (v := getattr(s, n)) is None else v for s in signals], np.float64) for n in names}
    size = max((len(s.util_bins) for s in signals if s.util_bins is not None), default=0)
    bins = np.array([s.util_bins or (np.nan,) * size for s in signals]) if size else None
    found = figure_rows(known, bins)
    numbers = classify_rows(found, file).tolist()
    out = []
    for number, *values in zip(numbers, *(v.tolist() for v in found.values()), strict=True):
        figures = {name: v for name, v in zip(found, values, strict=True) if not math.isnan(v)}
        out.append(_UNSEEN if number < 0 else _behaviour(file.rules[number], figures, file))
    return out


def classify_rows(figures: Mapping[str, np.ndarray], rules: Rules | None = None) -> np.ndarray:
    """The number of the first rule that fits each row, those by counters before those by utilization; -1: none."""
    file = rules or load_rules()
    out = np.full(len(next(iter(figures.values()))), -1, dtype=np.int64)
    for basis in ("counters", "utilization"):
        for number, rule in enumerate(file.rules):
            if rule.by != basis or not (open_ := out < 0).any():
                continue
            fits = open_
            for condition in rule.all:
                fits = fits & condition.holds_in(figures)
            if rule.any:
                fits = fits & np.any([c.holds_in(figures) for c in rule.any], axis=0)
            out[fits] = number
    return out


_PLAIN = (
    "idle_ratio", "wait_ratio", "nvlink_ratio", "pcie_bytes_per_s", "held_ratio", "fb_used_ratio",
    "util_ratio", "mem_copy_ratio", "power_ratio", "power_above_idle_ratio", "capped_ratio", "clock_ratio",
    "bounces_per_min",
)  # fmt: skip


def figure_rows(signals: Mapping[str, np.ndarray], util_bins: np.ndarray | None) -> dict[str, np.ndarray]:
    """What the rules look at, by row; NaN where it is not known. `util_bins`: shares of the time, a column a bin."""
    found = {name: signals[name] for name in _PLAIN}
    blank = np.full(len(found["util_ratio"]), np.nan)
    low, high = (blank, blank) if util_bins is None else (util_bins[:, :_LOW].sum(1), util_bins[:, _HIGH:].sum(1))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        per_util = np.where(
            signals["util_ratio"] > 0, signals["power_above_idle_ratio"] / signals["util_ratio"], np.nan
        )
    found |= {"util_low_ratio": low, "util_high_ratio": high, "power_per_util_ratio": per_util}
    running = _while_running(signals)
    # Rules by utilization come last: there the engine, where it is all that is recorded, stands in for it.
    found["util_ratio"] = np.where(np.isnan(signals["util_ratio"]), running["engine_ratio"], signals["util_ratio"])
    return found | running


def _while_running(signals: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Activity over the engine's own time. The engine not recorded, utilization stands in for it, or the SMs do.

    Where the engine is all that is recorded it is utilization again: it does not say what runs.
    """
    engine = signals["engine_ratio"]
    stands_in = np.where(np.isnan(signals["util_ratio"]), signals["sm_ratio"], signals["util_ratio"])
    fp32, integer = signals["fp32_ratio"], signals["integer_ratio"]
    # Without fp32 the other vector pipes say little.
    vector = fp32 + np.nan_to_num(signals["fp64_ratio"]) + np.nan_to_num(signals["fp16_ratio"])
    parts = {
        "sm": signals["sm_ratio"],
        "occupancy": signals["occupancy_ratio"],
        "tensor": signals["tensor_ratio"],
        "vector": vector,
        "compute": signals["tensor_ratio"] + vector,
        "integer": integer,
        # An integer instruction occupies its pipe twice as long as an issue slot.
        "issue": vector + integer / 2,
        "dram": signals["dram_ratio"],
    }
    some = ~np.all([np.isnan(v) for v in parts.values()], axis=0)
    whole = np.where(np.isnan(engine), np.where(some, stands_in, np.nan), engine)
    found = {"engine_ratio": whole}
    running = np.where(whole > _ENGINE_FLOOR, whole, np.nan)
    with np.errstate(invalid="ignore", over="ignore"):
        return found | {f"{name}_of_engine_ratio": np.minimum(1.0, v / running) for name, v in parts.items()}


def _tells(name: str, found: Mapping[str, float]) -> bool:
    """Whether a figure is known and says something: that nothing was seen to bounce may be the sampling's doing."""
    return name in found and (name != "bounces_per_min" or found[name] > 0)


def _behaviour(rule: Rule, found: Mapping[str, float], file: Rules) -> Behaviour:
    evidence = [rule.says, *(file.figures[name].say(found[name]) for name in rule.named() if _tells(name, found))]
    if (idle := found.get("idle_ratio", 0.0)) > 0 and "idle_ratio" not in rule.named():
        evidence.append(f"judged by the rest of the time: {file.figures['idle_ratio'].say(idle)}")
    if rule.klass == "spinning" and "nvlink_ratio" not in found:
        evidence.append("NVLink traffic is not recorded: waiting for other GPUs cannot be separated from spinning")
    if rule.note:
        evidence.append(rule.note)
    return Behaviour(rule.klass, tuple(evidence), rule.by)
