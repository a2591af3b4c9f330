"""What does a FOCUS row hold of one owner's charge for one device on one day?"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from gpuledger.catalog.regions import Place
from gpuledger.cost import figures
from gpuledger.cost.emissions.build import Emitted
from gpuledger.cost.emissions.factors import Factor
from gpuledger.cost.emissions.readings import Readings, holder_of
from gpuledger.cost.inventory import Inventory
from gpuledger.cost.judged import OPEN, known_parts, known_waste
from gpuledger.cost.money import QUANTUM
from gpuledger.cost.pricing import Basis, Price
from gpuledger.cost.statement import EVIDENCE, Dollars
from gpuledger.cost.teams import Config
from gpuledger.efficiency.naming import name_of
from gpuledger.ledger.read.owners import space_name
from gpuledger.live.focus.days import DayCharge
from gpuledger.physics.evidence import LOOSE_RATIO, ModelFacts
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, PPM, Unknown, known, utc

Row = dict[str, Any]
UNIT = "GPU-Hours"
_SPLIT_MS = 2
LISTED: frozenset[Basis] = frozenset({"market", "instance"})


@dataclass(frozen=True)
class Naming:
    """What the rows call their issuer and account. `billed`: whether BilledCost has the dollars, or another dataset."""

    issuer: str = "Internal GPU platform"
    account: str = "gpu-fleet"
    billed: bool = True


@dataclass(frozen=True)
class Making:
    """What rows are made with, apart from the charges. `rest_ppm`: by board that is cut, what its slices leave."""

    naming: Naming
    teams: Config
    stock: Inventory | None
    emitted: Emitted
    readings: Readings
    rest_ppm: Mapping[str, int] = field(default_factory=dict)

    def row(self, day: DayCharge, dollars: Dollars, price: Price) -> Row:
        """The row of a charge with a price."""
        place = self.emitted.place(day.of)
        return {
            **self._charge(day, dollars, price),
            **self._who(day, place),
            **_sku(day, price),
            **_waste(dollars, price),
            **self._use(day),
            **self._carbon(day),
            **self._labels(day),
        }

    def _charge(self, day: DayCharge, dollars: Dollars, price: Price) -> Row:
        paid = dollars.paid_usd
        hours, unit = _quantity(day.times.paid_ms, paid, price.usd_per_h)
        start, end = _month(day.start_ms)
        device = day.of.device
        owner = day.of.workload or space_name(day.of.namespace, owned=day.of.owned)
        return {
            "BilledCost": paid if self.naming.billed else Decimal(0), "EffectiveCost": paid, "ListCost": paid,
            "ContractedCost": paid, "ContractedUnitPrice": unit, "ListUnitPrice": unit, "BillingCurrency": "USD",
            "BillingPeriodStart": start, "BillingPeriodEnd": end, "ChargePeriodStart": utc(day.start_ms),
            "ChargePeriodEnd": utc(day.end_ms), "ChargeCategory": "Usage", "ChargeClass": None,
            "ChargeDescription": f"{device.gpu_model or 'GPU'} time of {owner}", "ChargeFrequency": "Usage-Based",
            "ConsumedQuantity": hours, "ConsumedUnit": UNIT, "PricingQuantity": hours, "PricingUnit": UNIT,
            "PricingCategory": self._category(day, price),
        }  # fmt: skip

    def _category(self, day: DayCharge, price: Price) -> str:
        """Dynamic for spot; standard for list prices; other for prices of one's own."""
        rows = self.stock.by_device if self.stock else {}
        device = day.of.device
        mine = (*rows.get(device.name, ()), *rows.get(device.gpu_uuid, ()))
        if any(r.purchase_option == "spot" and r.within(day.start_ms, day.end_ms) for r in mine):
            return "Dynamic"
        return "Standard" if price.basis in LISTED else "Other"

    def _who(self, day: DayCharge, place: Place | Unknown) -> Row:
        naming, charge = self.naming, day.of
        space, region = charge.namespace, charge.device.region or known_region(place)
        sub = None if space is None else f"{charge.cluster}/{space}" if charge.cluster else space
        device = charge.device
        name = name_of(device.gpu_uuid, device.host, device.gpu_index)
        instance = device.gpu_instance_id
        return {
            "BillingAccountId": naming.account, "BillingAccountName": naming.account,
            "InvoiceIssuerName": naming.issuer, "ServiceProviderName": naming.issuer,
            "HostProviderName": naming.issuer if isinstance(place, Unknown) else place.cloud,
            "ServiceCategory": "Compute", "ServiceSubcategory": "Other (Compute)", "ServiceName": "GPU fleet",
            "RegionId": region, "RegionName": region, "ResourceId": device.name,
            "ResourceName": f"{name} MIG {instance}" if instance else name,
            "ResourceType": "MIG instance" if instance else "GPU",
            "SubAccountId": sub, "SubAccountName": space, "SubAccountType": None if space is None else "Namespace",
        }  # fmt: skip

    def _use(self, day: DayCharge) -> Row:
        sums = day.sums
        at = day.start_ms // MS_PER_DAY * MS_PER_DAY
        active = {name: sums.get(f"by_{name}_ms", 0) for name in EVIDENCE}
        whole = sum(active.values())
        shares = {name: round(100 * ms / whole, 2) for name, ms in active.items()} if whole else None
        peak, counted = ModelFacts(day.of.device.gpu_model).peak_tflops, sums.get("counted_ms", 0)
        middle, loose = sums.get("middle_gflop", 0), sums.get("loose_gflop", 0)
        realized = None if isinstance(peak, Unknown) or not counted else 100 * middle / counted / peak
        realized = None if loose > LOOSE_RATIO * middle else realized
        return {
            "x_Evidence": shares and json.dumps(shares), "x_ObservedHours": sums.get("observed_ms", 0) / MS_PER_HOUR,
            "x_UtilizationPct": known(self.readings.util_pct(holder_of(day.of), at)), "x_RealizedSharePct": realized,
            "x_BoardSharePct": 100 * self._share_ppm(day) / PPM,
        }  # fmt: skip

    def _share_ppm(self, day: DayCharge) -> int:
        """The share of its board; the rest of one that is cut holds what its slices leave."""
        device = day.of.device
        rest = device.gpu_instance_id is None and not day.sums.get("observed_ms", 0)
        return self.rest_ppm.get(device.gpu_uuid, day.of.share_ppm) if rest else day.of.share_ppm

    def _carbon(self, day: DayCharge) -> Row:
        if not day.sums.get("energy_ms", 0):
            return {"x_EnergyKwh": None, "x_CarbonKgCo2e": None, "x_CarbonGramsPerKwh": None, "x_CarbonSource": None}
        kwh = day.sums["energy_mj"] / figures.MJ_PER_KWH
        factor = self.emitted.factor(day.of, self._hours(day))
        if not isinstance(factor, Factor):
            why = f"unknown: {factor.why}"
            return {"x_EnergyKwh": kwh, "x_CarbonKgCo2e": None, "x_CarbonGramsPerKwh": None, "x_CarbonSource": why}
        return {
            "x_EnergyKwh": kwh, "x_CarbonKgCo2e": factor.kg(kwh).middle,
            "x_CarbonGramsPerKwh": factor.g_per_kwh.middle, "x_CarbonSource": factor.words,
        }  # fmt: skip

    def _hours(self, day: DayCharge) -> Mapping[int, int] | None:
        """The energy of the day by hour, where hours are known."""
        if self.emitted.readings is None:
            return None
        drawn = self.emitted.readings.drawn(day.of) or {}
        return {at: mj for at, mj in drawn.items() if day.start_ms - MS_PER_HOUR < at < day.end_ms}

    def _labels(self, day: DayCharge) -> Row:
        charge = day.of
        space = space_name(charge.namespace, owned=charge.owned)
        team = self.teams.team(charge.cluster, charge.namespace, charge.more.get("team"), owned=charge.owned)
        user, named = charge.more.get("user"), charge.more.get("team")
        tags = {
            "cluster": charge.cluster, "namespace": charge.namespace, "user": user, "workload": charge.workload,
            "team": named or self.teams.set_team(charge.cluster, charge.namespace),
        }  # fmt: skip
        return {
            "Tags": json.dumps({k: v for k, v in tags.items() if v}, ensure_ascii=False),
            "x_Cluster": charge.cluster, "x_Namespace": space, "x_Team": team, "x_User": user,
            "x_Workload": charge.workload, "x_GpuModel": charge.device.gpu_model, "x_Host": charge.device.host,
        }  # fmt: skip


