"""What does adding job tables show? The jobs that were read, the rows that were rejected, what they explain."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import msgspec

from gpuledger.encode import encode
from gpuledger.lake.jobs.adding import JobsResult
from gpuledger.ledger.jobs.counts import words_of
from gpuledger.ledger.jobs.owners import Owners
from gpuledger.report.document import Block, Document, Prose
from gpuledger.report.tables import Row, cell, make_table
from gpuledger.report.written import amount, number


def jobs_document(result: JobsResult, owners: Owners, lake_dir: Path) -> Document:
    """The document of adding job tables."""
    blocks: list[Block] = []
    if result.rows_rejected:
        rows: list[Row] = [
            [reason.replace("_", " "), cell(number(count), count), result.examples.get(reason, "")]
            for reason, count in result.rejects.items()
        ]
        caption, heads = f"{amount(number(result.rows_rejected), 'row')} rejected", ("Reason", "Rows", "For example")
        blocks.append(make_table("rejects", caption, heads, "wnw", rows, screen_rows=len(rows)))
    facts = [f"{amount(number(result.rows_read), 'row')} read from {amount(number(result.files), 'file')}"]
    facts.append(f"{amount(number(result.claims_new), 'placement')} new or changed")
    facts.append(amount(number(len(result.days)), "day") + " posted again")
    return Document(
        name="jobs",
        kind="Jobs",
        title="Jobs",
        headline=f"{amount(number(result.jobs), 'job')} that held GPUs, added to {lake_dir}",
        facts=facts,
        summary=[*blocks, *(Prose(f"note: {note}", "warning") for note in (*result.notes, *_of_time(owners)))],
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
    joined = msgspec.structs.asdict(owners.joined)
    return {
        **asdict(result),
        "samples": owners.samples,
        "joined": joined,
        "kept_days": owners.kept_days,
        "lake": lake_dir,
    }
