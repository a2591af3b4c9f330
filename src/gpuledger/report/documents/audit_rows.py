"""Which rows does an audit give to its tables, as people read them? Every figure is the audit's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from heapq import nsmallest
from typing import Any

from gpuledger.advice.orientation import Orientation
from gpuledger.advice.recommend import window_usd
from gpuledger.advice.statement import (
    AuditSavings,
    AuditStatement,
    GroupBehaviour,
    MonthlyUsd,
    QuarterUsd,
    Recommendation,
)
from gpuledger.advice.totals import differs
from gpuledger.cost.judged import at_least, bucket_h, known_waste, open_usd
from gpuledger.cost.periods import Effect
from gpuledger.cost.projections import Projection
from gpuledger.cost.savings import CASES, Spread
from gpuledger.cost.statement import BUCKETS, Bucket, CostStatement, Dollars
from gpuledger.efficiency.naming import gpu_name
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.plain_text import csv_text
from gpuledger.report.adding import shares_adding_up
from gpuledger.report.buckets import BucketKind, bucket_kinds
from gpuledger.report.document import Naming
from gpuledger.report.tables import csv_table
from gpuledger.report.written import capital, device, money, number, percent, shares, usd
from gpuledger.units import MS_PER_HOUR, Unknown, some

NAMED = 3
START_HERE = "start here"
_MONTH = tuple(f"{end}_usd" for end in CASES)


Row = dict[str, Any]


def audit_view(audit: AuditStatement) -> Row:
    """What the outline shows of an audit: its figures, and the rows of its tables, by their names there."""
    cost, dollars, paid, savings = audit.cost, audit.cost.dollars, audit.cost.paid_usd, audit.savings
    whole = paid if isinstance(paid, Unknown) else 100.0
    before: Row = {"changes": (), "change_total": cost.previous}
    if not isinstance(cost.previous, Unknown):
        effects = {e.bucket: e for e in cost.previous.by_bucket}
        before["changes"] = [_change(kind.title, effects[kind.name]) for kind in bucket_kinds()]
        before["change_total"] = _change("Paid", cost.previous.total)
    return before | {
        "cost": cost,
        "savings": savings,
        "phases_pct": audit.phases_pct,
        "roi_priced": audit.roi_priced,
        "waste_usd": known_waste(dollars),
        "waste_share": _waste_share(dollars),
        "quarter_saving": _quarter_saving(savings),
        "bill": _bill(cost),
        "bill_total": {"title": "Paid", "hours": cost.times.paid_h, "pct": whole, "usd": paid, "meaning": ""}
        | {"unpriced_h": cost.unpriced_h},
        "projections": _projections(cost.projection),
        "orientation": [_orientation(o) for o in audit.orientation],
        "behaviors": [_behavior(b) for b in audit.behaviours],
        "advice": [_advised(rank, r) for rank, r in enumerate(audit.recommendations, 1)],
        "savings_rows": () if isinstance(savings, Unknown) else savings_rows(savings),
    }


def _quarter_saving(savings: AuditSavings | Unknown) -> str:
    """What could be saved of the next quarter, in words."""
    found = savings if isinstance(savings, Unknown) else savings.combined_quarter
    if isinstance(found, Unknown):
        return ""
    low, middle, high = (money(v) for v in (found.low_usd, found.middle_usd, found.high_usd))
    return f"{middle} of it could be saved ({low} to {high})"


def _waste_share(dollars: Dollars | Unknown) -> str:
    """Waste in percent of the bill; where part of the bill is open, how much."""
    if isinstance(dollars, Unknown):
        return str(dollars)
    share = f"{percent(dollars.pct(dollars.waste_usd))} of the bill"
    if not at_least(dollars):
        return share
    return f"at least {share}; {percent(dollars.pct(open_usd(dollars)))} is unrated or unobserved"


def _bill(cost: CostStatement) -> list[Row]:
    """The seven buckets, shares to the tenth, adding up; what is unknown has its reason next to what the bucket is."""
    hours, dollars, paid = bucket_h(cost.times), cost.dollars, cost.buckets
    shares: Mapping[Bucket, Any] = paid
    if not isinstance(dollars, Unknown):
        none = {bucket: amount for bucket, amount in paid.items() if isinstance(amount, Unknown)}
        shares = shares_adding_up({b: dollars.pct(v) for b, v in dollars.each().items()}) | none
    without = unpriced_h(cost)
    return [
        {"title": kind.title, "hours": hours[kind.name], "meaning": _meaning(kind, hours[kind.name])}
        | {"pct": shares[kind.name], "usd": paid[kind.name], "unpriced_h": without.get(kind.name, "")}
        for kind in bucket_kinds()
    ]


def _meaning(kind: BucketKind, hours: float | Unknown) -> str:
    return f"{kind.meaning} Unknown here: {hours.why}." if isinstance(hours, Unknown) else kind.meaning


def unknown_buckets(cost: CostStatement) -> str:
    """Which buckets are unknown though their time was paid for, and why; empty where all are known."""
    by_reason: dict[str, list[str]] = {}
    for kind in bucket_kinds():
        if isinstance(hours := bucket_h(cost.times)[kind.name], Unknown):
            by_reason.setdefault(hours.why, []).append(kind.title.lower())
    return " ".join(f"{capital(', '.join(names))}: unknown because {why}." for why, names in by_reason.items())


def unpriced_h(cost: CostStatement) -> dict[Bucket, float]:
    """GPU-hours without a price by bucket, where only some GPUs have one."""
    if isinstance(cost.dollars, Unknown):
        return {}
    hours = Counter[Bucket]()
    for row in cost.by_gpu:
        if isinstance(row.dollars, Unknown):
            hours.update(row.times.each())
    return {bucket: ms / MS_PER_HOUR for bucket, ms in hours.items() if ms}


_BASES = {
    "market": "market medians", "given": "as given", "yours": "your own", "instance": "of the instance named",
    "inventory": "of the inventory",
}  # fmt: skip


def price_fact(cost: CostStatement) -> str:
    """Which prices the dollars rest on, and the newest date each kind was listed; empty where there is none."""
    newest: dict[str, str] = {}
    for price in cost.prices:
        newest[price.basis] = max(newest.get(price.basis, ""), price.newest or "")
    parts = [f"{_BASES.get(basis, basis)}{f' of {day}' if day else ''}" for basis, day in newest.items()]
    return f"prices: {', '.join(parts)}" if parts else ""


def _projections(rate: Projection | Unknown) -> list[Row]:
    """The rate of spending over longer times."""
    if isinstance(rate, Unknown):
        return []
    q = rate.quarter
    over: dict[str, Decimal | Unknown] = {"Per hour": rate.hourly_usd, "Per month": rate.monthly_usd}
    if isinstance(q, Unknown):
        over |= {"Next quarter": q}
    else:
        over |= {f"Next quarter after {q.as_of}: {q.name} ({q.days} days)": q.usd}
    over |= {"Per year": rate.yearly_usd}
    return [{"name": name, "usd": usd} for name, usd in over.items()]


def _orientation(o: Orientation) -> Row:
    """What is called usual, and this fleet's figure."""
    form = usd if o.unit == "usd_per_gpu_h" else percent
    name = f"{o.name}, dollars per GPU-hour" if o.unit == "usd_per_gpu_h" else o.name
    if isinstance(o.here_low, Unknown) or isinstance(o.here_high, Unknown):
        here = str(o.here_low)
    else:
        low, high = form(o.here_low), form(o.here_high)
        here = low if low == high else f"between {low} and {high}"
    return {"name": name, "usual": f"{form(o.low)} to {form(o.high)}", "here": here}


