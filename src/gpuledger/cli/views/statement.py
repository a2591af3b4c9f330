"""How does an efficiency statement look on a terminal of 80 columns or more?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.figures import NOT_KNOWN, count, instant, number, percent
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.efficiency.health import health_words
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow, GroupRow, Means, Range
from gpuledger.ledger.read.scope import namespace_name
from gpuledger.report.adding import shares_adding_up
from gpuledger.report.written import amount
from gpuledger.units import Unknown, known

WIDE = 110
SHOWN_GPUS = 10
SHOWN_GROUPS = 12


def parts(statement: EfficiencyStatement, width: int) -> list[RenderableType]:
    """Headline, findings, classes, models, namespaces, bottlenecked GPUs, health, ROI, what is not known."""
    tables: list[RenderableType | None] = [
        title(statement),
        headline(statement),
        findings(statement.findings),
        shares("Time by class", statement.active.classes_pct),
        groups("By GPU model", "model", statement.by_model, width),
        groups("By namespace", "namespace", statement.by_namespace, width),
        bottlenecked(statement.bottlenecked_gpus, width),
        health(statement),
        counted(statement),
        roi(statement),
        not_known(statement),
    ]
    out: list[RenderableType] = []
    for table in tables:
        if table is not None:
            out += [table, ""]
    return out


def title(statement: EfficiencyStatement) -> RenderableType:
    """What the statement is about."""
    s = statement
    what = f"{count(s.gpus, 'GPU')}, {count(s.clusters, 'cluster')}, {count(s.namespaces, 'namespace')}"
    window = f"{instant(s.start_ms)} to {instant(s.end_ms)} UTC, {count(s.samples, 'sample')}"
    return f"[bold]{what}[/]\n[dim]{window}[/]"


def headline(statement: EfficiencyStatement) -> Table:
    """The figures people ask for first, each with what it rests on."""
    fleet, active = statement.fleet, statement.active
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True, style="bold")
    table.add_column(style="dim")
    counters, observed = fleet.rfu_counters_pct, amount(number(fleet.observed_h, 0), "observed GPU-hour")
    rows = (
        ("GPU utilization", percent(fleet.gpu_util_pct), "time a kernel was running, however small"),
        ("Power intensity (PIF)", number(fleet.pif, 3), "power over board power"),
        ("RFU by power", percent(fleet.rfu_power_pct), "as published: 100 x PIF; it measures watts"),
        ("RFU by counters", *_range(counters)),
        *_measured(fleet.rfu_measured_pct),
        ("Efficiency gap", _points(fleet.efficiency_gap_pp), "utilization less RFU by power"),
        ("Bottlenecked", percent(active.bottlenecked_pct_of_active), "of active time: busy, drawing little power"),
        ("Energy", _unit(fleet.energy_kwh, "kWh", 0), f"over {observed}"),
    )
    for name, value, note in rows:
        table.add_row(name, value, escape(note))
    return table


def findings(lines: Iterable[str], heading: str = "Findings") -> RenderableType | None:
    """What the figures say, in words."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0), title=heading)
    table.title_style, table.title_justify = "bold", "left"
    table.add_column(no_wrap=True)
    table.add_column()
    for line in lines:
        table.add_row("-", escape(line))
    return table if table.row_count else None


def shares(heading: str, parts_pct: Mapping[str, float]) -> Table:
    """Shares that add up to 100, each with a bar."""
    table = plain_table(heading)
    table.add_column("class")
    table.add_column("share", justify="right")
    table.add_column("")
    for name, share in shares_adding_up(parts_pct).items():
        table.add_row(name, percent(share), f"[cyan]{'█' * round(share / 2.5)}[/]")
    return table


def groups(heading: str, kind: str, rows: tuple[GroupRow, ...], width: int) -> RenderableType | None:
    """One row a model or namespace."""
    if not rows:
        return None
    table = plain_table(heading)
    table.add_column(kind, overflow="fold")
    for head in ("GPUs", "util", "PIF", "RFU\npower", "RFU\ncounters", "gap", "bottle-\nnecked"):
        table.add_column(head, justify="right", no_wrap=True)
    wide = width >= WIDE and any(r.pattern for r in rows)
    if wide:
        table.add_column("pattern", overflow="fold")
    for row in rows[:SHOWN_GROUPS]:
        cells = [escape(row.name), str(row.means.gpus), *_means(row.means), percent(row.bottlenecked_pct_of_active, 0)]
        table.add_row(*cells, *([escape(row.pattern)] if wide else []))
    return _with_rest(table, len(rows) - SHOWN_GROUPS, "--json")


