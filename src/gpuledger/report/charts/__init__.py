"""Which charts are there? Each file of this folder draws one and registers it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuledger.errors import MissingExtra
from gpuledger.registry import Registry

if TYPE_CHECKING:
    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.efficiency.statement import EfficiencyStatement
    from gpuledger.report.theme import Theme


@dataclass(frozen=True)
class Drawing:
    """A chart before it is rendered: `title` is the finding, `subtitle` the axes, `alt` the picture in words."""

    title: str
    subtitle: str
    alt: str
    body: Any


Draw = Callable[["EfficiencyStatement", "Theme", "Thresholds"], Drawing]


@dataclass(frozen=True)
class ChartKind:
    """A chart's place in the document and how it is drawn."""

    order: int
    draw: Draw


CHARTS: Registry[ChartKind] = Registry("chart", __name__)


def chart_of(name: str, *, order: int) -> Callable[[Draw], Draw]:
    """Decorator: the function draws the chart called `name`."""

    def keep(draw: Draw) -> Draw:
        CHARTS.register(name)(ChartKind(order, draw))
        return draw

    return keep


def can_draw() -> bool:
    """Whether the extra `charts` is installed."""
    return all(importlib.util.find_spec(part) is not None for part in ("altair", "vl_convert"))


def need_charts() -> None:
    """Fail with the next step where the extra `charts` is not installed."""
    try:
        import altair as alt  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise MissingExtra("charts", "charts") from error


def chart_names() -> list[str]:
    """All charts, in the order of the document."""
    need_charts()
    return [name for name, _ in sorted(CHARTS, key=lambda pair: (pair[1].order, pair[0]))]


def drawings(statement: EfficiencyStatement, theme: Theme, limits: Thresholds) -> dict[str, Drawing]:
    """Every chart, in the order of the document: drawn once, for all documents that show it."""
    return {name: drawing(name, statement, theme, limits) for name in chart_names()}


def drawing(name: str, statement: EfficiencyStatement, theme: Theme, limits: Thresholds) -> Drawing:
    """The chart called `name`, drawn from the statement."""
    need_charts()
    return CHARTS.get(name).draw(statement, theme, limits)
