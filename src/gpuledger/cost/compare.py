"""What changed since the last period of the same length, and why?

Each GPU model's dollars in a bucket are hours x price x the bucket's share. In this order, so the parts add up exactly:
volume      more or fewer paid hours, at the old price and old shares
rate        another price, on the new hours and old shares
efficiency  time moved between buckets, at the new hours and price
A model that is new or gone is all volume.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.charges import Charge
from gpuledger.cost.money import ZERO, usd
from gpuledger.cost.statement import BUCKETS, Bucket, Comparison, Dollars, Effect, add_dollars

Window = tuple[int, int]


class _Side:
    """One model's priced hours and dollars in one period."""

    def __init__(self, charges: Sequence[Charge]) -> None:
        self.dollars: Dollars = add_dollars(c.dollars for c in charges if c.dollars is not None)
        self.hours = Fraction(sum(c.times.paid_ms for c in charges if c.dollars is not None))
        self.paid = Fraction(self.dollars.paid_usd)


def compare(now: Sequence[Charge], before: Sequence[Charge], last_window: Window) -> Comparison:
    """The change of every bucket, model by model, added up."""
    models = {c.device.gpu_model for c in (*now, *before)}
    parts: list[dict[Bucket, Effect]] = []
    for model in sorted(models, key=str):
        old = _Side([c for c in before if c.device.gpu_model == model])
        new = _Side([c for c in now if c.device.gpu_model == model])
        parts.append({b: _effect(b, old, new) for b in BUCKETS})
    by_bucket = tuple(_sum(b, [p[b] for p in parts]) for b in BUCKETS)
    total = _sum("paid", by_bucket)
    return Comparison(*last_window, total, by_bucket, tuple(_words(total, by_bucket)))


def _effect(bucket: Bucket, old: _Side, new: _Side) -> Effect:
    before, after = old.dollars.each()[bucket], new.dollars.each()[bucket]
    if not old.hours or not new.hours or not old.paid:
        return Effect(bucket, before, after, after - before, ZERO, ZERO)
    share = Fraction(before) / old.paid
    volume = usd((new.hours / old.hours - 1) * Fraction(before))
    rate = usd((new.paid - old.paid * new.hours / old.hours) * share)
    return Effect(bucket, before, after, volume, rate, after - before - volume - rate)


def _sum(name: str, effects: Sequence[Effect]) -> Effect:
    columns = ("before_usd", "after_usd", "volume_usd", "rate_usd", "efficiency_usd")
    return Effect(name, *(sum((getattr(e, c) for e in effects), ZERO) for c in columns))


def _words(total: Effect, by_bucket: Sequence[Effect]) -> list[str]:
    change = f"paid ${total.after_usd:,.2f}, {_signed(total.change_usd)} against ${total.before_usd:,.2f}"
    words = [f"{change}: {_signed(total.volume_usd)} by volume, {_signed(total.rate_usd)} by rate"]
    moved = max(by_bucket, key=lambda e: abs(e.efficiency_usd), default=None)
    if moved and moved.efficiency_usd:
        way = "into" if moved.efficiency_usd > 0 else "out of"
        amount = f"${abs(moved.efficiency_usd):,.2f}"
        words.append(f"efficiency moved {amount} {way} {moved.bucket.replace('_', '-')} time")
    return words


def _signed(amount: Decimal) -> str:
    return f"{'-' if amount < 0 else '+'}${abs(amount):,.2f}"
