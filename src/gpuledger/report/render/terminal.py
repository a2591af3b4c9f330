"""How does a document look on a terminal of 80 columns or more?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich import box
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.markup import escape as escape_markup
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from gpuledger.plain_text import visible
from gpuledger.report import document as doc
from gpuledger.report.tables import Cell, Table
from gpuledger.report.written import TIED

BETWEEN = 2
WORDS_WIDTH = 24
NAME_WIDTH = 36
LEAST_WIDTH = 6
PHRASE_WIDTH = 16  # a column for wide screens gives way before words are set in a narrower column
BARS_WIDTH = 22
BAR_PER_PCT = 5.0
MORE = "--full or --json"
TONES = {"strong": "bold", "warning": "yellow", "note": "dim", "dim": "dim", "lead": "dim", "plain": ""}


def screen(document: doc.Document, width: int, *, full: bool = False) -> list[RenderableType]:
    """What a command prints: the short answer, or with `full` the whole document."""
    short = not full and bool(document.screen)
    out: list[RenderableType] = [text_of(document.headline, "bold")]
    if not short or document.screen_notes:
        out += [text_of(note.text, TONES[note.tone]) for note in document.notes]
    out += [text_of("; ".join(document.facts), "dim")] if document.facts else []
    if short:
        return [*out, "", *_spaced(document.screen, width)]
    out += ["", figures(document.figures), ""] if document.figures else [""]
    out += _spaced(_whole(document.summary), width)
    for section in document.sections:
        out += [text_of(section.title, "bold underline"), "", *_spaced(_whole(section.blocks), width)]
    return out


def _whole(blocks: Iterable[doc.Block]) -> list[doc.Block]:
    """Blocks with every row of their tables."""
    return [replace(b, screen_rows=len(b.rows)) if isinstance(b, Table) else b for b in blocks]


def escape(text: str, *, lines: bool = False) -> str:
    """Words as words: neither markup nor a control character in them takes effect; `lines` keeps line feeds."""
    return escape_markup(visible(text, lines=lines))


class Tied:
    """A text whose lines never break within a figure, as before its %: Rich breaks at every kind of space."""

    _SPACES: ClassVar = {" ": "\ue000", "\u202f": "\ue001"}  # what stands for each while lines are made

    def __init__(self, text: Text) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its lines, made with the spaces within figures held."""
        held = self.text.copy()
        held.plain = TIED.sub(lambda found: self._SPACES[found[0]], held.plain)
        lines = held.wrap(console, options.max_width, overflow=options.overflow, no_wrap=options.no_wrap)
        back = str.maketrans({mark: space for space, mark in self._SPACES.items()})
        for line in lines:
            line.plain = line.plain.translate(back)
        yield Text("\n").join(lines)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """As wide as its words."""
        return Measurement.get(console, options, self.text)


def text_of(words: str, style: str = "") -> Tied:
    """Words without markup, as a text that wraps."""
    return Tied(Text(visible(words, lines=True), style=style))


def pairs(rows: Iterable[tuple[str, str]], title: str = "") -> RichTable:
    """Names and values in two columns, without lines."""
    made = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), title=escape(title) or None)
    made.title_style, made.title_justify = "bold", "left"
    made.add_column(style="dim", max_width=28)
    made.add_column()
    for name, value in rows:
        made.add_row(escape(name), escape(value))
    return made


def figures(items: Sequence[doc.KeyFigure]) -> RichTable:
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


def _spaced(blocks: Iterable[doc.Block], width: int) -> list[RenderableType]:
    """Blocks with an empty line after each."""
    out: list[RenderableType] = []
    for block in blocks:
        drawn = _block(block, width)
        out += [*drawn, ""] if drawn and not isinstance(block, doc.Heading) else drawn
    return out


def _block(block: doc.Block, width: int) -> list[RenderableType]:  # noqa: C901, PLR0911 - one case per kind of block
    match block:
        case doc.Prose():
            return [text_of(block.text, TONES[block.tone])] if block.text else []
        case doc.Bullets():
            return _bullets(block)
        case doc.Terms():
            return [pairs(block.pairs, block.title)] if block.pairs else []
        case doc.Code():
            # A plain string is never cut into lines: a snippet must survive being copied.
            return ["\n".join(f"    [cyan]{escape(line)}[/]" for line in block.text.rstrip().split("\n"))]
        case doc.Figures():
            return [figures(block.items)] if block.items else []
        case doc.Heading():
            rank = "" if block.rank is None else f"{block.rank}. "
            return [text_of(f"{rank}{block.text}{f' ({block.badge})' if block.badge else ''}", "bold")]
        case doc.Fold():
            return [text_of(block.summary, "dim"), *_inner(block.blocks, width)]
        case doc.Article() | doc.Pair():
            return _inner(block.blocks, width)
        case Table():
            made = table(block, width)
            note = [text_of(block.note, "dim")] if block.note and block.rows else []
            return [] if made is None else [made, *note]
        case doc.Chart():
            return []


