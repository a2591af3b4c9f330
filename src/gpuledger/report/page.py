"""What do all pages share? One file that opens offline: its colours, its tables, figures and cards, and the frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from string import Template

from gpuledger import __version__
from gpuledger.catalog.files import data_dir
from gpuledger.plain_text import visible
from gpuledger.report.charts import Drawing
from gpuledger.report.outline import Card
from gpuledger.report.page_svg import page_svg
from gpuledger.report.tables import Cell, Table
from gpuledger.report.theme import Palette, load_theme
from gpuledger.report.written import tie

SORT_FROM = 3
LONG_HEADLINE = 90
SHORT = 26  # words up to this length stay on one line


@dataclass(frozen=True)
class Page:
    """The parts of a page, as HTML but for the first four and `second` and `third`, which stand below the headline."""

    title: str
    kind: str
    headline: str
    facts: Sequence[str]
    cards: str
    top: str
    contents: Sequence[tuple[str, str]]
    sections: Sequence[str]
    closing: str
    second: str = ""
    third: str = ""
    json_name: str = "report.json"


def template(name: str) -> str:
    """A file of the templates folder."""
    return data_dir("gpuledger.report", "templates", name).read_text(encoding="utf-8")


def _variables(palette: Palette) -> str:
    return " ".join(f"--{role.replace('_', '-')}: {colour};" for role, colour in palette.roles().items())


def _colours() -> str:
    """Both palettes: the reader's system chooses, the button overrides, paper is always light."""
    light, dark = _variables(load_theme("light").palette), _variables(load_theme("dark").palette)
    return "\n".join(
        (
            f":root {{ color-scheme: light; {light} }}",
            "@media (prefers-color-scheme: dark) {",
            f"  :root:not([data-theme=light]) {{ color-scheme: dark; {dark} }}",
            "}",
            f":root[data-theme=dark] {{ color-scheme: dark; {dark} }}",
            f"@media print {{ :root, :root[data-theme=dark], :root:not([data-theme=light]) {{ {light} }} }}",
        )
    )


def _cell(cell: Cell, words: bool, first: bool) -> str:
    key = "" if cell.key is None else f' data-k="{escape(str(cell.key))}"'
    kind = (
        "unknown" if cell.unknown else ("num" if not words else "words short" if len(cell.text) <= SHORT else "words")
    )
    tag, scope = ("th", ' scope="row"') if first else ("td", "")
    inside = (
        f'<span class="device" title="{escape(cell.full)}">{escape(cell.text)}</span>'
        if cell.full
        else escape(cell.text)
    )
    return f'<{tag}{scope} class="{kind}"{key}>{inside}</{tag}>'


def _row(cells: tuple[Cell, ...], table: Table) -> str:
    kinds = zip(cells, table.words, table.below, strict=True)
    inside = "".join(_cell(c, words, i == 0) for i, (c, words, below) in enumerate(kinds) if not below)
    return f"<tr>{inside}</tr>"


def _body(table: Table) -> str:
    """The rows; long words stand on a line of their own under their row, in one body with it."""
    if not any(table.below):
        return "<tbody>" + "\n".join(_row(r, table) for r in table.rows) + "</tbody>"
    span = table.below.count(False)
    out = []
    for cells in table.rows:
        said = [c.text for c, below in zip(cells, table.below, strict=True) if below and c.text]
        under = "".join(f'<tr class="below"><td colspan="{span}">{escape(tie(text))}</td></tr>' for text in said)
        out.append(f'<tbody class="one">{_row(cells, table)}{under}</tbody>')
    return "\n".join(out)


def html_table(table: Table) -> str:
    """A table; it sorts by click where it has rows enough to sort."""
    if not table.rows:
        return f"<p><b>{escape(table.caption)}.</b> {escape(table.empty)}</p>" if table.empty else ""
    heads = "".join(
        f'<th scope="col" class="{"words" if words else "num"}">{escape(head)}</th>'
        for head, words, below in zip(table.heads, table.words, table.below, strict=True)
        if not below
    )
    foot = f"<tfoot>{_row(table.total, table)}</tfoot>" if table.total else ""
    sorts = ' class="sorts"' if len(table.rows) >= SORT_FROM else ""
    narrow = " narrow" if len(table.heads) <= 2 else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="scroll{narrow}"><table{sorts} id="table-{table.name}"><caption>{escape(table.caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead>\n{_body(table)}{foot}</table></div>{note}"
    )


def figure(name: str, drawn: Drawing) -> str:
    """A chart under its title."""
    return (
        f'<figure id="chart-{name}"><h3>{escape(drawn.title)}</h3><p class="sub">{escape(drawn.subtitle)}</p>'
        f"{page_svg(name, drawn)}</figure>"
    )


def html_cards(cards: Iterable[Card]) -> str:
    """The key figures at the top."""
    out = []
    for card in cards:
        kind = "value unknown" if card.unknown else "value"
        span = f'<p class="range">{escape(card.range)}</p>' if card.range else ""
        out.append(
            f'<div class="card"><h2>{escape(card.label)}</h2><p class="{kind}">{escape(card.value)}</p>{span}'
            f'<p class="note">{escape(card.note)}</p></div>'
        )
    return "\n".join(out)


def html_list(items: Iterable[str], kind: str = "") -> str:
    """Sentences, one a line."""
    shown = "".join(f"<li>{escape(tie(item))}</li>" for item in items)
    return f'<ul class="{kind}">{shown}</ul>' if shown else "<p>None.</p>"


def render_page(page: Page) -> str:
    """The whole file; a control character in a label is written out, whichever part it came in with."""
    whole = Template(template("page.html")).substitute(
        title=escape(page.title),
        kind=escape(page.kind),
        colours=_colours(),
        style=template("style.css"),
        facts="".join(f"<span>{escape(f)}</span>" for f in page.facts),
        headline=escape(tie(page.headline)),
        long="long" if len(page.headline) > LONG_HEADLINE else "",
        second="".join(
            f'<p class="{name}">{escape(tie(words))}</p>'
            for name, words in (("second", page.second), ("third", page.third))
            if words
        ),
        json=escape(page.json_name),
        cards=page.cards,
        top=page.top,
        contents="\n".join(f'<li><a href="#{i}">{escape(t)}</a></li>' for i, t in page.contents),
        sections="\n".join(page.sections),
        closing=page.closing,
        version=escape(__version__),
        script=template("page.js"),
    )
    return visible(whole, lines=True)
