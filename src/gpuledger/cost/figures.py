"""Which figures follow from the charges of a window, apart from dollars by group?

A comparison with the last period of the same length explains the change of each GPU model's dollars in a bucket, which
are hours x price x the bucket's share. In this order, so the parts add up exactly:
volume      more or fewer paid hours, at the old price and old shares
rate        another price, on the new hours and old shares
efficiency  time moved between buckets, at the new hours and price
A model that is new or gone is all volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from gpuledger.catalog.prices import age_days
from gpuledger.cost.billing import Asked, Charged
from gpuledger.cost.charges import NOTHING_PAID, Charge, Stay, grouped
from gpuledger.cost.judged import known_parts
from gpuledger.cost.money import ZERO, split_whole, usd
from gpuledger.cost.periods import Comparison, Effect
from gpuledger.cost.pricing import Price, PriceUsed, Unpriced
from gpuledger.cost.projections import PaidBoard
from gpuledger.cost.statement import (
    BUCKETS,
    EVIDENCE,
    PHASES,
    Bucket,
    Dollars,
    GpuCost,
    Times,
    WorkCost,
)  # fmt: skip
from gpuledger.efficiency.naming import name_of
from gpuledger.physics.evidence import LOOSE_RATIO
from gpuledger.units import MS_PER_HOUR, NO_POINT, PPM, Unknown

MJ_PER_KWH = 3_600_000_000
GFLOP_PER_EXAFLOP = 10**9
# Work is priced on devices whose counters were recorded for nearly all of the time they were seen.
COUNTED_FROM = Fraction(99, 100)
_TENTHS_OF_PPM = 10**7
_WHOLE_BOARD = Fraction(1)
NO_ENERGY = Unknown("neither energy nor power was recorded")
NO_SHARE = Unknown("the samples do not say which share of its board a MIG slice is")


def boards(charges: Iterable[Charge]) -> int:
    """How many GPUs; the slices of one board are one GPU."""
    return len({c.device.gpu_uuid for c in charges})


def paid_at(charges: Sequence[Charge], level: Literal["low_usd", "high_usd"]) -> Decimal | Unknown:
    """The bill at the low or high end of the prices' ranges."""
    if not any(c.dollars for c in charges):
        return Unknown("no device has a price")
    return sum((getattr(c, level) for c in charges), ZERO)


def phases_pct(charges: Sequence[Charge]) -> Mapping[str, float] | Unknown:
    """Shares of the four utilization phases; they sum to 100."""
    return _shares({p: summed(charges, f"phase_{p}_ms") for p in PHASES}, "no utilization was recorded")


def evidence_pct(charges: Sequence[Charge]) -> Mapping[str, float] | Unknown:
    """What the productive share of the active time rests on; sums to 100."""
    return _shares({e: summed(charges, f"by_{e}_ms") for e in EVIDENCE}, "no device was active")


def _shares(weights: Mapping[str, int], why: str) -> Mapping[str, float] | Unknown:
    if not sum(weights.values()):
        return Unknown(why)
    return {name: n * 100 / _TENTHS_OF_PPM for name, n in split_whole(_TENTHS_OF_PPM, weights).items()}


def summed(charges: Iterable[Charge], name: str) -> int:
    """One of the sums behind the charges, over all of them."""
    return sum([c.sums.get(name, 0) for c in charges])


def work(devices: Mapping[Any, Sequence[Charge]]) -> WorkCost | Unknown:
    """Dollars for an exaFLOP of work the counters prove, over the devices whose counters were recorded."""
    part, of = COUNTED_FROM.as_integer_ratio()
    counted = [
        members
        for members in devices.values()
        if all(c.dollars is not None for c in members)
        and (seen := summed(members, "observed_ms"))
        and of * summed(members, "counted_ms") >= part * seen
    ]
    cases = ("low", "middle", "high", "loose")
    low, middle, high, loose = (sum(summed(m, f"{case}_gflop") for m in counted) for case in cases)
    if not low:
        return Unknown("no priced device has counters recorded that prove floating-point work")
    paid = Fraction(sum((c.dollars.paid_usd for m in counted for c in m if c.dollars), ZERO))
    per = {n: usd(paid * GFLOP_PER_EXAFLOP / n) for n in (low, middle, high)}
    pointless = loose > LOOSE_RATIO * middle
    return WorkCost(
        low_usd=per[high],
        middle_usd=Unknown(NO_POINT) if pointless else per[middle],
        high_usd=per[low],
        exaflop=Unknown(NO_POINT) if pointless else middle / GFLOP_PER_EXAFLOP,
        gpus=len(counted),
        words=f"all that was paid for {len(counted)} of {len(devices)} devices over the work their pipe counters prove",
    )


def energy_kwh(charges: Sequence[Charge]) -> float | Unknown:
    """Energy of the devices, as recorded; the slices of one board count it once."""
    if not summed(charges, "energy_ms"):
        return NO_SHARE if summed(charges, "unshared_ms") else NO_ENERGY
    return summed(charges, "energy_mj") / MJ_PER_KWH


