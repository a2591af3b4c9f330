"""How does a chart become a picture or a page of its own?"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from gpuledger.catalog.files import data_dir
from gpuledger.errors import InputError, map_os_error
from gpuledger.plain_text import visible_tree
from gpuledger.report.charts import Drawing
from gpuledger.report.theme import Theme

if TYPE_CHECKING:
    import altair as alt

TITLE_CHARS = 82
SUBTITLE_CHARS = 128
PNG_SCALE = 2.0
WINDOW = "window.vegaEmbed = vegaEmbed;"


def compose(drawn: Drawing, theme: Theme, *, titled: bool = True) -> alt.TopLevelMixin:
    """A drawing dressed in its theme; without its title where the page prints the title itself."""
    import altair as alt

    body: Any = drawn.body
    extra: dict[str, Any] = {"description": drawn.alt}
    if titled:
        extra["title"] = alt.TitleParams(
            textwrap.wrap(drawn.title, TITLE_CHARS), subtitle=textwrap.wrap(drawn.subtitle, SUBTITLE_CHARS)
        )
    dressed: alt.TopLevelMixin = body.properties(**extra).configure(**theme.config())
    return dressed


def _schema() -> str:
    """The version of Vega-Lite the charts are written in, as the renderer names it."""
    import altair as alt

    return alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


def _specification(made: alt.TopLevelMixin) -> Any:
    """The chart as data; a control character in a label would end the renderer, and with it the program."""
    return visible_tree(made.to_dict())


def to_svg(made: alt.TopLevelMixin) -> str:
    """The chart as SVG text."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(_specification(made), vl_version=_schema()))


def to_png(made: alt.TopLevelMixin, scale: float = PNG_SCALE) -> bytes:
    """The chart as PNG, `scale` pixels to a point."""
    return svg_to_png(to_svg(made), scale)


def svg_to_png(svg: str, scale: float = PNG_SCALE) -> bytes:
    """The same picture in pixels; a chart drawn as SVG need not be drawn again."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=scale))


def to_html(made: alt.TopLevelMixin) -> str:
    """The chart as a page of its own that needs no network: the drawing library is inside."""
    import vl_convert

    # Inside a script element a label such as </script> would end it: in JSON, < may be written as an escape.
    spec = json.dumps(_specification(made)).replace("<", "\\u003c")
    page = data_dir("gpuledger.report", "templates", "chart.html").read_text(encoding="utf-8")
    library = vl_convert.javascript_bundle(WINDOW, vl_version=_schema())
    return Template(page).substitute(title="gpuledger chart", library=library, spec=spec)


def save(made: alt.TopLevelMixin, path: Path | str) -> Path:
    """Write the chart in the format its name ends in: .png, .svg or .html."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind == ".png":
        content = to_png(made)
    elif kind == ".svg":
        content = to_svg(made).encode()
    elif kind == ".html":
        content = to_html(made).encode()
    else:
        raise InputError(f"{target}: no chart format is called {kind!r}", hint="end the name in .png, .svg or .html")
    try:
        target.write_bytes(content)
    except OSError as error:
        raise map_os_error(error, target, "write a chart") from error
    return target
