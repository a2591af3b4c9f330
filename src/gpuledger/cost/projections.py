"""What does this rate of spending come to in a month, a year, the next quarter?

Each GPU's dollars of the window are carried through a month by themselves: x 720 h / the hours they were paid for, so
that nothing of a GPU is ever worth more per month than the GPU costs. Without an inventory a GPU counts as paid for
from its first to its last sample. Less than a day says nothing of a month: no figure per month comes from a shorter
window, and a GPU that was seen for less is left out, unless an inventory says what is paid for it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from gpuledger.cost.money import usd
from gpuledger.times import lasts_for_a_month, too_short_for_a_month
from gpuledger.units import MS_PER_HOUR, Unknown, count, some, utc

HOURS_PER_DAY = 24
DAYS_PER_MONTH = 30
DAYS_PER_YEAR = 365
MONTH_H = HOURS_PER_DAY * DAYS_PER_MONTH
MONTH_MS = MONTH_H * MS_PER_HOUR
# GPUs seen for less than this share of the window are too little seen to tell when they are paid for.
SPARSE_BELOW_RATIO = 0.5
SEEN_TOO_BRIEFLY = Unknown("its GPUs were seen for less than 24 h, and no inventory says what is paid for them")


@dataclass(frozen=True, slots=True)
class PaidBoard:
    """What was paid for one GPU in the window, for how long, and for how much of that it was not seen.

    `listed`: an inventory says when it is paid for. `since_ms`: how long the inventory has been paying for it, without
    a gap, up to the end of the window; None where it does not. `priced`: whether its price is known. `seen_ms`: from
    its first to its last sample, in the window and outside it. `paid_in`: when it was paid for, from and until.
    """

    gpu_uuid: str
    gpu: str
    usd: Decimal
    paid_ms: int
    unobserved_ms: int
    listed: bool
    since_ms: int | None = None
    priced: bool = True
    seen_ms: int = 0
    paid_in: tuple[tuple[int, int], ...] = ()

    def stands_for_ms(self, window_ms: int) -> int:
        """The time that its dollars of the window are paid for; 0 where it was seen too briefly to tell."""
        if self.listed:
            return self.since_ms or window_ms
        return self.paid_ms if lasts_for_a_month(max(self.seen_ms, self.paid_ms), self.paid_ms) else 0


@dataclass(frozen=True)
class Months:
    """What turns dollars of a window into dollars per month: for each GPU, how many times its time fits into a month.

    `left_out`: the GPUs that were seen too briefly. `why`: the reason where the window is too short for all of them.
    """

    times: Mapping[str, Fraction] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    why: Unknown | None = None

    def of(self, gpu_uuid: str) -> Fraction | Unknown:
        """The factor of one GPU."""
        return self.times.get(gpu_uuid, SEEN_TOO_BRIEFLY) if self.why is None else self.why

    @cached_property
    def common(self) -> Fraction | None:
        """The factor of all GPUs, where they have the same: one product, not one for each GPU."""
        same = not self.left_out and len(found := set(self.times.values())) == 1
        return found.pop() if same else None

    def total(self, parts: Iterable[tuple[str, Decimal | float]]) -> Fraction | Unknown:
        """Amounts of the window by GPU, per month; GPUs that are left out are in none of it."""
        if self.why is not None:
            return self.why
        if self.common is not None:
            return Fraction(sum(amount for _, amount in parts)) * self.common
        sums: dict[str, Any] = {}
        for gpu, amount in parts:
            sums[gpu] = sums.get(gpu, 0) + amount
        found = [Fraction(amount) * self.times[gpu] for gpu, amount in sums.items() if gpu in self.times]
        return sum(found, Fraction(0)) if found or not sums else SEEN_TOO_BRIEFLY

    @property
    def note(self) -> str:
        """What is missing from figures per month, and why; empty where nothing is."""
        if self.why is not None:
            return f"nothing is given per month: {self.why.why}"
        if not self.left_out:
            return ""
        gpus, one = count(len(self.left_out), "GPU"), len(self.left_out) == 1
        was, are = ("was", "is") if one else ("were", "are")
        return f"{gpus} {was} seen for less than 24 h and {are} left out of the month: {some(self.left_out, NAMED)}"


NAMED = 5
NO_MONTH = Unknown("the window has no length")
NO_MONTHS = Months(why=NO_MONTH)


def months_of(window_ms: int, boards: Sequence[PaidBoard]) -> Months:
    """The factors of a window's GPUs."""
    if (why := too_short_for_a_month(window_ms)) is not None:
        return Months(why=why)
    lasting = [(b, b.stands_for_ms(window_ms)) for b in boards]
    times = {b.gpu_uuid: Fraction(MONTH_MS, ms) for b, ms in lasting if ms}
    return Months(times, tuple(sorted(b.gpu for b, ms in lasting if not ms)))


