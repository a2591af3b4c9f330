"""What is a rule of advice: when does it apply, what does it change, and what can that give back?

A rule is one module with one function under `advise`; that is all, also for a rule from outside this package. It brings
its own gain, and limits of its own where the shared ones do not do; a user's settings may replace those by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

import msgspec

from gpuledger.advice.case import Case
from gpuledger.advice.limits import Limits
from gpuledger.cost.savings import Kind
from gpuledger.cost.statement import Bucket
from gpuledger.errors import FactError, UnknownName
from gpuledger.registry import Registry
from gpuledger.units import Unknown

# What the module of a rule needs is found here.
__all__ = [
    "ACTIVE", "PRECISION", "PRICE", "RULES", "SHARE_A_GPU", "Case", "Effort", "Gain", "Limits", "Range", "Reason",
    "Rule", "Snippet", "advise", "bash", "gb_per_s", "pct", "python", "with_rule_limits", "yaml",
]  # fmt: skip

Form = Literal["speedup", "recovers", "rate", "computed", "none"]
Basis = Literal["measured", "published", "assumed"]
Language = Literal["python", "bash", "yaml"]
When = Callable[[Case, Limits], "Reason | None"]
ACTIVE: tuple[Bucket, ...] = ("productive", "stalled", "unrated", "underused")
# Time that the evidence cannot rate may be stalled too: it counts at the bold end of what is recovered from there.
MAYBE: Mapping[Bucket, Bucket] = {"stalled": "unrated"}
# Only one rule of each group can be applied to the same GPUs.
SHARE_A_GPU = "one way to share a GPU"
PRECISION = "one precision"
PRICE = "one way to buy"


@dataclass(frozen=True)
class Range:
    """Fractions of the bill of one case, cautious to bold."""

    low: Decimal
    middle: Decimal
    high: Decimal

    @classmethod
    def of(cls, low: float, middle: float, high: float) -> Range:
        """Put in order and kept within 0 to 1, as a fraction of a bill must be."""
        parts = sorted(min(max(x, 0.0), 1.0) for x in (low, middle, high))
        return cls(*(Decimal(f"{x:.6f}") for x in parts))


@dataclass(frozen=True)
class Gain:
    """What a change can give back, cautious to bold, and what that rests on.

    form  speedup   the same work in 1 / x of the active time
          recovers  the share of the dollars in the buckets `of`
          rate      the share of the price
          computed  the rule calculates it from the case
          none      claims no dollars of the bill
    `basis` is that of the middle of the range; `source` names it, and the basis of the ends where it differs.
    `variants`: other ranges, for cases in which the rule names one.
    """

    form: Form
    basis: Basis
    source: str
    range: tuple[float, float, float] | None = None
    of: tuple[Bucket, ...] = ()
    variants: Mapping[str, Gain] = field(default_factory=dict)

    def fraction(self, shares: Mapping[Bucket, Decimal]) -> Range | None:
        """The fraction of a bill with these shares by bucket; None where the rule calculates it or claims nothing."""
        if self.form in {"computed", "none"} or self.range is None:
            return None
        low, middle, high = self.range
        if self.form == "rate":
            return Range.of(low, middle, high)
        if self.form == "speedup":
            active = float(sum((shares[b] for b in ACTIVE), Decimal(0)))
            return Range.of(*((1 - 1 / x) * active for x in (low, middle, high)))
        held = float(sum((shares[b] for b in self.of), Decimal(0)))
        maybe = float(sum((shares[MAYBE[b]] for b in self.of if b in MAYBE), Decimal(0)))
        return Range.of(low * held, middle * held, high * (held + maybe))

    def check(self, rule: str, name: str = "gain") -> None:
        """Refuse a range that cannot be, or one without a source; the variants too."""

        def wrong(problem: str, hint: str) -> FactError:
            return FactError(f"advice rule {rule}", name, problem, hint=hint)

        least, most = (1.0, 1e9) if self.form == "speedup" else (0.0, 1.0)
        if self.range is None and self.form in {"speedup", "recovers", "rate"}:
            raise wrong(f"form {self.form} has no range", "give low, middle and high")
        if self.range and list(self.range) != sorted(self.range):
            raise wrong(f"the range is {self.range}", "give low, middle and high, rising")
        if self.range and not least <= self.range[0] <= self.range[2] <= most:
            raise wrong(f"{self.range} is out of range", f"give figures within {least} to {most:g} for {self.form}")
        if (self.form == "recovers") != bool(self.of):
            raise wrong(f"form {self.form} with of = {list(self.of)}", "`of` goes with recovers")
        if not self.source.strip():
            raise wrong("the source is empty", "name where the range comes from, or that it is assumed")
        for variant, gain in self.variants.items():
            gain.check(rule, f"{name}.variants.{variant}")


@dataclass(frozen=True)
class Snippet:
    """A change to paste; {{name}} is filled in from the case."""

    language: Language
    text: str

    def filled(self, fills: Mapping[str, str]) -> Snippet:
        """With the case's own values."""
        text = self.text
        for name, value in fills.items():
            text = text.replace("{{" + name + "}}", value)
        return Snippet(self.language, text)


