"""Which rows does an audit give to its tables, as people read them? Every figure is the audit's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpuledger.advice.statement import AuditSavings, AuditStatement, GroupBehaviour, MonthlyUsd, Recommendation
from gpuledger.advice.totals import differs
from gpuledger.cost.savings import Spread
from gpuledger.cost.statement import BUCKETS, Effect
from gpuledger.efficiency.naming import gpu_name
from gpuledger.encode import plain
from gpuledger.lake.batch import device_name
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.plain_text import csv_text
from gpuledger.report.written import device, number, percent, shares, usd
from gpuledger.units import Unknown

NAMED = 3
START_HERE = "start here"
Shown = Decimal | float | Unknown | str


@dataclass(frozen=True)
class BillRow:
    """One bucket, or the whole bill."""

    title: str
    hours: float
    pct: float | Unknown
    usd: Decimal | Unknown
    meaning: str = ""


@dataclass(frozen=True)
class Over:
    """The rate of spending over some time."""

    name: str
    usd: Decimal


@dataclass(frozen=True)
class BehaviorRow:
    """What one owner's GPUs of a model did."""

    owner: str
    gpu_model: str | None
    gpus: int
    observed_h: float
    klass: str
    confidence: str
    mix: str
    because: str


@dataclass(frozen=True)
class AdviceRow:
    """One recommendation; empty figures where it claims no dollars."""

    title: str
    where: str
    gpus: int
    low_usd: Shown
    middle_usd: Shown
    high_usd: Shown
    saving_pct: Shown
    effort: str


@dataclass(frozen=True)
class SavingsRow:
    """One way to add up the changes."""

    name: str
    low_pct: Shown
    middle_pct: Shown
    high_pct: Shown
    middle_usd: Shown
    words: str


@dataclass(frozen=True)
class ChangeRow:
    """One bucket against the last period."""

    title: str
    before_usd: Decimal
    after_usd: Decimal
    change_usd: Decimal
    volume_usd: Decimal
    rate_usd: Decimal
    efficiency_usd: Decimal


def mark(r: Recommendation, audit: AuditStatement) -> str:
    """A word next to the change that the second line names; the list itself is sorted by dollars."""
    return START_HERE if audit.first is not None and r.id == audit.first.id else ""


def where(r: Recommendation) -> str:
    """The namespaces a recommendation is for, or the workloads where no namespace is known."""
    names = r.namespaces if r.namespaces != (UNALLOCATED,) else tuple(dict.fromkeys(t.owner for t in r.targets))
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def devices_named(r: Recommendation, audit: AuditStatement) -> str:
    """The GPUs a recommendation names, the most expensive waste first."""
    rows = {device_name(row.gpu_uuid, row.gpu_instance_id): row for row in audit.cost.by_gpu}

    def rank(name: str) -> tuple[Decimal, str]:
        dollars = rows[name].dollars if name in rows else None
        return (Decimal(0) if dollars is None or isinstance(dollars, Unknown) else -dollars.waste_usd, name)

    def shown_as(name: str) -> str:
        return gpu_name(rows[name], rows[name].gpu_instance_id) if name in rows else device(name)

    names = sorted(dict.fromkeys(name for t in r.targets for name in t.devices), key=rank)
    more = len(names) - NAMED
    shown = ", ".join(shown_as(n) for n in names[:NAMED])
    return f"GPUs: {shown}{f' and {more} more' if more > 0 else ''}" if names else "No GPU is named"


def worth(r: Recommendation) -> str:
    """What a recommendation saves by itself, in one line."""
    if r.lever is None:
        return "Claims no dollars of the bill"
    share = f"{percent(float(r.saving.middle_pct))} of the bill"
    if isinstance(r.month, Unknown):
        return f"Dollars {r.month}; {share}"
    low, middle, high = (usd(v, 0) for v in (r.month.low_usd, r.month.middle_usd, r.month.high_usd))
    return f"{low} to {high} per month, likely {middle} ({share})"


def rests_on(r: Recommendation) -> str:
    """What the range of a recommendation comes from."""
    source = r.source.removeprefix(f"{r.basis}: ")
    return f"Where the range comes from ({r.basis}): {source}." if r.lever else f"Source ({r.basis}): {source}."


def behavior_row(b: GroupBehaviour) -> BehaviorRow:
    """What one owner's GPUs did."""
    owner = "/".join(part for part in (b.namespace, b.workload) if part) or UNALLOCATED
    mix = f"Time: {shares(b.shares_pct)}." if len(b.shares_pct) > 1 else ""
    because = f"Because: {'; '.join(b.evidence)}." if b.evidence else ""
    return BehaviorRow(owner, b.gpu_model, b.gpus, b.observed_h, b.klass, b.confidence, mix, because)