def known_region(place: Place | Unknown) -> str | None:
    """The region of a place as its cloud names it."""
    return None if isinstance(place, Unknown) else place.region


def _sku(day: DayCharge, price: Price) -> Row:
    sku = price.gpu or day.of.device.gpu_model or "GPU"
    details: dict[str, object] = {"GpuCount": 1, "x_GpuModel": day.of.device.gpu_model or "unknown"}
    return {
        "SkuId": sku, "SkuMeter": "GPU time", "SkuPriceId": f"{sku}/{price.basis}",
        "SkuPriceDetails": json.dumps(details, ensure_ascii=False),
    }  # fmt: skip


def _waste(dollars: Dollars, price: Price) -> Row:
    each = {f"x_{_pascal(b)}Cost": known(amount) for b, amount in known_parts(dollars).items()}
    scale = Decimal(1) / price.usd_per_h if price.usd_per_h else None
    low, high = (
        dollars.paid_usd if scale is None else _decimal(dollars.paid_usd * end * scale)
        for end in (price.low_usd, price.high_usd)
    )
    return each | {
        "x_WasteCost": known(known_waste(dollars)), "x_WasteEvidence": _evidence(dollars), "x_CostLow": low,
        "x_CostHigh": high, "x_PriceBasis": price.basis, "x_PriceSource": price.words, "x_PriceListed": price.newest,
    }  # fmt: skip


