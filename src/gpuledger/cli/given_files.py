"""What do the files on a command line hold: samples, job tables, bills, or what answers by itself?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.telemetry.formats import HOLDS, WAYS, Format, Kind, recognize

if TYPE_CHECKING:
    from gpuledger.cli.screen import Screen
    from gpuledger.report.document import Document


@dataclass(frozen=True)
class GivenFiles:
    """Files by what they hold. `others`: those that hold no samples, with their formats."""

    samples: tuple[str, ...] = ()
    others: tuple[tuple[Path, Format], ...] = ()

    def of(self, kind: Kind) -> tuple[Path, ...]:
        """The files of one kind."""
        return tuple(path for path, made in self.others if made.kind is kind)

    @property
    def alone(self) -> bool:
        """Whether there are files and none holds samples: each is answered by itself."""
        return bool(self.others) and not self.samples

    def used_as(self, screen: Screen, zone: str | None, *kinds: Kind) -> str | None:
        """Report what files next to samples are taken as, and which are not used; the zone of their times without one.

        It is that of the samples: UTC, unless the user named one.
        """
        for path, made in self.others:
            what = f"{path.name}: {HOLDS[made.kind]} ({made.name})"
            if made.kind not in kinds:
                screen.note(f"{what}, not used here: {WAYS[made.kind].replace('FILE', str(path))}")
            else:
                stated = made.kind is Kind.JOBS and zone is None and _zoneless(path)
                utc = "; stated: its times without a zone are UTC (--tz)" * stated
                screen.note(f"{what}, taken as such{utc}")
        return zone or ("UTC" if self.of(Kind.JOBS) else None)

    def documents(self, zone: str | None) -> list[Document]:
        """A document for each file, of files without samples."""
        return [_document(path, made, zone) for path, made in self.others]

    def show(
        self,
        documents: Sequence[Document],
        out: Path | None,
        screen: Screen,
        *added: Document | str,
        full: bool = False,
    ) -> None:
        """The documents one after the other; as JSON one object, or a list of them under `files_read`.

        `added`: what became of job tables in a lake.
        """  # fmt: skip
        from gpuledger.cli.showing import show, write_files

        made = []
        for document in documents:
            place = out if out is None or len(documents) == 1 else out / document.name
            with screen.stages() as stages:
                written = write_files(document, place, screen, stages)
            made.append({**document.data(), "files": written})
            show(document, written, screen, full=full)
        for one in added:
            screen.say(one if isinstance(one, str) else one.headline, err=isinstance(one, str))
        if screen.as_json:
            more = {"added": [one if isinstance(one, str) else one.data() for one in added]} if added else {}
            answer = made[0] if len(made) == 1 else {"v": 1, "statement": "files", "files_read": made}
            screen.answer({**answer, **more})


def given_files(files: Sequence[str], mapped: bool = False) -> GivenFiles:
    """Files by what they hold. Folders, patterns, addresses, and files with a map of the user's hold samples."""
    samples, others = list[str](), list[tuple[Path, Format]]()
    for name in files:
        path, is_file = Path(name), os.path.isfile(name)  # noqa: PTH113  (one that may not be looked at is read, and refused)
        found = None if mapped or not is_file else recognize(path).format
        if found is None or found.kind in (Kind.TELEMETRY, Kind.REFUSED):  # reading it says what it is
            samples.append(name)
        else:
            others.append((path, found))
    return GivenFiles(tuple(samples), tuple(others))


def _zoneless(table: Path) -> bool:
    from gpuledger.lake.jobs.reading import read_jobs

    return read_jobs(table, "UTC").zoneless


def _document(path: Path, made: Format, zone: str | None) -> Document:
    from gpuledger.report.documents import document_of

    if made.kind is Kind.JOBS:
        from gpuledger.lake.jobs.summary import job_summary

        return document_of(job_summary(path, zone))
    if made.kind is Kind.INVENTORY:
        from gpuledger.cost.inventories.summary import bill_summary

        return document_of(bill_summary(path))
    assert made.read is not None
    return document_of(made.read(path))