def _inner(blocks: Iterable[doc.Block], width: int) -> list[RenderableType]:
    return [part for block in blocks for part in _block(block, width)]


def _bullets(block: doc.Bullets) -> list[RenderableType]:
    if not block.items:
        return []
    made = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    made.title, made.title_style, made.title_justify = escape(block.title) or None, "bold", "left"
    made.add_column(no_wrap=True)
    made.add_column()
    for item in block.items:
        made.add_row("-", text_of(item))
    return [made]


def table(found: Table, width: int) -> RenderableType | None:
    """A table cut to the terminal: wide columns and long words only where there is room, the first rows only."""
    if not found.rows:
        return text_of(f"{found.caption}: {found.empty}", "dim") if found.empty else None
    widths = _widths(found, width)
    kept = list(widths)
    bars = any(row[i].bar is not None for row in found.rows for i in kept)
    made = RichTable(
        box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False, show_edge=False, padding=(0, 1, 0, 0)
    )  # fmt: skip
    for i, wide in widths.items():
        # A figure stays on one line; its heading may take several.
        head = "\n".join(textwrap.wrap(found.heads[i], max(wide, 1)))
        side: JustifyMethod = "left" if found.words[i] else "right"
        made.add_column(escape(head, lines=True), justify=side, overflow="fold", width=wide)
    if bars:
        made.add_column("", no_wrap=True)
    for row in found.rows[: found.screen_rows]:
        made.add_row(*(_cell(row[i]) for i in kept), *([_bar(row)] if bars else []))
    if found.total:
        made.add_section()
        made.add_row(*(_cell(found.total[i]) for i in kept), *([""] if bars else []), style="bold")
    more = len(found.rows) - found.screen_rows
    title = [text_of(found.caption, "bold")] if found.caption else []
    return Group(*title, made, *([text_of(f"and {more:,} more: {MORE}", "dim")] if more > 0 else []))


def _widths(found: Table, width: int) -> dict[int, int]:
    """The columns that fit side by side and how wide each is: no figure and no word of a heading is cut.

    Left out are columns of zeros first, then those meant for wide screens, the last one first. What room is left goes
    to columns of words; where there is too little, they give.
    """
    columns = [i for i in range(len(found.heads)) if i not in found.below]
    rows = [*found.rows[: found.screen_rows], *([found.total] if found.total else [])]
    texts = {i: ["unknown" if row[i].unknown else row[i].text for row in rows] for i in columns}
    heads = {i: max(map(len, found.heads[i].split()), default=0) for i in columns}
    whole = {i: max(*map(len, texts[i]), heads[i]) for i in columns}
    word = {i: max((len(w) for text in texts[i] for w in text.split()), default=0) for i in columns}
    word[columns[0]] = whole[columns[0]]  # a name stays on one line
    most = dict.fromkeys(columns, WORDS_WIDTH) | {columns[0]: NAME_WIDTH}
    widths = {i: max(min(word[i], most[i]), heads[i]) if found.words[i] else whole[i] for i in columns}
    zeros = [i for i in columns[1:] if not found.words[i] and not any(row[i].key for row in found.rows)]
    bar = BARS_WIDTH if any(row[i].bar is not None for row in found.rows for i in columns) else 0

    def left(short: int = 0) -> int:
        lines = (max(w, min(whole[i], short)) if found.words[i] else w for i, w in widths.items())
        return width - bar - sum(w + BETWEEN for w in lines) + BETWEEN

    for place in dict.fromkeys((*zeros, *(i for i in reversed(columns) if i in found.wide))):
        if left(PHRASE_WIDTH) >= 0:
            break
        del widths[place]
    flexible = [i for i in widths if found.words[i]]
    while left() < 0 and any(widths[i] > LEAST_WIDTH for i in flexible):
        widths[max(flexible, key=lambda i: widths[i])] -= 1
    for i in (c for c in columns if c in widths):  # a heading on one line, where there is room for it
        if 0 < len(found.heads[i]) - widths[i] <= left():
            widths[i] = len(found.heads[i])
    while left() > 0 and (short := [i for i in flexible if widths[i] < whole[i]]):
        widths[min(short, key=lambda i: widths[i] / whole[i])] += 1
    return widths


def _cell(cell: Cell) -> str:
    return "[dim]unknown[/]" if cell.unknown else escape(cell.text)


def _bar(row: Sequence[Cell]) -> str:
    share = next((c.bar for c in row if c.bar is not None), 0.0)
    return f"[cyan]{'█' * round(share / BAR_PER_PCT)}[/]"