def bottlenecked(rows: tuple[GpuRow, ...], width: int) -> RenderableType | None:
    """The GPUs that look busy and draw little power, with the likely cause."""
    if not rows:
        return None
    table = plain_table(f"{count(len(rows), 'GPU')} bottlenecked on most of their active days")
    table.add_column("GPU", no_wrap=True)
    table.add_column("host", overflow="fold")
    if width >= WIDE:
        table.add_column("model", overflow="fold")
    table.add_column("namespace", overflow="fold")
    for head in ("util", "PIF", "of active"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("likely cause", overflow="fold")
    worst = sorted(rows, key=lambda r: (-(known(r.bottlenecked_pct_of_active) or 0.0), r.gpu_uuid))
    for row in worst[:SHOWN_GPUS]:
        cells = [_device(row), escape(row.host or "")]
        if width >= WIDE:
            cells.append(escape(row.gpu_model or NOT_KNOWN))
        cells += [escape(namespace_name(row.namespace)), percent(row.means.gpu_util_pct, 0), number(row.means.pif, 2)]
        table.add_row(*cells, percent(row.bottlenecked_pct_of_active, 0), escape(row.likely_cause))
    return _with_rest(table, len(rows) - SHOWN_GPUS, "bottlenecked_gpus.csv (--out DIR) and --json")


def health(statement: EfficiencyStatement) -> RenderableType | None:
    """GPUs with faults or held down by heat; one sentence where there are none."""
    found = statement.health
    if not found.rows:
        return findings([health_words(found)], "Health") if found.gpus else None
    table = plain_table(f"{count(len(found.rows), 'GPU')} with faults or held down by heat")
    table.add_column("GPU", no_wrap=True)
    table.add_column("host", overflow="fold")
    for head in ("XIDs", "rows\nremapped", "remaps\nfailed", "PCIe\nreplays", "heat", "hottest"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in found.rows[:SHOWN_GPUS]:
        counts = (row.xid_events, row.rows_remapped, row.row_remap_failures, row.pcie_replays)
        hottest = _unit(row.gpu_temp_max_c, "°C", 0)
        cells = [_short(row.gpu_uuid), escape(row.host or ""), *(f"{n:,}" for n in counts)]
        table.add_row(*cells, percent(row.thermal_pct, 0), hottest)
    return _with_rest(table, len(found.rows) - SHOWN_GPUS, "gpu_health.csv (--out DIR) and --json")


def counted(statement: EfficiencyStatement) -> Table | None:
    """What jobs counted themselves, where any did; device by device, for the time they cover."""
    if statement.counted is None or not statement.counted.devices:
        return None
    devices = statement.counted.devices
    table = plain_table("Counted by the jobs themselves")
    table.add_column("GPU")
    for title_ in ("hours", "steps", "TFLOP/s", "of dense peak"):
        table.add_column(title_, justify="right", no_wrap=True)
    for d in devices[:SHOWN_GPUS]:
        done = None if isinstance(d.realized_tflops, Unknown) else d.realized_tflops.middle
        table.add_row(
            escape(d.gpu_uuid), number(d.covered_h, 2), f"{d.steps:,}", number(done, 1), percent(d.rfu_counted_pct)
        )
    if len(devices) > SHOWN_GPUS:
        table.caption = f"{SHOWN_GPUS} of {len(devices)} GPUs; --json has all"
    return table


def roi(statement: EfficiencyStatement) -> RenderableType | None:
    """What reaching each target would be worth."""
    if not statement.roi:
        return None
    table = plain_table("What a higher RFU by power is worth")
    for head in ("target", "GPUs' worth", "GPU-hours a day", "GPU-hours a month"):
        table.add_column(head, justify="right")
    for row in statement.roi:
        hours = number(row.gpu_hours_per_day, 0), number(row.gpu_hours_per_month, 0)
        table.add_row(percent(row.target_rfu_pct, 0), number(row.equivalent_gpus, 1), *hours)
    return table


def not_known(statement: EfficiencyStatement) -> RenderableType | None:
    """What could not be worked out, and why."""
    table = pairs()
    table.title, table.title_style, table.title_justify = "Not known", "bold", "left"
    for gap in statement.not_known:
        table.add_row(escape(gap.figure), escape(gap.why))
    return table if table.row_count else None


def _with_rest(table: Table, more: int, where: str) -> RenderableType:
    if more > 0:
        table.caption, table.caption_justify = f"and {more} more: {where}", "left"
    return table


def _means(means: Means) -> list[str]:
    counters = means.rfu_counters_pct
    middle = counters if isinstance(counters, Unknown) else counters.middle
    return [
        percent(means.gpu_util_pct), number(means.pif, 2), percent(means.rfu_power_pct), percent(middle),
        _points(means.efficiency_gap_pp),
    ]  # fmt: skip


def _device(row: GpuRow) -> str:
    """Enough of the name to find it: the first block of a UUID, and the MIG instance."""
    short = _short(row.gpu_uuid)
    return f"{short}/{escape(row.gpu_instance_id)}" if row.gpu_instance_id else short


def _short(uuid: str) -> str:
    short = uuid.removeprefix("GPU-").removeprefix("MIG-")
    return escape(short.split("-")[0] if len(short) > 16 else short)


def _range(value: Range | Unknown) -> tuple[str, str]:
    if isinstance(value, Unknown):
        return NOT_KNOWN, value.why
    return percent(value.middle), f"{number(value.low)} to {number(value.high)}, of the dense peak"


def _measured(value: Range | None) -> list[tuple[str, str, str]]:
    """The second ratio, once there is one."""
    if value is None:
        return []
    note = f"{number(value.low)} to {number(value.high)}, of the TFLOPS measured on these GPUs"
    return [("RFU by counters, measured", percent(value.middle), note)]


def _points(value: float | Unknown) -> str:
    return _unit(value, "pp", 1)


def _unit(value: float | Unknown, unit: str, digits: int) -> str:
    text = number(value, digits)
    return text if text == NOT_KNOWN else f"{text} {unit}"
