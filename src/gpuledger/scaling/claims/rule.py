"""What is a rule about claims: which claims does it judge, which mistake does it look for?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpuledger.bench.records import Run
from gpuledger.registry import Registry
from gpuledger.scaling.figures import Facts, NodeFigures
from gpuledger.scaling.grades import Thresholds
from gpuledger.scaling.statement import Check, Readiness, Verdict, Word
from gpuledger.scaling.statistics import Interval
from gpuledger.units import Unknown

Kind = Literal["number", "yes or no", "text"]
RULES = "gpuledger.scaling.claims.rules"


@dataclass(frozen=True)
class Claim:
    """What somebody said about a run. `node` where it is about one node; `more` has all else that was said with it."""

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
    """Everything a rule may look at."""

    facts: Facts
    run: Run
    baseline: Run | None
    readiness: Readiness
    limits: Thresholds
    claims: tuple[Claim, ...] = ()

    def about(self, *ids: str) -> tuple[Claim, ...]:
        """The claims of these ids."""
        return tuple(c for c in self.claims if c.claim in ids)

    def node(self, claim: Claim) -> NodeFigures | Unknown:
        """The node a claim is about."""
        found = next((n for n in self.facts.nodes if n.node == claim.node), None)
        known = ", ".join(n.node for n in self.facts.nodes) or "none"
        return found or Unknown(f"the run has no node {claim.node!r}; its nodes: {known}")


Judge = Callable[[Case, Claim], "Finding"]
Look = Callable[[Case], "str | None"]


@dataclass(frozen=True)
class Finding:
    """A verdict and why."""

    verdict: Word
    why: str


@dataclass(frozen=True)
class Judged:
    """One kind of claim: what its value must be, and who judges it."""

    id: str
    kind: Kind
    meaning: str
    judge: Judge


@dataclass(frozen=True)
class Sought:
    """One mistake: its name, and who looks for it; the words found, or None where it was not made."""

    id: str
    title: str
    order: int
    look: Look


CLAIMS: Registry[Judged] = Registry("claim", RULES)
CHECKS: Registry[Sought] = Registry("check", RULES)


def judges(name: str, kind: Kind, meaning: str) -> Callable[[Judge], Judge]:
    """Decorator: the function judges claims called `name`."""

    def keep(judge: Judge) -> Judge:
        CLAIMS.register(name)(Judged(name, kind, meaning, judge))
        return judge

    return keep


def looks_for(name: str, title: str, *, order: int) -> Callable[[Look], Look]:
    """Decorator: the function looks for the mistake called `name`."""

    def keep(look: Look) -> Look:
        CHECKS.register(name)(Sought(name, title, order, look))
        return look

    return keep


def supported(why: str) -> Finding:
    """The run says so too."""
    return Finding("supported", why)


def contradicted(why: str) -> Finding:
    """The run says otherwise."""
    return Finding("contradicted", why)


def cannot_tell(why: str) -> Finding:
    """The run does not say."""
    return Finding("cannot tell", why)


def fact(found: Interval | float | Unknown) -> float | Unknown:
    """A figure of this very run, without its interval."""
    return found.value if isinstance(found, Interval) else found


def number(value: float) -> str:
    """A figure to three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if value else "0"


def took(seconds: float) -> str:
    """Seconds as people read them: in milliseconds below ten."""
    return f"{1000 * seconds:,.0f} ms" if seconds < 10 else f"{seconds:,.1f} s"


def ranged(found: Interval, unit: str) -> str:
    """A figure with its interval in words."""
    tail = f" {unit}" if unit else ""
    same = found.low == found.high
    return f"{number(found.value)}{tail}" + ("" if same else f" ({number(found.low)} to {number(found.high)})")


def last_digit(value: float) -> float:
    """One unit of the last digit a number is printed with: 0.01 of 0.68, 1 of 75."""
    _, _, decimals = f"{value!r}".partition(".")
    return 10.0 ** -len(decimals) if decimals.isdigit() else 1.0 if value == int(value) else 0.0


def compare(claim: Claim, found: float | Interval | Unknown, unit: str, case: Case, said: str = "") -> Finding:
    """A number against the measured one: supported as near as its own rounding, or within an interval where given.

    An interval is for figures that would come out otherwise another time; what a run did, it did.
    """
    if isinstance(found, Unknown):
        return cannot_tell(found.why)
    value = found.value if isinstance(found, Interval) else found
    words = ranged(found, unit) if isinstance(found, Interval) else f"{number(value)}{f' {unit}' if unit else ''}"
    why = f"measured: {words}{f'; {said}' if said else ''}"
    room = max(last_digit(claim.value) / 2, case.limits.claims.tolerance_ratio * abs(value))
    near = abs(claim.number - value) <= room * (1 + 1e-9)
    if near or (isinstance(found, Interval) and found.holds(claim.number)):
        return supported(why)
    return contradicted(why)


def check_of(sought: Sought, case: Case) -> Check:
    """A mistake looked for."""
    why = sought.look(case)
    return Check(sought.id, sought.title, why is not None, why or "not found in this run")


def verdict_of(claim: Claim, finding: Finding) -> Verdict:
    """A finding with the claim it is about."""
    return Verdict(claim.claim, claim.value, claim.node, finding.verdict, finding.why)
