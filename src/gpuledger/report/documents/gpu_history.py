"""What does the history of one GPU show? Its hours, its longest stretches without work, and its owners."""

from __future__ import annotations

from gpuledger.efficiency.gpu_history import GpuHistory, GpuHour, Spell
from gpuledger.efficiency.naming import gpu_name
from gpuledger.encode import encode
from gpuledger.report.document import Document, KeyFigure, Section
from gpuledger.report.documents import document_for
from gpuledger.report.outline import charts_of
from gpuledger.report.tables import Row, Table, cell, figure, make_table
from gpuledger.report.written import instant, number, percent, period, whole
from gpuledger.units import MS_PER_HOUR

NAME = "gpu"
SPELLS = {
    "idle": "idle, memory free", "idle_held": "idle, memory held", "idle_unknown": "idle, memory not recorded",
    "gap": "no samples",
}  # fmt: skip


@document_for(GpuHistory)
def gpu_document(gpu: GpuHistory) -> Document:
    """The document of one GPU."""
    name, spells = gpu_name(gpu, gpu.gpu_instance_id), gpu.spells
    return Document(
        name=NAME,
        kind="One GPU",
        title=f"GPU {name}",
        headline=f"{name}: {_doing(gpu)}",
        facts=[gpu.gpu_model or "no model name", gpu.gpu_uuid, _window(gpu)],
        figures=_figures(gpu),
        sections=[
            Section("hours", "Hour by hour", [*charts_of(NAME, "hours", gpu), hours_table(gpu)]),
            Section("spells", "Without work", [spells_table(spells)]),
        ],
        data=lambda: encode("gpu", gpu),
    )


def _window(gpu: GpuHistory) -> str:
    return period(gpu.hours[0].start_ms, gpu.hours[-1].start_ms + MS_PER_HOUR)


def minutes_by(gpu: GpuHistory) -> dict[str, float]:
    """Minutes by what the GPU did, the longest first."""
    out: dict[str, float] = {}
    for hour in gpu.hours:
        for doing, minutes in hour.minutes.items():
            out[doing] = out.get(doing, 0.0) + minutes
    return dict(sorted(out.items(), key=lambda pair: -pair[1]))


def _doing(gpu: GpuHistory) -> str:
    found = minutes_by(gpu)
    total = sum(found.values())
    parts = [f"{doing} {percent(100 * minutes / total)}" for doing, minutes in found.items() if total and minutes]
    return ", ".join(parts) or "no time observed"


def _figures(gpu: GpuHistory) -> list[KeyFigure]:
    owners = sorted({owner for hour in gpu.hours for owner in hour.owners})
    idle = max((s.hours for s in gpu.spells if s.kind != "gap"), default=0.0)
    return [
        KeyFigure("Observed", f"{sum(h.observed_min for h in gpu.hours) / 60:,.1f} h", "", _window(gpu)),
        KeyFigure("Longest idle", f"{idle:,.1f} h", "", "at one stretch"),
        KeyFigure("Owners", whole(len(owners)), "", ", ".join(owners[:3])),
    ]


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
        figure(hour.power_w, lambda watts: f"{watts:,.0f} W"),
        *(cell(number(minutes.get(k, 0.0)), minutes.get(k, 0.0)) for k in kinds),
        ", ".join(hour.owners),
    ]


def spells_table(spells: tuple[Spell, ...]) -> Table:
    """The longest stretches without work or samples."""
    rows: list[Row] = [
        [SPELLS.get(s.kind, s.kind), cell(instant(s.start_ms), s.start_ms), cell(f"{s.hours:,.2f} h", s.hours)]
        for s in spells[:50]
    ]
    heads = ("What", "From (UTC)", "Length")
    return make_table("spells", "Longest stretches without work", heads, "wwn", rows, empty="None.")
