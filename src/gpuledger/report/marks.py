"""Which small pieces do the charts share?

Channels are given as Altair's classes (`alt.X("x:Q")`), not as text: for text Altair looks through all its schemas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuledger.quick_start import Later
from gpuledger.report.written import percent, sort_key, write
from gpuledger.units import MS_PER_DAY, Unknown, known, point_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import altair as alt

    from gpuledger.efficiency.statement import GroupRow
    from gpuledger.report.theme import Theme
else:
    alt = Later("altair")  # to know which charts there are, none need be drawn

__all__ = [
    "NOT_KNOWN", "Row", "along", "alt", "bar_row", "by_kind", "by_name", "clip", "corners", "empty", "fixed", "halo",
    "layered", "named_points", "plottable", "range_of", "rows_of", "says", "spread", "stacked", "time_axis",
    "widest_gap",
]  # fmt: skip
Row = dict[str, Any]
NOT_KNOWN = "not known"


def corners() -> dict[str, Any]:
    """The two corners of a rule or a rectangle."""
    return {"x": alt.X("x:Q"), "y": alt.Y("y:Q"), "x2": alt.X2("x2:Q"), "y2": alt.Y2("y2:Q")}


def says() -> dict[str, Any]:
    """What a mark says: to a screen reader, and under the pointer."""
    return {"description": alt.Description("label:N"), "tooltip": [alt.Tooltip("label:N", title=" ")]}


def rows_of(rows: Iterable[Row]) -> alt.InlineData:
    """Rows as the data of a chart: inline, since Altair refuses more than 5,000 in other ways.

    A tuple, since Altair copies lists anew for every layer they pass through.
    """
    return alt.InlineData(values=tuple(rows))


def by_name(field: str, sort: list[str] | None = None, gaps: tuple[float, float] | None = None, **axis: Any) -> alt.Y:
    """A row per name, without a line along them; `gaps` between the rows and around them."""
    y = alt.Y(f"{field}:N", sort=sort, title=None, axis=alt.Axis(domain=False, **{"labelPadding": 10, **axis}))
    return y.scale(paddingInner=gaps[0], paddingOuter=gaps[1]) if gaps else y


def along(field: str, scale: alt.Scale) -> alt.X:
    """Where a mark is or ends; its words have the figure, so it needs no axis."""
    return alt.X(f"{field}:Q", axis=None, scale=scale)


def time_axis(span_ms: int, most: int, **more: Any) -> alt.Axis:
    """Dates along a span of time, none of them twice; with the time of day where the span is shorter than two days."""
    if span_ms < 2 * MS_PER_DAY:
        return alt.Axis(title=None, format="%b %-d %H:%M", tickCount=4, labelOverlap="greedy", **more)
    days = {"interval": "day", "step": max(1, -(-span_ms // (most * MS_PER_DAY)))}
    return alt.Axis(title=None, format="%b %-d", tickCount=days, labelOverlap="greedy", **more)


def fixed(channel: Any, place: float | str) -> Any:
    """A channel (x, y, size) that is the same for every row, in points."""
    return channel(place)


def named_points(theme: Theme, placed: Sequence[Row], width: float, room: float, dx: int = 9) -> list[alt.LayerChart]:
    """The "name" of each row next to its point (at_x, at_y); on its left if the right is too narrow."""
    out = []
    for align, shift in (("left", dx), ("right", -dx)):
        mine = [r for r in placed if (r["at_x"] > width - room) == (align == "right")]
        chart = alt.Chart(rows_of(mine)).encode(
            x=alt.X("at_x:Q", scale=None), y=alt.Y("at_y:Q", scale=None), text=alt.Text("name:N")
        )  # fmt: skip
        out.append(halo(theme, chart, align=align, dx=shift, baseline="middle", color=theme.palette.ink, limit=room))
    return out


def by_kind(channel: Any, field: str, kinds: Mapping[str, Any], legend: Any = None) -> Any:
    """A channel (color, shape, dash) that shows the kind of a row; `kinds`: how each kind looks."""
    return channel(f"{field}:N", legend=legend, scale=alt.Scale(domain=list(kinds), range=list(kinds.values())))


def stacked(theme: Theme, rows: Iterable[Row], totals: Iterable[Row], **shared: Any) -> alt.LayerChart:
    """Bars from low to high, one after the other, with the words of each total where its bars end.

    `shared`: y, scale, color, size of the chart, what a bar says, and the field with the `end` of a total.
    """
    y, scale, size, end = shared.pop("y"), shared.pop("scale"), shared.pop("size"), shared.pop("end", "high")
    bars = alt.Chart(rows_of(rows)).mark_bar(stroke=theme.palette.background, strokeWidth=1)
    words = alt.Chart(rows_of(totals)).mark_text(align="left", dx=8, fontWeight="bold")
    return layered(
        bars.encode(y=y, x=along("low", scale), x2=alt.X2("high:Q"), **shared),
        words.encode(y=y, x=along(end, scale), text=alt.Text("words:N")),
        **size,
    )


def layered(*layers: Any, **properties: Any) -> alt.LayerChart:
    """Charts on top of each other."""
    return alt.LayerChart(layer=list(layers), **properties)


def plottable(value: object) -> float | None:
    """The place of a figure on an axis; None leaves it out."""
    found = sort_key(value)
    if isinstance(found, str):
        raise TypeError(f"not a figure: {value!r}")
    return found


def bar_row(value: object, style: str, **named: Any) -> Row:
    """A bar that may be negative: then its words are on the free side, so that they stay inside the panel."""
    place = plottable(value)
    words = NOT_KNOWN if place is None else write(value, style)
    return {**named, "value": place, "edge": max(0.0, place or 0.0), "words": words}


def empty(theme: Theme, words: str, height: int = 80) -> alt.Chart:
    """In place of a chart that has nothing to show: why."""
    return (
        alt.Chart(rows_of([{"words": words}]))
        .mark_text(size=theme.text_px + 2, color=theme.palette.muted, align="center", limit=800)
        .encode(text=alt.Text("words:N"), x=fixed(alt.XValue, 420), y=fixed(alt.YValue, height / 2))
        .properties(width=840, height=height)
    )


def halo(theme: Theme, chart: alt.Chart, **style: Any) -> alt.LayerChart:
    """Text that stays readable over marks: the same words twice, first as a thick outline of the paper."""
    outline = chart.mark_text(stroke=theme.palette.background, strokeWidth=4, strokeJoin="round", aria=False, **style)
    return layered(outline, chart.mark_text(**style))


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels: in the order of `places`, at least `gap` apart, between low and high where there is room."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    out = [0.0] * len(places)
    last = low - gap
    for i in order:
        last = out[i] = max(places[i], last + gap)
    over = last - high
    if order and over > 0:
        limit = high
        for i in reversed(order):
            out[i] = min(out[i], limit)
            limit = out[i] - gap
    return out


def clip(name: str, limit: int = 28) -> str:
    """A long label, cut."""
    return name if len(name) <= limit else name[: limit - 1] + "…"


def range_of(group: GroupRow) -> Row:
    """RFU by counters of a group: its range and words, or nothing."""
    found = group.means.rfu_counters_pct
    if isinstance(found, Unknown):
        return {"low": None, "middle": None, "high": None}
    middle = known(point_of(found))
    return {
        "low": found.low,
        "middle": middle,
        "high": found.high,
        "counters_words": "" if middle is None else percent(middle),
        "counters_label": f"{group.name}: RFU by counters {write(found, 'percent')}",
    }


def widest_gap(groups: Sequence[GroupRow]) -> GroupRow | None:
    """The group with the largest known efficiency gap."""
    known = [(gap, i) for i, g in enumerate(groups) if not isinstance(gap := g.means.efficiency_gap_pp, Unknown)]
    return groups[max(known)[1]] if known else None
