"""In which order does a document show its figures?

Each document has a file `documents/NAME.toml`: key figures, sections, tables, and what its words mean.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import UnknownName
from gpuledger.ledger.read.owners import By
from gpuledger.report.charts import chart_names
from gpuledger.report.document import Block, Chart, KeyFigure, Later, Prose, Section, Terms, tables
from gpuledger.report.tables import Table, TableKind, build_table, field_of
from gpuledger.report.written import STYLES, write
from gpuledger.units import Bounds, Range, Unknown

GPUS = "GPUs"
COUNTED_ONCE = "a GPU cut into MIG slices counts once"


class FigureKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key figure: where it is in the statement and how it is written.

    `low` and `high`: where its range is. `words`: where words are that take the range's place.
    """

    label: str
    field: str
    style: str
    note: str
    low: str = ""
    high: str = ""
    words: str = ""


class SectionKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One section: its opening words and its tables."""

    id: str
    title: str
    text: str = ""
    tables: tuple[str, ...] = ()


class Outline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole document: its tables by name, its sections in order. `devices`: where the rows of single devices are."""

    version: int
    figures: tuple[FigureKind, ...]
    sections: tuple[SectionKind, ...]
    glossary: tuple[dict[Literal["term", "meaning"], str], ...]
    tables: dict[str, TableKind]
    devices: str = ""

    def table(self, name: str, statement: object, places: int | None = None) -> Table:
        """The table called `name`, filled from a statement."""
        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        made = build_table(name, self.tables[name], statement, places)
        if GPUS in made.heads and self._has_slices(statement):
            return replace(made, caption=f"{made.caption}; {COUNTED_ONCE}")
        return made

    def _has_slices(self, statement: object) -> bool:
        rows: Any = field_of(statement, self.devices) if self.devices else ()
        return any(row.gpu_instance_id for row in rows)

    def key_figures(self, statement: object) -> list[KeyFigure]:
        """The key figures, filled from a statement."""
        return [_key_figure(kind, statement) for kind in self.figures]

    def terms(self) -> Terms:
        """What the words mean."""
        return Terms([(t["term"], t["meaning"]) for t in self.glossary])

    def section(
        self,
        kind: SectionKind,
        rows: object,
        charts: Sequence[Chart] = (),
        after: Sequence[Block] = (),
        leave: Container[str] = (),
        places: int | None = None,
    ) -> Section:
        """A section: words, `charts`, tables filled from `rows` except those to `leave`, and what comes after."""

        def blocks() -> list[Block]:
            lead = [Prose(kind.text, "lead")] if kind.text else []
            made = tables([self.table(name, rows, places) for name in kind.tables if name not in leave])
            return [*lead, *charts, *made, *after]

        return Section(kind.id, kind.title, Later(blocks))


def charts_of(document: str, section: str, subject: object) -> Sequence[Chart]:
    """The charts registered for a section, drawn from the subject."""
    return Later(lambda: [Chart(name, subject) for name in chart_names(document, section)])


@cache
def load_outline(document: str) -> Outline:
    """The outline of a document."""
    outline = load_toml(data_dir("gpuledger.report", "documents", f"{document}.toml"), Outline)
    styles = [c.style for kind in outline.tables.values() for c in kind.columns] + [f.style for f in outline.figures]
    for style in styles:
        if style not in STYLES:
            raise UnknownName("style", style, STYLES)
    return outline


def _key_figure(kind: FigureKind, statement: object) -> KeyFigure:
    value: Any = field_of(statement, kind.field)
    found = [field_of(statement, path) if path else None for path in (kind.low, kind.high)]
    if isinstance(value, Unknown):
        if any(end is None or isinstance(end, Unknown) for end in found):
            return KeyFigure(kind.label, str(value), "", kind.note, unknown=True)
        return KeyFigure(kind.label, " to ".join(write(end, kind.style) for end in found), "", kind.note)
    if isinstance(value, Bounds):
        return KeyFigure(kind.label, write(value, kind.style), "", kind.note)
    if isinstance(value, Range):
        found, value = [value.low, value.high], value.middle
    ends = ["" if end is None else write(end, kind.style) for end in found]
    span = "" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    if kind.words:
        span = str(field_of(statement, kind.words))
    return KeyFigure(kind.label, write(value, kind.style), span, kind.note)


TABLE = "asked"
SCREEN_ROWS = 20
_NOT_RECORDED = "Time without that label has a row of its own: no {by} was recorded for it."


def owner_table(document: str, statement: object, by: By | None, places: int | None = None) -> list[Table]:
    """The table by that dimension; nothing where none was asked for."""
    if by is None:
        return []
    made = load_outline(document).table(TABLE, statement, places)
    heads = (by.value.capitalize(), *made.heads[1:])
    note = f"{made.note} {_NOT_RECORDED.format(by=by.value)}".strip()
    caption = made.caption.replace("By owner", f"By {by.value}", 1)
    return [replace(made, caption=caption, heads=heads, note=note, screen_rows=SCREEN_ROWS)]


def owner_blocks(document: str, statement: object, by: By | None, shown: frozenset[By]) -> list[Block]:
    """The same for a section that shows some dimensions anyway."""
    return [] if by in shown else [*owner_table(document, statement, by)]
