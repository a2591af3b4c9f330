"""Do the six charts show what the statement says, and nothing else?"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow
from gpuledger.errors import MissingExtra, UnknownName
from gpuledger.physics.causes import LikelyCause
from gpuledger.report.charts import Drawing, chart_names, drawing, need_charts, unchecked
from gpuledger.report.charts.efficiency.bottlenecked import LABELS, SINGLE_LIMIT
from gpuledger.report.documents.efficiency import EfficiencyView
from gpuledger.report.render.pictures import compose, dressed, to_svg
from gpuledger.report.theme import load_theme
from gpuledger.report.written import NARROW
from gpuledger.units import MS_PER_HOUR, Unknown

NAMES = ["utilization_vs_power", "fleet_over_time", "gpu_models", "bottlenecked_gpus", "roi", "namespaces"]
HOSTILE = '</script><script>alert("x")</script>&<b>'


def draw(name: str, s: EfficiencyStatement, theme: str = "light") -> Drawing:
    made = drawing(name, EfficiencyView(s, load_thresholds()), load_theme(theme))
    assert made is not None
    return made


MADE: dict[tuple[str, int, str], tuple[EfficiencyStatement, dict[str, Any]]] = {}


def spec(name: str, s: EfficiencyStatement, theme: str = "light") -> dict[str, Any]:
    """The chart as Vega-Lite; Altair checks it against its schema. Drawing takes a while, so each is drawn once."""
    key = (name, id(s), theme)
    if key not in MADE:
        # Holding the statement keeps its id from being given to another.
        MADE[key] = s, compose(draw(name, s, theme), load_theme(theme)).to_dict(validate=True)
    return MADE[key][1]


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_way_to_vega_lite_is_altairs(statement, name):
    made, look = draw(name, statement), load_theme("dark")
    for titled in (True, False):
        with unchecked():
            slow = compose(made, look, titled=titled).to_dict(validate=False)
        assert dressed(made, look, titled=titled) == slow


def rows(made: dict[str, Any], *keys: str) -> list[list[dict[str, Any]]]:
    """The data sets whose rows have these keys."""
    return [r for r in made["datasets"].values() if r and all(k in r[0] for k in keys)]


def test_six_charts_in_the_published_order() -> None:
    assert chart_names("efficiency") == NAMES


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_each_is_valid_and_uses_only_its_theme(name: str, theme: str, statement: EfficiencyStatement) -> None:
    made = json.dumps(spec(name, statement, theme))
    other = load_theme("dark" if theme == "light" else "light").palette.roles()
    assert not [role for role, colour in other.items() if colour in made]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("utilization_vs_power", f"31.4{NARROW}% of active GPU time looked busy but drew little power"),
        ("fleet_over_time", f"GPUs read 70.9{NARROW}% busy; the counters saw 24.3{NARROW}% of peak"),
        ("gpu_models", f"A100-SXM4-40GB shows the widest gap: 6.0{NARROW}pp between busy and realized"),
        ("bottlenecked_gpus", "20 of 50 GPUs were bottlenecked on most of their active days"),
        ("roi", f"Reaching 70{NARROW}% RFU would be worth 3.9 more GPUs"),
        ("namespaces", f"ml-training loses most between busy and realized: 12.0{NARROW}pp"),
    ],
)
def test_the_title_is_the_finding(name: str, title: str, statement: EfficiencyStatement) -> None:
    made = spec(name, statement)
    assert " ".join(made["title"]["text"]) == title
    assert made["description"]


def test_a_new_figure_makes_a_new_title(statement: EfficiencyStatement) -> None:
    changed = dataclasses.replace(
        statement, active=dataclasses.replace(statement.active, bottlenecked_pct_of_active=12.34)
    )
    assert draw("utilization_vs_power", changed).title.startswith(f"12.3{NARROW}%")


def test_every_cell_is_drawn_in_its_class(statement: EfficiencyStatement) -> None:
    (cells,) = rows(spec("utilization_vs_power", statement), "util", "pif", "hours")
    assert len(cells) == len(statement.util_power)
    assert sum(c["hours"] for c in cells) == pytest.approx(sum(c.hours for c in statement.util_power))
    assert {c["class"] for c in cells} == {c.klass for c in statement.util_power}
    assert cells[0]["util"] == statement.util_power[0].util_low_pct + 2.5


def test_every_hour_is_drawn_and_an_unknown_hour_leaves_a_hole(statement: EfficiencyStatement) -> None:
    lines = rows(spec("fleet_over_time", statement), "at", "value", "role")
    counted = [r for data in lines for r in data if r["role"] == "rfu_counters"]
    assert [r["at"] for r in counted] == [h.start_ms for h in statement.hours]
    assert [r["value"] for r in counted].count(None) == 12
    assert counted[0]["value"] == statement.hours[0].rfu_counters_pct


def test_models_show_their_own_means_and_say_what_is_not_known(statement: EfficiencyStatement) -> None:
    data = [r for d in rows(spec("gpu_models", statement), "name", "value", "words") for r in d]
    shown = {r["value"] for r in data}
    for row in statement.by_model:
        assert {row.means.gpu_util_pct, row.means.pif, row.means.rfu_power_pct, row.means.efficiency_gap_pp} <= shown


def test_the_panels_of_models_share_their_rows(statement: EfficiencyStatement) -> None:
    unknown = Unknown("no board power")
    first, *others = statement.by_model
    means = dataclasses.replace(first.means, pif=unknown, rfu_power_pct=unknown, efficiency_gap_pp=unknown)
    blind = dataclasses.replace(statement, by_model=(dataclasses.replace(first, means=means), *others))
    orders = [
        layer["encoding"]["y"]["sort"]
        for panel in spec("gpu_models", blind)["hconcat"]
        for layer in panel["layer"]
        if "y" in layer.get("encoding", {})
    ]
    assert len(orders) >= 8  # bars and words of four panels
    assert all(order == orders[0] for order in orders)
    assert len(orders[0]) == len(blind.by_model)


def test_every_gpu_is_drawn_and_the_bottlenecked_are_named(statement: EfficiencyStatement) -> None:
    made = spec("bottlenecked_gpus", statement)
    points = [r for d in rows(made, "util", "rfu", "stuck") for r in d]
    assert len(points) == 50
    assert sum(r["stuck"] for r in points) == 20
    (labels,) = rows(made, "lane", "words")
    assert len(labels) == LABELS
    assert {w["words"].partition(": ")[2] for w in labels} == {"storage", "network"}


def test_a_big_fleet_is_drawn_in_cells(make: Callable[..., EfficiencyStatement]) -> None:
    big = make(gpus=SINGLE_LIMIT + 1, hours=2)
    points = [r for d in rows(spec("bottlenecked_gpus", big), "util", "rfu", "stuck") for r in d]
    assert len(points) < 200
    assert sum(r["count"] for r in points) == SINGLE_LIMIT + 1


def test_roi_bars_are_the_statement_s(statement: EfficiencyStatement) -> None:
    (bars,) = rows(spec("roi", statement), "gpus", "target")
    assert [b["gpus"] for b in bars] == [r.equivalent_gpus for r in statement.roi]


def test_namespaces_show_target_and_range(statement: EfficiencyStatement) -> None:
    made = spec("namespaces", statement)
    (marks,) = rows(made, "ns", "measure")
    assert sorted(m["value"] for m in marks if m["measure"] == "RFU target") == [50.0, 50.0, 70.0]
    ranges = [r for d in rows(made, "ns", "low") for r in d if r["low"] is not None]
    assert len(ranges) == 3
    (gaps,) = rows(made, "ns", "edge")
    assert [g["ns"] for g in gaps] == ["ml-training", "research", "ml-inference", "fraud-detection"]


@pytest.mark.parametrize("name", NAMES)
def test_one_gpu_without_namespace_and_nothing_known(
    name: str, one_gpu: EfficiencyStatement, unknown_statement: EfficiencyStatement
) -> None:
    assert spec(name, one_gpu)
    words = json.dumps(spec(name, unknown_statement))
    if name != "bottlenecked_gpus":
        assert "not known" in words
    assert "NaN" not in words


@pytest.mark.parametrize("name", ["gpu_models", "bottlenecked_gpus", "namespaces"])
def test_hostile_names_are_only_words(name: str, statement: EfficiencyStatement) -> None:
    def rename(g: GpuRow) -> GpuRow:
        return dataclasses.replace(g, host=HOSTILE, namespace=HOSTILE, cause=LikelyCause(None, HOSTILE, HOSTILE))

    evil = dataclasses.replace(
        statement,
        by_namespace=tuple(dataclasses.replace(g, name=HOSTILE) for g in statement.by_namespace[:1]),
        by_model=tuple(dataclasses.replace(g, name=HOSTILE) for g in statement.by_model[:1]),
        per_gpu=tuple(rename(g) for g in statement.per_gpu),
    )
    assert spec(name, evil)


def test_an_unknown_chart_suggests_the_nearest(statement: EfficiencyStatement) -> None:
    with pytest.raises(UnknownName, match="did you mean namespaces"):
        draw("namespace", statement)


def test_without_the_extra_the_next_step_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert chart_names("efficiency") == []
    with pytest.raises(MissingExtra, match=r"gpuledger\[charts\]"):
        need_charts()


def test_words_fit_the_number(statement: EfficiencyStatement, one_gpu: EfficiencyStatement) -> None:
    one = dataclasses.replace(statement.bottlenecked_gpus[0])
    few = dataclasses.replace(statement, per_gpu=(one,), gpus=3)
    assert draw("bottlenecked_gpus", few).title == "One of 3 GPUs was bottlenecked on most of its active days"
    assert draw("bottlenecked_gpus", one_gpu).title == "The GPU was not bottlenecked on most of its active days"
    assert "with 1 GPU at" in draw("roi", one_gpu).subtitle


def test_without_a_target_left_roi_says_so(
    one_gpu: EfficiencyStatement, unknown_statement: EfficiencyStatement
) -> None:
    assert draw("roi", one_gpu).title == "No target is above the present RFU"
    assert draw("roi", unknown_statement).title.endswith("is not known: the source was silent")


def test_lines_are_broken_where_hours_are_missing(statement: EfficiencyStatement) -> None:
    """Days without data are not bridged, and an hour by itself is a point."""
    first, alone, later = statement.hours[:5], statement.hours[30], statement.hours[40:46]
    sparse = dataclasses.replace(statement, hours=(*first, alone, *later))
    made = spec("fleet_over_time", sparse)
    util = next(d for d in rows(made, "at", "value", "role") if d[0]["role"] == "utilization")
    util = [r for r in util if r["role"] == "utilization"]
    assert len(util) == len(sparse.hours) + 2
    holes = [r["at"] for r in util if r["value"] is None]
    assert holes == [h.start_ms + MS_PER_HOUR for h in (first[-1], alone)]
    assert [r["at"] for r in util if r["alone"]] == [alone.start_ms]
    colour = load_theme().colour("utilization")
    svg = to_svg(compose(draw("fleet_over_time", sparse), load_theme()))
    drawn = re.findall(rf'd="([^"]*)"[^>]* stroke="{colour}"', svg)
    assert [line.count("M") for line in drawn] == [3]
