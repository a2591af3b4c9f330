"""How does a document reach the user: on the terminal, as one JSON object, as files?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.cli.screen import Screen, Stages

if TYPE_CHECKING:
    from gpuledger.report.document import Document


def write_files(document: Document, out: Path | None, screen: Screen, stages: Stages) -> dict[str, str]:
    """The document's files in a folder, or one file FILE.csv or FILE.xlsx; paths by name, none without a place."""
    if out is None:
        return {}
    document = _with_reading(document, screen)
    from gpuledger.report.sheets import is_one_file, write_sheets

    if is_one_file(out):
        return {out.name: str(write_sheets(document, out))}
    from gpuledger.report.charts import can_draw
    from gpuledger.report.write import write_document

    charts = can_draw()
    if not charts:
        screen.say('written without charts; for charts: pip install "gpuledger[charts]"', err=True)
    tick = stages.start("writing the report")
    written = write_document(document, out, charts=charts, progress=lambda _step: tick(1))
    return {name: str(path) for name, path in written.items()}


def _with_reading(document: Document, screen: Screen) -> Document:
    """The document with what reading the files found, which a terminal shows before it."""
    from gpuledger.report.document import Prose

    read = [Prose(words, "note") for words in screen.read()]
    return replace(document, notes=[*read, *document.notes]) if read else document


def give(document: Document, screen: Screen, files: dict[str, str] | None = None, *, full: bool | None = None) -> None:
    """The whole answer: one JSON object where asked for, else the document on the terminal."""
    if screen.as_json:
        screen.answer(document.data() if files is None else {**document.data(), "files": files})
    show(document, files or {}, screen, full=full)


def show(
    document: Document, files: dict[str, str], screen: Screen, *, full: bool | None = None, err: bool = False
) -> None:
    """The short answer on the terminal (the whole document with `full`), and where the rest is, if there is more.

    Without `full` the command has neither --full nor --out, and the document is the whole answer.
    """
    if not screen.talks:
        return
    from gpuledger.report.render.terminal import screen as drawn

    screen.show(*drawn(document, screen.console(err=err).width, full=bool(full)), err=err)
    if full is None:
        return
    page = files.get(f"{document.name}.html")
    sheet = next((path for name, path in files.items() if name.endswith((".csv", ".xlsx")) and len(files) == 1), None)
    more = ["everything: add --full"] if document.sections and not full else []
    where = [f"the report: {page}" if page else "as a page: add --out DIR"] if document.sections or page else []
    if sheet is not None:
        where = [f"the table: {sheet}" if sheet.endswith("csv") else f"the tables: {sheet}"]
    if more or where:
        screen.say("; ".join([*more, *where]), err=err)