def advice_row(rank: int, r: Recommendation) -> AdviceRow:
    """One recommendation with its rank."""
    title = f"{rank}. {r.title}"
    if r.lever is None:
        return AdviceRow(title, where(r), r.gpus, "", "", "", "", r.effort.words)
    low, middle, high = _three(r.month)
    return AdviceRow(title, where(r), r.gpus, low, middle, high, float(r.saving.middle_pct), r.effort.words)


def _three(month: MonthlyUsd | Unknown) -> tuple[Decimal | Unknown, Decimal | Unknown, Decimal | Unknown]:
    if isinstance(month, Unknown):
        return month, month, month
    return month.low_usd, month.middle_usd, month.high_usd


def savings_rows(s: AuditSavings) -> tuple[SavingsRow, ...]:
    """The naive sum, what there is to act on, the honest figures."""

    def spread(name: str, found: Spread, month: MonthlyUsd | Unknown, words: str) -> SavingsRow:
        low, middle, high = (float(p) for p in (found.low_pct, found.middle_pct, found.high_pct))
        return SavingsRow(name, low, middle, high, _three(month)[1], words)

    one_bucket = SavingsRow(
        "Compounded as one bucket", "", float(s.one_bucket_pct), "", "",
        "1 - (1 - f1)(1 - f2)..., whichever dollars each acts on, up to all waste: for comparison.",
    )  # fmt: skip
    return (
        SavingsRow(
            "Naive sum", "", float(s.naive_pct), "", "", "Every percentage added up: wrong, for comparison only."
        ),
        *((one_bucket,) if differs(s.one_bucket_pct, s.combined_pct) else ()),
        SavingsRow("Most there is to act on", "", float(s.cap_pct), "", "", "The buckets the changes act on, in full."),
        spread("Saved together", s.combined, s.combined_month, f"Of {s.of}, no dollar counted twice."),
        spread(
            "With lower prices on top",
            s.with_rate,
            s.with_rate_month,
            f"What is still paid for gets {percent(float(s.rate_pct))} cheaper: this multiplies.",
        ),
    )


def change_row(title: str, effect: Effect) -> ChangeRow:
    """One bucket, or the bill, against the last period."""
    fields = ("before_usd", "after_usd", "change_usd", "volume_usd", "rate_usd", "efficiency_usd")
    return ChangeRow(title, *(getattr(effect, f) for f in fields))


def energy_saved(r: Recommendation) -> str:
    """The energy a recommendation saves, in words; empty where that is unknown."""
    if r.energy is None:
        return ""
    low, middle, high = (number(v) for v in (r.energy.low_kwh, r.energy.middle_kwh, r.energy.high_kwh))
    usd = r.energy.middle_usd
    cost = "" if isinstance(usd, Unknown) else f", likely ${number(usd, 2)}"
    return f" Energy saved per month: {middle} kWh ({low} to {high}){cost}; not part of the bill."


def files(audit: AuditStatement) -> dict[str, Callable[[], str]]:
    """The CSV files: every device with its dollars, every recommendation."""
    return {
        "cost_by_gpu.csv": lambda: csv_text(_gpus(audit)),
        "recommendations.csv": lambda: csv_text(_advice(audit)),
    }


def _gpus(audit: AuditStatement) -> Iterable[Sequence[Any]]:
    """Unrounded dollars of every device; a cell is empty where the figure is unknown."""
    own = ("gpu_uuid", "gpu_instance_id", "gpu_model", "host", "gpu_index", "cluster", "region", "usd_per_h")
    yield [*own, "paid_h", "paid_usd", *(f"{b}_usd" for b in BUCKETS), "price_words"]
    for row in audit.cost.by_gpu:
        dollars = row.dollars
        paid: list[Any] = [None] * (1 + len(BUCKETS))
        if not isinstance(dollars, Unknown):
            paid = [plain(v) for v in (dollars.paid_usd, *dollars.parts())]
        yield [*(plain(getattr(row, name)) for name in own), row.times.paid_h, *paid, row.price_words]


def _advice(audit: AuditStatement) -> Iterable[Sequence[Any]]:
    head = ("rank", "id", "title", "lever", "namespaces", "gpus", "saving_low_pct", "saving_middle_pct")
    month = ("low_usd_per_month", "middle_usd_per_month", "high_usd_per_month")
    yield [*head, "saving_high_pct", *month, "effort_hours", "why", "basis", "source"]
    for rank, r in enumerate(audit.recommendations, 1):
        unknown = isinstance(r.month, Unknown)
        usd = [None if unknown else plain(getattr(r.month, f"{end}_usd")) for end in ("low", "middle", "high")]
        saving = [float(p) for p in (r.saving.low_pct, r.saving.middle_pct, r.saving.high_pct)]
        who = "; ".join(r.namespaces)
        yield [rank, r.id, r.title, r.lever, who, r.gpus, *saving, *usd, r.effort.hours, r.why, r.basis, r.source]
