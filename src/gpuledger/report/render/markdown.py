"""How does a document read as Markdown?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gpuledger import __version__
from gpuledger.plain_text import visible
from gpuledger.report import document as doc
from gpuledger.report.charts import Drawing
from gpuledger.report.tables import Cell, Table

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
Pictures = Mapping[str, tuple[Drawing, str]]


def render_markdown(document: doc.Document, pictures: Pictures | None = None) -> str:
    """The whole document; `pictures` gives each chart by its id: the drawing, and its file as a path from here."""
    shown = pictures or {}
    out = [f"# {safe(document.headline)}"]
    out += [_prose(note) for note in document.notes]
    out.append(f"{safe(document.kind)}. {safe('; '.join(document.facts))}." if document.facts else "")
    out += [_figures(document.figures)] if document.figures else []
    out += _blocks(document.summary, shown)
    for section in document.sections:
        out += [f"## {safe(section.title)}", *_blocks(section.blocks, shown)]
    out.append(f"Made by gpuledger {__version__}. Every figure here is in {document.json_name} under the same name.")
    return "\n\n".join(part for part in out if part) + "\n"


def safe(text: str) -> str:
    """Words as words: nothing in a label is taken for markup, and a line stays one line."""
    one_line = visible(text.replace("\n", " ").replace("\r", " "))
    return _SPECIAL.sub(r"\\\1", one_line).replace("&", "&amp;")


def _blocks(blocks: Iterable[doc.Block], pictures: Pictures) -> list[str]:
    return [text for block in blocks for text in _block(block, pictures)]


def _block(block: doc.Block, pictures: Pictures) -> list[str]:  # noqa: C901, PLR0911 - one case per kind of block
    match block:
        case doc.Prose():
            return [_prose(block)]
        case doc.Bullets():
            return [f"### {safe(block.title)}" if block.title else "", _bullets(block)]
        case doc.Terms():
            title = [f"### {safe(block.title)}"] if block.title else []
            return [*title, *(f"**{safe(term)}.** {safe(meaning)}" for term, meaning in block.pairs)]
        case doc.Code():
            return [_code(block)]
        case doc.Figures():
            return [_figures(block.items)]
        case doc.Chart():
            return _chart(block, pictures)
        case doc.Heading():
            rank = "" if block.rank is None else f"{block.rank}. "
            return [f"### {rank}{safe(block.text)}{f' ({safe(block.badge)})' if block.badge else ''}"]
        case doc.Fold():
            return [f"{safe(block.summary)}:", *_blocks(block.blocks, pictures)]
        case doc.Article() | doc.Pair():
            return _blocks(block.blocks, pictures)
        case Table():
            return [_table(block)]


def _prose(block: doc.Prose) -> str:
    text = safe(block.text)
    return f"**{text}**" if block.tone in {"strong", "warning"} and text else text


def _bullets(block: doc.Bullets) -> str:
    return "\n".join(f"- {safe(item)}" for item in block.items) or safe(block.empty)


def _code(block: doc.Code) -> str:
    """A snippet in a fence longer than any inside it."""
    fence = "```"
    while fence in block.text:
        fence += "`"
    return f"{fence}{block.language}\n{visible(block.text.rstrip(), lines=True)}\n{fence}"


def _figures(figures: Sequence[doc.KeyFigure]) -> str:
    values = [f"{f.value} ({f.range})" if f.range else f.value for f in figures]
    rows = [f"| {safe(f.label)} | {safe(value)} | {safe(f.note)} |" for f, value in zip(figures, values, strict=True)]
    return "\n".join(["| Key figure | Value | Meaning |", "| --- | ---: | --- |", *rows])


def _chart(block: doc.Chart, pictures: Pictures) -> list[str]:
    if block.id not in pictures:
        return []
    drawn, path = pictures[block.id]
    return [f"### {safe(drawn.title)}", safe(drawn.subtitle), f"![{safe(drawn.alt)}](<{path}>)"]


def _table(table: Table) -> str:
    """A table in pipes, figures to the right."""
    if not table.rows:
        return f"**{safe(table.caption)}.** {safe(table.empty)}" if table.empty else ""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def row(cells: tuple[Cell, ...], strong: bool = False) -> str:
        return line(f"**{safe(c.text)}**" if strong and c.text else safe(c.text) for c in cells)

    out = [f"**{safe(table.caption)}**", "", line(safe(h) for h in table.heads)]
    out.append(line("---" if words else "---:" for words in table.words))
    out += [row(cells) for cells in table.rows]
    out += [row(table.total, strong=True)] if table.total else []
    out += ["", safe(table.note)] if table.note else []
    return "\n".join(out)
