"""What is a rule of advice: when does it apply, what does it change, what kind of saving is it?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpuledger.advice.case import Case
from gpuledger.advice.gains import Range
from gpuledger.advice.limits import Limits
from gpuledger.cost.savings import Kind
from gpuledger.registry import Registry
from gpuledger.units import Unknown

Language = Literal["python", "bash", "yaml"]
Size = Literal["small", "medium", "large"]
When = Callable[[Case, Limits], "Reason | None"]

# Of each group only one can be done to the same GPUs.
SHARE_A_GPU = "one way to share a GPU"
PRECISION = "one precision"
PRICE = "one way to buy"


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
    """How much work the change is: a word, and hours for one person."""

    size: Size
    hours: float

    @property
    def words(self) -> str:
        """For a table."""
        if self.hours < 8:
            return f"{self.size}: {self.hours:g} hour{'s' * (self.hours != 1)}"
        days = self.hours / 8
        return f"{self.size}: {days:g} day{'s' * (days != 1)}"


@dataclass(frozen=True)
class Reason:
    """Why a rule applies to a case, with the figures that say so.

    `gain` and `gain_words` come from rules that work out their own saving; `variant` names another range of the rule's
    gain; `change` replaces the rule's snippet; `energy` is a fraction of the energy; `source` says what a gain that was
    measured on the case itself rests on; `devices` are those of the case it is about, where not all.
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
    """One piece of advice. `lever` is None where it claims no dollars of the bill."""

    id: str
    title: str
    lever: Kind | None
    effort: Effort
    change: Snippet
    when: When
    exclusive: str = ""


RULES: Registry[Rule] = Registry("advice rule", "gpuledger.advice.rules", group="gpuledger.rules")


def advise(
    name: str, *, title: str, lever: Kind | None, effort: Effort, change: Snippet, exclusive: str = ""
) -> Callable[[When], When]:
    """Decorator: make a condition a rule, known under `name`."""

    def keep(when: When) -> When:
        RULES.register(name)(Rule(name, title, lever, effort, change, when, exclusive))
        return when

    return keep


def python(text: str) -> Snippet:
    """A change in Python."""
    return Snippet("python", text.strip() + "\n")


def bash(text: str) -> Snippet:
    """A change on the command line."""
    return Snippet("bash", text.strip() + "\n")


def yaml(text: str) -> Snippet:
    """A change in a Kubernetes file."""
    return Snippet("yaml", text.strip() + "\n")


def pct(ratio: float | Unknown) -> str:
    """A ratio as a person reads it."""
    if isinstance(ratio, Unknown):
        return "an unknown share"
    return f"{100 * ratio:.0f} %" if ratio >= 0.1 or ratio == 0 else f"{100 * ratio:.1f} %"


def gb_per_s(bytes_per_s: float) -> str:
    """A rate of traffic as a person reads it."""
    return f"{bytes_per_s / 1e9:.1f} GB/s" if bytes_per_s >= 1e9 else f"{bytes_per_s / 1e6:.0f} MB/s"
