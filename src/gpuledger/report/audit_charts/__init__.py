"""Which charts does an audit have? Each file of this folder draws one and registers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuledger.registry import Registry
from gpuledger.report.charts import Drawing, need_charts

if TYPE_CHECKING:
    import altair as alt

    from gpuledger.advice.statement import AuditStatement
    from gpuledger.report.theme import Theme

Draw = Callable[["AuditStatement", "Theme"], Drawing]


@dataclass(frozen=True)
class AuditChart:
    """A chart's place in the document and how it is drawn."""

    order: int
    draw: Draw


AUDIT_CHARTS: Registry[AuditChart] = Registry("audit chart", __name__)


def audit_chart_of(name: str, *, order: int) -> Callable[[Draw], Draw]:
    """Decorator: the function draws the chart called `name`."""

    def keep(draw: Draw) -> Draw:
        AUDIT_CHARTS.register(name)(AuditChart(order, draw))
        return draw

    return keep


def audit_drawings(audit: AuditStatement, theme: Theme) -> dict[str, Drawing]:
    """Every chart of an audit, in the order of the document."""
    need_charts()
    found = sorted(AUDIT_CHARTS, key=lambda pair: (pair[1].order, pair[0]))
    return {name: kind.draw(audit, theme) for name, kind in found}


def audit_chart(name: str, audit: AuditStatement, theme: str = "light") -> alt.TopLevelMixin:
    """The chart called `name` as an Altair chart: a notebook shows it, `render.save` writes it."""
    from gpuledger.report.render import compose
    from gpuledger.report.theme import load_theme

    need_charts()
    look = load_theme(theme)
    return compose(AUDIT_CHARTS.get(name).draw(audit, look), look)
