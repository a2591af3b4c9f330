"""What is a busy GPU that does little work probably waiting for?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.efficiency.evidence import ModelFacts
from gpuledger.efficiency.means import Groups
from gpuledger.errors import FactError
from gpuledger.units import MS_PER_S, PPM, Unknown


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
    """A figure from a limit on, or below one."""

    figure: str
    at_least: float | None = msgspec.field(default=None, name="from")
    below: float | None = None

    def holds(self, figures: Mapping[str, float]) -> bool | None:
        """Whether it holds; None where the figure is not known."""
        if self.figure not in figures:
            return None
        value = figures[self.figure]
        return (self.at_least is None or value >= self.at_least) and (self.below is None or value < self.below)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cause and what shows it."""

    cause: str
    reason: str
    all: tuple[Condition, ...] = ()
    any: tuple[Condition, ...] = ()
    never: tuple[Condition, ...] = ()

    def conditions(self) -> tuple[Condition, ...]:
        """All of them, in order."""
        return (*self.all, *self.any, *self.never)

    def fits(self, figures: Mapping[str, float]) -> bool:
        """Whether all, any and never are met by what is known."""
        never = [c.holds(figures) for c in self.never]
        return (
            all(c.holds(figures) for c in self.all)
            and (not self.any or any(c.holds(figures) for c in self.any))
            and (not never or (True not in never and False in never))
        )


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


def figures_of(groups: Groups, i: int, facts: ModelFacts) -> dict[str, float]:
    """What the rules look at, as far as it is known."""

    def mean(part: str, whole: str) -> float | None:
        return groups.sum(part, i) / ms if (ms := groups.sum(whole, i)) else None

    found: dict[str, float] = {}
    active_ms, observed_ms = groups.sum("active_ms", i), groups.sum("observed_ms", i)
    active_ratio = active_ms / observed_ms if observed_ms else 0.0
    engine, util = mean("engine_ppm_ms", "engine_ms"), mean("util_ppm_ms", "util_ms")
    tensor, dram = mean("tensor_ppm_ms", "tensor_ms"), mean("dram_ppm_ms", "dram_ms")
    if engine is not None and util:
        found["engine_of_util_ratio"] = engine / util
    if engine and tensor is not None:
        found["tensor_of_engine_ratio"] = tensor / engine
    if not active_ratio:
        return found
    if dram is not None:
        found["dram_while_active_ratio"] = min(1.0, dram / PPM / active_ratio)
    received, sent = mean("pcie_rx_bytes", "pcie_rx_ms"), mean("pcie_tx_bytes", "pcie_tx_ms")
    if received is not None and sent is not None:
        found["pcie_while_active_bytes_per_s"] = (received + sent) * MS_PER_S / active_ratio
    nvlink, link = mean("nvlink_bytes", "nvlink_ms"), facts.link_bytes_per_s
    if nvlink is not None and not isinstance(link, Unknown):
        found["nvlink_of_link_ratio"] = nvlink * MS_PER_S / link / active_ratio
    return found


def likely_cause(figures: Mapping[str, float]) -> tuple[str, str]:
    """The cause and the evidence in words; "not known: why" where no rule fits."""
    file = _file()
    for rule in file.rules:
        if rule.fits(figures):
            seen = dict.fromkeys(c.figure for c in rule.conditions() if c.figure in figures)
            return rule.cause, f"{rule.reason} ({', '.join(file.figures[f].say(figures[f]) for f in seen)})"
    missing = [w.missing for name, w in file.figures.items() if name not in figures]
    known = ", ".join(file.figures[name].say(value) for name, value in figures.items())
    why = "no rule fits these counters"
    if missing:
        why = f"{' and '.join(missing)} not recorded" if not known else f"no rule fits without {', '.join(missing)}"
    return f"not known: {why}", known or "no counters"
