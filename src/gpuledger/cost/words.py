"""What was taken for granted in this bill, said aloud?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpuledger.catalog.prices import source
from gpuledger.cost.billing import Asked, Charged
from gpuledger.cost.pricing import Price
from gpuledger.physics.evidence import ModelFacts, PipeRates
from gpuledger.units import MS_PER_HOUR, Unknown, utc

# Below this many samples a device, one reading more or less moves a share by 10 % and more.
FEW_SAMPLES = 10
_BLIND = {
    "by_power_ms": "have no pipe counters: the productive share is power above idle power, so any hot work counts",
    "by_none_ms": (
        "cannot be rated: no pipe counters of a GPU that the catalog can rate, and no power with a known idle power; "
        "their busy part is unrated"
    ),
    "tensor_only_ms": "do not have all compute pipes recorded: what they do beyond the recorded ones is unrated",
    "unshared_ms": "are of MIG slices whose share of the board is not recorded: the energy leaves them out",
    "unclocked_ms": "have pipe counters but no SM clock recorded: the rated clock is assumed",
    "capped_ms": "ran at a power limit below the board's own: all of their busy part counts as productive",
    "stateless_ms": (
        "were posted by version 1 of the ledger, by hour averages, and their samples are gone: mixed work is rated too "
        "low there"
    ),
    "idle_unknown_ms": "without work have no memory use recorded: whether memory was held is unknown; counted as idle",
}


def assumptions(bill: Charged, asked: Asked) -> tuple[str, ...]:
    """Every choice that moves a dollar, one sentence each."""
    return (*_few(bill), *_paid_time(bill, asked), *_window(bill, asked), *_prices(bill), *_buckets(bill))


def _few(bill: Charged) -> Iterator[str]:
    samples, devices = bill.samples, len(bill.devices)
    if samples < FEW_SAMPLES * devices:
        plural = "" if devices == 1 else "s"
        yield (
            f"only {samples} samples of {devices} device{plural}: too few to tell what the GPUs did; "
            "shares and dollars a month are rough"
        )


def _paid_time(bill: Charged, asked: Asked) -> Iterator[str]:
    if asked.inventory is None:
        yield "no inventory was given: each GPU counts as paid for from its first to its last sample"
    else:
        rows, seen = asked.inventory.by_device, {d.name for d in bill.devices} | {d.gpu_uuid for d in bill.devices}
        outside = sorted(d.name for d in bill.devices if d.name not in rows and d.gpu_uuid not in rows)
        unseen = sorted(name for name in rows if name not in seen)
        yield f"paid time comes from {asked.inventory.path}"
        if outside:
            yield f"{_some(outside)} not in the inventory: paid for from first to last sample"
        if unseen:
            yield f"{_some(unseen)} in the inventory but in no sample: all of that time is unobserved"
    if bill.unpaid_ms:
        yield f"{_h(bill.unpaid_ms)} were seen at times nobody pays for, and cost nothing here"
    if any(d.gpu_instance_id for d in bill.devices):
        yield "a MIG slice pays its share of the board; hours are hours of a whole board"


def _window(bill: Charged, asked: Asked) -> Iterator[str]:
    if bill.cut_by_share:
        yield "samples of an hour or day that the window cuts are gone: its part is taken in proportion to time"
    since, until = asked.scope.since_ms, asked.scope.until_ms
    start, end = bill.window.start_ms, bill.window.end_ms
    if (since is not None and since < start) or (until is not None and until > end):
        reach = f"{utc(start):%Y-%m-%d %H:%M} to {utc(end):%Y-%m-%d %H:%M} UTC"
        yield f"samples reach from {reach}, less than was asked for: hourly figures are over that time"


def _prices(bill: Charged) -> Iterator[str]:
    bases = Counter(c.price.basis for c in bill.charges if isinstance(c.price, Price))
    if bases["market"] or bases["instance"]:
        yield f"list prices: {source()}"
    if bases["yours"]:
        yield "rates of your own stand before list prices: gpuledger prices update --list shows them"
    if bases["market"]:
        yield "where no price was given, the market median of the GPU is used; its range is shown beside it"
    boards = {c.device.gpu_uuid for c in bill.charges if isinstance(c.price, Unknown)}
    if boards:
        gpus = "1 GPU has" if len(boards) == 1 else f"{len(boards)} GPUs have"
        yield f"{gpus} no known price: no dollar figure holds any of that time"


def _buckets(bill: Charged) -> Iterator[str]:
    totals = Counter[str]()
    for charge in bill.charges:
        totals.update(charge.sums)
    if totals["unstated_ms"]:
        yield f"{_h(totals['unstated_ms'])} have samples without activity or utilization: counted as unobserved"
    for name, what in _BLIND.items():
        if totals[name]:
            yield f"{_h(totals[name])} {what}"
    if totals["by_counters_ms"]:
        yield from _notes(bill)


def _notes(bill: Charged) -> Iterator[str]:
    """What had to be assumed to rate the pipes of each model."""
    found: dict[str, list[str]] = {}
    for model, precision in bill.worked:
        rates = ModelFacts(model).rates(precision)
        for note in rates.notes if isinstance(rates, PipeRates) else ():
            if (model or "") not in (said := found.setdefault(note, [])):
                said.append(model or "")
    for note, models in found.items():
        yield f"{', '.join(models)}: {note}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 2} more are" if len(names) > 2 else (" is" if len(names) == 1 else " are")
    return ", ".join(names[:2]) + more


def _h(ms: int) -> str:
    return f"{ms / MS_PER_HOUR:,.1f} h"
