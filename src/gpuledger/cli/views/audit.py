"""How does an audit look on a terminal? The money first, the first thing to do second."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from gpuledger.advice.statement import AuditStatement, Recommendation
from gpuledger.cli.figures import NOT_KNOWN, count, instant, percent
from gpuledger.cli.terminal import escape, text_of
from gpuledger.cli.views.audit_tables import before, behaviours, dollars_table, groups, prices, roi
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.cost.build import FEW_SAMPLES
from gpuledger.report import tables as report_tables
from gpuledger.report.audit_rows import mark, rests_on, where, worth
from gpuledger.report.audit_view import TABLES, AuditView
from gpuledger.report.written import write
from gpuledger.units import MS_PER_S, Unknown

TOP = 5
SHOWN_WORDS = 6
# Shown though they claim no dollars: a failing GPU cannot wait, and what is unrated may hide the largest saving.
ALWAYS = ("health", "record-pipes")
BAR_PER_PCT = 2.5


def parts(audit: AuditStatement, width: int) -> list[RenderableType]:
    """Everything a reader needs to decide; the report has the rest."""
    view = AuditView(audit)
    out: list[RenderableType] = [*headline(audit), *few(audit), ""]
    blocks: list[RenderableType | None] = [
        bill(view), phases(view), projection(view), savings(view), behaviours(view, width),
    ]  # fmt: skip
    for block in blocks:
        if block is not None:
            out += [block, ""]
    out += [*advice(audit), *groups(view, width)]
    for table in (dollars_table(view, "gpus", width), prices(view), roi(view)):
        if table is not None:
            out += [table, ""]
    out += [*before(view, width), *sentences("Assumptions", audit.assumptions)]
    return [*out, *sentences("Not known", (f"{n.figure}: {n.why}" for n in audit.not_known))]


def headline(audit: AuditStatement) -> list[RenderableType]:
    """The money, the first thing to do, what cannot be rated, then what was looked at."""
    money, first = audit.headline
    c = audit.cost
    window = f"{instant(c.start_ms)} to {instant(c.end_ms)} UTC, {count(c.gpus, 'GPU')}, {count(c.samples, 'sample')}"
    if c.wall_h < 1:
        window += f", {(c.end_ms - c.start_ms) / MS_PER_S:,.1f} s"
    unrated = [text_of(audit.unrated_note, style="yellow")] if audit.unrated_note else []
    return [text_of(money, style="bold"), text_of(first), *unrated, text_of(window, style="dim")]


def few(audit: AuditStatement) -> list[RenderableType]:
    """A loud word where there is too little to stand on."""
    c = audit.cost
    if c.samples >= FEW_SAMPLES * max(1, len(c.by_gpu)):
        return []
    words = (
        f"Only {count(c.samples, 'sample')} in this window: too few to judge. Record for longer, or widen the window."
    )
    return [text_of(words, style="bold yellow")]


def bill(view: AuditView) -> Table:
    """The seven buckets, which add up to what was paid."""
    made = report_tables.build_table("bill", view, TABLES)
    table = plain_table("Where the money went")
    table.add_column("bucket")
    for head in ("GPU-hours", "of the bill", "dollars"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("")
    for cells, row in zip(made.rows, view.bill, strict=True):
        bar = "" if isinstance(row.pct, Unknown) else "█" * round(row.pct / BAR_PER_PCT)
        table.add_row(*(_cell(c.text, c.unknown) for c in cells[:4]), f"[cyan]{bar}[/]")
    if made.total:
        table.add_section()
        table.add_row(*(_cell(c.text, c.unknown) for c in made.total[:4]), "", style="bold")
    return table


def _cell(text: str, unknown: bool) -> str:
    return NOT_KNOWN if unknown else escape(text)


def phases(view: AuditView) -> Table:
    """The four utilization bands; they sum to 100."""
    table = plain_table("Observed time by utilization band")
    table.add_column("band")
    table.add_column("share", justify="right")
    table.add_column("")
    shares = view.phases_pct
    if isinstance(shares, Unknown):
        table.add_row(escape(str(shares)), "", "")
        return table
    for name, share in shares.items():
        table.add_row(write(name, "band").lower(), percent(share), f"[cyan]{'█' * round(share / BAR_PER_PCT)}[/]")
    return table


def projection(view: AuditView) -> Table | None:
    """The rate of spending over longer times."""
    made = report_tables.build_table("projection", view, TABLES)
    if not made.rows:
        return None
    table = pairs()
    table.title, table.title_style, table.title_justify = "At this rate", "bold", "left"
    for name, usd in made.rows:
        table.add_row(name.text, usd.text)
    return table


def savings(view: AuditView) -> RenderableType:
    """The naive sum beside the honest figures, and how they come about in words."""
    found = view.savings
    if isinstance(found, Unknown):
        return text_of(f"Savings: {found}")
    made = report_tables.build_table("savings", view, TABLES)
    table = plain_table("All changes together, of the bill")
    table.add_column("")
    for head in ("at least", "likely", "at most", "$ a month"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in made.rows:
        table.add_row(*(_cell(c.text, c.unknown) for c in row[:5]))
    box = Table.grid()
    box.add_row(table)
    words = [*found.words[:SHOWN_WORDS]]
    if len(found.words) > SHOWN_WORDS:
        words.append(f"and {len(found.words) - SHOWN_WORDS} more such sentences: --out DIR or --json")
    for line in words:
        box.add_row(indented(f"- {line}", 2, "dim"))
    return box


def advice(audit: AuditStatement) -> list[RenderableType]:
    """The five that save most, the one to start with and failing GPUs; each with its evidence and the change."""
    found = audit.recommendations
    if not found:
        return ["[bold]What to change[/]", "  Nothing: no rule finds waste it can act on.", ""]
    out: list[RenderableType] = [f"[bold]What to change[/] [dim](each by itself; {count(len(found), 'change')})[/]"]
    marks = [mark(r, audit) for r in found]
    shown = [i for i in range(len(found)) if i < TOP or marks[i] or found[i].id in ALWAYS]
    for i in shown:
        out += [*_one(i + 1, found[i], marks[i]), ""]
    if rest := [r.id for i, r in enumerate(found) if i not in shown]:
        out += [text_of(f"and {len(rest)} more: {', '.join(rest)} (--out DIR or --json)", style="dim"), ""]
    return out


def _one(rank: int, r: Recommendation, marked: str) -> Iterable[RenderableType]:
    yield text_of(f"{rank}. {r.title}{f' ({marked})' if marked else ''}", style="bold")
    lines = (
        f"{worth(r)}; effort {r.effort.words}",
        f"for {where(r)} ({count(r.gpus, 'GPU')})",
        f"because {r.why}",
        rests_on(r),
    )
    for line in lines:
        yield indented(line, 3)
    # Text that is a plain string is never cut into lines: a snippet must survive being copied.
    yield "\n".join(f"     [green]{escape(line)}[/]" for line in r.change.text.rstrip().split("\n"))


def indented(line: str, columns: int, style: str = "") -> Padding:
    """A sentence set in from the left."""
    return Padding(text_of(line, style=style), (0, 0, 0, columns), expand=False)


def sentences(title: str, lines: Iterable[str]) -> list[RenderableType]:
    """Words, one sentence a line."""
    found = list(lines)
    if not found:
        return []
    return [f"[bold]{title}[/]", *(indented(f"- {line}", 2) for line in found), ""]
