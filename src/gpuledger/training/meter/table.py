"""How does a meter's report look on a terminal of 80 columns or more?"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.markup import escape as escape_markup
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpuledger.plain_text import visible
from gpuledger.training.meter import shown
from gpuledger.training.meter.rank import Ranks
from gpuledger.training.meter.report import MeterReport, to_json
from gpuledger.training.meter.shown import Json

BAR = 30


def escape(text: str) -> str:
    """Text as it is: neither markup nor a control character in it takes effect."""
    return escape_markup(visible(text))


def show_report(report: MeterReport, ranks: Ranks | None = None) -> None:
    """Print it on stderr, as stdout is the job's own."""
    console = Console(stderr=True, highlight=False, emoji=False)
    for part in parts(to_json(report), ranks):
        console.print(part)


def parts(report: Json, ranks: Ranks | None = None) -> Iterator[RenderableType]:
    """Head, phases, figures, findings, unknown figures; `report` is the JSON."""
    yield head(report)
    if report["seen"]["timed_steps"]:
        yield phases(report)
        yield figures(report)
    if ranks is not None:
        yield ""
        yield escape(ranks.words)
    if report["findings"]:
        yield ""
        yield from findings(report)
    notes = report["seen"]["notes"]
    if notes:
        yield ""
        yield from (f"[yellow]{escape(n)}[/]" for n in notes)
    for missing in shown.unknown(report):
        yield f"[dim]not known: {escape(missing)}[/]"


def head(report: Json) -> str:
    """Who ran where, and how it ended."""
    seen = report["seen"]
    who, place = seen["who"], seen["place"]
    words = escape(shown.steps_words(report))
    return f"[bold]{escape(who['run_id'])}[/]{shown.rank_words(report)} on {escape(place['name'])}\n[dim]{words}[/]"


def _table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=20)
    table.add_column(justify="right", no_wrap=True, style="bold")
    return table


def phases(report: Json) -> Table:
    """Where the step's time goes."""
    table = _table()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, style="cyan")
    for name, ms in report["phases_ms"].items():
        pct = report["phases_pct"][name]
        table.add_row(
            escape(shown.PHASES.get(name, name)), f"{ms:,.2f} ms", f"{pct:.1f} %", "█" * round(BAR * pct / 100)
        )
    table.add_row("step", f"{report['step_ms']:,.2f} ms", "", "")
    return table


def figures(report: Json) -> Table:
    """Rates, MFU, dollars, joules; unknown ones are left out here and listed below."""
    table = _table()
    table.add_column(style="dim")
    for label, text, note in shown.figures(report):
        table.add_row(label, escape(text), escape(note))
    return table


def findings(report: Json) -> Iterator[RenderableType]:
    """Each with its evidence, what it saves and the change."""
    for number, found in enumerate(report["findings"], 1):
        yield f"[bold]{number}. {escape(found['title'])}[/]"
        saved = f"[green]{escape(found['gain_words'])}[/] [dim]({escape(found.get('source', ''))})[/]"
        yield Padding(f"{escape(found['why'])}\n{saved}", (0, 0, 0, 3))
        change = visible(found["change"].rstrip(), lines=True)
        yield Padding(Text(change, style="cyan", no_wrap=True, overflow="ignore"), (0, 0, 0, 5))
