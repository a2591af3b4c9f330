"""What does report.html look like? One file that opens offline."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from string import Template

from gpuledger import __version__
from gpuledger.catalog.files import data_dir
from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.charts import Drawing, drawings
from gpuledger.report.outline import Comparison, Section, cards, compared, evidence, facts, headline, load_outline
from gpuledger.report.page_svg import page_svg
from gpuledger.report.tables import Cell, Table, build_table
from gpuledger.report.theme import Palette, load_theme
from gpuledger.report.written import period, tie

SORT_FROM = 3
LONG_HEADLINE = 90
SHORT = 26  # words up to this length stay on one line


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


def _figure(name: str, drawn: Drawing) -> str:
    return (
        f'<figure id="chart-{name}"><h3>{escape(drawn.title)}</h3><p class="sub">{escape(drawn.subtitle)}</p>'
        f"{page_svg(name, drawn)}</figure>"
    )


def _section(section: Section, s: EfficiencyStatement, drawn: Mapping[str, Drawing]) -> str:
    parts = [f'<section aria-labelledby="{section.id}"><h2 id="{section.id}">{escape(section.title)}</h2>']
    if section.text:
        parts.append(f'<p class="lead">{escape(section.text)}</p>')
    parts += [_figure(name, drawn[name]) for name in section.charts if name in drawn]
    tables = [build_table(name, s) for name in section.tables]
    small = [html_table(t) for t in tables if len(t.heads) <= 2]
    parts += [html_table(t) for t in tables if len(t.heads) > 2]
    if small:
        parts.append(f'<div class="pair">{"".join(f"<div>{t}</div>" for t in small)}</div>')
    parts.append("</section>")
    return "\n".join(parts)


def _cards(s: EfficiencyStatement) -> str:
    out = []
    for card in cards(s):
        kind = "value unknown" if card.unknown else "value"
        span = f'<p class="range">{escape(card.range)}</p>' if card.range else ""
        out.append(
            f'<div class="card"><h2>{escape(card.label)}</h2><p class="{kind}">{escape(card.value)}</p>{span}'
            f'<p class="note">{escape(card.note)}</p></div>'
        )
    return "\n".join(out)


def _list(items: list[str], kind: str = "") -> str:
    shown = "".join(f"<li>{escape(tie(item))}</li>" for item in items)
    return f'<ul class="{kind}">{shown}</ul>' if shown else "<p>None.</p>"


def _findings(s: EfficiencyStatement) -> str:
    rest = list(s.findings[1:])
    return f'<h2 id="findings">Findings</h2>{_list(rest, "findings")}' if rest else ""


def _comparison(rows: Comparison | None) -> str:
    if not rows:
        return ""
    table = Table(
        "comparison",
        "Published figures beside ours",
        ("Figure", "Published", "Ours"),
        (True, False, False),
        (False, False, False),
        tuple(tuple(Cell(compared(v), None) for v in row) for row in rows),
        None,
        "",
        "",
    )
    return f'<h2 id="comparison">Beside the published findings</h2>{html_table(table)}'


def _closing(s: EfficiencyStatement) -> str:
    """The back of the statement: words, evidence, assumptions, and what is not known."""
    terms = "".join(f"<dt>{escape(t.term)}</dt><dd>{escape(t.meaning)}</dd>" for t in load_outline().glossary)
    missing = "".join(f"<dt>{escape(n.figure)}</dt><dd>not known: {escape(n.why)}</dd>" for n in s.not_known)
    return "\n".join(
        (
            f'<h2 id="words">What each number means</h2><dl>{terms}</dl>',
            f'<h2 id="evidence">Evidence</h2>{_list(evidence(s))}',
            f'<h2 id="assumptions">Assumptions</h2>{_list(list(s.assumptions))}',
            f'<h2 id="not-known">Not known</h2>{f"<dl>{missing}</dl>" if missing else "<p>Nothing was left out.</p>"}',
        )
    )


def _contents() -> str:
    back = [("words", "What each number means"), ("evidence", "Evidence"), ("not-known", "Not known")]
    links = [(s.id, s.title) for s in load_outline().sections] + back
    return "\n".join(f'<li><a href="#{i}">{escape(t)}</a></li>' for i, t in links)


def render_html(
    statement: EfficiencyStatement,
    *,
    comparison: Comparison | None = None,
    charts: bool = True,
    limits: Thresholds | None = None,
    drawn: Mapping[str, Drawing] | None = None,
) -> str:
    """The whole page. `comparison` is (name, published, ours), printed only where given. `drawn`: charts made."""
    if not charts:
        drawn = {}
    elif drawn is None:
        drawn = drawings(statement, load_theme("light"), limits or load_thresholds())
    sections = [_section(section, statement, drawn) for section in load_outline().sections]
    return Template(template("page.html")).substitute(
        title=escape(f"Efficiency statement, {period(statement.start_ms, statement.end_ms)}"),
        colours=_colours(),
        style=template("style.css"),
        facts="".join(f"<span>{escape(f)}</span>" for f in facts(statement)),
        headline=escape(tie(headline(statement))),
        long="long" if len(headline(statement)) > LONG_HEADLINE else "",
        cards=_cards(statement),
        findings=_findings(statement),
        comparison=_comparison(comparison),
        contents=_contents(),
        sections="\n".join(sections),
        closing=_closing(statement),
        version=escape(__version__),
        script=template("page.js"),
    )
