"""What do all levers of all cases save together, and what would a higher efficiency be worth?

Cases do not share a dollar, so each is combined by itself (cost.savings does that) and the results add up. Only cases
with a price count; where no case has one, paid GPU-hours stand in for dollars and no dollar figure is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from gpuledger.advice.case import Case
from gpuledger.advice.findings import Finding
from gpuledger.advice.statement import AuditSavings, MonthlyUsd, QuarterUsd, RoiPriced
from gpuledger.advice.stretches import Key, Stretch
from gpuledger.catalog.thresholds import Targets
from gpuledger.cost.charges import NOTHING_PAID, Charge, grouped
from gpuledger.cost.money import usd
from gpuledger.cost.projections import DAYS_PER_MONTH, Months, Projection, Quarter
from gpuledger.cost.savings import ACTS_ON, CASES, Bill, Savings, Spread, combine
from gpuledger.cost.statement import Bucket, CostStatement
from gpuledger.efficiency.capacity import roi
from gpuledger.units import MS_PER_HOUR, PPM, Unknown, count

CaseKey = tuple[str | None, str | None, str | None, str]
CENT_PLACES = 2
NEXT_TO_MOVES = (
    "this is what fixing the work on the present GPUs could free; a migration plan shows what changing GPUs alone "
    "saves. Both come out of the same idle, underused and stalled dollars: they overlap and must not be added"
)
NO_PRICE = Unknown("no device has a price")
_WORDS: Mapping[Bucket, str] = {
    "idle": "idle", "idle_held": "idle-held", "underused": "underused", "stalled": "stalled",
}  # fmt: skip


class Scale:
    """What percentages are of, and how a case's figures of the window become those of a month.

    `paid` are the dollars of the window; without a price it is the paid time. `months`: by the key of a case, how many
    times its time fits into a month, each of its GPUs counted by itself. `no_month`: why nothing is given per month.
    """

    def __init__(
        self, paid: Decimal | Unknown, paid_ms: int, months: Mapping[CaseKey, Fraction | Unknown],
        no_month: Unknown | None = None,
    ) -> None:  # fmt: skip
        self.priced = not isinstance(paid, Unknown)
        self.whole = Fraction(paid) if not isinstance(paid, Unknown) else Fraction(paid_ms)
        self._months, self.no_month = months, no_month

    def month(self, case: Case) -> Fraction | Unknown:
        """The factor of a case from its window to a month."""
        return self._months.get(case.key, NOTHING_PAID)

    def usd(self, found: Finding) -> MonthlyUsd | Unknown:
        """What a finding saves per month, by itself."""
        dollars, month = found.case.dollars, self.month(found.case)
        if isinstance(dollars, Unknown):
            return dollars
        if isinstance(month, Unknown):
            return month
        paid = Fraction(dollars.paid_usd) * month
        return MonthlyUsd(*(round(usd(Fraction(getattr(found.alone, c)) * paid), CENT_PLACES) for c in CASES))

    def share(self, found: Finding) -> list[Fraction]:
        """What a finding saves in percent of all that is paid; without a price nothing of a priced fleet."""
        if self.priced and isinstance(found.case.dollars, Unknown):
            return [Fraction(0)] * len(CASES)
        paid = Fraction(sum(found.case.weights.values(), Decimal(0)))
        parts = (Fraction(getattr(found.alone, c)) * paid * 100 for c in CASES)
        return [part / self.whole if self.whole else Fraction(0) for part in parts]


@dataclass(frozen=True)
class Combined:
    """One case's levers together."""

    case: Case
    findings: tuple[Finding, ...]
    savings: Savings

    @cached_property
    def paid(self) -> Fraction:
        """What the case's fractions are of."""
        return Fraction(sum(self.case.weights.values(), Decimal(0)))

    def chosen(self, rule_id: str) -> bool:
        """Whether a rule is counted here, or excluded by another that does more."""
        return any(lever.chosen for lever in self.savings.levers if lever.name == rule_id)

    def words(self, rule_id: str) -> str:
        """What became of a rule's lever here."""
        return next((lever.words for lever in self.savings.levers if lever.name == rule_id), "")


def months_by_case(
    cases: Sequence[Case], case_of: Mapping[Key, int], charges: Iterable[Charge], months: Months
) -> dict[CaseKey, Fraction | Unknown]:
    """For each case its dollars per month over those of the window: no case comes to more than its GPUs cost.

    Where no charge of a case has a price, its paid time stands in for the dollars.
    """
    same = months.common if months.why is None else months.why
    if same is not None:
        return {case.key: same for case in cases}
    owed: dict[int, list[Charge]] = {}
    for c in charges:
        number = case_of.get((c.device.gpu_uuid, c.device.gpu_instance_id, c.namespace, c.workload))
        if number is not None:
            owed.setdefault(number, []).append(c)
    return {case.key: _factor(owed.get(number, ()), months) for number, case in enumerate(cases)}


