"""What is a rule about claims: which claims does it judge, which mistake does it look for?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from gpuledger.bench.records import Run
from gpuledger.registry import Registry
from gpuledger.scaling.figures import Facts, NodeFigures
from gpuledger.scaling.grades import Thresholds
from gpuledger.scaling.statement import Readiness, Word
from gpuledger.scaling.statistics import Interval
from gpuledger.units import Unknown

Kind = Literal["number", "yes or no", "text"]
RULES = "gpuledger.scaling.claims.rules"


@dataclass(frozen=True)
class Claim:
    """A statement about a run. `node` where it is about one node; `more` has its other fields."""

    claim: str
    value: Any
    node: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def number(self) -> float:
        """The value of a claim whose rule asked for a number."""
        return float(self.value)


@dataclass(frozen=True)
class Case:
    """Everything a rule may use."""

    facts: Facts
    run: Run
    baseline: Run | None
    readiness: Readiness
    limits: Thresholds
    claims: tuple[Claim, ...] = ()

    def about(self, *ids: str) -> tuple[Claim, ...]:
        """The claims of these ids."""
        return tuple(c for c in self.claims if c.claim in ids)

    def node(self, claim: Claim) -> NodeFigures | None:
        """The node a claim is about; None where it is about the whole run. Judging refuses nodes the run lacks."""
        return None if claim.node is None else next(n for n in self.facts.nodes if n.node == claim.node)

    def named(self, name: object) -> NodeFigures | Unknown:
        """The node of that name."""
        known = {n.node: n for n in self.facts.nodes}
        return known.get(str(name)) or Unknown(f"the run has no node {name!r}; its nodes: {', '.join(known) or 'none'}")

    def compare(self, claim: Claim, found: float | Interval | Unknown, unit: str, said: str = "") -> Finding:
        """A number against the measured one: supported within its own rounding, or within its interval if it has one.

        Intervals are for figures that would differ in another run; counts of this run have none.
        """
        if isinstance(found, Unknown):
            return cannot_tell(found.why)
        value = found.value if isinstance(found, Interval) else found
        words = (found if isinstance(found, Interval) else Interval(value, value, value)).words(unit)
        why = f"measured: {words}{f'; {said}' if said else ''}"
        room = max(_last_digit(claim.value) / 2, self.limits.claims.tolerance_ratio * abs(value))
        near = abs(claim.number - value) <= room * (1 + 1e-9)
        if near or (isinstance(found, Interval) and found.holds(claim.number)):
            return supported(why)
        return contradicted(why)

    def count(self, claim: Claim, found: float | Interval | Unknown, unit: str, said: str = "") -> Finding:
        """A number against a figure of this very run, without its interval."""
        return self.compare(claim, found.value if isinstance(found, Interval) else found, unit, said)


Judge = Callable[[Case, Claim], "Finding"]
Look = Callable[[Case], "str | None"]


@dataclass(frozen=True)
class Finding:
    """A verdict and why."""

    verdict: Word
    why: str


@dataclass(frozen=True)
class Judged:
    """One kind of claim: the kind of its value, and the function that judges it."""

    kind: Kind
    judge: Judge


@dataclass(frozen=True)
class Sought:
    """One mistake, and the function that looks for it: the evidence, or None where it was not made."""

    id: str
    title: str
    order: int
    look: Look


CLAIMS: Registry[Judged] = Registry("claim", RULES)
CHECKS: Registry[Sought] = Registry("check", RULES)


def judges(name: str, kind: Kind) -> Callable[[Judge], Judge]:
    """Decorator: the function judges claims called `name`."""

    def keep(judge: Judge) -> Judge:
        CLAIMS.register(name)(Judged(kind, judge))
        return judge

    return keep


def looks_for(name: str, title: str, *, order: int) -> Callable[[Look], Look]:
    """Decorator: the function looks for the mistake called `name`."""

    def keep(look: Look) -> Look:
        CHECKS.register(name)(Sought(name, title, order, look))
        return look

    return keep


supported = partial(Finding, "supported")
contradicted = partial(Finding, "contradicted")
cannot_tell = partial(Finding, "cannot tell")


def _last_digit(value: float) -> float:
    """One unit of the last digit a number is printed with: 0.01 of 0.68, 1 of 75."""
    _, _, decimals = f"{value!r}".partition(".")
    return 10.0 ** -len(decimals) if decimals.isdigit() else 1.0 if value == int(value) else 0.0
