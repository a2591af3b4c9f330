"""What do several levers save together, without counting a dollar twice?

A lever's fraction `f` is of the bill (of its scope's bill, where it names one). Its dollars lie in the buckets its kind
acts on, in proportion to what is in them, and never exceed them. Within a bucket each lever takes its share of what
the others leave: 1 - prod(1 - f). Different buckets add up. Of exclusive levers the set that saves most is chosen.
A rate lever lowers the price of whatever is still paid for, so it comes last and multiplies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Literal, NamedTuple

from gpuledger.arguments import takes, takes_names
from gpuledger.cost.money import usd, usd_of
from gpuledger.cost.statement import WASTE, Bucket
from gpuledger.errors import InputError
from gpuledger.units import Unknown

Kind = Literal["hours", "throughput", "sku", "rate"]
Case = Literal["low", "middle", "high"]
Cell = tuple[str, Bucket]

CASES: tuple[Case, ...] = ("low", "middle", "high")
WHOLE = "whole bill"
# A smaller GPU is paid less for all the time the larger one is not put to use; what is used is not headroom.
ACTS_ON: Mapping[Kind, tuple[Bucket, ...]] = {
    "hours": ("idle", "idle_held", "underused"),
    "throughput": ("stalled", "underused"),
    "sku": ("idle", "idle_held", "underused", "stalled"),
    "rate": (),
}
# Time that the evidence cannot rate may hold such work too: it counts at the high end of a range, and nowhere else.
MAYBE: Mapping[Kind, tuple[Bucket, ...]] = {"throughput": ("unrated",)}


@takes_names
@dataclass(frozen=True)
class Lever:
    """One way to pay less. `low`, `middle` and `high` are fractions of the bill of `scopes` (all of it where empty)."""

    name: str
    kind: Kind
    low: Decimal
    middle: Decimal
    high: Decimal
    scopes: tuple[str, ...] = ()
    exclusive: str = ""
    headroom_usd: Decimal | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.middle <= self.high <= 1:
            found = f"{self.low}, {self.middle}, {self.high}"
            raise InputError(f"lever {self.name!r}: {found}", hint="give 0 <= low <= middle <= high <= 1")
        if self.kind == "sku" and self.headroom_usd is None:
            raise InputError(f"lever {self.name!r} has no headroom", hint="a sku lever needs the headroom measured")

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """The buckets this kind of lever acts on."""
        return ACTS_ON[self.kind]

    def part(self, case: Case) -> Fraction:
        """The fraction of the bill in one case."""
        return Fraction({"low": self.low, "middle": self.middle, "high": self.high}[case])


@takes_names
@dataclass(frozen=True)
class Bill:
    """The seven buckets of each scope in dollars; scopes do not overlap, together they are the whole bill."""

    scopes: Mapping[str, Mapping[Bucket, Decimal]]

    @classmethod
    def whole(cls, buckets: Mapping[Bucket, Decimal]) -> Bill:
        """A bill of one scope."""
        return cls({WHOLE: buckets})


@dataclass(frozen=True)
class Spread:
    """One figure in its three cases, in percent of the bill."""

    low_pct: Decimal
    middle_pct: Decimal
    high_pct: Decimal


@dataclass(frozen=True)
class LeverSaving:
    """What became of a lever: whether it is counted, and whether its buckets hold less than it claims."""

    name: str
    capped: bool
    chosen: bool
    words: str


@dataclass(frozen=True)
class Savings:
    """Levers combined, compared with the naive sum; percentages are of the bill. Single figures are the middle case.

    `one_bucket_pct` is the common rule, 1 - prod(1 - f) of the whole bill: all waste is one bucket and is its cap. It
    differs from `combined_pct`, where a lever acts only on the dollars of its own buckets.
    """

    naive_pct: Decimal
    one_bucket_pct: Decimal
    combined_pct: Decimal
    cap_pct: Decimal
    rate_pct: Decimal
    with_rate_pct: Decimal
    combined_usd: Decimal
    with_rate_usd: Decimal
    combined: Spread
    with_rate: Spread
    levers: tuple[LeverSaving, ...]


class _Outcome(NamedTuple):
    """Dollars for one choice of levers in one case."""

    combined: Fraction
    final: Fraction
    cap: Fraction


class _Reach:
    """What each lever takes of each bucket by itself; calculated once, whatever is chosen later."""

    def __init__(self, bill: Bill, levers: Sequence[Lever]) -> None:
        self.scopes = tuple(bill.scopes)
        self.cells = {(s, b): Fraction(v) for s, buckets in bill.scopes.items() for b, v in buckets.items()}
        self.paid_of = {s: sum((v for (t, _), v in self.cells.items() if t == s), Fraction(0)) for s in self.scopes}
        self.paid = sum(self.paid_of.values(), Fraction(0))
        self.shares = {(lever.name, case): self._shares(lever, case) for lever in levers for case in CASES}

    def wanted(self, lever: Lever, case: Case) -> Fraction:
        """The dollars a lever claims."""
        return lever.part(case) * sum((self.paid_of[s] for s in lever.scopes or self.scopes), Fraction(0))

    def _shares(self, lever: Lever, case: Case) -> dict[Cell, Fraction]:
        """The share a lever takes of each bucket it acts on that is not empty."""
        wanted = self.wanted(lever, case)
        limits = [wanted] if lever.headroom_usd is None else [wanted, max(Fraction(lever.headroom_usd), Fraction(0))]
        found = self._spread(lever, lever.buckets, min(limits))
        if case == "high":
            taken = sum((self.cells[c] * share for c, share in found.items()), Fraction(0))
            found |= self._spread(lever, MAYBE.get(lever.kind, ()), min(limits) - taken)
        return found

    def _spread(self, lever: Lever, buckets: Sequence[Bucket], amount: Fraction) -> dict[Cell, Fraction]:
        """An amount over some buckets in proportion to what they hold, at most all of it."""
        cells = [(s, b) for s in lever.scopes or self.scopes for b in buckets if self.cells.get((s, b))]
        reach = sum((self.cells[c] for c in cells), Fraction(0))
        return dict.fromkeys(cells, min(amount, reach) / reach) if reach else {}

    def one_bucket(self, levers: Sequence[Lever]) -> Fraction:
        """Dollars by the rule that takes each fraction of all that is left of the bill, up to all of the waste."""
        kept = Fraction(1)
        for lever in levers:
            if lever.kind != "rate":
                kept *= 1 - self.wanted(lever, "middle") / self.paid
        waste = sum((v for (_, bucket), v in self.cells.items() if bucket in WASTE), Fraction(0))
        return min((1 - kept) * self.paid, waste)

    def outcome(self, levers: Sequence[Lever], case: Case) -> _Outcome:
        """What a choice of levers saves: within buckets, over buckets, then by price."""
        kept: dict[Cell, Fraction] = {}
        for lever in levers:
            for cell, share in self.shares[lever.name, case].items():
                kept[cell] = kept.get(cell, Fraction(1)) * (1 - share)
        left = dict(self.paid_of)
        for cell, share in kept.items():
            left[cell[0]] -= self.cells[cell] * (1 - share)
        price = dict.fromkeys(self.scopes, Fraction(1))
        for lever in levers:
            if lever.kind == "rate":
                for scope in lever.scopes or self.scopes:
                    price[scope] *= 1 - lever.part(case)
        combined = self.paid - sum(left.values(), Fraction(0))
        final = self.paid - sum((left[s] * price[s] for s in self.scopes), Fraction(0))
        return _Outcome(combined, final, sum((self.cells[c] for c in kept), Fraction(0)))


@takes()
def combine(bill: Bill, levers: Iterable[Lever]) -> Savings | Unknown:
    """All levers together on one bill, the best of each exclusive group."""
    given = sorted(levers, key=lambda lever: lever.name)
    _check(bill, given)
    reach = _Reach(bill, given)
    if not reach.paid:
        return Unknown("nothing was paid, so nothing can be saved")
    chosen = max(_choices(given), key=lambda choice: reach.outcome(choice, "middle").final)
    cases = {case: reach.outcome(chosen, case) for case in CASES}
    middle, paid = cases["middle"], reach.paid
    left = paid - middle.combined
    return Savings(
        naive_pct=_pct(sum((reach.wanted(lever, "middle") for lever in given), Fraction(0)), paid),
        one_bucket_pct=_pct(reach.one_bucket(chosen), paid),
        combined_pct=_pct(middle.combined, paid),
        cap_pct=_pct(middle.cap, paid),
        rate_pct=_pct(middle.final - middle.combined, left) if left else Decimal(0),
        with_rate_pct=_pct(middle.final, paid),
        combined_usd=usd(middle.combined),
        with_rate_usd=usd(middle.final),
        combined=Spread(*(_pct(cases[c].combined, paid) for c in CASES)),
        with_rate=Spread(*(_pct(cases[c].final, paid) for c in CASES)),
        levers=tuple(_alone(reach, lever, lever in chosen) for lever in given),
    )


def _check(bill: Bill, levers: Sequence[Lever]) -> None:
    names = [lever.name for lever in levers]
    for lever in levers:
        if names.count(lever.name) > 1:
            raise InputError(f"two levers are called {lever.name!r}", hint="give each lever its own name")
        if missing := set(lever.scopes) - set(bill.scopes):
            known = ", ".join(sorted(bill.scopes))
            raise InputError(
                f"lever {lever.name!r} acts on {min(missing)!r}, which the bill lacks", hint=f"use {known}"
            )


def _choices(levers: Sequence[Lever]) -> Iterator[tuple[Lever, ...]]:
    """Every way to take one lever of each exclusive group, and all others."""
    groups: dict[tuple[str, str], list[Lever]] = {}
    for lever in levers:
        groups.setdefault((lever.exclusive, "" if lever.exclusive else lever.name), []).append(lever)
    return product(*groups.values())


def _alone(reach: _Reach, lever: Lever, chosen: bool) -> LeverSaving:
    saved, wanted = reach.outcome([lever], "middle").final, reach.wanted(lever, "middle")
    capped = saved < wanted
    if not chosen:
        words = f"not counted: it excludes another lever ({lever.exclusive}) that does more"
    elif capped:
        words = f"cut from {_pct(wanted, reach.paid):.1f} % of the bill to what its buckets hold"
    else:
        words = "counted in full"
    return LeverSaving(lever.name, capped, chosen, words)


def _pct(part: Fraction, whole: Fraction) -> Decimal:
    (top, bottom), (over, under) = part.as_integer_ratio(), whole.as_integer_ratio()
    return usd_of(top * 100 * under, bottom * over)