@dataclass(frozen=True)
class Effort:
    """How much work the change is: a size, and hours for one person."""

    size: Literal["small", "medium", "large"]
    hours: float

    @property
    def words(self) -> str:
        """For a table."""
        if self.hours < 8:
            return f"{self.size}: {self.hours:g} hour{'s' * (self.hours != 1)}"
        days = self.hours / 8
        return f"{self.size}: {days:g} day{'s' * (days != 1)}"

    def as_json(self) -> dict[str, object]:
        """Size and hours, and both in words."""
        return {"size": self.size, "hours": self.hours, "words": self.words}


@dataclass(frozen=True)
class Reason:
    """Why a rule applies to a case, with the figures that show it.

    `gain` and `gain_words` come from rules that calculate their own saving; `variant` names another range of the rule's
    gain; `change` replaces the rule's snippet; `energy` is a fraction of the energy; `source` is what a gain that was
    measured on the case itself rests on; `devices` are the affected devices of the case, where not all are.
    """

    why: str
    gain: Range | None = None
    gain_words: str = ""
    variant: str = ""
    fills: Mapping[str, str] = field(default_factory=dict)
    change: Snippet | None = None
    energy: Range | None = None
    source: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """One piece of advice; see `advise`."""

    id: str
    title: str
    lever: Kind | None
    effort: Effort
    change: Snippet
    when: When
    gain: Gain
    exclusive: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)


RULES: Registry[Rule] = Registry("advice rule", "gpuledger.advice.rules", group="gpuledger.rules")


def advise(
    name: str,
    title: str,
    lever: Kind | None,
    effort: Effort,
    change: Snippet,
    gain: Gain,
    *,
    exclusive: str = "",
    limits: Mapping[str, float] | None = None,
) -> Callable[[When], When]:
    """Decorator: make a condition a rule, known under `name`. `lever` is None where it claims no dollars of the bill.

    `exclusive`: of the rules with the same one, only the one that saves most is counted. `limits`: the rule's own, with
    their defaults; it reads them from `Limits.rules[name]`, where a user's values replace them.
    """
    gain.check(name)

    def keep(when: When) -> When:
        RULES.register(name)(Rule(name, title, lever, effort, change, when, gain, exclusive, dict(limits or {})))
        return when

    return keep


def with_rule_limits(limits: Limits) -> Limits:
    """The limits with those that rules bring themselves under their defaults; a name that no rule has is refused."""
    for name, given in limits.rules.items():
        own = RULES.get(name).limits
        for key in given:
            if key not in own:
                raise UnknownName(f"limit of the advice rule {name}", key, own)
    own_limits = {name: {**rule.limits, **limits.rules.get(name, {})} for name, rule in RULES if rule.limits}
    return msgspec.structs.replace(limits, rules=own_limits)


def _in(language: Language) -> Callable[[str], Snippet]:
    return lambda text: Snippet(language, text.strip() + "\n")


# A change in Python, on the command line, or in a Kubernetes file.
python, bash, yaml = _in("python"), _in("bash"), _in("yaml")


def pct(ratio: float | Unknown) -> str:
    """A ratio as a percentage."""
    if isinstance(ratio, Unknown):
        return "an unknown share"
    return f"{100 * ratio:.0f} %" if ratio >= 0.1 or ratio == 0 else f"{100 * ratio:.1f} %"


def gb_per_s(bytes_per_s: float) -> str:
    """A rate of traffic in GB/s or MB/s."""
    return f"{bytes_per_s / 1e9:.1f} GB/s" if bytes_per_s >= 1e9 else f"{bytes_per_s / 1e6:.0f} MB/s"