def energy_usd(charges: Sequence[Charge], usd_per_kwh: Decimal | None) -> Decimal | Unknown:
    """What the energy costs by itself; not part of any bucket, as cloud prices include it."""
    if usd_per_kwh is None:
        return Unknown("no price per kWh was given")
    used = energy_kwh(charges)
    return used if isinstance(used, Unknown) else usd(Fraction(usd_per_kwh) * summed(charges, "energy_mj") / MJ_PER_KWH)


def by_device(charges: Iterable[Charge]) -> dict[tuple[str, str], list[Charge]]:
    """Charges by board and slice."""
    return grouped(charges, lambda c: (c.device.gpu_uuid, c.device.gpu_instance_id or ""))


def by_gpu(devices: Mapping[Any, Sequence[Charge]]) -> tuple[GpuCost, ...]:
    """One row per device, the most expensive first."""

    def expensive_first(row: GpuCost) -> tuple[Decimal, str, str]:
        paid = ZERO if isinstance(row.dollars, Unknown) else row.dollars.paid_usd
        return -paid, row.gpu_uuid, row.gpu_instance_id or ""

    return tuple(sorted((_gpu_row(members) for members in devices.values()), key=expensive_first))


def _gpu_row(members: Sequence[Charge]) -> GpuCost:
    device = members[0].device
    dollars = [c.dollars for c in members if c.dollars is not None]
    times = Times.total(c.times for c in members)
    missing = next((c.price for c in members if isinstance(c.price, Unknown)), None)
    why = NOTHING_PAID if missing is None else missing
    paid_ms = times.paid_ms
    share = _mean_share(members, paid_ms)
    rate: Decimal | Unknown = why
    if dollars and missing is None and paid_ms:
        rate = usd(_rate(members, dollars, paid_ms))
    words = [c.price.words for c in members if isinstance(c.price, Price)]
    return GpuCost(
        gpu_uuid=device.gpu_uuid,
        gpu_instance_id=device.gpu_instance_id,
        gpu_model=device.gpu_model,
        cluster=device.cluster,
        region=device.region,
        host=device.host,
        gpu_index=device.gpu_index,
        board_share=float(share),
        times=times,
        dollars=Dollars.total(dollars) if dollars else why,
        usd_per_h=rate,
        price_words="; ".join(dict.fromkeys(words)) or str(why),
    )


def _mean_share(members: Sequence[Charge], paid_ms: int) -> Fraction:
    """The share of the board a device held, over its own time; hours paid for are hours of the whole board."""
    if all(c.share_ppm == PPM for c in members):
        return _WHOLE_BOARD
    if not paid_ms:
        return Fraction(members[0].share_ppm, PPM)
    own_ms = sum((Fraction(c.times.paid_ms * PPM, c.share_ppm) for c in members if c.share_ppm), Fraction(0))
    return paid_ms / own_ms


def _rate(members: Sequence[Charge], dollars: Sequence[Dollars], paid_ms: int) -> Fraction:
    """Dollars per hour of the device: its share of the board's price; the mean of several."""
    rates = [_own_rate(c) for c in members if c.dollars is not None]
    if all(rate == rates[0] for rate in rates[1:]):
        return rates[0]
    paid = sum((Fraction(d.paid_usd) for d in dollars), Fraction(0))
    return Fraction(paid * MS_PER_HOUR / paid_ms * _mean_share(members, paid_ms))


def _own_rate(charge: Charge) -> Fraction:
    rate = charge.stay.usd_per_h or Fraction(0)
    return rate if charge.stay.own_rate or charge.share_ppm == PPM else rate * Fraction(charge.share_ppm, PPM)


def _by_price(charges: Iterable[Charge]) -> dict[tuple[str | None, Price | Unknown], list[Charge]]:
    return grouped(charges, lambda c: (c.device.gpu_model, c.price))


def prices_used(charges: Sequence[Charge], as_of_ms: int) -> tuple[PriceUsed, ...]:
    """Every price that was used, with what it rests on and its age."""
    rows = [
        PriceUsed(
            model, price.usd_per_h, price.low_usd, price.high_usd, price.basis, "; ".join((price.words, *price.notes)),
            price.oldest, price.newest, None if price.newest is None else age_days(price.newest, as_of_ms),
            boards(members), _paid_h(members),
        )
        for (model, price), members in _by_price(charges).items()
        if isinstance(price, Price)
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda r: (-r.paid_h, r.gpu_model or "", r.words)))


def unpriced(charges: Sequence[Charge]) -> tuple[Unpriced, ...]:
    """The devices whose price is unknown, by reason."""
    rows = [
        Unpriced(model, boards(members), _paid_h(members), price.why)
        for (model, price), members in _by_price(charges).items()
        if isinstance(price, Unknown)
    ]
    return tuple(sorted(rows, key=lambda r: (-r.paid_h, r.gpu_model or "", r.why)))


def _paid_h(charges: Iterable[Charge]) -> float:
    return sum(c.times.paid_ms for c in charges) / MS_PER_HOUR