def mark(r: Recommendation, audit: AuditStatement) -> str:
    """A word next to the change that the second line names; the list itself is sorted by dollars."""
    return START_HERE if audit.first is not None and r.id == audit.first.id else ""


def where(r: Recommendation) -> str:
    """The namespaces a recommendation is for, or the workloads where no namespace is known."""
    names = r.namespaces if r.namespaces != (UNALLOCATED,) else tuple(dict.fromkeys(t.owner for t in r.targets))
    return some(names, NAMED)


def devices_named(r: Recommendation, audit: AuditStatement) -> Naming:
    """The GPUs a recommendation names, the most expensive waste first."""
    rows = audit.cost.gpu_rows

    def rank(name: str) -> tuple[Decimal, str]:
        dollars = rows[name].dollars if name in rows else None
        return (Decimal(0) if dollars is None or isinstance(dollars, Unknown) else -dollars.waste_usd, name)

    def shown_as(name: str) -> str:
        return gpu_name(rows[name], rows[name].gpu_instance_id) if name in rows else device(name)

    names = {name for t in r.targets for name in t.devices}
    first = nsmallest(NAMED, names, key=rank)
    if not names:
        return Naming("No GPU is named")
    shown = [shown_as(name) for name in first]
    places, end = [], 0
    text = some(shown, NAMED, of=len(names))
    for name, of_device in zip(shown, first, strict=True):
        start = text.index(name, end)
        end = start + len(name)
        places.append((start, end, of_device))
    return Naming(text, places).within("GPUs: ", "")


def worth(r: Recommendation, paid: Decimal | Unknown) -> str:
    """What a recommendation saves by itself, as a part of a line; `paid`: what the window cost."""
    if r.lever is None:
        return "no saving is claimed"
    if isinstance(r.saving, Unknown):
        return f"dollars unknown: {r.saving.why}"
    share = percent(float(r.saving.middle_pct))
    if isinstance(r.month, Unknown) and isinstance(paid, Unknown):
        return f"dollars unknown: {r.month.why}; {share} of the paid GPU-hours"
    if isinstance(r.month, Unknown):
        low, middle, high = (window_usd(paid * getattr(r.saving, f"{end}_pct") / 100) for end in CASES)
        return f"{low} to {high} in this window, likely {middle} ({share} of the bill)"
    low, middle, high = (usd(v, 0) for v in (r.month.low_usd, r.month.middle_usd, r.month.high_usd))
    return f"{low} to {high} per month, likely {middle} ({share} of the bill)"


