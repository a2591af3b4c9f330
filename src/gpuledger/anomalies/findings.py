"""What is wrong with a GPU, how much slower is it, and what does that cost?"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from gpuledger.anomalies.counting import Excess
from gpuledger.anomalies.judging import Deviation
from gpuledger.anomalies.peers import Compared
from gpuledger.anomalies.reading import Hours
from gpuledger.anomalies.readings_since import evidence_of, now_and_expected, series_of
from gpuledger.anomalies.signals import CountName, SignalName
from gpuledger.anomalies.statement import Dollars, Evidence, Finding, Kind, Slowdown
from gpuledger.cost.pricing import Price
from gpuledger.efficiency.naming import name_of
from gpuledger.units import Unknown

HOURS_PER_MONTH = 720
COUNTED: dict[CountName, Kind] = {
    "xid_events": "driver errors", "pcie_replays": "PCIe", "rows_remapped": "memory rows",
    "row_remap_failures": "memory rows",
}  # fmt: skip
NOT_SLOWER = Unknown("no slowdown is measured")
NOT_COUNTED = Unknown("what errors cost is not measured")
NO_SLICE_PRICE = Unknown("the price of a MIG slice is not known here")
NO_GANG = Unknown("it has no peers on the same work")
PriceOf = Callable[[str | None], Price | Unknown]


def findings(
    hours: Hours, compared: Compared, worse: Sequence[Deviation], errors: Sequence[Excess], price_of: PriceOf
) -> tuple[Finding, ...]:
    """One finding for each GPU and kind of trouble; the most dollars first, then by name."""
    by_gpu: dict[int, list[Deviation]] = defaultdict(list)
    for one in worse:
        by_gpu[one.gpu].append(one)
    out = []
    for gpu, found in by_gpu.items():
        for kind, parts in _kinds(found, hours, gpu):
            out.append(_made(hours, compared, gpu, kind, parts, price_of))
    for gpu, kind, counts in _error_kinds(errors):
        out.append(_of_errors(hours, compared, gpu, kind, counts))
    return tuple(sorted(out, key=_most_first))


def _most_first(found: Finding) -> tuple[float, int, str, str]:
    dollars = found.usd_per_month
    return (
        0.0 if isinstance(dollars, Unknown) else -float(dollars.middle_usd),
        found.since_ms,
        found.gpu,
        found.gpu_uuid,
    )


def kind_of(signals: Iterable[SignalName], *, work_known: bool) -> Kind | None:
    """What readings that got worse together point to; None where they do not show a GPU that is worse."""
    found = set(signals)
    slower = found & {"limit", "clock", "work", "power"}
    signs: tuple[tuple[Kind, bool], ...] = (
        ("heat", "throttled" in found or {"heat", "clock"} <= found),
        ("power limit", bool(slower and found & {"limit", "capped"})),
        ("clock", "clock" in found),
        ("starved", {"work", "util"} <= found),
        ("memory", {"work", "memory"} <= found),
        ("slow", "work" in found),
        ("heat", "heat" in found),
        # Less power at the same utilization; with less utilization it may just have less to do.
        ("slow", "power" in found and "util" not in found and not work_known),
    )
    return next((kind for kind, fits in signs if fits), None)


def _kinds(found: Sequence[Deviation], hours: Hours, gpu: int) -> Iterable[tuple[Kind, list[Deviation]]]:
    idle = [d for d in found if d.signal.name == "working"]
    rest = [d for d in found if d.signal.name != "working"]
    known = bool((~np.isnan(hours.values["work"][hours.gpu == gpu])).any())
    if idle:
        yield "idle", idle
    kind = kind_of((d.signal.name for d in rest), work_known=known)
    if kind is not None:
        yield kind, rest


def _made(hours: Hours, compared: Compared, gpu: int, kind: Kind, parts: list[Deviation], price_of: PriceOf) -> Finding:
    parts = sorted(parts, key=lambda d: (_importance(d), d.chance))
    shaped = [d for d in parts if d.shape != "level"]
    since = min((d.since_ms for d in shaped[:1] or parts), default=hours.start_ms)
    slower = slowdown(kind, parts)
    works = _working_share(hours, gpu, since) if kind != "idle" else 1.0
    price = NO_SLICE_PRICE if hours.gpus[gpu].gpu_instance_id else price_of(hours.gpus[gpu].gpu_model)
    peers = round(float(compared.peers[gpu])) if compared.peers[gpu] >= 1 else 0
    gang: Dollars | Unknown = NO_GANG
    if peers and kind != "idle":
        gang = dollars(slower, price, works * peers)
    main = parts[0]
    return Finding(
        **_place(hours, gpu), work=_work(hours, compared, gpu), kind=kind, drifting=main.shape == "drift",
        since_ms=since, from_start=not shaped, peers=peers, slowdown=slower,
        usd_per_month=dollars(slower, price, works), gang_gpus=peers + 1 if peers else 0, gang_usd_per_month=gang,
        evidence=tuple(_evidence(hours, compared, d) for d in parts),
        series=series_of(hours, compared, gpu, main.signal),
    )  # fmt: skip


def _importance(one: Deviation) -> int:
    """Readings that measure the loss come first, those that only explain it last."""
    order: tuple[SignalName, ...] = (
        "working", "clock", "work", "throttled", "limit", "util", "power", "heat", "capped", "memory",
    )  # fmt: skip
    return order.index(one.signal.name)


def slowdown(kind: Kind, parts: Sequence[Deviation]) -> Slowdown | Unknown:
    """How much less the GPU does: by its work where that is known, by its clock, by the time in which it works."""
    by_name = {d.signal.name: d for d in parts}
    if kind == "idle":
        idle = by_name["working"]
        return Slowdown(*(min(100.0, max(0.0, -x)) for x in (idle.high, idle.size, idle.low)))
    measured = [by_name[name] for name in ("work", "clock") if name in by_name]
    if not measured:
        return NOT_SLOWER
    low, high = min(_lost(d.high) for d in measured), max(_lost(d.low) for d in measured)
    return Slowdown(low, _lost(measured[0].size), high)


def _lost(size: float) -> float:
    """A change of a logarithm as percent lost."""
    return 100 * max(0.0, -math.expm1(size))


def dollars(slower: Slowdown | Unknown, price: Price | Unknown, gpus: float) -> Dollars | Unknown:
    """What is paid per month for work that is not done: the part lost of some GPUs' working time."""
    if isinstance(slower, Unknown):
        return slower
    if isinstance(price, Unknown):
        return price
    rates = (price.low_usd, price.usd_per_h, price.high_usd)
    parts = (slower.low_pct, slower.middle_pct, slower.high_pct)
    return Dollars(*(_month(rate, pct, gpus) for rate, pct in zip(rates, parts, strict=True)))


