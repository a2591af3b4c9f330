"""What is a busy GPU that does little work probably waiting for?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import msgspec
import numpy as np

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FactError
from gpuledger.units import MS_PER_S, PPM

Cause = Literal["memory", "network", "storage"]


class Wording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a figure reads in a sentence, and what it is called where it is missing."""

    words: str
    missing: str
    unit: Literal["percent", "GB/s"]

    def say(self, value: float) -> str:
        """The figure in words."""
        text = f"{100 * value:.0f} %" if self.unit == "percent" else f"{value / 1e9:.1f} GB/s"
        return self.words.format(value=text)


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure from a limit on, or below one; or a figure that is not known."""

    figure: str
    at_least: float | None = msgspec.field(default=None, name="from")
    below: float | None = None
    unknown: bool = False

    def holds(self, figures: Mapping[str, float]) -> bool | None:
        """Whether it holds; None where the figure is not known."""
        if self.unknown:
            return self.figure not in figures
        if self.figure not in figures:
            return None
        value = figures[self.figure]
        return (self.at_least is None or value >= self.at_least) and (self.below is None or value < self.below)

    def holds_in(self, figures: Mapping[str, np.ndarray]) -> np.ndarray:
        """In which rows it holds; figures that are not known are NaN."""
        value = figures[self.figure]
        if self.unknown:
            return np.isnan(value)
        found = ~np.isnan(value)
        if self.at_least is not None:
            found &= value >= self.at_least
        if self.below is not None:
            found &= value < self.below
        return found


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cause and what shows it."""

    cause: Cause
    reason: str
    all: tuple[Condition, ...] = ()
    any: tuple[Condition, ...] = ()
    never: tuple[Condition, ...] = ()

    def conditions(self) -> tuple[Condition, ...]:
        """All of them, in order."""
        return (*self.all, *self.any, *self.never)

    def fits(self, figures: Mapping[str, float]) -> bool:
        """Whether all, any and never are met by what is known."""
        for condition in self.all:
            if not condition.holds(figures):
                return False
        if self.any and True not in [c.holds(figures) for c in self.any]:
            return False
        never = [c.holds(figures) for c in self.never]
        return not never or (True not in never and False in never)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    figures: dict[str, Wording]
    rules: tuple[Rule, ...]


@cache
def _file() -> _File:
    path = data_dir(__package__, "data", "causes.toml")
    file = load_toml(path, _File)
    for rule in file.rules:
        for condition in rule.conditions():
            if condition.figure not in file.figures:
                known = ", ".join(file.figures)
                raise FactError(
                    str(path), f"rules.{rule.cause}", f"no figure {condition.figure!r}", hint=f"use {known}"
                )
    return file


def cause_figures(sums: Mapping[str, np.ndarray], link_bytes_per_s: np.ndarray) -> dict[str, np.ndarray]:
    """What the rules look at, from sums by device; NaN where it is not known."""

    def mean(part: str, whole: str) -> np.ndarray:
        return _over(sums[part], sums[whole])

    active = _over(sums["active_ms"], sums["observed_ms"])
    engine, util = mean("engine_ppm_ms", "engine_ms"), mean("util_ppm_ms", "util_ms")
    received, sent = mean("pcie_rx_bytes", "pcie_rx_ms"), mean("pcie_tx_bytes", "pcie_tx_ms")
    return {
        "engine_of_util_ratio": _over(engine, util),
        "tensor_of_engine_ratio": _over(mean("tensor_ppm_ms", "tensor_ms"), engine),
        "dram_while_active_ratio": np.minimum(1.0, _over(mean("dram_ppm_ms", "dram_ms") / PPM, active)),
        "pcie_while_active_bytes_per_s": _over((received + sent) * MS_PER_S, active),
        "nvlink_of_link_ratio": _over(mean("nvlink_bytes", "nvlink_ms") * MS_PER_S / link_bytes_per_s, active),
    }


def known_figures(figures: Mapping[str, np.ndarray], device: int) -> dict[str, float]:
    """One device's figures, as far as they are known."""
    row = ((name, float(values[device])) for name, values in figures.items())
    return {name: value for name, value in row if value == value}  # noqa: PLR0124


def _over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole; NaN where either is unknown or the whole is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


@dataclass(frozen=True)
class LikelyCause:
    """What a GPU probably waits for; `cause` is None where no rule fits. Why so, and the figures seen, in words."""

    cause: Cause | None
    reason: str
    seen: str

    @property
    def words(self) -> str:
        """The cause by name, or why it is not known."""
        return self.cause or f"not known: {self.reason}"

    @property
    def evidence(self) -> str:
        """The figures it rests on; with a cause, what they mean."""
        return f"{self.reason} ({self.seen})" if self.cause else self.seen


def likely_cause(figures: Mapping[str, float]) -> LikelyCause:
    """The first cause whose rule fits what is known."""
    file = _file()
    for rule in file.rules:
        if rule.fits(figures):
            seen = dict.fromkeys(c.figure for c in rule.conditions() if c.figure in figures)
            return LikelyCause(rule.cause, rule.reason, ", ".join(file.figures[f].say(figures[f]) for f in seen))
    missing = [w.missing for name, w in file.figures.items() if name not in figures]
    known = ", ".join(file.figures[name].say(value) for name, value in figures.items())
    why = "no rule fits these counters"
    if missing:
        why = f"{', '.join(missing)} not recorded" if not known else f"no rule fits without {', '.join(missing)}"
    return LikelyCause(None, why, known or "no counters")