def _factor(charges: Sequence[Charge], months: Months) -> Fraction | Unknown:
    paid = [(c.device.gpu_uuid, c.dollars.paid_usd) for c in charges if c.dollars is not None]
    parts = paid if any(amount for _, amount in paid) else [(c.device.gpu_uuid, c.times.paid_ms) for c in charges]
    whole, month = sum((Fraction(amount) for _, amount in parts), Fraction(0)), months.total(parts)
    if isinstance(month, Unknown):
        return month
    return month / whole if whole else NOTHING_PAID


def combine_cases(findings: Sequence[Finding]) -> dict[CaseKey, Combined]:
    """Each case with levers, combined; by the case's key."""
    out = {}
    for key, members in grouped((f for f in findings if f.lever is not None), lambda f: f.case.key).items():
        case = members[0].case
        made = combine(Bill.whole(case.weights), [f.lever for f in members if f.lever is not None])
        if not isinstance(made, Unknown):
            out[key] = Combined(case, tuple(members), made)
    return out


def total(combined: Mapping[CaseKey, Combined], scale: Scale) -> AuditSavings:
    """All cases added up."""
    priced, whole = scale.priced, scale.whole
    used = [c for c in combined.values() if not priced or not isinstance(c.case.dollars, Unknown)]

    def add(figure: str, case: str | None = None) -> Fraction:
        parts = ((getattr(c.savings, figure), c.paid) for c in used)
        return added((getattr(x, f"{case}_pct") if case else x, of) for x, of in parts)

    combined_sum, final = add("combined_pct"), add("with_rate_pct")
    rest = 100 * whole - combined_sum
    spreads = [[add(f, case) for case in CASES] for f in ("combined", "with_rate")]
    return AuditSavings(
        of="the bill" if priced else "the paid GPU-hours",
        naive_pct=_over(add("naive_pct"), whole),
        one_bucket_pct=_over(add("one_bucket_pct"), whole),
        combined_pct=_over(combined_sum, whole),
        cap_pct=_over(add("cap_pct"), whole),
        rate_pct=_over((final - combined_sum) * 100, rest) if rest else Decimal(0),
        with_rate_pct=_over(final, whole),
        combined=Spread(*(_over(x, whole) for x in spreads[0])),
        with_rate=Spread(*(_over(x, whole) for x in spreads[1])),
        combined_month=_month(used, "combined", scale) if priced else NO_PRICE,
        with_rate_month=_month(used, "with_rate", scale) if priced else NO_PRICE,
        words=(*_relations(_over(add("one_bucket_pct"), whole), _over(combined_sum, whole)), *_words(used)),
    )


def added(parts: Iterable[tuple[Decimal, Fraction]]) -> Fraction:
    """The sum of products, exact: over one common denominator for each that occurs, not a new one at each step."""
    tops: dict[int, int] = {}
    for share, of in parts:
        (top, bottom), (over, under) = share.as_integer_ratio(), of.as_integer_ratio()
        tops[bottom * under] = tops.get(bottom * under, 0) + top * over
    return sum((Fraction(top, bottom) for bottom, top in tops.items()), Fraction(0))


def with_quarter(savings: AuditSavings, projection: Projection | Unknown) -> AuditSavings:
    """The savings with what they come to in the quarter that the projection names."""
    if isinstance(projection, Unknown):
        return savings
    quarter = projection.quarter
    if isinstance(quarter, Unknown):
        return replace(savings, combined_quarter=quarter, with_rate_quarter=quarter)
    combined, final = (_quarter(month, quarter) for month in (savings.combined_month, savings.with_rate_month))
    return replace(savings, combined_quarter=combined, with_rate_quarter=final)


def _quarter(month: MonthlyUsd | Unknown, quarter: Quarter) -> QuarterUsd | Unknown:
    if isinstance(month, Unknown):
        return month
    times = Fraction(quarter.days, DAYS_PER_MONTH)
    parts = (Fraction(getattr(month, f"{case}_usd")) * times for case in CASES)
    return QuarterUsd(quarter.name, quarter.days, *(round(usd(part), CENT_PLACES) for part in parts))


def differs(one_bucket_pct: Decimal, combined_pct: Decimal) -> bool:
    """Whether the two ways to combine levers show as two figures."""
    return round(one_bucket_pct, 1) != round(combined_pct, 1)


def _relations(one_bucket_pct: Decimal, combined_pct: Decimal) -> Iterator[str]:
    """How the combined figure relates to other figures for the same changes."""
    if differs(one_bucket_pct, combined_pct):
        yield (
            f"compounded as one bucket, 1 - (1 - f1)(1 - f2)..., the changes come to {one_bucket_pct:.1f} %, not "
            f"{combined_pct:.1f} %: that rule takes each share of the whole bill that is left, ours only of the idle, "
            "underused or stalled dollars the change acts on, and adds up what lies in different buckets"
        )
    if combined_pct:
        yield NEXT_TO_MOVES


