"""What does the demo show at its end?"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpuledger.cli.figures import percent
from gpuledger.cli.published import comparison, published_s0
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.cli.views.statement import findings, title
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.units import Unknown

SHOWN_FINDINGS = 6


def parts(
    statement: EfficiencyStatement, *, report: Path, data: Path, lake: Path, inventory: Path, teams: Path
) -> list[RenderableType]:
    """Our figures beside the published ones, the findings, where everything is, what to do next."""
    said = findings(statement.findings[:SHOWN_FINDINGS])
    where = pairs()
    where.add_row("report", f"[bold]{escape(str(report))}[/]")
    where.add_row("samples", escape(str(data)))
    where.add_row("books", escape(str(lake)))
    where.add_row("paid for", escape(f"{inventory}, teams in {teams.name}"))
    return [
        title(statement), "", beside_published(statement), Text(published_s0().note, style="dim"), "",
        *([said, ""] if said else []), where, "",
        "next: open the report in a browser, price the waste, or look closer",
        f"  gpuledger audit --lake {escape(str(lake))} --inventory {escape(str(inventory))}",
        f"  gpuledger analyze --lake {escape(str(lake))} --last 1d",
        "  gpuledger import YOUR_EXPORT.csv && gpuledger analyze --out report",
    ]  # fmt: skip


def beside_published(statement: EfficiencyStatement) -> Table:
    """Each published finding with ours beside it, and the one figure that was not published."""
    table = plain_table("The sample fleet")
    table.add_column("")
    table.add_column("here", justify="right", style="bold")
    table.add_column("published", justify="right")
    for label, theirs, here in comparison(statement):
        table.add_row(label, here, theirs)
    counters = statement.fleet.rfu_counters_pct
    middle = counters if isinstance(counters, Unknown) else counters.middle
    table.add_row("RFU by counters", percent(middle), "not given")
    return table
