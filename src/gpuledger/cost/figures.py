"""What do the charges of a window say, beside their dollars by group?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from gpuledger.catalog.prices import age_days
from gpuledger.cost.charges import Charge
from gpuledger.cost.money import ZERO, split_whole, usd
from gpuledger.cost.pricing import Price
from gpuledger.cost.statement import (
    EVIDENCE,
    PHASES,
    Dollars,
    GpuCost,
    PriceUsed,
    Unpriced,
    WorkCost,
    add_dollars,
    add_times,
)  # fmt: skip
from gpuledger.units import MS_PER_HOUR, PPM, Unknown

MJ_PER_KWH = 3_600_000_000
GFLOP_PER_EXAFLOP = 10**9
# Work is priced on devices whose counters were recorded for nearly all of the time they were seen.
COUNTED_FROM = Fraction(99, 100)
_TENTHS_OF_PPM = 10**7


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
    return _shares({p: _sum(charges, f"phase_{p}_ms") for p in PHASES}, "no utilization was recorded")


def evidence_pct(charges: Sequence[Charge]) -> Mapping[str, float] | Unknown:
    """What the productive share of the active time rests on; sums to 100."""
    return _shares({e: _sum(charges, f"by_{e}_ms") for e in EVIDENCE}, "no device was active")


def _shares(weights: Mapping[str, int], why: str) -> Mapping[str, float] | Unknown:
    if not sum(weights.values()):
        return Unknown(why)
    return {name: n * 100 / _TENTHS_OF_PPM for name, n in split_whole(_TENTHS_OF_PPM, weights).items()}


def _sum(charges: Iterable[Charge], name: str) -> int:
    return sum(c.sums.get(name, 0) for c in charges)


def work(charges: Sequence[Charge]) -> WorkCost | Unknown:
    """Dollars for an exaFLOP of work the counters prove, over the devices whose counters were recorded."""
    counted = [
        members
        for members in by_device(charges).values()
        if all(c.dollars is not None for c in members)
        and (seen := _sum(members, "observed_ms"))
        and _sum(members, "counted_ms") >= COUNTED_FROM * seen
    ]
    low, middle, high = (sum(_sum(m, f"{case}_gflop") for m in counted) for case in ("low", "middle", "high"))
    if not low:
        return Unknown("no priced device has counters recorded that prove floating-point work")
    paid = sum((Fraction(c.dollars.paid_usd) for m in counted for c in m if c.dollars), Fraction(0))
    per = {n: usd(paid * GFLOP_PER_EXAFLOP / n) for n in (low, middle, high)}
    total = len(by_device(charges))
    return WorkCost(
        low_usd=per[high],
        middle_usd=per[middle],
        high_usd=per[low],
        exaflop=middle / GFLOP_PER_EXAFLOP,
        gpus=len(counted),
        words=f"all that was paid for {len(counted)} of {total} devices over the work their pipe counters prove",
    )


def energy_kwh(charges: Sequence[Charge]) -> float | Unknown:
    """Energy of the devices, as recorded."""
    unknown = _no_energy(charges)
    return _sum(charges, "energy_mj") / MJ_PER_KWH if unknown is None else unknown


def _no_energy(charges: Sequence[Charge]) -> Unknown | None:
    """Why there is no energy; None where there is some."""
    if _sum(charges, "energy_ms"):
        return None
    if _sum(charges, "unshared_ms"):
        return Unknown("the samples do not say which share of its board a MIG slice is")
    return Unknown("neither energy nor power was recorded")


def energy_usd(charges: Sequence[Charge], usd_per_kwh: Decimal | None) -> Decimal | Unknown:
    """What the energy costs by itself; not part of any bucket, as cloud prices include it."""
    if usd_per_kwh is None:
        return Unknown("no price per kWh was given")
    if (unknown := _no_energy(charges)) is not None:
        return unknown
    return usd(Fraction(usd_per_kwh) * _sum(charges, "energy_mj") / MJ_PER_KWH)


def by_device(charges: Iterable[Charge]) -> dict[tuple[str, str], list[Charge]]:
    """Charges by board and slice."""
    found: dict[tuple[str, str], list[Charge]] = {}
    for c in charges:
        found.setdefault((c.device.gpu_uuid, c.device.gpu_instance_id or ""), []).append(c)
    return found


def by_gpu(charges: Sequence[Charge]) -> tuple[GpuCost, ...]:
    """One row a device, the dearest first."""
    rows = [_gpu_row(members) for members in by_device(charges).values()]
    return tuple(sorted(rows, key=_dearest_first))


def _dearest_first(row: GpuCost) -> tuple[Decimal, str, str]:
    paid = ZERO if isinstance(row.dollars, Unknown) else row.dollars.paid_usd
    return -paid, row.gpu_uuid, row.gpu_instance_id or ""


def _gpu_row(members: Sequence[Charge]) -> GpuCost:
    device = members[0].device
    dollars = [c.dollars for c in members if c.dollars is not None]
    times = add_times(c.times for c in members)
    missing = next((c.price for c in members if isinstance(c.price, Unknown)), None)
    paid_ms = times.paid_ms
    share = _mean_share(members, paid_ms)
    rate: Decimal | Unknown = missing or Unknown("nothing was paid")
    if dollars and missing is None and paid_ms:
        rate = usd(_rate(members, dollars, paid_ms))
    told = [c.price.words for c in members if isinstance(c.price, Price)]
    return GpuCost(
        gpu_uuid=device.gpu_uuid,
        gpu_instance_id=device.gpu_instance_id,
        gpu_model=device.gpu_model,
        cluster=device.cluster,
        region=device.region,
        board_share=float(share),
        times=times,
        dollars=add_dollars(dollars) if dollars else missing or Unknown("nothing was paid"),
        usd_per_h=rate,
        price_words="; ".join(dict.fromkeys(told)) or str(missing or "nothing was paid"),
    )


def _mean_share(members: Sequence[Charge], paid_ms: int) -> Fraction:
    """The share of the board a device held, over its own time; hours paid for are hours of the whole board."""
    if not paid_ms:
        return Fraction(members[0].share_ppm, PPM)
    own_ms = sum((Fraction(c.times.paid_ms * PPM, c.share_ppm) for c in members if c.share_ppm), Fraction(0))
    return paid_ms / own_ms


def _rate(members: Sequence[Charge], dollars: Sequence[Dollars], paid_ms: int) -> Fraction:
    """Dollars per hour of the device: its share of the board's price; the mean of several."""
    rates = {
        (c.stay.usd_per_h or 0) * (1 if c.stay.own_rate else Fraction(c.share_ppm, PPM))
        for c in members
        if c.dollars is not None
    }
    if len(rates) == 1:
        return Fraction(rates.pop())
    paid = sum((Fraction(d.paid_usd) for d in dollars), Fraction(0))
    return Fraction(paid * MS_PER_HOUR / paid_ms * _mean_share(members, paid_ms))


