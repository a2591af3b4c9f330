"""How does a document look as a page? One file that opens offline, in light and dark, on paper and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from gpuledger import __version__
from gpuledger.catalog.files import data_dir
from gpuledger.plain_text import visible
from gpuledger.report.charts import Drawing, drawing
from gpuledger.report.document import Chart, Document, Naming
from gpuledger.report.render.pictures import page_svg
from gpuledger.report.theme import Palette, load_theme
from gpuledger.report.written import tie

if TYPE_CHECKING:
    from jinja2 import Environment

LONG_HEADLINE = 90


def draw_charts(document: Document) -> dict[str, Drawing]:
    """Every chart of a document that has something to show, by its id: drawn once for page and files."""
    theme = load_theme("light")
    charts = [block for block in document.blocks() if isinstance(block, Chart)]
    drawn = {block.id: drawing(block.name, block.subject, theme) for block in charts}
    return {name: found for name, found in drawn.items() if found is not None}


def render_html(document: Document, drawn: Mapping[str, Drawing] | None = None) -> str:
    """The whole page. `drawn`: charts made already; without it they are drawn here."""
    shown = draw_charts(document) if drawn is None else drawn
    page = (
        _templates()
        .get_template("document.html")
        .render(
            document=document,
            drawn=shown,
            colors=colors(),
            long=len(document.headline) > LONG_HEADLINE,
            version=__version__,
        )
    )
    # A control character in a label is written out, whichever block it came in with.
    return visible(page, lines=True)


def render_summary(document: Document) -> str:
    """Headline, key figures and first page without a page around them, as a notebook shows them."""
    return visible(_templates().get_template("summary.html").render(document=document, drawn={}), lines=True)


def _templates() -> Environment:
    return environment()


@cache
def environment(*more: str) -> Environment:
    """The templates of pages, and those in further folders, which may use them."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    folder = data_dir("gpuledger.report", "templates")
    made = Environment(
        loader=FileSystemLoader([str(folder), *more]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["tie"] = tie
    made.filters["linked"] = linked
    made.globals["svg"] = lambda name, drawn: Markup(page_svg(name, drawn))  # noqa: S704
    made.globals["file"] = lambda name: Markup((folder / name).read_text(encoding="utf-8"))  # noqa: S704
    return made


def linked(text: str, href: Callable[[str], str] | None) -> str:
    """Text with a link for each GPU it names, where a page has an address for them."""
    from markupsafe import Markup

    if href is None or not isinstance(text, Naming):
        return tie(text)
    out, at = Markup(""), 0
    for start, end, device in text.gpus:
        name = Markup('<a class="device" href="{}" title="{}">{}</a>').format(href(device), device, text[start:end])
        out += tie(text[at:start]) + name
        at = end
    return out + tie(text[at:])


def _variables(palette: Palette) -> str:
    return " ".join(f"--{role.replace('_', '-')}: {color};" for role, color in palette.roles().items())


def colors() -> str:
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
