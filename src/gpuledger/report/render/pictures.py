"""How does a chart become a picture, and get into a page so that it follows the reader's light or dark?"""

from __future__ import annotations

import re
import textwrap
from html import escape
from typing import TYPE_CHECKING, Any

from gpuledger.plain_text import visible_tree
from gpuledger.report.charts import Drawing, unchecked
from gpuledger.report.theme import Theme, load_theme

if TYPE_CHECKING:
    import altair as alt

TITLE_CHARS = 82
SUBTITLE_CHARS = 128
PNG_SCALE = 2.0
_PAINT = re.compile(r'\b(fill|stroke)="(#[0-9a-f]{6})"')
_SHAPE = re.compile(r'\b(d|transform)="([^"]*)"')
_LONG = re.compile(r"(\d+\.\d{2})\d+")
_MARK = re.compile(r'\saria-label="([^"]*)"(\srole="graphics-symbol")(\saria-roledescription="([^"]*)")')
_ROLE = re.compile(r'\s(?:role="graphics-[a-z]+"|aria-(?:label|roledescription)="[^"]*")')
_ROOT = re.compile(r"<svg[^>]*?viewBox=\"([^\"]*)\"[^>]*>")
_FONT = re.compile(r'\sfont-family="[^"]*"')
WITH_TIPS = frozenset({"point", "circle", "bar", "rect mark", "rect"})


def compose(drawn: Drawing, theme: Theme, *, titled: bool = True) -> alt.TopLevelMixin:
    """A drawing dressed in its theme; without its title where the page prints the title itself."""
    import altair as alt

    body: Any = drawn.body
    extra: dict[str, Any] = {"description": drawn.alt}
    if titled:
        extra["title"] = alt.TitleParams(
            textwrap.wrap(drawn.title, TITLE_CHARS), subtitle=textwrap.wrap(drawn.subtitle, SUBTITLE_CHARS)
        )
    with unchecked():
        dressed: alt.TopLevelMixin = body.properties(**extra).configure(**theme.config())
    return dressed


def dressed(drawn: Drawing, theme: Theme, *, titled: bool = True) -> dict[str, Any]:
    """The same as Vega-Lite, from the drawing's own: quicker than by Altair, which copies the chart at every step."""
    from altair.utils import update_nested

    spec = {**drawn.spec, "description": drawn.alt}
    spec["config"] = update_nested(spec.get("config", {}), theme.config(), copy=True)
    if titled:
        subtitle = textwrap.wrap(drawn.subtitle, SUBTITLE_CHARS)
        spec["title"] = {"text": textwrap.wrap(drawn.title, TITLE_CHARS), "subtitle": subtitle}
    return spec


def to_svg(made: alt.TopLevelMixin | dict[str, Any]) -> str:
    """A chart or its Vega-Lite as SVG text; a control character in a label would end the renderer, and the program."""
    import altair as alt
    import vl_convert

    if isinstance(made, alt.TopLevelMixin):
        with unchecked():
            made = made.to_dict(validate=False)
    version = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
    return str(vl_convert.vegalite_to_svg(visible_tree(made), vl_version=version))


def svg_to_png(svg: str) -> bytes:
    """The same picture in pixels, two to a point; a chart drawn as SVG need not be drawn again."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))


def page_svg(name: str, drawn: Drawing) -> str:
    """The drawing as inline SVG whose colors are the page's; `name` keeps its ids apart from other charts'."""
    light = load_theme("light")
    svg = to_svg(dressed(drawn, light, titled=False))
    svg = _PAINT.sub(lambda m: f'{m[1]}="{_paint(light, m[2])}"', svg)
    svg = _SHAPE.sub(_shorter, svg)
    svg = _MARK.sub(lambda m: f' data-tip="{m[1]}"' if m[4] in WITH_TIPS else "", svg)
    svg = _FONT.sub("", _ROLE.sub("", svg))
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    return _ROOT.sub(lambda m: _root(m[1], drawn.alt, light), svg, count=1)


def _shorter(attribute: re.Match[str]) -> str:
    """A place to a hundredth of a point: enough to draw, and half the length."""
    kept = _LONG.sub(r"\1", attribute[2])
    return f'{attribute[1]}="{kept}"'


def _paint(theme: Theme, color: str) -> str:
    """A color of the theme as the page's variable."""
    for role, own in theme.palette.roles().items():
        if own == color:
            return f"var(--{role.replace('_', '-')})"
    return color


def _root(view: str, words: str, theme: Theme) -> str:
    _, _, width, height = view.split()
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="{view}" width="{width}" height="{height}" '
        f'font-family="{escape(theme.font)}">'
    )
