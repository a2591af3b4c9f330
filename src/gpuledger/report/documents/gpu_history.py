"""What does one GPU show? What it did and cost, its hours, its longest stretches without work, and its faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuledger.advice.one_gpu import OneGpu
from gpuledger.cost.judged import at_least, bucket_h, known_waste
from gpuledger.cost.statement import GpuCost
from gpuledger.efficiency.gpu_history import GpuHistory, GpuHour, Spell
from gpuledger.efficiency.health import HealthRow, faults_of, hot
from gpuledger.efficiency.naming import gpu_name
from gpuledger.encode import encode
from gpuledger.report.adding import shares_adding_up
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.document import Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.outline import charts_of
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import instant, loose, money, number, percent, period, round_percent, usd
from gpuledger.times import duration
from gpuledger.units import MS_PER_HOUR, MS_PER_MIN, Unknown, count, some

NAME = "gpu"
NO_SAMPLES = "no samples"
SHOWN = 20  # stretches; the others are counted
LATE_MS = 10 * MS_PER_MIN  # a GPU this far behind the window's end stopped reporting
SPELLS = {
    "idle": "idle, memory free", "idle_held": "idle, memory held", "idle_unknown": "idle, memory not recorded",
    "gap": NO_SAMPLES,
}  # fmt: skip
NO_ROW = Unknown("no sample of the window stands for any of its time")
NOT_PAID = Unknown("nothing was paid for it in this window")


@document_for(OneGpu)
def gpu_document(gpu: OneGpu) -> Document:
    """The document of one GPU."""
    history = gpu.history
    name = gpu_name(history, history.gpu_instance_id)
    owners = sorted({owner for hour in history.hours for owner in hour.owners})
    return Document(
        name=NAME,
        kind="One GPU",
        title=f"GPU {name}",
        headline=f"{name}: {_doing(gpu)}",
        facts=[history.gpu_model or "no model name", history.gpu_uuid, _window(history), f"owners: {some(owners)}"],
        notes=[*_silent(gpu), *_faults(gpu.health)],
        figures=_figures(gpu),
        sections=[
            Section("hours", "Hour by hour", [*charts_of(NAME, "hours", history), hours_table(history)]),
            Section("dollars", "What it cost", [dollars_table(gpu.cost)]),
            Section("spells", "Without work", [spells_table(gpu)]),
        ],
        data=lambda: encode("gpu", gpu),
    )


def _window(gpu: GpuHistory) -> str:
    return period(gpu.first_ms, gpu.last_ms)


def _silent(gpu: OneGpu) -> list[Prose]:
    """A GPU that reports nothing more, while the window goes on."""
    last, end = gpu.history.last_ms, gpu.end_ms
    if end - last <= LATE_MS:
        return []
    ago = f"{duration(end - last)} before the end of the window"
    return [Prose(f"No samples since {instant(last)} UTC, {ago}: it is lost, or was given back.", "warning")]


def minutes_by(gpu: GpuHistory) -> dict[str, float]:
    """Minutes by what the GPU did, the longest first."""
    out: dict[str, float] = {}
    for hour in gpu.hours:
        for doing, minutes in hour.minutes.items():
            out[doing] = out.get(doing, 0.0) + minutes
    return dict(sorted(out.items(), key=lambda pair: -pair[1]))


def _doing(gpu: OneGpu) -> str:
    """What it did, in percent of the window, also of the time without samples."""
    found = minutes_by(gpu.history)
    if gpu.row is not None and gpu.row.unobserved_h > 0:
        found[NO_SAMPLES] = 60 * gpu.row.unobserved_h
    total = sum(found.values())
    parts = [f"{doing} {percent(100 * minutes / total)}" for doing, minutes in found.items() if total and minutes]
    return ", ".join(parts) or "no time observed"


def _faults(health: HealthRow | None) -> list[Prose]:
    if health is None:
        return []
    found, share = faults_of(health), health.thermal_pct
    if hot(health) and not isinstance(share, Unknown):
        found.append(f"clocks held down by heat {round_percent(share)} of the time")
    return [Prose(f"Faults: {', '.join(found)}.", "warning")] if found else []


def _figures(gpu: OneGpu) -> list[KeyFigure]:
    history, row, cost = gpu.history, gpu.row, gpu.cost
    observed = sum(h.observed_min for h in history.hours) / 60
    missed = "" if row is None or not row.unobserved_h else f"{row.unobserved_h:,.1f} h without samples"
    dollars = NOT_PAID if cost is None else cost.dollars
    paid = dollars if isinstance(dollars, Unknown) else dollars.paid_usd
    least = "at least; part of the time is unrated or unobserved" if at_least(dollars) else ""
    return [
        _figure("Paid", paid, money, "" if cost is None else cost.price_words),
        _figure("Wasted", known_waste(dollars), money, least),
        _figure("Utilization", NO_ROW if row is None else row.means.gpu_util_pct, percent, "mean of the time observed"),
        _figure("Power", NO_ROW if row is None else row.means.power_w, _watts, "mean of the time observed"),
        _figure("Longest idle", NO_ROW if row is None else row.longest_idle_h, _length, "at one stretch"),
        KeyFigure("Observed", _hours(observed), missed, _window(history)),
    ]


def _figure(label: str, value: Any, form: Callable[[Any], str], note: str) -> KeyFigure:
    if isinstance(value, Unknown):
        return KeyFigure(label, "unknown", "", value.why, unknown=True)
    return KeyFigure(label, form(value), "", note)


def _watts(value: float) -> str:
    return f"{value:,.0f} W"


def _hours(value: float) -> str:
    return f"{value:,.1f} h"


def _length(hours: float) -> str:
    return duration(round(hours * MS_PER_HOUR)) if hours else "none"


def dollars_table(cost: GpuCost | None) -> Table:
    """What was paid for it, bucket by bucket."""
    heads, caption = ("Bucket", "GPU-hours", "Dollars", "Of its cost"), "What was paid for it, by bucket"
    if cost is None:
        return make_table("dollars", caption, heads, "wnnn", (), empty=f"Nothing: {NOT_PAID.why}.")
    dollars, hours, paid = cost.dollars, bucket_h(cost.times), cost.buckets
    shares: dict[Any, Any] = dict(paid)
    if not isinstance(dollars, Unknown):
        unknown = {bucket: amount for bucket, amount in paid.items() if isinstance(amount, Unknown)}
        shares = shares_adding_up({bucket: dollars.pct(amount) for bucket, amount in dollars.each().items()}) | unknown
    rows: list[Row] = [
        [k.title, figure(hours[k.name], loose), figure(paid[k.name], usd), figure(shares[k.name], percent)]
        for k in bucket_kinds()
        if hours[k.name] or isinstance(hours[k.name], Unknown)
    ]
    why = "" if cost.unknown_why is None or isinstance(dollars, Unknown) else f" Unknown: {cost.unknown_why}."
    return make_table("dollars", caption, heads, "wnnn", rows, note=f"Price: {cost.price_words}.{why}")


def hours_table(gpu: GpuHistory) -> Table:
    """The hours, the newest first."""
    kinds = list(minutes_by(gpu))
    heads = ("Hour (UTC)", "Utilization", "Power", *(f"{k.capitalize()}, min" for k in kinds), "Owner")
    rows = [_hour_row(hour, kinds) for hour in reversed(gpu.hours)]
    return make_table("hours", "Hours, the newest first", heads, "wnn" + "n" * len(kinds) + "w", rows)


def _hour_row(hour: GpuHour, kinds: list[str]) -> Row:
    minutes = {str(k): v for k, v in hour.minutes.items()}
    return [
        cell(instant(hour.start_ms), hour.start_ms),
        figure(hour.gpu_util_pct, percent),
        figure(hour.power_w, _watts),
        *(cell(number(minutes.get(k, 0.0)), minutes.get(k, 0.0)) for k in kinds),
        ", ".join(hour.owners),
    ]


def spells_table(gpu: OneGpu) -> Table:
    """The longest stretches without work or samples; where activity is not recorded, none can be seen."""
    spells = gpu.history.spells
    rows: list[Row] = [_spell(spell) for spell in spells[:SHOWN]]
    left, longest = len(spells) - SHOWN, spells[SHOWN].hours if len(spells) > SHOWN else 0.0
    note = f"{count(left, 'more stretch', 'more stretches')}, none longer than {_length(longest)}." if left > 0 else ""
    idle = NO_ROW if gpu.row is None else gpu.row.longest_idle_h
    empty = f"Unknown: {idle.why}." if isinstance(idle, Unknown) else "None."
    heads = ("What", "From (UTC)", "Length")
    return make_table("spells", "Longest stretches without work", heads, "wwn", rows, empty=empty, note=note)


def _spell(spell: Spell) -> Row:
    what, hours = SPELLS.get(spell.kind, spell.kind), spell.hours
    return [what, cell(instant(spell.start_ms), spell.start_ms), cell(_length(hours), hours)]