def prices_used(charges: Sequence[Charge], as_of_ms: int) -> tuple[PriceUsed, ...]:
    """Every price that was used, with what it rests on and its age."""
    rows = []
    for (model, price), members in _grouped(((c.device.gpu_model, c.price), c) for c in charges).items():
        if not isinstance(price, Price):
            continue
        age = None if price.newest is None else age_days(price.newest, as_of_ms)
        rows.append(
            PriceUsed(
                model,
                price.usd_per_h,
                price.low_usd,
                price.high_usd,
                price.basis,
                "; ".join((price.words, *price.notes)),
                price.oldest,
                price.newest,
                age,
                boards(members),
                sum(c.times.paid_ms for c in members) / MS_PER_HOUR,
            )
        )
    return tuple(sorted(rows, key=lambda r: (-r.paid_h, r.gpu_model or "", r.words)))


def unpriced(charges: Sequence[Charge]) -> tuple[Unpriced, ...]:
    """The devices whose price is not known, by reason."""
    rows = []
    for (model, price), members in _grouped(((c.device.gpu_model, c.price), c) for c in charges).items():
        if isinstance(price, Unknown):
            hours = sum(c.times.paid_ms for c in members) / MS_PER_HOUR
            rows.append(Unpriced(model, boards(members), hours, price.why))
    return tuple(sorted(rows, key=lambda r: (-r.paid_h, r.gpu_model or "", r.why)))


def _grouped(
    pairs: Iterable[tuple[tuple[str | None, Price | Unknown | None], Charge]],
) -> dict[tuple[str | None, Price | Unknown | None], list[Charge]]:
    found: dict[Hashable, list[Charge]] = {}
    for key, charge in pairs:
        found.setdefault(key, []).append(charge)
    return found  # type: ignore[return-value]
