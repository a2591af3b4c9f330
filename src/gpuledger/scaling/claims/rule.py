"""Which claims were made, what is the run's verdict on each, and which mistakes were made? Rules decide.

A rule judges claims by their id, or looks for a mistake, or both. Claims come from CLAIMS.json, a list of {"claim": id,
"value": ..., "node": optional}.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gpuledger.bench.records import Run
from gpuledger.bounds import DOCUMENT_MIB, read_text
from gpuledger.errors import FactError, FileFault, map_os_error, nearest
from gpuledger.registry import Registry
from gpuledger.scaling.figures import Facts, NodeFigures
from gpuledger.scaling.grades import Thresholds
from gpuledger.scaling.statement import Check, Readiness, Verdict, Word
from gpuledger.scaling.statistics import Interval
from gpuledger.units import Unknown

Kind = Literal["number", "yes or no", "text"]
RULES = "gpuledger.scaling.claims.rules"
HINT = 'write a list of {"claim": id, "value": value}; docs/scaling.md lists the ids'


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


def read_claims(path: Path | str) -> tuple[Claim, ...]:
    """The claims of a file; a value of the wrong kind is an error, an id without a rule is not."""
    try:
        raw = json.loads(read_text(Path(path), mib=DOCUMENT_MIB))
    except OSError as error:
        raise map_os_error(error, path, "read claims") from error
    except (ValueError, RecursionError) as error:
        raise FileFault(path, f"it is not JSON: {error}", hint=HINT) from error
    if not isinstance(raw, list):
        raise FactError(path, "$", f"a list of claims is expected, found {type(raw).__name__}", hint=HINT)
    return tuple(_claim(item, f"[{i}]", path) for i, item in enumerate(raw))


def _claim(item: Any, where: str, path: Path | str) -> Claim:
    if not isinstance(item, dict):
        raise FactError(path, where, f"an object is expected, found {item!r}", hint=HINT)
    name, node = item.get("claim"), item.get("node")
    if not isinstance(name, str) or not name:
        raise FactError(path, f"{where}.claim", f"a name is expected, found {name!r}", hint=HINT)
    if "value" not in item:
        raise FactError(path, f"{where}.value", f"claim {name!r} has none", hint=HINT)
    if node is not None and not isinstance(node, str):
        raise FactError(path, f"{where}.node", f"the name of a node is expected, found {node!r}", hint=HINT)
    _check_kind(name, item["value"], f"{where}.value", path)
    more = {k: v for k, v in item.items() if k not in {"claim", "value", "node"}}
    return Claim(name, item["value"], node, more)


def _check_kind(name: str, value: Any, where: str, path: Path | str) -> None:
    if name not in CLAIMS.names():
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits, allowed = {
        "number": (is_number, "a number"),
        "yes or no": (isinstance(value, bool), "true or false"),
        "text": (isinstance(value, str) or is_number, "words in quotes"),
    }[CLAIMS.get(name).kind]
    if not fits or (is_number and not abs(value) < float("inf")):
        raise FactError(path, where, f"{name} expects {allowed}, found {value!r}", hint="give the value in that form")


def verdicts(case: Case) -> tuple[Verdict, ...]:
    """One per claim, in the order of the file."""
    judged = ((claim, _judged(case, claim)) for claim in case.claims)
    return tuple(Verdict(c.claim, c.value, c.node, found.verdict, found.why) for c, found in judged)


def _judged(case: Case, claim: Claim) -> Finding:
    if claim.claim not in CLAIMS.names():
        near = nearest(claim.claim, CLAIMS.names())
        hint = f"did they mean {' or '.join(near)}?" if near else f"known ids: {', '.join(CLAIMS.names())}"
        return cannot_tell(f"no rule judges claims of this id; {hint}")
    if claim.node is not None and isinstance(found := case.named(claim.node), Unknown):
        return cannot_tell(found.why)
    return CLAIMS.get(claim.claim).judge(case, claim)


def checks(case: Case) -> tuple[Check, ...]:
    """Every mistake that is looked for, found or not."""
    ordered = sorted((sought for _, sought in CHECKS), key=lambda s: (s.order, s.id))
    looked = ((sought, sought.look(case)) for sought in ordered)
    return tuple(Check(s.id, s.title, why is not None, why or "not found in this run") for s, why in looked)
