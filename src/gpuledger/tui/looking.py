"""What is a look at the fleet made of? The statements of a short window, joined by device.

The figures are those of `analyze` and `audit` over that window: the same lines, the same prices, the same waste. The
part of a board that is in none of its MIG slices stays with the board there, unobserved: it is a row of its own here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import Terms, cost_statement
from gpuledger.cost.judged import known_waste
from gpuledger.cost.money import usd
from gpuledger.cost.statement import GpuCost, Times
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.lately import Lately, lately
from gpuledger.efficiency.naming import gpu_name, sort_name
from gpuledger.efficiency.statement import GpuRow
from gpuledger.lake.batch import device_name
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.tui.fleet import Fleet, GpuNow, Waste, blank, by_place
from gpuledger.units import Unknown, count

# Seven slices of a seventh come to a board but for rounding.
_LEAST_RATIO = 0.001


def look(lake: Lake, scope: Scope, terms: Terms, source: str, at_ms: int, window_s: float) -> Fleet:
    """The fleet of a posted lake over a window that has samples."""
    calibration = terms.get("calibration")
    stated = efficiency_statement(lake, scope, thresholds=load_thresholds(None), calibration=calibration)
    cost, doing = cost_statement(lake, scope, **terms), lately(lake, scope)
    costs = {device_name(c.gpu_uuid, c.gpu_instance_id): c for c in cost.by_gpu}
    gpus = []
    for row in stated.per_gpu:
        device = device_name(row.gpu_uuid, row.gpu_instance_id)
        if device in doing:
            gpus.append(_now(row, doing[device], costs.get(device)))
    gpus += _rests(cost.by_gpu, {gpu.device for gpu in gpus})
    return Fleet(source, at_ms, window_s, by_place(gpus), cost.prices)


def _now(row: GpuRow, doing: Lately, cost: GpuCost | None) -> GpuNow:
    means, unpaid = row.means, Unknown("nothing was paid for it in this window")
    rate = unpaid if cost is None else cost.usd_per_h
    return GpuNow(
        doing.device, gpu_name(row, row.gpu_instance_id), sort_name(row), row.host, row.gpu_model, doing.mode,
        means.gpu_util_pct, means.rfu_counters_pct, means.power_w, doing.limit_w, doing.memory_used_bytes,
        doing.memory_bytes, doing.clock_mhz, doing.temp_max_c, rate,
        unpaid if cost is None else _waste(rate, cost.times), "" if cost is None else cost.price_words, doing.owners,
    )  # fmt: skip


def _waste(rate: Decimal | Unknown, times: Times) -> Waste | Unknown:
    """The rate's parts, by the time that was observed."""
    if isinstance(rate, Unknown):
        return rate
    each = times.each()
    seen_ms = times.paid_ms - each["unobserved"]
    lost_ms = known_waste(times)
    if isinstance(lost_ms, Unknown):
        return lost_ms
    return Waste(rate * lost_ms / seen_ms, rate * each["unrated"] / seen_ms)


def _rests(costs: Iterable[GpuCost], shown: Collection[str]) -> Iterator[GpuNow]:
    """The rest of each board whose slices are shown and that is not shown itself, with its part of the price."""
    paid_ms: Counter[str] = Counter()
    slices: dict[str, list[GpuCost]] = {}
    wholes = []
    for cost in costs:
        paid_ms[cost.gpu_uuid] += cost.times.paid_ms
        device = device_name(cost.gpu_uuid, cost.gpu_instance_id)
        if cost.gpu_instance_id and device in shown:
            slices.setdefault(cost.gpu_uuid, []).append(cost)
        elif not cost.gpu_instance_id and device not in shown:
            wholes.append(cost)
    for cost in wholes:
        ratio = cost.times.paid_ms / (paid_ms[cost.gpu_uuid] or 1)
        if cost.gpu_uuid in slices and ratio > _LEAST_RATIO:
            yield _rest(cost, slices[cost.gpu_uuid], paid_ms[cost.gpu_uuid])


def _rest(cost: GpuCost, slices: list[GpuCost], paid_ms: int) -> GpuNow:
    part = f"{100 * cost.times.paid_ms / paid_ms:.0f} % of the board"
    why = f"{part} is in none of its {count(len(slices), 'MIG slice')}, and nothing reports what it does"
    found = blank(cost.gpu_uuid, cost, None, cost.gpu_model, "no data", why)
    rate: Decimal | Unknown = cost.usd_per_h
    if not isinstance(rate, Unknown):
        rate = usd(Fraction(rate) * cost.times.paid_ms / paid_ms)
    return replace(found, name=f"{found.name} rest", usd_per_h=rate, price=f"{cost.price_words}; {part}")
