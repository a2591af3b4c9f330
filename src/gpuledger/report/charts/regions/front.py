"""How do regions compare: dollars against carbon, with the front that nothing beats?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.plan.regions.words import kilograms
from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import Row, alt, by_kind, layered, named_points, rows_of, says, spread
from gpuledger.units import Unknown, count

if TYPE_CHECKING:
    from gpuledger.plan.regions.statement import RegionOption, RegionsPlan
    from gpuledger.report.theme import Theme

WIDTH, HEIGHT = 760, 340
LABEL_PX, ROOM_PX, NAMED = 15, 200, 12
# Regions far beyond the front would press it into a corner.
FAR = 5.0


@chart_of("regions_front", document="regions", section="front")
def draw(plan: RegionsPlan, theme: Theme) -> Drawing | None:
    """A point per region; None where fewer than two have a known carbon figure."""
    rows = [row for c in (*plan.chosen, *plan.runners_up) if (row := _row(c)) is not None]
    front = [r for r in rows if r["kind"] == "front"]
    if len(rows) < 2 or not front:
        return None
    wide, tall = FAR * max(r["usd"] for r in front), FAR * max(r["kg"] for r in front)
    shown = [r for r in rows if r["usd"] <= wide and r["kg"] <= tall]
    wide, tall = 1.05 * max(r["usd"] for r in shown), 1.08 * max(r["kg"] for r in shown)
    x = alt.X("usd:Q", title="dollars for the job", scale=alt.Scale(domain=[0, wide]),
              axis=alt.Axis(format="$,.0f", tickCount=6))  # fmt: skip
    y = alt.Y("kg:Q", title="kg CO2e for the job", scale=alt.Scale(domain=[0, tall]))
    p = theme.palette
    color = by_kind(alt.Color, "kind", {"front": p.target, "beaten": p.moderate})
    faint = by_kind(alt.Opacity, "kind", {"front": 1.0, "beaten": 0.35})
    base = alt.Chart(rows_of(shown)).encode(x=x, y=y)
    points = base.mark_point(size=80, filled=True).encode(color=color, opacity=faint, **says())
    hidden = len(rows) - len(shown)
    more = f" {count(hidden, 'region')} far from the front {'is' if hidden == 1 else 'are'} left out." if hidden else ""
    title = f"{count(len(plan.chosen), 'region')} that no other one beats"
    subtitle = f"Dollars against carbon; zones count too, so a named region may lie behind another.{more}"
    words = "; ".join(str(r["label"]) for r in front)
    return Drawing(title, subtitle, f"Points. On the front: {words}.",
                   layered(points, *_names(theme, front, wide, tall), width=WIDTH, height=HEIGHT))  # fmt: skip


def _names(theme: Theme, front: list[Row], wide: float, tall: float) -> list[alt.LayerChart]:
    """The name of each region on the front, apart from each other; left of the point without room on the right."""
    some = sorted(front, key=lambda r: float(r["usd"]))[:NAMED]
    places = spread([HEIGHT * (1 - r["kg"] / tall) for r in some], LABEL_PX, LABEL_PX / 2, HEIGHT - LABEL_PX / 2)
    placed = [r | {"at_x": WIDTH * r["usd"] / wide, "at_y": at} for r, at in zip(some, places, strict=True)]
    return named_points(theme, placed, WIDTH, ROOM_PX)


def _row(option: RegionOption) -> Row | None:
    kg = option.kg_co2e
    if isinstance(kg, Unknown):
        return None
    dollars = float(option.usd.middle_usd)
    return {
        "usd": dollars, "kg": kg.middle, "name": option.name, "kind": "front" if option.on_front else "beaten",
        "label": f"{option.name}: ${dollars:,.0f}, {kilograms(kg.middle)} CO2e, {count(option.zones, 'zone')}",
    }  # fmt: skip
