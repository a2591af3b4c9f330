"""What does an import show? How many rows were added, which were rejected and why, and what to check."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from gpuledger.encode import encode
from gpuledger.lake.importing import ImportResult
from gpuledger.report.document import Block, Document, Heading, Prose
from gpuledger.report.tables import Row, cell, make_table
from gpuledger.report.written import amount, number

SHOWN_NOTES = 12


def import_document(result: ImportResult, lake_dir: Path) -> Document:
    """The document of an import."""
    days = " to ".join(dict.fromkeys([result.days[0], result.days[-1]])) if result.days else "no day changed"
    source = amount(number(result.files), "file") if result.files else "the server"
    facts = [f"{_rows(result.rows_read)} read from {source}", days]
    facts += [f"{_rows(result.rows_duplicate)} already there"] if result.rows_duplicate else []
    blocks: list[Block] = []
    if result.rows_rejected:
        rows: list[Row] = [
            [reason.replace("_", " "), cell(number(count), count), result.examples.get(reason, "")]
            for reason, count in result.rejects.items()
        ]
        caption, heads = f"{_rows(result.rows_rejected)} rejected", ("Reason", "Rows", "For example")
        blocks.append(make_table("rejects", caption, heads, "wnw", rows, screen_rows=len(rows)))
    more = len(result.notes) - SHOWN_NOTES
    notes = [*result.notes[:SHOWN_NOTES], *([f"and {more} more; the JSON output has them all"] if more > 0 else [])]
    return Document(
        name="import",
        kind="Import",
        title="Import",
        headline=f"{_rows(result.rows_added)} added to {lake_dir}",
        facts=facts,
        summary=[*blocks, *(Prose(f"note: {note}", "warning") for note in notes)],
        data=lambda: encode("import", {**asdict(result), "lake": lake_dir}),
    )


def with_jobs(imported: Document, jobs: Document) -> Document:
    """The document of an import that added job tables too."""
    both = [*imported.summary, Heading(jobs.headline), *jobs.summary]
    return replace(imported, summary=both, data=lambda: {**imported.data(), "jobs": jobs.data()})


def _rows(count: int) -> str:
    return amount(number(count), "row")
