"""How does a document look on a terminal of 80 columns or more?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import RenderableType
from rich.markup import escape as escape_markup
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from gpuledger.plain_text import visible
from gpuledger.report.document import (
    Article,
    Block,
    Bullets,
    Chart,
    Code,
    Document,
    Figures,
    Fold,
    Heading,
    KeyFigure,
    Pair,
    Prose,
    Terms,
)
from gpuledger.report.tables import Cell, Table

WIDE = 110
BAR_PER_PCT = 5.0
MORE = "--full, --out DIR or --json"
TONES = {"strong": "bold", "warning": "yellow", "note": "dim", "dim": "dim", "lead": "dim", "plain": ""}


def screen(document: Document, width: int, *, full: bool = False) -> list[RenderableType]:
    """What a command prints: the short answer, or with `full` the whole document."""
    out: list[RenderableType] = [text_of(document.headline, "bold")]
    out += [text_of(note.text, TONES[note.tone]) for note in document.notes]
    out.append(text_of("; ".join(document.facts), "dim"))
    if not full and document.screen:
        return [*out, "", *_spaced(document.screen, width)]
    out += ["", figures(document.figures), ""] if document.figures else [""]
    out += _spaced(document.summary, width, full)
    for section in document.sections:
        out += [text_of(section.title, "bold underline"), "", *_spaced(section.blocks, width, full)]
    return out


def escape(text: str) -> str:
    """Words as words: neither markup nor a control character in them takes effect."""
    return escape_markup(visible(text))


def text_of(words: str, style: str = "") -> Text:
    """Words without markup, as a text that wraps."""
    return Text(visible(words, lines=True), style=style)


def plain_table(title: str = "") -> RichTable:
    """A table with one rule below its header, its title on the left."""
    return RichTable(
        title=escape(title) if title else None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
        header_style="dim", pad_edge=False, show_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip


def pairs(rows: Iterable[tuple[str, str]], title: str = "") -> RichTable:
    """Names and values in two columns, without lines."""
    made = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), title=escape(title) or None)
    made.title_style, made.title_justify = "bold", "left"
    made.add_column(style="dim", max_width=28)
    made.add_column()
    for name, value in rows:
        made.add_row(escape(name), escape(value))
    return made


def figures(items: Sequence[KeyFigure]) -> RichTable:
    """Key figures: name, value, range and meaning."""
    made = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column(no_wrap=True)
    made.add_column(justify="right", style="bold")
    made.add_column(style="dim")
    for f in items:
        note = f"{f.range}; {f.note}" if f.range and f.note else f.range or f.note
        value, note = ("unknown", f.value.removeprefix("not known: ")) if f.unknown else (f.value, note)
        made.add_row(escape(f.label), escape(value), escape(note))
    return made


def _spaced(blocks: Iterable[Block], width: int, full: bool = False) -> list[RenderableType]:
    """Blocks with an empty line after each; with `full` every row of a table."""
    out: list[RenderableType] = []
    for block in blocks:
        drawn = _block(block, width, full)
        out += [*drawn, ""] if drawn and not isinstance(block, Heading) else drawn
    return out


def _block(block: Block, width: int, full: bool) -> list[RenderableType]:
    match block:
        case Prose():
            return [text_of(block.text, TONES[block.tone])] if block.text else []
        case Bullets():
            return _bullets(block)
        case Terms():
            return [pairs(block.pairs, block.title)] if block.pairs else []
        case Code():
            return [Padding(text_of(block.text.rstrip(), "cyan"), (0, 0, 0, 4), expand=False)]
        case Figures():
            return [figures(block.items)] if block.items else []
        case Heading():
            rank = "" if block.rank is None else f"{block.rank}. "
            return [text_of(f"{rank}{block.text}{f' ({block.badge})' if block.badge else ''}", "bold")]
        case Fold():
            return [text_of(block.summary, "dim"), *_inner(block.blocks, width, full)]
        case Article() | Pair():
            return _inner(block.blocks, width, full)
        case Table():
            made = table(block, width, full)
            return [] if made is None else [made]
        case Chart():
            return []


def _inner(blocks: Iterable[Block], width: int, full: bool) -> list[RenderableType]:
    return [part for block in blocks for part in _block(block, width, full)]


def _bullets(block: Bullets) -> list[RenderableType]:
    if not block.items:
        return []
    made = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    made.title, made.title_style, made.title_justify = escape(block.title) or None, "bold", "left"
    made.add_column(no_wrap=True)
    made.add_column()
    for item in block.items:
        made.add_row("-", text_of(item))
    return [made]


def table(found: Table, width: int, full: bool = False) -> RenderableType | None:
    """A table cut to the terminal: wide columns only where there is room, the first rows only unless `full`."""
    if not found.rows:
        return text_of(f"{found.caption}: {found.empty}", "dim") if found.empty else None
    room = width >= WIDE
    kept = [i for i in range(len(found.heads)) if not found.is_below(i) and (room or not found.is_wide(i))]
    bars = any(row[i].bar is not None for row in found.rows for i in kept)
    made = plain_table(found.caption)
    for i in kept:
        words = found.words[i]
        made.add_column(
            escape(found.heads[i]), justify="left" if words else "right", overflow="fold", no_wrap=not words
        )
    if bars:
        made.add_column("", no_wrap=True)
    shown = found.rows if full else found.rows[: found.screen_rows]
    for row in shown:
        made.add_row(*(_cell(row[i]) for i in kept), *([_bar(row)] if bars else []))
    if found.total:
        made.add_section()
        made.add_row(*(_cell(found.total[i]) for i in kept), *([""] if bars else []), style="bold")
    more = len(found.rows) - len(shown)
    if more > 0:
        made.caption, made.caption_justify = f"and {more:,} more: {MORE}", "left"
    return made


def _cell(cell: Cell) -> str:
    return "[dim]unknown[/]" if cell.unknown else escape(cell.text)


def _bar(row: Sequence[Cell]) -> str:
    share = next((c.bar for c in row if c.bar is not None), 0.0)
    return f"[cyan]{'█' * round(share / BAR_PER_PCT)}[/]"
