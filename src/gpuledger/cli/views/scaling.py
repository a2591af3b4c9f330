"""How does a scaling report look on a terminal? The result first, then what is wrong with what is claimed of it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from gpuledger.cli.terminal import escape, text_of
from gpuledger.cli.views.look import plain_table
from gpuledger.report import tables as report_tables
from gpuledger.report.scaling_lines import faults_of, lines_of
from gpuledger.report.scaling_view import TABLES, ScalingView
from gpuledger.scaling.statement import Comparison, ScalingStatement
from gpuledger.units import Unknown

COLOURS = {"contradicted": "red", "supported": "green", "cannot tell": "yellow"}
SHOWN = 12
WIDE = 120
NARROW_LEAVES_OUT = {"nodes": ("GPU", "Tokens a second", "Success, %")}


def parts(made: ScalingStatement, width: int) -> list[RenderableType]:
    """What a reader needs to decide; the documents have the rest."""
    view = ScalingView(made)
    out: list[RenderableType] = [
        text_of(made.headline, style="bold"),
        text_of(made.second),
        text_of(" · ".join(view.head), style="dim"),
        "",
    ]
    letter = "not graded" if isinstance(made.overall, Unknown) else made.overall
    out += [scorecard(view), text_of(f"Overall: {letter}. {made.overall_words}", style="bold"), ""]
    out += [*_block(table(view, "scaling", width))[:1], *_sentences("", lines_of("curve", made))]
    # Of memory nobody knows, the scorecard says why, once.
    known = any(not isinstance(n.memory_used_bytes, Unknown) for n in made.facts.nodes)
    for name in ("predictions", "latencies", "nodes", "cold", *(("memory",) if known else ()), "batches"):
        out += _block(table(view, name, width))
    out += [*_block(verdicts(made)), *_block(mistakes(made))]
    for name in ("bottlenecks", "optimizations", "cost"):
        out += _block(table(view, name, width))
    if isinstance(made.comparison, Comparison):
        out += [*_block(table(view, "changes", width)), *_sentences("", lines_of("comparison", made))]
    out += _sentences("Public figures", [made.public_words])
    out += _sentences("Faults in the results", faults_of(made, SHOWN))
    return [*out, *_sentences("Readiness", lines_of("readiness", made))]


def _block(found: RenderableType | None) -> list[RenderableType]:
    return [] if found is None else [found, ""]


def scorecard(view: ScalingView) -> Table:
    """Area, figure, grade."""
    made = plain_table("Scorecard")
    made.add_column("area", overflow="fold")
    made.add_column("measured", overflow="fold")
    made.add_column("grade", no_wrap=True)
    for row in view.grades:
        style = {"A": "green", "B": "green", "D": "yellow", "F": "red"}.get(row.grade, "")
        grade = f"[{style}]{row.grade}[/]" if style else escape(row.grade)
        made.add_row(escape(row.title), escape(row.value), grade)
    return made


def table(view: ScalingView, name: str, width: int) -> Table | None:
    """A table of the report, cut to the terminal; long words stand on a line of their own."""
    found = report_tables.build_table(name, view, TABLES)
    if not found.rows:
        return None
    left_out = () if width >= WIDE else NARROW_LEAVES_OUT.get(name, ())
    kept = [i for i, head in enumerate(found.heads) if not found.below[i] and head not in left_out]
    made = plain_table(found.caption)
    for i in kept:
        made.add_column(found.heads[i], justify="left" if found.words[i] else "right", overflow="fold")
    for row in found.rows[:SHOWN]:
        made.add_row(*(escape(row[i].text) for i in kept))
    if len(found.rows) > SHOWN:
        made.caption, made.caption_justify = f"and {len(found.rows) - SHOWN} more: --out DIR or --json", "left"
    return made


def verdicts(made: ScalingStatement) -> Table | None:
    """Claims with what the run says."""
    if not made.claims:
        return None
    shown = plain_table("Claims")
    shown.add_column("claim", overflow="fold")
    shown.add_column("value", overflow="fold", max_width=18)
    shown.add_column("verdict", no_wrap=True)
    shown.add_column("why", overflow="fold")
    for c in made.claims:
        name = c.claim + (f" ({c.node})" if c.node else "")
        verdict = f"[{COLOURS[c.verdict]}]{c.verdict}[/]"
        shown.add_row(escape(name), escape(str(c.value)), verdict, escape(c.why))
    return shown


def mistakes(made: ScalingStatement) -> Table | None:
    """The mistakes that were caught."""
    caught = [c for c in made.checks if c.caught]
    if not caught:
        return None
    shown = plain_table(f"Mistakes caught ({len(caught)} of {len(made.checks)} looked for)")
    shown.add_column("mistake", overflow="fold", max_width=30)
    shown.add_column("why", overflow="fold")
    for c in caught:
        shown.add_row(escape(c.title), escape(c.why))
    return shown


def _sentences(title: str, lines: Iterable[str]) -> list[RenderableType]:
    found = list(lines)
    if not found:
        return []
    head: list[RenderableType] = [f"[bold]{title}[/]"] if title else []
    return [*head, *(Padding(text_of(f"- {line}"), (0, 0, 0, 2), expand=False) for line in found), ""]