@dataclass(frozen=True)
class Quarter:
    """One calendar quarter at the present rate of spending; its days are counted, not assumed.

    It is the quarter after `as_of`: the newest sample of the window, unless another day was asked for.
    """

    name: str
    first_day: str
    days: int
    usd: Decimal
    as_of: str


@dataclass(frozen=True)
class ProjectionBasis:
    """What a projection assumes: a number of GPUs and hours, at a price per paid GPU-hour.

    `sparse`: no inventory, and the GPUs were seen for too small a part of the window to tell when they are paid for.
    `seen_hourly_usd` and `seen_monthly_usd` are if they are paid for only from their first to their last sample.
    `left_out`: GPUs that were seen too briefly and are in none of it.
    """

    gpus: int
    paid_gpu_h: float
    window_gpu_h: float
    usd_per_gpu_h: Decimal | Unknown
    seen_hourly_usd: Decimal
    seen_monthly_usd: Decimal | Unknown
    sparse: bool
    words: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Projection:
    """The same spending over longer times. A month is 30 days, a year 365; each is to the cent.

    `hourly_usd` is what the GPUs cost together while they are paid for, also where nothing can be given per month;
    where they took turns, the mean of the time in which any of them was paid for.
    """

    hourly_usd: Decimal
    monthly_usd: Decimal | Unknown
    yearly_usd: Decimal | Unknown
    quarter: Quarter | Unknown
    projection_basis: ProjectionBasis


def project(window_ms: int, as_of_ms: int, boards: Sequence[PaidBoard], months: Months) -> Projection | Unknown:
    """Paid dollars of each GPU over the hours they were paid for, carried forward."""
    if window_ms <= 0:
        return Unknown("the window has no length, so the hourly rate is unknown")
    boards = [b for b in boards if b.priced]
    month = months.total((b.gpu_uuid, b.usd) for b in boards)
    if isinstance(month, Unknown):
        # GPUs that come and go within a longer window take turns: all at once would cost more than was ever paid.
        together_ms = _covered_ms(s for b in boards for s in b.paid_in) if months.why is None else 0
        lasting = [(b.usd, together_ms or b.stands_for_ms(window_ms) or b.paid_ms) for b in boards]
        hourly = usd(sum((Fraction(paid) * MS_PER_HOUR / ms for paid, ms in lasting if ms), Fraction(0)))
        return Projection(hourly, month, month, month, _basis(boards, window_ms, hourly, month))
    hourly = usd(month / MONTH_H)
    counted = [b for b in boards if b.gpu_uuid in months.times]
    return Projection(
        hourly_usd=hourly,
        monthly_usd=over_days(hourly, DAYS_PER_MONTH),
        yearly_usd=over_days(hourly, DAYS_PER_YEAR),
        quarter=next_quarter(hourly, as_of_ms),
        projection_basis=_basis(counted, window_ms, hourly, None, months),
    )


def _covered_ms(stretches: Iterable[tuple[int, int]]) -> int:
    """The time that some stretches cover together."""
    covered, reached = 0, None
    for start, end in sorted(stretches):
        covered += max(0, end - (start if reached is None else max(start, reached)))
        reached = end if reached is None else max(reached, end)
    return covered


def _sparse(window_ms: int, boards: Sequence[PaidBoard]) -> bool:
    assumed = [b.paid_ms for b in boards if not b.listed]
    return bool(assumed) and sum(assumed) < SPARSE_BELOW_RATIO * len(assumed) * window_ms


