"""How did the inventory fit a bill: which GPUs lack a price, where does a given price contradict it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from gpuledger.cost.billing import Asked, Charged
from gpuledger.cost.inventories.findings import InventoryUse, PriceConflict, Skipped, Source
from gpuledger.cost.inventories.settling import SAME_USD
from gpuledger.cost.money import usd
from gpuledger.cost.pricing import Price
from gpuledger.units import MS_PER_HOUR, count

RULE = (
    "of several prices for a GPU the first of these is used: your own row for it, your own row for its host, a bill, "
    "the price given by GPU, your own rates, the list price"
)
_SKIPPED = {
    Skipped.NO_GPU: "for machines without GPUs passed over",
    Skipped.NOT_COMPUTE: "not for running a machine passed over",
    Skipped.NO_MACHINE: "not for one machine passed over",
    Skipped.NO_COST: "without a cost passed over",
    Skipped.COMMITMENT_CREDIT: "counted before the credit of a commitment, whose fee is billed apart",
}


def priced_use(bill: Charged, asked: Asked) -> InventoryUse | None:
    """The use of the inventory, with the GPUs of the window it lacks and the prices given next to it."""
    stock = asked.inventory
    if stock is None or stock.use is None:
        return None
    rows = stock.by_device
    lists = {name for name, found in rows.items() if any(r.source is not Source.LIST for r in found)}
    without = {d.gpu_uuid for d in bill.devices if d.name not in lists and d.gpu_uuid not in lists}
    return replace(stock.use, conflicts=(*stock.use.conflicts, *_with_given(bill, asked)), gpus_unpriced=len(without))


def _with_given(bill: Charged, asked: Asked) -> Iterator[PriceConflict]:
    """Prices that were given for GPUs which the inventory prices differently, by model and source."""
    found: dict[tuple[str | None, Source, str, Decimal], tuple[set[str], int, Fraction]] = {}
    for stay in bill.stays:
        price = stay.price
        given = asked.choice.given_for(price.gpu) if isinstance(price, Price) and price.basis != "given" else None
        if given is None or not isinstance(price, Price) or abs(price.usd_per_h - given) < SAME_USD:
            continue
        source, file = _source(stay.segment.start_ms, stay.device.name, stay.device.gpu_uuid, price, asked)
        key = (stay.device.gpu_model, source, file, given)
        gpus, ms, total = found.get(key, (set[str](), 0, Fraction(0)))
        paid = Fraction(price.usd_per_h) * stay.length_ms
        found[key] = (gpus | {stay.device.gpu_uuid}, ms + stay.length_ms, total + paid)
    for (model, source, file, given), (gpus, ms, total) in sorted(found.items(), key=str):
        used = usd(total / ms)
        yield PriceConflict(model, len(gpus), ms / MS_PER_HOUR, source, file, used, Source.GIVEN, "", given)


def _source(at_ms: int, name: str, uuid: str, price: Price, asked: Asked) -> tuple[Source, str]:
    """Where the price of a stretch comes from."""
    rows = asked.inventory.by_device if asked.inventory else {}
    row = next((r for r in rows.get(name) or rows.get(uuid) or () if r.within(at_ms, at_ms + 1)), None)
    if row is None:
        return Source.LIST, ""
    return (row.source if price.basis == "inventory" else Source.LIST), row.file


def use_notes(asked: Asked) -> Iterator[str]:
    """What was assumed about the rows of an inventory, one sentence each."""
    use = asked.inventory.use if asked.inventory else None
    if use is None:
        return
    if asked.choice.price is not None or len(use.files) > 1:
        yield RULE
    for file in use.files:
        for why, rows in sorted(file.skipped.items()):
            yield f"{file.path}: {count(rows, 'row')} {_SKIPPED[why]}"
    if use.repeated_rows:
        yield f"{count(use.repeated_rows, 'row')} of the inventory in more than one file, counted once"
    if use.idle_priced_h >= 1:
        yield (
            f"{use.idle_priced_h:,.0f} GPU-hours are in no allocation: they are priced at the rate of the allocations, "
            "so the bill is above the dollars of that file"
        )
    if use.outside_h >= 1:
        yield (
            f"{use.outside_h:,.0f} GPU-hours of the periods of the allocations lie before the first or after the last "
            "sample of the lake, so whether they were used is unknown; ask for allocations of the time the lake covers"
        )
    for part in use.partly_seen[:3]:
        yield f"{part.host}: {part.seen} of {part.has} GPUs were seen; its dollars are spread over those"
    if len(use.partly_seen) > 3:
        yield f"the same for {len(use.partly_seen) - 3} more machines"
