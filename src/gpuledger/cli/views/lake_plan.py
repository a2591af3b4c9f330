"""How does the plan from the ledger look on a terminal?"""

from __future__ import annotations

from rich.console import RenderableType

from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.plan.move.statement import LakePlan
from gpuledger.report.lake_plan_tables import moves_table, namespaces_table, refused_table, risks
from gpuledger.report.tables import Table

WIDE = 130
NARROW_LEAVES_OUT = {
    "namespaces": ("Saved",),
    "moves": ("From", "Cap", "Range", "For example"),
    "refused": ("Reason", "From"),
}
REFUSED_SHOWN = 12
ASSUMED_SHOWN = 6


def parts(plan: LakePlan, width: int) -> list[RenderableType]:
    """The proposals first, then moves, risks, what was refused and what is assumed."""
    out: list[RenderableType] = [f"[bold]{escape(plan.headline)}[/]", escape(plan.beside_audit), ""]
    out += _table(namespaces_table(plan), width)
    out += _table(moves_table(plan), width)
    if told := risks(plan):
        out += [_listed("beware", told), ""]
    out += _table(refused_table(plan), width, REFUSED_SHOWN)
    unknown = [f"{figure}: {why}" for figure, why in plan.not_known]
    if unknown:
        out += [_listed("not known", unknown[:ASSUMED_SHOWN]), ""]
    return [*out, _listed("assumed", plan.assumptions[:ASSUMED_SHOWN])]


def _listed(name: str, items: tuple[str, ...] | list[str]) -> RenderableType:
    table = pairs()
    for i, words in enumerate(items):
        table.add_row(name if i == 0 else "", escape(words))
    return table


def _table(made: Table, width: int, most: int | None = None) -> list[RenderableType]:
    """A table of the report, cut to the terminal."""
    if not made.rows:
        return [escape(made.empty), ""] if made.empty else []
    hidden = set(NARROW_LEAVES_OUT.get(made.name, ())) if width < WIDE else set()
    kept = [i for i, head in enumerate(made.heads) if head not in hidden]
    table = plain_table(made.caption)
    for i in kept:
        words = made.words[i]
        table.add_column(made.heads[i], justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in made.rows[:most]:
        table.add_row(*(escape(row[i].text) for i in kept))
    if made.total:
        table.add_section()
        table.add_row(*(escape(made.total[i].text) for i in kept), style="bold")
    left = 0 if most is None else len(made.rows) - most
    note = f"and {left} more: --out DIR or --json" if left > 0 else made.note
    if note:
        table.caption, table.caption_justify = escape(note), "left"
    return [table, ""]
