"""How did the fleet do over the window? Three panels over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuledger.report.charts import Drawing, chart_of
from gpuledger.report.marks import (
    Row,
    alt,
    by_kind,
    empty,
    fixed,
    layered,
    plottable,
    rows_of,
    says,
    spread,
    time_axis,
)
from gpuledger.report.written import amount, instant, percent, whole, write
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, Bounds, Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuledger.efficiency.statement import EfficiencyStatement, HourRow
    from gpuledger.report.documents.efficiency import EfficiencyView
    from gpuledger.report.theme import Theme

WIDTH = 640
HOVER_LIMIT = 400
Measure = tuple[str, str, str]  # field of the statement, role in the theme, name
MEASURES: tuple[Measure, ...] = (
    ("gpu_util_pct", "utilization", "Utilization"),
    ("rfu_power_pct", "rfu_power", "RFU by power"),
    ("rfu_counters_pct", "rfu_counters", "RFU by counters"),
)
PIF: tuple[Measure, ...] = (("pif", "rfu_power", "PIF"),)
TFLOPS: tuple[Measure, ...] = (("realized_power_tflops", "rfu_power", "By power"),)
DASHES = {"utilization": [1, 0], "rfu_power": [7, 3], "rfu_counters": [1, 0]}


def _title(s: EfficiencyStatement) -> str:
    util, counters, power = s.fleet.gpu_util_pct, s.fleet.rfu_counters_pct, s.fleet.rfu_power_pct
    if isinstance(util, Unknown):
        return f"Fleet utilization is {util}"
    if not isinstance(counters, Unknown):
        seen = write(counters if isinstance(counters, Bounds) else counters.middle, "percent")
        return f"GPUs read {percent(util)} busy; the counters saw {seen} of peak"
    if not isinstance(power, Unknown):
        return f"GPUs read {percent(util)} busy and drew {percent(power)} of their power"
    return f"GPUs read {percent(util)} busy; what they did with it is not known"


def _lines(
    s: EfficiencyStatement, theme: Theme, measures: tuple[Measure, ...], y: alt.Y, dates: bool
) -> list[alt.Chart]:
    """The lines, and the points that stand alone."""
    rows: list[Row] = [
        {**place, "role": role, "name": name}
        for field, role, name in measures
        for place in _places([(h.start_ms, _end_ms(h), plottable(getattr(h, field))) for h in s.hours])
    ]
    roles = [role for _, role, _ in measures]
    axis = time_axis(s.hours[-1].start_ms - s.hours[0].start_ms if s.hours else MS_PER_DAY, 8, labels=dates)
    encoded = alt.Chart(rows_of(rows)).encode(
        x=alt.X("at:T", scale=alt.Scale(type="utc"), axis=axis),
        y=y,
        color=by_kind(alt.Color, "role", {r: theme.colour(r) for r in roles}),
        description=alt.Description("name:N"),
    )
    dashes = by_kind(alt.StrokeDash, "role", {r: DASHES[r] for r in roles})
    line = encoded.mark_line(strokeWidth=2.2).encode(strokeDash=dashes)
    if not any(row["alone"] for row in rows):
        return [line]
    return [line, encoded.mark_point(filled=True, size=30, opacity=1, aria=False).transform_filter("datum.alone")]


def _end_ms(h: HourRow) -> int:
    return h.start_ms + int(h.hours * MS_PER_HOUR)


def _places(found: Sequence[tuple[int, int, float | None]]) -> list[Row]:
    """Points of a line (start, end, value): broken where hours are missing; a point alone has no line, so is marked."""
    out: list[Row] = []
    for i, (start, end, value) in enumerate(found):
        joins_last = i > 0 and found[i - 1][1] >= start and found[i - 1][2] is not None
        joins_next = i + 1 < len(found) and found[i + 1][0] <= end and found[i + 1][2] is not None
        out.append({"at": start, "value": value, "alone": value is not None and not joins_last and not joins_next})
        if i + 1 < len(found) and found[i + 1][0] > end:
            out.append({"at": end, "value": None, "alone": False})
    return out


def _last(s: EfficiencyStatement, field: str) -> float | None:
    """Where a line ends."""
    return next((v for h in reversed(s.hours) if (v := plottable(getattr(h, field))) is not None), None)


def _ends(found: list[tuple[float | None, str, str]], theme: Theme, gap: float) -> list[alt.Chart]:
    """Words at the right end of lines (place, role, words), kept apart."""
    known = [(place, role, words) for place, role, words in found if place is not None]
    places = spread([place for place, _, _ in known], gap, 0, float("inf"))
    return [
        alt.Chart(rows_of([{"y": y, "words": words}]))
        .mark_text(align="left", fontWeight="bold", color=theme.colour(role))
        .encode(x=fixed(alt.XValue, WIDTH + 10), y=alt.Y("y:Q"), text=alt.Text("words:N"))
        for y, (_, role, words) in zip(places, known, strict=True)
    ]


def _hover(s: EfficiencyStatement, theme: Theme) -> list[alt.Chart]:
    """An unseen strip per hour that tells its figures; none where there would be too many."""
    if len(s.hours) > HOVER_LIMIT:
        return []
    rows = [{"at": h.start_ms, "to": _end_ms(h), "label": _hour_words(h)} for h in s.hours]
    strip = alt.Chart(rows_of(rows)).mark_rect(opacity=0, color=theme.palette.grid)
    return [
        strip.encode(
            x=alt.X("at:T"), x2=alt.X2("to:T"), y=fixed(alt.YValue, 0), y2=fixed(alt.Y2Value, "height"), **says()
        )
    ]


def _hour_words(h: HourRow) -> str:
    parts = [f"{name} {write(getattr(h, field), 'percent')}" for field, _, name in MEASURES]
    parts += [f"PIF {write(h.pif, 'factor')}", f"{write(h.realized_power_tflops, 'whole')} TFLOPS by power"]
    return f"{instant(h.start_ms)} UTC: " + "; ".join(parts)


def _panel(layers: list[alt.Chart], heading: str, height: int) -> alt.LayerChart:
    title = alt.TitleParams(heading, fontSize=14, anchor="start", frame="group", offset=8)
    return layered(*layers, width=WIDTH, height=height, title=title)


def _tflops(s: EfficiencyStatement, theme: Theme) -> alt.LayerChart:
    """Realized by power, under what is achievable and over what the counters saw."""
    whole_fleet = s.capacity.fleet
    achievable, counted = whole_fleet.achievable_tflops, whole_fleet.realized_counters_tflops
    y = alt.Y("value:Q", title="TFLOPS", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4, format=",.0f"))
    layers = _lines(s, theme, TFLOPS, y, dates=True)
    levels = [(plottable(achievable), "muted", "Achievable"), (plottable(counted), "rfu_counters", "By counters")]
    for place, role, _ in levels:
        if place is not None:
            rule = alt.Chart(rows_of([{"y": place}])).mark_rule(strokeDash=[2, 3], color=theme.colour(role), aria=False)
            layers.append(rule.encode(y=alt.Y("y:Q"), x=fixed(alt.XValue, 0), x2=fixed(alt.X2Value, WIDTH)))
    ends = [(place, role, f"{name} {whole(place or 0)}") for place, role, name in levels]
    mean = plottable(whole_fleet.realized_power_tflops)
    words = "By power" if mean is None else f"By power {whole(mean)}"
    ends.append((_last(s, "realized_power_tflops"), "rfu_power", words))
    top = max([place for place, _, _ in ends if place is not None], default=1.0)
    return _panel(
        [*layers, *_ends(ends, theme, top * 0.14), *_hover(s, theme)], "Realized TFLOPS of the whole fleet", 130
    )


@chart_of("fleet_over_time", document="efficiency", section="time", order=2)
def draw(view: EfficiencyView, theme: Theme) -> Drawing:
    """Utilization and both RFU, PIF, and TFLOPS, hour by hour."""
    s = view.statement
    title = _title(s)
    subtitle = (
        "Means over all GPUs seen in each hour, UTC; figures at the right are means of the window. RFU by power is "
        "power over its limit, as GPU Efficiency Analytics defines it; RFU by counters is what the pipes did over the "
        "dense peak."
    )
    if not any(plottable(h.gpu_util_pct) is not None or plottable(h.pif) is not None for h in s.hours):
        return Drawing(title, subtitle, title, empty(theme, "not known: no hour has utilization or power"))
    pct = alt.Y("value:Q", title="%", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(tickCount=5))
    pif = alt.Y("value:Q", title="PIF", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=3, format=".1f"))
    ends = [(_last(s, f), role, _with_mean(s, f, name)) for f, role, name in MEASURES]
    first = [*_lines(s, theme, MEASURES, pct, dates=False), *_ends(ends, theme, 9), *_hover(s, theme)]
    words = "PIF" if isinstance(s.fleet.pif, Unknown) else f"PIF {write(s.fleet.pif, 'factor')}"
    second = [
        *_lines(s, theme, PIF, pif, dates=False),
        *_ends([(_last(s, "pif"), "rfu_power", words)], theme, 0),
        *_hover(s, theme),
    ]
    body = alt.vconcat(
        _panel(first, "Utilization and RFU", 220),
        _panel(second, "Power intensity (PIF)", 100),
        _tflops(s, theme),
        spacing=18,
    ).resolve_scale(color="independent", strokeDash="independent")
    return Drawing(title, subtitle, f"Three panels over {amount(whole(len(s.hours)), 'hour')}. {title}.", body)


def _with_mean(s: EfficiencyStatement, field: str, name: str) -> str:
    mean = plottable(getattr(s.fleet, field))
    return name if mean is None else f"{name} {percent(mean)}"