def _month(usd_per_h: Decimal, pct: float, gpus: float) -> Decimal:
    return (usd_per_h * HOURS_PER_MONTH * Decimal(repr(pct / 100 * gpus))).quantize(Decimal("0.01"))


def _working_share(hours: Hours, gpu: int, since_ms: int) -> float:
    mine = (hours.gpu == gpu) & (hours.at_ms >= since_ms)
    seen = float(hours.observed_ms[mine].sum())
    return float(hours.working_ms[mine].sum()) / seen if seen else 0.0


def _place(hours: Hours, gpu: int) -> dict[str, Any]:
    g = hours.gpus[gpu]
    name = name_of(g.gpu_uuid, g.host, g.gpu_index)
    return {
        "gpu": f"{name} MIG {g.gpu_instance_id}" if g.gpu_instance_id else name, "gpu_uuid": g.gpu_uuid,
        "gpu_instance_id": g.gpu_instance_id, "host": g.host, "gpu_index": g.gpu_index, "gpu_model": g.gpu_model,
    }  # fmt: skip


def _work(hours: Hours, compared: Compared, gpu: int) -> str:
    return hours.works[int(compared.group[gpu]) % len(hours.works)]


def _evidence(hours: Hours, compared: Compared, one: Deviation) -> Evidence:
    now, expected = now_and_expected(hours, compared, one)
    return evidence_of(one, now, expected)


def _error_kinds(errors: Sequence[Excess]) -> list[tuple[int, Kind, list[Excess]]]:
    found: dict[tuple[int, Kind], list[Excess]] = defaultdict(list)
    for one in errors:
        found[one.gpu, COUNTED[one.kind.name]].append(one)
    return [(gpu, kind, parts) for (gpu, kind), parts in found.items()]


def _of_errors(hours: Hours, compared: Compared, gpu: int, kind: Kind, counts: Sequence[Excess]) -> Finding:
    since = min(e.since_ms for e in counts)
    evidence = tuple(_counted(e) for e in counts)
    return Finding(
        **_place(hours, gpu), work=_work(hours, compared, gpu), kind=kind, drifting=False, since_ms=since,
        from_start=False, peers=len(hours.gpus) - 1, slowdown=NOT_SLOWER, usd_per_month=NOT_COUNTED, gang_gpus=0,
        gang_usd_per_month=NOT_COUNTED, evidence=evidence, series=(),
    )  # fmt: skip


def _counted(e: Excess) -> Evidence:
    more = e.events - e.expected
    return Evidence(
        e.kind.name, e.kind.title, "events", "fleet", "count", e.since_ms, more, more, more, "events", float(e.events),
        e.expected, e.chance,
    )  # fmt: skip