def _evidence(dollars: Dollars) -> str:
    """What the waste of a row rests on: all of its dollars, some of them, or none with the reason."""
    unrated = known_parts(dollars)["stalled"]
    parts = [f"{b} {float(dollars.pct(v)):.1f} %" for b in OPEN if (v := dollars.each()[b])]
    if isinstance(waste := known_waste(dollars), Unknown):
        return f"unknown: {waste.why}"
    if isinstance(unrated, Unknown):
        return f"at least; {', '.join(parts)} of the cost: {unrated.why}"
    return f"at least; {', '.join(parts)} of the cost" if parts else "all of the cost is rated"


def _quantity(paid_ms: int, paid: Decimal, usd_per_h: Decimal) -> tuple[Decimal, Decimal]:
    """Hours and price per hour, whose product is the cost.

    Time is split among owners and slices to the millisecond, dollars more finely. Where both agree but for that, the
    price is the one of the board and the hours follow from it: else one price would be written in many ways.
    """
    hours = Decimal(paid_ms) / MS_PER_HOUR
    if usd_per_h and abs(paid / usd_per_h - hours) * MS_PER_HOUR <= _SPLIT_MS:
        return _decimal(paid / usd_per_h), usd_per_h
    return _decimal(hours), _decimal(paid / hours) if paid_ms else usd_per_h


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _decimal(value: Decimal) -> Decimal:
    return value.quantize(QUANTUM)


def _month(at_ms: int) -> tuple[dt.datetime, dt.datetime]:
    """The calendar month of an instant: its start, and that of the next."""
    first = utc(at_ms).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return first, (first + dt.timedelta(days=31)).replace(day=1)
