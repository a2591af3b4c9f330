"""What does a Grafana dashboard of the fleet show? Money first, then who, then which GPUs, then faults.

Every query is on the figures of a scrape alone; the recording rules are not needed. The data source is chosen in
Grafana when the file is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpuledger.cost.statement import BUCKETS

UID = "gpuledger-fleet"
SCHEMA_VERSION = 41
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLORS = {
    "productive": "#2f9e62", "stalled": "#c2452d", "unrated": "#8a8f98", "underused": "#d98a2b", "idle": "#b03a6b",
    "idle_held": "#7a4bb0", "unobserved": "#c5c9cf",
}  # fmt: skip
PER_HOUR, RATIO = "currencyUSD", "percentunit"
# Every slice of a board has the board's power: it counts once.
_BOARD_POWER = 'max by (cluster, gpu) (gpuledger_gpu_power_watts{cluster=~"$cluster"})'
Kind = Literal["stat", "timeseries", "table", "bargauge"]


@dataclass(frozen=True)
class Query:
    """A PromQL expression, and what its series are called; `instant`: its newest value only."""

    expression: str
    legend: str = ""
    instant: bool = False


@dataclass(frozen=True)
class Panel:
    """One panel, 24 columns to a row."""

    kind: Kind
    title: str
    text: str
    unit: str
    queries: Sequence[Query]
    wide: int
    tall: int = 8
    stacked: bool = False
    colored: bool = False


def panels() -> Sequence[Panel]:
    """What is shown, in order."""
    waste, by_space = "sum(gpuledger_waste_usd_per_hour)", "sum by (namespace) (gpuledger_namespace_waste_usd_per_hour)"
    saving = 'gpuledger_saving_usd_per_hour{estimate="%s"}'
    return (
        Panel("stat", "Paid per hour", "All GPUs with a price.", PER_HOUR, [_now("gpuledger_paid_usd_per_hour")], 4, 4),
        Panel("stat", "Wasted per hour", "Stalled, underused, idle and idle-held time.", PER_HOUR, [_now(waste)], 4, 4),
        Panel("stat", "Wasted", "Of what is paid.", RATIO, [_now(f"{waste} / sum(gpuledger_paid_usd_per_hour)")], 4, 4),
        Panel(
            "stat", "Could be saved per hour", "By the advice of the audit, without lower prices.", PER_HOUR,
            [_now(saving % end, end) for end in ("low", "middle", "high")], 8, 4,
        ),
        Panel(
            "stat", "Newest sample", "How old the figures are.", "s",
            [_now("time() - gpuledger_newest_sample_timestamp_seconds")], 4, 4,
        ),
        Panel(
            "timeseries", "Dollars per hour by bucket", "Productive at the bottom, then what is wasted or unknown.",
            PER_HOUR, [Query("sum by (bucket) (gpuledger_bucket_usd_per_hour)", "{{bucket}}")], 16, 9, True, True,
        ),
        Panel(
            "bargauge", "Wasted per hour by namespace", "", PER_HOUR,
            [_now(f"sort_desc({by_space})", "{{namespace}}")], 8, 9,
        ),
        Panel(
            "timeseries", "Paid per hour by namespace", "", PER_HOUR,
            [Query('gpuledger_namespace_paid_usd_per_hour{namespace=~"$namespace"}', "{{namespace}}")], 12, 8, True,
        ),
        Panel(
            "timeseries", "Utilization and realized share", "Means over GPUs; the gap is busy time without much work.",
            RATIO,
            [
                Query('avg(gpuledger_gpu_utilization_ratio{cluster=~"$cluster"})', "utilization"),
                Query('avg(gpuledger_gpu_realized_ratio{cluster=~"$cluster"})', "realized"),
            ],
            12,
        ),
        Panel(
            "table", "GPUs that waste the most", "The fifteen at the top.", PER_HOUR,
            [_now('topk(15, gpuledger_gpu_waste_usd_per_hour{cluster=~"$cluster"})', "{{name}}")], 12, 9,
        ),
        Panel(
            "timeseries", "Power", "Sum over boards; MIG slices of a board report its power together.", "watt",
            [Query(f"sum by (cluster) ({_BOARD_POWER})", "{{cluster}}")], 12, 9, True,
        ),
        Panel(
            "table", "GPUs with faults", "XID errors and failed row remappings in the last hour.", "short",
            [_now("gpuledger_gpu_xid_events or gpuledger_gpu_row_remap_failures", "{{name}}")], 12, 7,
        ),
        Panel(
            "timeseries", "Held down by heat", "Share of the time, of GPUs with faults or heat.", RATIO,
            [Query("gpuledger_gpu_thermal_ratio", "{{name}}")], 12, 7,
        ),
    )  # fmt: skip


def _now(expression: str, legend: str = "") -> Query:
    return Query(expression, legend, instant=True)


def expressions() -> Iterator[str]:
    """Every PromQL expression of the dashboard, its variables set to match everything."""
    for panel in panels():
        for query in panel.queries:
            yield query.expression.replace("$cluster", ".*").replace("$namespace", ".*")


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    placed, x, y, tall = [], 0, 0, 0
    for number, panel in enumerate(panels(), start=1):
        if x + panel.wide > 24:
            x, y, tall = 0, y + tall, 0
        placed.append(_panel(number, panel, x, y))
        x, tall = x + panel.wide, max(tall, panel.tall)
    return {
        "uid": UID, "title": "GPU fleet: dollars, waste and use", "description": "Figures of gpuledger serve.",
        "tags": ["gpu", "gpuledger"], "schemaVersion": SCHEMA_VERSION, "version": 1, "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-24h", "to": "now"}, "refresh": "1m", "timezone": "utc", "panels": placed,
        "templating": {"list": [_source(), *(_variable(name, of) for name, of in _VARIABLES)]},
        "annotations": {"list": []}, "links": [],
    }  # fmt: skip


_VARIABLES = (("cluster", "gpuledger_gpu_paid_usd_per_hour"), ("namespace", "gpuledger_namespace_paid_usd_per_hour"))


def _source() -> dict[str, Any]:
    return {
        "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus",
        "current": {"text": "default", "value": "default"}, "hide": 0, "refresh": 1, "regex": "", "multi": False,
        "includeAll": False,
    }  # fmt: skip


def _variable(name: str, metric: str) -> dict[str, Any]:
    return {
        "name": name, "label": name.capitalize(), "type": "query", "datasource": SOURCE, "refresh": 2, "hide": 0,
        "query": {"query": f"label_values({metric}, {name})", "refId": name}, "multi": True, "includeAll": True,
        "allValue": ".*", "current": {"text": "All", "value": "$__all"}, "sort": 1, "regex": "",
    }  # fmt: skip


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + i), "expr": query.expression, "datasource": SOURCE, "instant": query.instant,
            "range": not query.instant, "legendFormat": query.legend or "__auto",
            "format": "table" if panel.kind == "table" else "time_series",
        }
        for i, query in enumerate(panel.queries)
    ]  # fmt: skip
    defaults: dict[str, Any] = {"unit": panel.unit, "custom": _custom(panel), "color": {"mode": "palette-classic"}}
    if panel.kind == "stat":
        defaults["color"] = {"mode": "fixed", "fixedColor": "text"}
    return {
        "id": number, "type": panel.kind, "title": panel.title, "description": panel.text, "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.wide, "h": panel.tall}, "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": _colors() if panel.colored else []},
        "options": _options(panel.kind), "transformations": _columns() if panel.kind == "table" else [],
    }  # fmt: skip


def _custom(panel: Panel) -> dict[str, Any]:
    if panel.kind != "timeseries":
        return {}
    mode = "normal" if panel.stacked else "none"
    return {
        "drawStyle": "line", "lineWidth": 1, "fillOpacity": 60 if panel.stacked else 5, "showPoints": "never",
        "spanNulls": False, "stacking": {"mode": mode, "group": "A"},
    }  # fmt: skip


def _options(kind: Kind) -> dict[str, Any]:
    """Every option that Grafana's model of the panel requires."""
    newest = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    if kind == "stat":
        return {
            "reduceOptions": newest, "colorMode": "value", "graphMode": "none", "textMode": "auto", "wideLayout": True,
            "justifyMode": "auto", "orientation": "auto", "showPercentChange": False,
            "percentChangeColorMode": "standard",
        }  # fmt: skip
    if kind == "bargauge":
        return {
            "reduceOptions": newest, "orientation": "horizontal", "displayMode": "basic", "showUnfilled": False,
            "legend": {**legend, "showLegend": False}, "valueMode": "color", "namePlacement": "auto",
            "sizing": "auto", "minVizWidth": 8, "minVizHeight": 16, "maxVizHeight": 300,
        }  # fmt: skip
    if kind == "table":
        return {"frameIndex": 0, "showHeader": True, "sortBy": [{"displayName": "Value", "desc": True}]}
    return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}


def _colors() -> list[dict[str, Any]]:
    return [
        {
            "matcher": {"id": "byName", "options": bucket},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": COLORS[bucket]}}],
        }
        for bucket in BUCKETS
    ]


def _columns() -> list[dict[str, Any]]:
    """Of the labels only those people read."""
    hidden = ("Time", "__name__", "gpu", "instance", "job", "host")
    return [{"id": "organize", "options": {"excludeByName": dict.fromkeys(hidden, True), "renameByName": {}}}]