def rests_on(r: Recommendation) -> str:
    """What the range of a recommendation comes from."""
    source = r.source.removeprefix(f"{r.basis}: ")
    return f"Where the range comes from ({r.basis}): {source}." if r.lever else f"Source ({r.basis}): {source}."


def _behavior(b: GroupBehaviour) -> Row:
    owner = "/".join(part for part in (b.namespace, b.workload) if part) or UNALLOCATED
    mix = f"Time: {shares(b.shares_pct)}." if len(b.shares_pct) > 1 else ""
    because = f"Because: {'; '.join(b.evidence)}." if b.evidence else ""
    return {**vars(b), "owner": owner, "mix": mix, "because": because}


def _advised(rank: int, r: Recommendation) -> Row:
    """One recommendation; empty figures where it claims no dollars."""
    row: Row = {"title": f"{rank}. {r.title}", "where": where(r), "gpus": r.gpus, "effort": r.effort.words}
    if r.lever is None:
        return row | dict.fromkeys((*_MONTH, "saving_pct"), "")
    month = dict.fromkeys(_MONTH, r.month) if isinstance(r.month, Unknown) else vars(r.month)
    return {**row, **month, "saving_pct": r.saving if isinstance(r.saving, Unknown) else float(r.share)}


def savings_rows(s: AuditSavings) -> list[Row]:
    """The naive sum, what there is to act on, the honest figures."""

    def alone(name: str, pct: Decimal, words: str) -> Row:
        row = {"name": name, "low_pct": "", "middle_pct": float(pct), "high_pct": "", "words": words}
        return row | {"middle_usd": "", "quarter_usd": ""}

    def spread(name: str, found: Spread, over: tuple[MonthlyUsd | Unknown, QuarterUsd | Unknown], words: str) -> Row:
        month, quarter = (time if isinstance(time, Unknown) else time.middle_usd for time in over)
        figures = {k: float(v) for k, v in vars(found).items()}
        return {"name": name, "middle_usd": month, "quarter_usd": quarter, "words": words} | figures

    compounded = "1 - (1 - f1)(1 - f2)..., whichever dollars each acts on, up to all waste: for comparison."
    cheaper = f"What is still paid for gets {percent(float(s.rate_pct))} cheaper: this multiplies."
    once = f"Of {s.of}, no dollar counted twice."
    rows = [alone("Naive sum", s.naive_pct, "Every percentage added up: wrong, for comparison only.")]
    if differs(s.one_bucket_pct, s.combined_pct):
        rows.append(alone("Compounded as one bucket", s.one_bucket_pct, compounded))
    return [
        *rows,
        alone("Most there is to act on", s.cap_pct, "The buckets the changes act on, in full."),
        spread("Saved together", s.combined, (s.combined_month, s.combined_quarter), once),
        spread("With lower prices on top", s.with_rate, (s.with_rate_month, s.with_rate_quarter), cheaper),
    ]


def _change(title: str, effect: Effect) -> Row:
    """One bucket, or the bill, against the last period."""
    return {"title": title, **effect.shown}


_OF_GPU = {
    name: name for name in ("gpu_uuid", "gpu_instance_id", "gpu_model", "host", "gpu_index", "cluster", "region")
}
_OF_GPU |= {"usd_per_h": "usd_per_h", "paid_h": "times.paid_h", "paid_usd": "dollars.paid_usd"}
_OF_GPU |= {f"{b}_usd": f"buckets.{b}" for b in BUCKETS} | {"price_words": "price_words", "unknown_why": "unknown_why"}
_OF_ADVICE = {name: name for name in ("rank", "id", "title", "lever", "namespaces", "gpus")}
_OF_ADVICE |= {f"saving_{end}_pct": f"saving.{end}_pct" for end in CASES}
_OF_ADVICE |= {f"{end}_usd_per_month": f"month.{end}_usd" for end in CASES}
_OF_ADVICE |= {"effort_hours": "effort.hours", "why": "why", "basis": "basis", "source": "source"}


def energy_saved(r: Recommendation) -> str:
    """The energy a recommendation saves, in words; empty where that is unknown."""
    if r.energy is None:
        return ""
    if isinstance(r.energy, Unknown):
        return f" Energy saved per month: {r.energy}."
    low, middle, high = (number(v) for v in (r.energy.low_kwh, r.energy.middle_kwh, r.energy.high_kwh))
    usd = r.energy.middle_usd
    cost = "" if isinstance(usd, Unknown) else f", likely ${number(usd, 2)}"
    return f" Energy saved per month: {middle} kWh ({low} to {high}){cost}; not part of the bill."


def files(audit: AuditStatement) -> dict[str, Callable[[], str]]:
    """The CSV files: every device with its dollars, every recommendation."""
    ranked = [{"rank": rank, **vars(r)} for rank, r in enumerate(audit.recommendations, 1)]
    return {
        "cost_by_gpu.csv": lambda: csv_text(csv_table(_OF_GPU, audit.cost.by_gpu)),
        "recommendations.csv": lambda: csv_text(csv_table(_OF_ADVICE, ranked)),
    }
