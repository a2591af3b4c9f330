"""How do the audit's tables look on a terminal?"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.figures import NOT_KNOWN, count, number
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.cost.statement import NOT_ASKED
from gpuledger.report import tables as report_tables
from gpuledger.report.audit_view import TABLES, AuditView
from gpuledger.units import Unknown

# From this bill on, columns side by side are in whole dollars.
WHOLE_FROM_USD = 1000
SHOWN = 10
WIDE = 110
# What a narrow terminal does without, the first first. A bucket goes only where nothing is in it: rows must add up.
BUCKETS = ("Unobserved", "Unrated", "Idle", "Idle, memory held", "Underused", "Stalled")
NARROW_LEAVES_OUT = ("$ an hour", "GPU-hours", "GPUs", *BUCKETS, "Model")
BETWEEN = 2
# As much of the first column as tells one GPU from another.
NAME_WIDTH = 8
SHORTER = {"Idle, memory held": "Held"}


def groups(view: AuditView, width: int) -> list[RenderableType]:
    """Who it was for: namespaces, owners, teams."""
    section = next(s for s in view.sections if s.id == "who")
    out: list[RenderableType] = []
    for name in view.tables(section):
        if found := dollars_table(view, name, width):
            out += [found, ""]
    return out


def dollars_table(view: AuditView, name: str, width: int) -> Table | None:
    """A table of the report whose dollars add up, cut to the terminal."""
    paid = view.cost.paid_usd
    places = 0 if not isinstance(paid, Unknown) and paid >= WHOLE_FROM_USD else None
    made = report_tables.build_table(name, view, TABLES, places)
    if not made.rows:
        return None
    kept = _kept(made, width)
    table = plain_table(made.caption)
    for i in kept:
        words, least = made.words[i], NAME_WIDTH if i == 0 else None
        table.add_column(
            _head(made, i), justify="left" if words else "right", overflow="fold", no_wrap=not words, min_width=least
        )
    for row in made.rows[:SHOWN]:
        table.add_row(*map(escape, _texts(row, kept)))
    if made.total:
        table.add_section()
        table.add_row(*map(escape, _texts(made.total, kept)), style="bold")
    if len(made.rows) > SHOWN:
        more = len(made.rows) - SHOWN
        table.caption, table.caption_justify = f"and {more} more, in the total: --out DIR or --json", "left"
    return table


def _texts(row: Sequence[report_tables.Cell], kept: Sequence[int]) -> list[str]:
    """Why a figure is not known stands with the prices, at its full length; here it is said once a row."""
    unknown = [i for i in kept if row[i].unknown]
    return [row[i].text if i not in unknown else NOT_KNOWN if i == unknown[0] else "-" for i in kept]


def _kept(made: report_tables.Table, width: int) -> list[int]:
    """The columns that fit side by side."""
    kept = [i for i, below in enumerate(made.below) if not below]
    shown = [*made.rows[:SHOWN], *([made.total] if made.total else [])]
    for head in NARROW_LEAVES_OUT:
        lines = [[_head(made, i).ljust(0 if i else NAME_WIDTH) for i in kept], *(_texts(row, kept) for row in shown)]
        if sum(max(map(len, column)) + BETWEEN for column in zip(*lines, strict=True)) - BETWEEN <= width:
            break
        kept = [i for i in kept if made.heads[i] != head or (head in BUCKETS and any(row[i].key for row in made.rows))]
    return kept


def _head(made: report_tables.Table, column: int) -> str:
    return SHORTER.get(made.heads[column], made.heads[column])


def behaviours(view: AuditView, width: int) -> Table | None:
    """What each owner's GPUs did."""
    if not view.behaviours:
        return None
    table = plain_table("What the GPUs did, most of the time")
    table.add_column("owner", overflow="fold")
    table.add_column("model", overflow="fold")
    table.add_column("GPUs", justify="right")
    table.add_column("class", no_wrap=True)
    table.add_column("judged by", no_wrap=True)
    if width >= WIDE:
        table.add_column("mix", overflow="fold")
    for row in view.behaviours[:SHOWN]:
        cells = [row.owner, row.gpu_model or "no model name", str(row.gpus), row.klass, row.confidence]
        table.add_row(*map(escape, [*cells, row.mix] if width >= WIDE else cells))
    return _with_rest(table, len(view.behaviours))


def prices(view: AuditView) -> Table:
    """Each price with what it rests on, its date and how much was priced by it."""
    table = pairs()
    table.title, table.title_style, table.title_justify = "Prices used", "bold", "left"
    for p in view.cost.prices[:SHOWN]:
        dated = "" if p.age_days is None else f", {count(p.age_days, 'day')} old"
        much = f"{count(p.gpus, 'GPU')}, {number(p.paid_h, 1)} h"
        table.add_row(escape(p.gpu_model or "no model name"), escape(f"{p.words}{dated} ({much})"))
    for u in view.cost.unpriced:
        words = f"not known: {u.why} ({count(u.gpus, 'GPU')}, {number(u.paid_h, 1)} h)"
        table.add_row(escape(u.gpu_model or "no model name"), escape(words))
    return table


def before(view: AuditView, width: int) -> list[RenderableType]:
    """This period against the last, where asked for."""
    found = view.cost.previous
    if isinstance(found, Unknown):
        return [] if found.why == NOT_ASKED else [escape(f"The period before: {found}"), ""]
    table = dollars_table(view, "previous", width)
    return [*([table] if table else []), *(escape(words) for words in found.words), ""]


def roi(view: AuditView) -> Table | None:
    """The published ROI with prices."""
    made = report_tables.build_table("roi", view, TABLES)
    if not made.rows:
        return None
    table = plain_table("What a higher RFU by power is worth, priced (published method)")
    for head in made.heads:
        table.add_column(head, justify="right")
    for row in made.rows:
        table.add_row(*(escape(c.text) for c in row))
    return table


def _with_rest(table: Table, rows: int) -> Table:
    if rows > SHOWN:
        table.caption, table.caption_justify = f"and {rows - SHOWN} more: --out DIR or --json", "left"
    return table
