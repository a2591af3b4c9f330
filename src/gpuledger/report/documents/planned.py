"""What does any plan show? A document for a planner that brings none of its own, made from its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuledger.report.document import Block, Bullets, Document, KeyFigure, Section
from gpuledger.report.documents import DOCUMENTS, document_of, name_of
from gpuledger.report.tables import make_table

UNITS = {"usd": "USD", "gpu": "GPU", "gpus": "GPUs", "kwh": "kWh", "pct": "%", "w": "W"}
HIDDEN = {"v", "statement", "headline", "not_known", "assumptions"}


def planned_document(name: str, title: str, statement: object, data: Mapping[str, Any]) -> Document:
    """The document registered for the statement's class, else one made from its figures."""
    if name_of(type(statement)) in DOCUMENTS.names():
        return document_of(statement)
    figures = [KeyFigure(_words(k), _text(v)) for k, v in data.items() if k not in HIDDEN and not _is_table(v)]
    blocks: list[Block] = [_table(k, v) for k, v in data.items() if k not in HIDDEN and _is_table(v)]
    gaps = [f"{n['figure']}: {n['why']}" for n in data.get("not_known", ())]
    back = [("assumptions", "Assumptions", data.get("assumptions") or ()), ("unknown", "Unknown", gaps)]
    sections = [Section(key, head, [Bullets(items)]) for key, head, items in back if items]
    return Document(
        name=name,
        kind=title,
        title=title,
        headline=str(data.get("headline") or title),
        figures=figures,
        summary=blocks,
        sections=sections,
        data=lambda: data,
    )


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _table(name: str, rows: list[dict[str, Any]]) -> Block:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    kinds = "".join("n" if all(isinstance(r.get(c), int | float | None) for r in rows) else "w" for c in columns)
    cells = [[_text(row.get(c)) for c in columns] for row in rows]
    return make_table(name, _words(name), [_words(c) for c in columns], kinds, cells)


def _text(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{_words(k)} {_text(v)}" for k, v in value.items())
    return str(value)


def _words(name: str) -> str:
    """A field's name as people read it: monthly_usd as "Monthly USD"."""
    words = " ".join(UNITS.get(word, word) for word in name.split("_"))
    return words[:1].upper() + words[1:]
