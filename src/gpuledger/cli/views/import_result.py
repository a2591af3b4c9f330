"""What does a reader want to know after an import?"""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.figures import count
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import plain_table
from gpuledger.lake.importing import ImportResult

SHOWN_NOTES = 12


def parts(result: ImportResult, lake_dir: Path) -> list[RenderableType]:
    """The counts, the rejects by reason with an example, the notes, the next step."""
    days = " to ".join(dict.fromkeys([result.days[0], result.days[-1]])) if result.days else "no day changed"
    read = f"{count(result.rows_read, 'row')} read from {count(result.files, 'file')}, {days}"
    out: list[RenderableType] = [
        f"[bold]{count(result.rows_added, 'row')} added[/] to {escape(str(lake_dir))} ({read})"
    ]
    if result.rows_duplicate:
        out.append(f"{count(result.rows_duplicate, 'row')} were there already")
    if result.rows_rejected:
        out += ["", _rejects(result)]
        out.append(f"every rejected row, with its file, row, column and value: {escape(str(result.rejects_file))}")
    for note in result.notes[:SHOWN_NOTES]:
        out.append(f"[yellow]note:[/] {escape(note)}")
    if len(result.notes) > SHOWN_NOTES:
        out.append(f"[yellow]note:[/] and {len(result.notes) - SHOWN_NOTES} more; --json has them all")
    where = "" if str(lake_dir) == "gpuledger-data" else f" --lake {lake_dir}"
    out.append(f"next: gpuledger analyze{escape(where)} --out report")
    return out


def _rejects(result: ImportResult) -> Table:
    table = plain_table(f"{count(result.rows_rejected, 'row')} rejected")
    table.add_column("reason", no_wrap=True)
    table.add_column("rows", justify="right")
    table.add_column("for example", overflow="fold")
    for reason, rows in result.rejects.items():
        table.add_row(reason.replace("_", " "), f"{rows:,}", escape(result.examples.get(reason, "")))
    return table