def paid_boards(bill: Charged, asked: Asked) -> tuple[PaidBoard, ...]:
    """Each GPU that is charged for: dollars and time paid in the window. The slices of one board are one GPU.

    Where only some owners are asked for, the dollars are theirs and the time is all that was paid for the GPU.
    """
    rows = asked.inventory.by_device if asked.inventory else {}
    stays = grouped((s for s in bill.stays if s.price is not None), lambda s: s.device.gpu_uuid)
    found = grouped(bill.charges, lambda c: c.device.gpu_uuid)
    return tuple(
        PaidBoard(
            gpu_uuid=uuid,
            gpu=name_of(uuid, members[0].device.host, members[0].device.gpu_index),
            usd=sum((c.dollars.paid_usd for c in members if c.dollars), ZERO),
            paid_ms=sum(s.length_ms for s in stays[uuid]),
            unobserved_ms=sum(c.times.unobserved_ms for c in members),
            listed=uuid in rows or any(c.device.name in rows for c in members),
            since_ms=_going_on_ms([(s.segment.start_ms, s.segment.end_ms) for s in stays[uuid]], bill.window.end_ms),
            priced=any(c.dollars is not None for c in members),
            seen_ms=_seen_ms(stays[uuid]),
            paid_in=tuple((s.segment.start_ms, s.segment.end_ms) for s in stays[uuid]),
        )
        for uuid, members in sorted(found.items())
    )


def _seen_ms(stays: Sequence[Stay]) -> int:
    """From the first to the last sample of a GPU in the whole lake."""
    return max(s.device.last_ms for s in stays) - min(s.device.first_ms for s in stays) if stays else 0


def _going_on_ms(stretches: Iterable[tuple[int, int]], end_ms: int) -> int | None:
    """How long stretches without a gap have lasted at an instant; None where they end before, or have gaps."""
    first, last = None, None
    for start, end in sorted(stretches):
        if last is not None and start > last:
            return None
        first, last = start if first is None else first, end if last is None else max(last, end)
    return None if first is None or last is None or last < end_ms else last - first


class _Side:
    """One model's priced hours and dollars in one period."""

    def __init__(self, charges: Sequence[Charge]) -> None:
        self.dollars: Dollars = Dollars.total(c.dollars for c in charges if c.dollars is not None)
        self.hours = Fraction(sum(c.times.paid_ms for c in charges if c.dollars is not None))
        self.paid = Fraction(self.dollars.paid_usd)


def compare(now: Sequence[Charge], before: Sequence[Charge], last_window: tuple[int, int]) -> Comparison:
    """The change of every bucket, model by model, added up."""
    models = {c.device.gpu_model for c in (*now, *before)}
    parts: list[dict[Bucket, Effect]] = []
    for model in sorted(models, key=str):
        old = _Side([c for c in before if c.device.gpu_model == model])
        new = _Side([c for c in now if c.device.gpu_model == model])
        parts.append({b: _effect(b, old, new) for b in BUCKETS})
    old_parts, new_parts = (known_parts(_Side(charges).dollars) for charges in (before, now))
    by_bucket = tuple(
        replace(_total(b, [p[b] for p in parts]), unknown=(_why(old_parts[b]), _why(new_parts[b]))) for b in BUCKETS
    )
    total = _total("paid", by_bucket)
    return Comparison(*last_window, total, by_bucket, tuple(_words(total, by_bucket)))


def _why(amount: Decimal | Unknown) -> Unknown | None:
    return amount if isinstance(amount, Unknown) else None


def _effect(bucket: Bucket, old: _Side, new: _Side) -> Effect:
    before, after = old.dollars.each()[bucket], new.dollars.each()[bucket]
    if not old.hours or not new.hours or not old.paid:
        return Effect(bucket, before, after, after - before, ZERO, ZERO)
    share = Fraction(before) / old.paid
    volume = usd((new.hours / old.hours - 1) * Fraction(before))
    rate = usd((new.paid - old.paid * new.hours / old.hours) * share)
    return Effect(bucket, before, after, volume, rate, after - before - volume - rate)


def _total(name: str, effects: Sequence[Effect]) -> Effect:
    columns = ("before_usd", "after_usd", "volume_usd", "rate_usd", "efficiency_usd")
    before, after, *parts = (sum((getattr(e, c) for e in effects), ZERO) for c in columns)
    return Effect(name, before, after, parts[0], parts[1], parts[2])


def _words(total: Effect, by_bucket: Sequence[Effect]) -> list[str]:
    change = f"paid ${total.after_usd:,.2f}, {_signed(total.change_usd)} against ${total.before_usd:,.2f}"
    words = [f"{change}: {_signed(total.volume_usd)} by volume, {_signed(total.rate_usd)} by rate"]
    moved = max((e for e in by_bucket if e.known), key=lambda e: abs(e.efficiency_usd), default=None)
    if moved and moved.efficiency_usd:
        way = "into" if moved.efficiency_usd > 0 else "out of"
        amount = f"${abs(moved.efficiency_usd):,.2f}"
        words.append(f"efficiency moved {amount} {way} {moved.bucket.replace('_', '-')} time")
    return words


def _signed(amount: Decimal) -> str:
    return f"{'-' if amount < 0 else '+'}${abs(amount):,.2f}"
