"""How much can a change give back, and what does that figure rest on?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.cost.statement import Bucket
from gpuledger.errors import FactError, UnknownName

Form = Literal["speedup", "recovers", "rate", "computed", "none"]
Basis = Literal["measured", "published", "assumed"]
ACTIVE: tuple[Bucket, ...] = ("productive", "stalled", "unrated", "underused")
# Time that the evidence cannot rate may be stalled too: it counts at the bold end of what is recovered from there.
MAYBE: Mapping[Bucket, Bucket] = {"stalled": "unrated"}
ONE, NONE = Decimal(1), Decimal(0)


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


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another range of the same form, for a case the rule names."""

    low: float
    middle: float
    high: float
    basis: Basis
    source: str


class Gain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of gains.toml."""

    form: Form
    basis: Basis
    source: str
    of: tuple[Bucket, ...] = ()
    low: float | None = None
    middle: float | None = None
    high: float | None = None
    variants: dict[str, Variant] = {}

    def variant(self, name: str) -> Gain:
        """With the range of a variant in place of its own; by no name, itself."""
        if not name:
            return self
        v = self.variants[name]
        return Gain(self.form, v.basis, v.source, self.of, v.low, v.middle, v.high)

    def fraction(self, shares: Mapping[Bucket, Decimal]) -> Range | None:
        """The fraction of a bill with these shares by bucket; None where the rule must say it, or claims nothing."""
        if self.form in {"computed", "none"} or self.low is None or self.middle is None or self.high is None:
            return None
        if self.form == "rate":
            return Range.of(self.low, self.middle, self.high)
        if self.form == "speedup":
            active = float(sum((shares[b] for b in ACTIVE), NONE))
            return Range.of(*((1 - 1 / x) * active for x in (self.low, self.middle, self.high)))
        held = float(sum((shares[b] for b in self.of), NONE))
        maybe = float(sum((shares[MAYBE[b]] for b in self.of if b in MAYBE), NONE))
        return Range.of(self.low * held, self.middle * held, self.high * (held + maybe))


@cache
def _gains() -> Mapping[str, Gain]:
    file = data_dir("gpuledger.advice", "data", "gains.toml")
    raw = load_toml(file, dict[str, object])
    version = raw.pop("version", None)
    if version != 1:
        raise FactError(str(file), "version", f"found {version!r}", hint="this gpuledger reads version 1")
    gains = {name: msgspec.convert(entry, Gain) for name, entry in raw.items()}
    for name, gain in gains.items():
        _check(gain, str(file), name)
        for variant in gain.variants:
            _check(gain.variant(variant), str(file), f"{name}.variants.{variant}")
    return gains


def _check(gain: Gain, path: str, name: str) -> None:
    figures = [x for x in (gain.low, gain.middle, gain.high) if x is not None]
    if figures != sorted(figures) or len(figures) not in {0, 3}:
        raise FactError(path, name, f"low, middle, high are {figures}", hint="give all three, rising")
    if gain.form in {"speedup", "recovers", "rate"} and not figures:
        raise FactError(path, name, f"a gain of form {gain.form} has no range", hint="give low, middle and high")
    least, most = (1.0, 1e9) if gain.form == "speedup" else (0.0, 1.0)
    if figures and not least <= figures[0] <= figures[2] <= most:
        raise FactError(path, name, f"{figures} is out of range", hint=f"a {gain.form} lies within {least} to {most:g}")
    if (gain.form == "recovers") != bool(gain.of):
        raise FactError(path, name, f"form {gain.form} with of = {list(gain.of)}", hint="`of` goes with recovers")
    if not gain.source.strip():
        raise FactError(path, name, "source is empty", hint="say where the range comes from, or that it is assumed")


def gain_of(rule: str) -> Gain:
    """The shipped range of a rule."""
    try:
        return _gains()[rule]
    except KeyError:
        raise UnknownName("gain", rule, _gains()) from None


def gain_names() -> list[str]:
    """Every rule the file has a range for."""
    return sorted(_gains())
