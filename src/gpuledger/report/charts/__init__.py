"""Which charts are there? Each file draws one, and names the document and section it is for.

A folder has the charts of one document, so that drawing it does not load those of others.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpuledger.errors import MissingExtra
from gpuledger.registry import Registry

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.report.theme import Theme


@contextmanager
def unchecked() -> Iterator[None]:
    """Draw without Altair checking every piece against its schema: the tests do that, and it takes time."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        yield


@dataclass(frozen=True)
class Drawing:
    """A chart before it is rendered: `title` is the finding, `subtitle` the axes, `alt` the picture in words."""

    title: str
    subtitle: str
    alt: str
    body: Any

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The body as Vega-Lite, made once for page and files: Altair copies all of a chart again and again for it."""
        with unchecked():
            made: dict[str, Any] = self.body.to_dict(validate=False)
        return made


Draw = Callable[[Any, "Theme"], "Drawing | None"]


@dataclass(frozen=True)
class ChartKind:
    """The document and section a chart is for, its place there, and how it is drawn."""

    document: str
    section: str
    order: int
    draw: Draw


CHARTS: Registry[ChartKind] = Registry("chart", __name__)


def chart_of(name: str, *, document: str, section: str, order: int = 0) -> Callable[[Draw], Draw]:
    """Decorator: the function draws the chart called `name`, or returns None where there is nothing to show."""

    def keep(draw: Draw) -> Draw:
        CHARTS.register(name)(ChartKind(document, section, order, draw))
        return draw

    return keep


def can_draw() -> bool:
    """Whether the extra `charts` is installed."""
    return all(importlib.util.find_spec(part) is not None for part in ("altair", "vl_convert"))


def need_charts() -> None:
    """Fail with the next step where the extra `charts` is not installed."""
    if not can_draw():
        raise MissingExtra("charts", "charts")


def chart_names(document: str, section: str | None = None) -> list[str]:
    """The charts of a document, or of one of its sections, in their order; none where they cannot be drawn."""
    if not can_draw():
        return []
    found = [
        (kind.order, name)
        for name, kind in CHARTS.of(document)
        if kind.document == document and section in (None, kind.section)
    ]  # fmt: skip
    return [name for _, name in sorted(found)]


def drawing(name: str, subject: object, theme: Theme) -> Drawing | None:
    """The chart called `name`, drawn from its document's subject."""
    need_charts()
    with unchecked():
        return CHARTS.get(name).draw(subject, theme)


def chart(name: str, subject: object, theme: str = "light") -> alt.TopLevelMixin:
    """The chart called `name` as an Altair chart: a notebook shows it, `save` writes it."""
    from gpuledger.report.marks import empty
    from gpuledger.report.render.pictures import compose
    from gpuledger.report.theme import load_theme

    look = load_theme(theme)
    nothing = Drawing("Nothing to show", "", "Nothing to show.", empty(look, "nothing to show"))
    return compose(drawing(name, subject, look) or nothing, look)
