"""Which books do some files have, for as long as a statement needs them?

Nothing but the books is written where the lines of the files are enough. Where samples or the jobs of others decide,
the files become a lake that is deleted afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.importing import ImportResult, import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.processes import Progress
from gpuledger.lake.taking import Reading
from gpuledger.ledger.read.instants import devices_without_time
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.straight import BY_OWNER, post_files


class Jobs(msgspec.Struct, frozen=True):
    """Job tables that say who held the GPUs. `zone`: of their times that carry none; None: such a table is refused."""

    tables: tuple[Path, ...] = ()
    zone: str | None = None


NO_JOBS = Jobs()


@contextmanager
def books_of(
    files: Sequence[str | Path],
    limits: Thresholds,
    reading: Reading,
    progress: Progress = lambda _stage, _rows: None,
    *,
    cut: bool = False,
    jobs: Jobs = NO_JOBS,
    owners: bool = True,
) -> Iterator[tuple[Lake, ImportResult]]:
    """The books of some files for as long as they are needed, and what reading the files found.

    `cut`: a window will cut hours, which are then posted again from samples, so samples are kept meanwhile. So they are
    with `jobs`: who held a GPU may depend on the others of its host. `owners`: whether statements will be of some
    owners only; else hours by owner need not be kept. Samples that stand for no time are kept too: each GPU has one,
    and its readings are all there is to show.
    """
    with tempfile.TemporaryDirectory(prefix="gpuledger-") as folder:
        lake = Lake(Path(folder) / "books")
        if cut or jobs.tables:
            yield lake, _by_a_lake(lake, files, limits, reading, progress, jobs)
        else:
            left_out = frozenset[str]() if owners else BY_OWNER
            found = post_files(lake, files, limits, reading, progress, left_out=left_out)
            if found.rows_added and devices_without_time(lake, Scope(), limits):
                lake = Lake(Path(folder) / "instants")
                _by_a_lake(lake, files, limits, reading, progress, jobs)
            yield lake, found


def _by_a_lake(
    lake: Lake, files: Sequence[str | Path], limits: Thresholds, reading: Reading, progress: Progress, jobs: Jobs
) -> ImportResult:
    """Import the files and post them as a lake of samples is; what that takes is not loaded before."""
    from gpuledger.lake.jobs.adding import add_jobs
    from gpuledger.lake.jobs.reading import read_jobs
    from gpuledger.ledger.engine import post_lake
    from gpuledger.ledger.jobs.counts import words_of
    from gpuledger.ledger.jobs.joining import owners_of

    for table in jobs.tables:  # before the samples, which may take long
        read_jobs(table, jobs.zone)
    found = import_files(
        lake, files, zone=reading.zone, mapping=reading.mapping, given=reading.given, progress=progress
    )
    added = add_jobs(lake, jobs.tables, zone=jobs.zone) if jobs.tables else None
    post_lake(lake, limits, lambda rows: progress("post", rows))
    found.notes += [] if added is None else [*added.notes, *words_of(owners_of(lake).joined)]
    return found