def _basis(
    boards: Sequence[PaidBoard], window_ms: int, hourly: Decimal, unknown: Unknown | None, months: Months = NO_MONTHS
) -> ProjectionBasis:
    """What the figures of some GPUs rest on; `unknown`: why there are none per month."""
    paid_ms, paid = sum(b.paid_ms for b in boards), sum((b.usd for b in boards), Decimal(0))
    paid_h, window_h = paid_ms / MS_PER_HOUR, window_ms / MS_PER_HOUR
    price: Decimal | Unknown = usd(Fraction(paid) * MS_PER_HOUR / paid_ms) if paid_ms else Unknown("nothing was paid")
    seen_hourly = usd(Fraction(paid) * MS_PER_HOUR / window_ms)
    sparse = unknown is None and bool(paid) and _sparse(window_ms, boards)
    words = _words(boards, window_ms, price, (hourly, seen_hourly), sparse=sparse)
    if unknown is not None:
        words = f"nothing is given per month, per quarter or per year: {unknown.why}"
    elif months.left_out:
        words += f"; {months.note}"
    return ProjectionBasis(
        gpus=len(boards),
        paid_gpu_h=paid_h,
        window_gpu_h=len(boards) * window_h,
        usd_per_gpu_h=price,
        seen_hourly_usd=seen_hourly,
        seen_monthly_usd=over_days(seen_hourly, DAYS_PER_MONTH) if unknown is None else unknown,
        sparse=sparse,
        words=words,
        left_out=months.left_out,
    )


def _words(
    boards: Sequence[PaidBoard], window_ms: int, price: Decimal | Unknown, rates: tuple[Decimal, Decimal], *,
    sparse: bool,
) -> str:  # fmt: skip
    """What is assumed of GPUs that are projected; `rates`: dollars per hour as projected, and as seen."""
    paid_ms = sum(b.paid_ms for b in boards)
    (month, seen_month), one = (over_days(rate, DAYS_PER_MONTH) for rate in rates), len(boards) == 1
    gpus = f"{len(boards):,} GPU{'s' * (not one)}"
    seen = f"{paid_ms / MS_PER_HOUR:,.1f} of {len(boards) * window_ms / MS_PER_HOUR:,.1f} GPU-hours"
    if sparse and not isinstance(price, Unknown):
        words = (
            f"${month:,.2f} per month assumes that {gpus} {'is' if one else 'are'} paid for at all hours "
            f"({len(boards):,} x {MONTH_H} h at ${price:,.2f} per GPU-hour on average): "
            f"{'it was' if one else 'they were'} seen for {seen}, and no inventory says when "
            f"{'it is' if one else 'they are'} paid for. Paid for only from first to last sample it would be "
            f"${seen_month:,.2f} per month"
        )
    elif month == seen_month:
        words = f"assumes that {gpus} {'goes' if one else 'go'} on being paid for as in the window, {seen}"
    else:
        words = f"assumes that {gpus} {'goes' if one else 'go'} on being paid for at all hours; seen for {seen}"
    unobserved = sum(b.unobserved_ms for b in boards)
    if paid_ms and unobserved > SPARSE_BELOW_RATIO * paid_ms:
        words += f"; {100 * unobserved / paid_ms:.0f} % of the paid time has no samples"
    return words


def over_days(hourly_usd: Decimal, days: int) -> Decimal:
    """An hourly rate over whole days, to the cent."""
    return round(hourly_usd * HOURS_PER_DAY * days, 2)


def next_quarter(hourly_usd: Decimal, as_of_ms: int) -> Quarter:
    """The calendar quarter after the one an instant falls in."""
    today = utc(as_of_ms).date()
    first = _quarter_start(today.year, (today.month - 1) // 3 + 1)
    after = _quarter_start(first.year, (first.month - 1) // 3 + 1)
    days = (after - first).days
    name = f"{first.year}-Q{(first.month - 1) // 3 + 1}"
    return Quarter(name, first.isoformat(), days, over_days(hourly_usd, days), today.isoformat())


def _quarter_start(year: int, quarter: int) -> dt.date:
    """The first day of a quarter counted from 0; 4 is the first of the next year."""
    return dt.date(year + quarter // 4, quarter % 4 * 3 + 1, 1)
