"""How do the audit's tables look on a terminal?"""

from __future__ import annotations

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from gpuledger.cli.figures import count, number
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.cost.statement import NOT_ASKED
from gpuledger.report import tables as report_tables
from gpuledger.report.audit_view import TABLES, AuditView
from gpuledger.units import Unknown

# From this bill on, columns side by side are in whole dollars.
WHOLE_FROM_USD = 1000
SHOWN = 10
WIDE = 110
NARROW_LEAVES_OUT = {"gpus": ("$ an hour", "Idle", "Unobserved")}
NARROW_USUALLY = ("GPUs", "GPU-hours", "Unobserved")
SHORTER = {"Idle, memory held": "Idle, held"}


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
    left_out = () if width >= WIDE else NARROW_LEAVES_OUT.get(name, NARROW_USUALLY)
    kept = [i for i, head in enumerate(made.heads) if not made.below[i] and head not in left_out]
    table = plain_table(made.caption)
    for i in kept:
        words, head = made.words[i], SHORTER.get(made.heads[i], made.heads[i])
        table.add_column(head, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in made.rows[:SHOWN]:
        table.add_row(*(escape(row[i].text) for i in kept))
    if made.total:
        table.add_section()
        table.add_row(*(escape(made.total[i].text) for i in kept), style="bold")
    if len(made.rows) > SHOWN:
        more = len(made.rows) - SHOWN
        table.caption, table.caption_justify = f"and {more} more, in the total: --out DIR or --json", "left"
    return table


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
