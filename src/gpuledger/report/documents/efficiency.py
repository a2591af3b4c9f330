"""What does the efficiency document show? What the hardware did, and what improving it is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.capacity import shows
from gpuledger.efficiency.health import HealthRow, health_words
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow, RoiRow, to_json
from gpuledger.ledger.read.owners import By
from gpuledger.plain_text import csv_text
from gpuledger.report.document import Block, Bullets, Document, Figures, KeyFigure, Later, Prose, Section, Terms
from gpuledger.report.documents import document_for
from gpuledger.report.outline import TABLE, charts_of, load_outline, owner_blocks, owner_table
from gpuledger.report.tables import Table, csv_table, make_table
from gpuledger.report.written import amount, percent, period, round_percent, tenth, whole, write
from gpuledger.units import Bounds, Unknown

NAME = "efficiency"
NONE_UNKNOWN = "No main figure is unknown. The list not_known in the JSON file has what is unknown in the details."
SCREEN_FINDINGS = 5
Comparison = Sequence[tuple[str, object, object]]
# Where achievable TFLOPS come from, in words.
BASELINES = {
    "published": "GPU Efficiency Analytics, as published", "peak": "the vendor's peak", "measured": "your calibration",
}  # fmt: skip


@dataclass(frozen=True)
class EfficiencyView:
    """What the charts draw: the statement, and the limits its classes follow."""

    statement: EfficiencyStatement
    limits: Thresholds


@document_for(EfficiencyStatement)
def efficiency_document(
    statement: EfficiencyStatement,
    limits: Thresholds | None = None,
    comparison: Comparison = (),
    name: str = "report",
) -> Document:
    """The document; `comparison` holds (name, published, ours), shown only where given."""
    s, outline = statement, load_outline(NAME)
    view = EfficiencyView(s, limits or load_thresholds())
    shown = frozenset({By.NAMESPACE})
    after: dict[str, Sequence[Block]] = {
        "health": [Prose(health_words(s.health))],
        "namespaces": Later(lambda: owner_blocks(NAME, s, s.by, shown)),
    }
    sections = [
        outline.section(kind, s, charts_of(NAME, kind.id, view), after.get(kind.id, ()), (TABLE,))
        for kind in outline.sections
        if kind.id != "counted" or s.counted
    ]
    return Document(
        name=name,
        kind="Efficiency",
        title=f"Efficiency, {period(s.start_ms, s.end_ms)}",
        headline=headline(s),
        facts=facts(s),
        figures=key_figures(s),
        summary=Later(lambda: _summary(s, comparison)),
        sections=[*sections, *_back(s)],
        screen=Later(lambda: _screen(s)),
        data=lambda: to_json(s),
        files={name: lambda name=name: csv_text(csv_rows(name, s)) for name in FILES},  # type: ignore[misc]
        main_table=f"by_{s.by}" if s.by else "per_gpu",
    )


def _summary(s: EfficiencyStatement, comparison: Comparison) -> list[Block]:
    out: list[Block] = [Bullets(s.findings[1:], "Findings", strong=True)] if s.findings[1:] else []
    return [*out, published_table(comparison)] if comparison else out


def _screen(s: EfficiencyStatement) -> list[Block]:
    """Key figures, the first findings, the worst GPUs, and how much is unknown."""
    outline = load_outline(NAME)
    worst = outline.table("bottlenecked", s)
    out: list[Block] = [Figures(key_figures(s))]
    out += [Bullets(s.findings[1 : 1 + SCREEN_FINDINGS])] if s.findings[1:] else []
    out += owner_table(NAME, s, s.by)
    out += [replace(worst, screen_rows=5, note="")] if worst.rows else []
    if s.health.rows:
        out.append(Prose(health_words(s.health), "warning"))
    if s.not_known:
        out.append(Prose(f"Unknown: {'; '.join(f'{n.figure} ({n.why})' for n in s.not_known[:3])}.", "dim"))
    return out


def csv_rows(name: str, s: EfficiencyStatement) -> list[list[Any]]:
    """A CSV file of the document."""
    columns, rows = FILES[name]
    return csv_table(columns, rows(s))


def _columns(names: str, of: str = "") -> dict[str, str]:
    """Column names, which end in their unit, with where each is in a row."""
    return {name: of + name for name in names.split()}


def _worst_first(s: EfficiencyStatement) -> list[GpuRow]:
    """The devices bottlenecked on most of their active days."""

    def rank(gpu: GpuRow) -> tuple[float, str, str]:
        share = gpu.bottlenecked_pct_of_active
        return (0.0 if isinstance(share, Unknown) else -share, gpu.gpu_uuid, gpu.gpu_instance_id or "")

    return sorted(s.bottlenecked_gpus, key=rank)


_GPU = _columns("gpu_uuid gpu_instance_id gpu_model host gpu_index cluster namespace") | {"class": "klass"}
_MEANS = _columns(
    "samples observed_h gpu_util_pct util_p50_pct util_p95_pct pif rfu_power_pct rfu_power_idle_corrected_pct "
    "efficiency_gap_pp memory_pct power_w energy_kwh",
    "means.",
) | {
    "rfu_counters_low_pct": "means.rfu_counters_pct.low",
    "rfu_counters_pct": "means.rfu_counters_pct.point",
    "rfu_counters_high_pct": "means.rfu_counters_pct.high",
    "rfu_counters_note": "means.rfu_counters_pct.note",
}
_BOTTLENECK = _columns("bottlenecked_pct_of_active bottlenecked_days active_days likely_cause cause_evidence")
_TIME = _columns(
    "bottlenecked_pct_of_active bottlenecked_days active_days consistently_bottlenecked likely_cause idle_h "
    "idle_held_h longest_idle_h unobserved_h"
)
_HOUR = {"start_utc": "start_ms"} | _columns(
    "start_ms hours gpus samples gpu_util_pct pif rfu_power_pct rfu_counters_pct efficiency_gap_pp "
    "realized_power_tflops power_kw"
)
FILES: dict[str, tuple[dict[str, str], Callable[[EfficiencyStatement], Sequence[object]]]] = {
    "gpu_summary.csv": (_GPU | _MEANS | _TIME, lambda s: s.per_gpu),
    "bottlenecked_gpus.csv": (_GPU | _BOTTLENECK | _MEANS, _worst_first),
    "hourly_fleet.csv": (_HOUR, lambda s: s.hours),
    "gpu_health.csv": (_columns(" ".join(f.name for f in fields(HealthRow))), lambda s: s.health.rows),
}


COUNTED = "RFU by counters"
A_RANGE = "of the dense peak; Evidence says why it is a range and what to record"


def next_target(s: EfficiencyStatement) -> RoiRow | None:
    """The nearest target that is worth something."""
    worth = [r for r in s.roi if shows(r)]
    return min(worth, key=lambda r: r.target_rfu_pct) if worth else None


def key_figures(s: EfficiencyStatement) -> list[KeyFigure]:
    """The key figures, the worth of the next target last."""
    out = load_outline(NAME).key_figures(s)
    counted = s.fleet.rfu_counters_pct
    if isinstance(counted, Bounds):
        out = [replace(f, note=A_RANGE) if f.label == COUNTED else f for f in out]
    if (found := s.fleet.rfu_measured_pct) is not None:
        ends, note = f"{percent(found.low)} to {percent(found.high)}", "of the TFLOPS measured on these GPUs"
        value, ends = (ends, "") if isinstance(found, Bounds) else (percent(found.middle), ends)
        out.append(KeyFigure("RFU by counters, measured", value, ends, note))
    target = next_target(s)
    if target:
        label = f"Worth at {round_percent(target.target_rfu_pct)} RFU"
        note = f"{amount(tenth(target.gpu_hours_per_day), 'GPU-hour')} per day, as GPU Efficiency Analytics counts it"
        return [*out, KeyFigure(label, amount(tenth(target.equivalent_gpus), "GPU"), "", note)]
    rfu = s.fleet.rfu_power_pct
    if isinstance(rfu, Unknown):
        return [*out, KeyFigure("Worth at the next RFU target", str(rfu), "", "in GPUs", unknown=True)]
    return [
        *out,
        KeyFigure("Worth at the next RFU target", "None left", "", "RFU by power is at or above every target"),
    ]


def headline(s: EfficiencyStatement) -> str:
    """The top finding, as a sentence."""
    if s.findings:
        return s.findings[0]
    share = s.active.bottlenecked_pct_of_active
    if isinstance(share, Unknown):
        return f"What this fleet did is {share}."
    return f"{percent(share)} of active GPU time was busy but drew little power."


def facts(s: EfficiencyStatement) -> list[str]:
    """The size of what was analyzed."""
    sizes = ((s.gpus, "GPU"), (s.clusters, "cluster"), (s.namespaces, "namespace"), (s.samples, "sample"))
    return [period(s.start_ms, s.end_ms), *(amount(whole(n), one) for n, one in sizes)]


def _evidence(s: EfficiencyStatement) -> list[str]:
    """What the figures rest on."""
    found = s.fleet.rfu_counters_pct
    if isinstance(found, Unknown):
        counters = f"RFU by counters: {found}."
    else:
        note = f" ({found.note})" if found.note else ""
        counters = f"RFU by counters rests on {found.evidence}{note}: {write(found, 'percent')}."
    sources = sorted({c.achievable_source for c in (s.capacity.fleet, *s.capacity.by_model) if c.achievable_source})
    observed = amount(write(s.fleet.observed_h, "tenth"), "GPU-hour")
    conflicts = amount(whole(s.conflicts), "conflicting sample was", "conflicting samples were")
    return [
        counters,
        "RFU by power and PIF rest on board power alone.",
        f"Achievable TFLOPS come from: {', '.join(BASELINES.get(s, s) for s in sources) or 'no source'}.",
        f"{amount(whole(s.samples), 'sample')} over {observed}; {conflicts} set aside.",
    ]


def _back(s: EfficiencyStatement) -> list[Section]:
    """Glossary, evidence, assumptions, and what is unknown."""
    return [
        Section("words", "What each number means", [load_outline(NAME).terms()]),
        Section("evidence", "Evidence", [Bullets(_evidence(s))]),
        Section("assumptions", "Assumptions", [Bullets(s.assumptions)]),
        unknown_section([(n.figure, n.why) for n in s.not_known]),
    ]


def unknown_section(gaps: Sequence[tuple[str, str]]) -> Section:
    """What could not be calculated, and why."""
    return Section("unknown", "Unknown", [Terms(gaps) if gaps else Prose(NONE_UNKNOWN)])


def published_table(rows: Comparison) -> Table:
    """Figures of a publication next to ours: words as they are, numbers to four digits."""

    def shown(value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return str(value)
        return f"{value:,.4g}"

    cells = [[shown(value) for value in row] for row in rows]
    caption = "Compared with GPU Efficiency Analytics (2026-01)"
    return make_table("comparison", caption, ("Figure", "Published", "Here"), "wnn", cells)
