"""What do an import and job tables show? What was added, which rows were rejected and why, what the jobs explain."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpuledger.encode import encode
from gpuledger.ledger.jobs.counts import words_of
from gpuledger.report.document import Block, Document, Heading, Prose
from gpuledger.report.tables import Row, cell, make_table
from gpuledger.report.written import amount, number
from gpuledger.telemetry.stated import stated_words

if TYPE_CHECKING:
    from gpuledger.lake.importing import ImportResult
    from gpuledger.lake.jobs.adding import JobsResult
    from gpuledger.ledger.jobs.joining import Owners

SHOWN_NOTES = 12


def import_document(result: ImportResult, lake_dir: Path) -> Document:
    """The document of an import."""
    days = " to ".join(dict.fromkeys([result.days[0], result.days[-1]])) if result.days else "no day changed"
    source = amount(number(result.files), "file") if result.files else "the server"
    facts = [f"{_rows(result.rows_read)} read from {source}", days]
    facts += [f"{_rows(result.rows_duplicate)} already there"] if result.rows_duplicate else []
    stated = [Prose(f"stated: {stated_words(result.stated)}")] if result.stated else []
    more = len(result.notes) - SHOWN_NOTES
    notes = [*result.notes[:SHOWN_NOTES], *([f"and {more} more; the JSON output has them all"] if more > 0 else [])]
    return Document(
        name="import",
        kind="Import",
        title="Import",
        headline=f"{_rows(result.rows_added)} added to {lake_dir}",
        facts=facts,
        summary=[*stated, *_rejected(result), *(Prose(f"note: {note}", "warning") for note in notes)],
        data=lambda: encode("import", {**asdict(result), "lake": lake_dir}),
    )


def with_jobs(imported: Document, jobs: Document) -> Document:
    """The document of an import that added job tables too."""
    both = [*imported.summary, Heading(jobs.headline), *jobs.summary]
    return replace(imported, summary=both, data=lambda: {**imported.data(), "jobs": jobs.data()})


def _rejected(result: ImportResult | JobsResult) -> list[Block]:
    if not result.rows_rejected:
        return []
    rows: list[Row] = [
        [reason.replace("_", " "), cell(number(count), count), result.examples.get(reason, "")]
        for reason, count in result.rejects.items()
    ]
    caption, heads = f"{_rows(result.rows_rejected)} rejected", ("Reason", "Rows", "For example")
    return [make_table("rejects", caption, heads, "wnw", rows, screen_rows=len(rows))]


def _rows(count: int) -> str:
    return amount(number(count), "row")


def jobs_document(result: JobsResult, owners: Owners, lake_dir: Path) -> Document:
    """The document of adding job tables."""
    facts = [f"{_rows(result.rows_read)} read from {amount(number(result.files), 'file')}"]
    facts.append(f"{amount(number(result.claims_new), 'placement')} new or changed")
    facts.append(amount(number(len(result.days)), "day") + " posted again")
    return Document(
        name="jobs",
        kind="Jobs",
        title="Jobs",
        headline=f"{amount(number(result.jobs), 'job')} that held GPUs, added to {lake_dir}",
        facts=facts,
        summary=[
            *_rejected(result),
            *(Prose(f"note: {note}", "warning") for note in (*result.notes, *_of_time(owners))),
        ],
        data=lambda: encode("jobs", _data(result, owners, lake_dir)),
    )


def _of_time(owners: Owners) -> list[str]:
    """What the tables explain, and where they cannot."""
    out = words_of(owners.joined)
    if not owners.samples:
        out.append("the lake has no samples yet: the jobs apply to those that are imported")
    elif not owners.joined.total:
        out.append(
            "no sample of the lake is from a GPU and time of these jobs: check host names, GPU indices, days and the"
            " time zone"
        )
    if days := owners.kept_days:
        named = f"{days[0]} to {days[-1]}" if len(days) > 1 else days[0]
        out.append(f"{named}: samples were deleted, so these days keep the owners they were posted with")
    return out


def _data(result: JobsResult, owners: Owners, lake_dir: Path) -> dict[str, object]:
    more = {"samples": owners.samples, "joined": msgspec.structs.asdict(owners.joined), "kept_days": owners.kept_days}
    return {**asdict(result), **more, "lake": lake_dir}
