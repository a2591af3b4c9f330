"""How does a migration plan look on a terminal?"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table as Drawn

from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.plan.guide.sets import MigrationSet
from gpuledger.plan.guide.statement import MigrationPlan
from gpuledger.report.migrate_html import headline
from gpuledger.report.documents.migrate import (
    facts,
    guidelines_table,
    options_table,
    ranges_table,
    refused_table,
    set_table,
)
from gpuledger.report.tables import Table

WIDE = 130
NARROW_LEAVES_OUT = {
    "options": ("$ per M tokens", "Effort"),
    "set": ("Expected", "Speed"),
    "refused": ("Instances",),
    "ranges": ("Price of",),
}


def parts(plan: MigrationPlan, width: int) -> list[RenderableType]:
    """Everything about one plan."""
    out: list[RenderableType] = [f"[bold]{escape(plan.recommendation)}[/]", ""]
    out += [_listed("beware", plan.warnings), ""] if plan.warnings else []
    head = pairs()
    for name, words in facts(plan):
        head.add_row(name, escape(words))
    out += [head, "", *_table(options_table(plan), width), *_table(ranges_table(plan), width)]
    out += _table(guidelines_table(plan), width)
    if plan.sharing:
        out += [_listed("sharing", (s.words for s in plan.sharing)), ""]
    out += _table(refused_table(plan), width)
    return [*out, _listed("assumed", plan.assumptions)]


def set_parts(found: MigrationSet, width: int) -> list[RenderableType]:
    """Several plans: their sum first, then each."""
    if len(found.plans) == 1:
        return parts(found.plans[0], width)
    out = summary(found, width)
    for i, plan in enumerate(found.plans, 1):
        name = plan.job.name or plan.job.model.name
        out += ["", f"[bold]{i}. {escape(name)}[/]", "", *parts(plan, width), ""]
    return out


def summary(found: MigrationSet, width: int) -> list[RenderableType]:
    """What several plans come to."""
    title = f"{found.name}: {found.purpose}. {found.use_case}" if found.purpose else found.name
    out: list[RenderableType] = [f"[bold]{escape(headline(found))}[/]", escape(title), ""]
    out += _table(set_table(found), width)
    out += [_listed("sharing", (c.words for c in found.consolidation)), ""] if found.consolidation else []
    return out


def _listed(name: str, items: Iterable[str]) -> Drawn:
    table = pairs()
    for i, words in enumerate(items):
        table.add_row(name if i == 0 else "", escape(words))
    return table


def _table(made: Table, width: int) -> list[RenderableType]:
    """A table of the report, cut to the terminal."""
    if not made.rows:
        return [escape(made.empty), ""] if made.empty else []
    hidden = NARROW_LEAVES_OUT.get(made.name, ()) if width < WIDE else ()
    kept = [i for i, head in enumerate(made.heads) if head not in hidden]
    table = plain_table(made.caption)
    for i in kept:
        words = made.words[i]
        table.add_column(made.heads[i], justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in made.rows:
        table.add_row(*(escape(row[i].text) for i in kept))
    if made.note:
        table.caption, table.caption_justify = escape(made.note), "left"
    return [table, ""]


def as_text(drawn: Iterable[RenderableType], width: int = 100) -> str:
    """The same as plain text, for a caller in Python."""
    import io

    from gpuledger.cli.terminal import Terminal

    out = io.StringIO()
    console = Terminal(file=out, width=width, color_system=None, force_terminal=False)
    for part in drawn:
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
