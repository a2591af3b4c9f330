"""Which GPUs of a lake do worse than their own past or than peers on the same work, since when, and at what cost?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Unpack

import numpy as np

from gpuledger.anomalies.counting import excesses
from gpuledger.anomalies.findings import PriceOf, findings
from gpuledger.anomalies.judging import deviations, smallest_levels
from gpuledger.anomalies.peers import Compared, compare
from gpuledger.anomalies.reading import Hours, read_hours
from gpuledger.anomalies.signals import Rules, SignalName, rules
from gpuledger.anomalies.statement import AnomalyStatement, Dollars, Finding, NotJudged, Reason, Smallest
from gpuledger.arguments import takes
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.cost.build import Paying, choice_of
from gpuledger.cost.pieces import read_devices
from gpuledger.cost.pricing import Price, price_for
from gpuledger.efficiency.naming import name_of
from gpuledger.lake.layout import AnyLake, posted_lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import end_ms
from gpuledger.times import lasts_for_a_month, too_short_for_a_month
from gpuledger.units import MS_PER_HOUR, Unknown

_NAMING: tuple[SignalName, ...] = ("clock", "work", "heat")
_NONE = Dollars(Decimal(0), Decimal(0), Decimal(0))


@takes(Paying)
def anomaly_statement(
    lake: AnyLake,
    scope: Scope | None = None,
    *,
    thresholds: Thresholds | None = None,
    limits: Rules | None = None,
    **paying: Unpack[Paying],
) -> AnomalyStatement:
    """The GPUs in scope that do worse; the ledger must be posted. `paying`: prices, as for the audit."""
    kept, found = limits or rules(), scope or Scope()
    own = posted_lake(lake)
    books = Books(own, found, thresholds)
    hours = read_hours(books, kept)
    choice = choice_of(paying)

    @cache
    def price_of(model: str | None) -> Price | Unknown:
        return price_for(model, choice)

    made = judged(hours, kept, price_of)
    end = end_ms(own) if found.until_ms is None else found.until_ms  # the last hour may have just begun
    made = replace(made, end_ms=min(made.end_ms, end)) if end > made.start_ms else made
    return _long_enough(made, books) if made.findings else made


def _long_enough(made: AnomalyStatement, books: Books) -> AnomalyStatement:
    """Without dollars per month for GPUs that were seen for less than a day of the window."""
    seen: dict[str, tuple[int, int]] = {}
    for device in read_devices(books):
        first, last = seen.get(device.gpu_uuid, (device.first_ms, device.last_ms))
        seen[device.gpu_uuid] = min(first, device.first_ms), max(last, device.last_ms)

    def kept(one: Finding) -> Finding:
        first, last = seen[one.gpu_uuid]
        inside = min(last, made.end_ms) - max(first, made.start_ms)
        lasts = lasts_for_a_month(last - first, inside)
        short = too_short_for_a_month(made.end_ms - made.start_ms if lasts else inside)
        if short is None:
            return one
        month, gang = (
            short if isinstance(usd, Dollars) else usd for usd in (one.usd_per_month, one.gang_usd_per_month)
        )
        return replace(one, usd_per_month=month, gang_usd_per_month=gang)

    found = tuple(map(kept, made.findings))
    return replace(made, findings=found, usd_per_month=total(found))


def judged(hours: Hours, limits: Rules, price_of: PriceOf) -> AnomalyStatement:
    """The statement of hours that were read."""
    compared = compare(hours, limits)
    worse, tests = deviations(compared, limits)
    errors, counted = excesses(hours, limits)
    made = findings(hours, compared, worse, errors, price_of)
    peers, own, left = _judged_by(hours, compared, limits)
    return AnomalyStatement(
        start_ms=hours.start_ms,
        end_ms=hours.end_ms,
        gpus=len(hours.gpus),
        by_peers=peers,
        by_own_past=own,
        period_h=compared.block_ms / MS_PER_HOUR,
        tests=tests + counted,
        false_findings_pct=100 * limits.false_findings_ratio,
        false_levels_pct=100 * limits.false_levels_ratio,
        findings=made,
        usd_per_month=total(made),
        not_judged=left,
        assumptions=_assumptions(made, price_of),
        smallest=_smallest(compared, limits),
        slices=sum(gpu.gpu_instance_id is not None for gpu in hours.gpus),
    )


def _smallest(compared: Compared, limits: Rules) -> tuple[Smallest, ...]:
    """Of the readings that name a GPU by themselves."""
    found = smallest_levels(compared, limits)
    out = []
    for name in (n for n in _NAMING if n in found):
        signal = limits.signal(name)
        change = 100 * math.expm1(signal.sign * found[name]) if signal.form == "ratio" else signal.sign * found[name]
        out.append(Smallest(name, signal.title, change, "%" if signal.form == "ratio" else signal.unit))
    return tuple(out)


def total(found: tuple[Finding, ...]) -> Dollars | Unknown:
    """The dollars of all findings whose cost is known; the reason where none is."""
    known = [f.usd_per_month for f in found if not isinstance(f.usd_per_month, Unknown)]
    if found and not known:
        return next(f.usd_per_month for f in found)
    sums = _NONE
    for one in known:
        sums = Dollars(sums.low_usd + one.low_usd, sums.middle_usd + one.middle_usd, sums.high_usd + one.high_usd)
    return sums


def _judged_by(hours: Hours, compared: Compared, limits: Rules) -> tuple[int, int, tuple[NotJudged, ...]]:
    """How many GPUs were compared with peers, how many with their own past only, and which were not."""
    blocks = _most_known(compared.tested(s)[s.name] for s in limits.signals)
    days = _most_known(compared.own.values())
    ever = np.zeros(len(hours.gpus), dtype=bool)
    for values in hours.values.values():
        ever[hours.gpu[~np.isnan(values)]] = True
    by_peers = blocks >= limits.blocks_from
    by_past = ~by_peers & (days >= limits.own_days_from)
    left = []
    for gpu in np.flatnonzero(~by_peers & ~by_past).tolist():
        g = hours.gpus[gpu]
        reason: Reason = "no readings" if not ever[gpu] else "too short" if blocks[gpu] else "no peers"
        left.append(NotJudged(name_of(g.gpu_uuid, g.host, g.gpu_index), g.gpu_uuid, g.host, g.gpu_index, reason))
    return int(by_peers.sum()), int(by_past.sum()), tuple(sorted(left, key=lambda n: (n.gpu, n.gpu_uuid)))


def _most_known(series: Iterable[np.ndarray]) -> np.ndarray:
    return np.asarray(np.max([(~np.isnan(values)).sum(axis=1) for values in series], axis=0))


def _assumptions(made: tuple[Finding, ...], price_of: PriceOf) -> tuple[str, ...]:
    models = sorted({f.gpu_model or "" for f in made})
    prices = [(m, price_of(m or None)) for m in models]
    out = [f"{m or 'no model name'}: {p.words if isinstance(p, Price) else p}" for m, p in prices]
    return (*out, "A month is 720 hours; a slow GPU costs its price x the part of its work lost x its working time.")