def _over(part: Fraction, whole: Fraction) -> Decimal:
    return usd(part / whole) if whole else Decimal(0)


def _month(used: Sequence[Combined], figure: str, scale: Scale) -> MonthlyUsd | Unknown:
    """A saving per month over the cases that can be carried that far; the reason where none can."""
    if scale.no_month is not None:  # also where no change was found: that is no $0 per month
        return scale.no_month
    months = [(c, scale.month(c.case)) for c in used]
    known = [(c, month) for c, month in months if not isinstance(month, Unknown)]
    if months and not known:
        return next(month for _, month in months if isinstance(month, Unknown))
    sums = (
        added((getattr(getattr(c.savings, figure), f"{k}_pct"), c.paid * month) for c, month in known) for k in CASES
    )
    return MonthlyUsd(*(round(usd(x / 100), CENT_PLACES) for x in sums))


def _words(used: Sequence[Combined]) -> Iterator[str]:
    """Which levers overlap, which add up, which compound, which are left out; each once, over all cases."""
    yield from _overlaps(used)
    rates = sorted({f.rule.id for c in used for f in c.findings if f.rule.lever == "rate" and c.chosen(f.rule.id)})
    if rates:
        verb = "lowers" if len(rates) == 1 else "lower"
        yield f"{_and(rates)} {verb} the price of what is still paid for: this compounds with all the rest"
    left: Counter[tuple[str, str]] = Counter()
    for c in used:
        left.update((f.rule.id, f.rule.exclusive) for f in c.findings if not c.chosen(f.rule.id))
    for (rule, group), places in sorted(left.items()):
        yield f"{rule} is left out in {count(places, 'case')}: {group}, and another does more there"


def _overlaps(used: Sequence[Combined]) -> Iterator[str]:
    together: dict[tuple[str, ...], dict[Bucket, set[CaseKey]]] = {}
    acted: set[Bucket] = set()
    for c in used:
        for bucket in _WORDS:
            chosen = ((f.rule.id, f.rule.lever) for f in c.findings if c.chosen(f.rule.id))
            acting = tuple(sorted(name for name, lever in chosen if lever and bucket in ACTS_ON[lever]))
            if not acting or not c.case.weights[bucket]:
                continue
            acted.add(bucket)
            if len(acting) > 1:
                together.setdefault(acting, {}).setdefault(bucket, set()).add(c.case.key)
    for acting, places in sorted(together.items()):
        time = _and([_WORDS[b] for b in _WORDS if b in places])
        where = count(len(set().union(*places.values())), "case")
        yield f"{_and(acting)} overlap in {time} time ({where}): each takes its share of what the others leave"
    if len(acted) > 1:
        names = _and([_WORDS[b] for b in _WORDS if b in acted])
        yield f"{names} time are different dollars: what is saved in one adds to what is saved in another"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def rfu_power(stretches: Sequence[Stretch]) -> tuple[set[str], float | Unknown]:
    """The boards whose power is known, and their RFU (realized FLOPS utilization) by power in percent."""
    worked = sum(s.sums["rfu_ratio_ms"] for s in stretches) / PPM
    known_ms = sum(s.sums["rfu_ms"] for s in stretches)
    boards = {s.gpu_uuid for s in stretches if s.sums["rfu_ms"]}
    return boards, 100 * worked / known_ms if known_ms else Unknown("no power with a known power limit")


def mean_price(cost: CostStatement) -> Decimal | Unknown:
    """Mean dollars per GPU-hour, over what has a price."""
    if isinstance(cost.dollars, Unknown):
        return cost.dollars
    unpriced_ms = sum(round(row.paid_h * MS_PER_HOUR) for row in cost.unpriced)
    paid_ms = cost.times.paid_ms - unpriced_ms
    if paid_ms <= 0:
        return NOTHING_PAID
    return usd(Fraction(cost.dollars.paid_usd) * MS_PER_HOUR / paid_ms)


def roi_priced(stretches: Sequence[Stretch], cost: CostStatement, targets: Targets) -> tuple[RoiPriced, ...]:
    """Each target above the current RFU, with dollars per month: GPU-hours x the mean price."""
    boards, rfu_pct = rfu_power(stretches)
    lasting = len(boards & cost.months.times.keys())
    price = mean_price(cost)
    rows = []
    for row in roi(len(boards), rfu_pct, targets.roi_rfu_ratios, cost.end_ms - cost.start_ms, lasting):
        hours = row.gpu_hours_per_month
        worth: Decimal | Unknown
        if isinstance(price, Unknown):
            worth = price
        else:
            worth = hours if isinstance(hours, Unknown) else round(price * Decimal(str(hours)), 2)
        rows.append(RoiPriced(row, price, worth))
    return tuple(rows)
