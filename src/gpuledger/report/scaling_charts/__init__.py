"""Which charts does a scaling report have? Each file of this folder draws one and registers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpuledger.registry import Registry
from gpuledger.report.charts import Drawing, need_charts

if TYPE_CHECKING:
    from gpuledger.report.theme import Theme
    from gpuledger.scaling.statement import ScalingStatement

Draw = Callable[["ScalingStatement", "Theme"], "Drawing | None"]

SCALING_CHARTS: Registry[Draw] = Registry("scaling chart", __name__)


def scaling_chart_of(name: str) -> Callable[[Draw], Draw]:
    """Decorator: the function draws the chart called `name`, or None where there is nothing to draw."""
    return SCALING_CHARTS.register(name)


def scaling_drawings(statement: ScalingStatement, theme: Theme) -> dict[str, Drawing]:
    """Every chart that has something to show."""
    need_charts()
    made = {name: draw(statement, theme) for name, draw in SCALING_CHARTS}
    return {name: drawing for name, drawing in made.items() if drawing is not None}
