"""Is the dashboard one that Grafana imports?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from gpuledger.cost.statement import BUCKETS
from gpuledger.live.grafana import COLORS, dashboard, expressions, panels


def test_it_is_json_and_says_which_version_of_the_model_it_is() -> None:
    made = json.loads(json.dumps(dashboard()))
    assert made["schemaVersion"] >= 36
    assert made["uid"]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The published model of Grafana: dashboards, and the options of each kind of panel."""
    found: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "grafana_schema.json").read_text())
    return found


def problems(schema: dict[str, Any], found: Any) -> list[str]:
    return [f"{list(e.absolute_path)}: {e.message}" for e in Draft7Validator(schema).iter_errors(found)]


def test_it_is_a_dashboard_by_grafanas_own_schema(schema: dict[str, Any]) -> None:
    made = json.loads(json.dumps(dashboard()))
    assert problems(schema["dashboard"], made) == []
    for panel in made["panels"]:
        assert problems(schema[panel["type"]], panel["options"]) == [], panel["title"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda made: made.update(graphTooltip=7),
        lambda made: made["panels"][0].update(gridPos={"x": "left"}),
        lambda made: made["templating"]["list"][0].update(type="choice"),
        lambda made: made.pop("schemaVersion"),
    ],
)
def test_the_schema_refuses_what_grafana_would_not_read(schema: dict[str, Any], spoil: Callable[[Any], Any]) -> None:
    made = json.loads(json.dumps(dashboard()))
    spoil(made)
    assert problems(schema["dashboard"], made)


def test_panels_do_not_overlap_and_fit_the_grid() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_money_comes_first() -> None:
    first = dashboard()["panels"][0]
    assert first["gridPos"]["y"] == 0
    assert first["fieldConfig"]["defaults"]["unit"] == "currencyUSD"


def test_every_bucket_has_its_color() -> None:
    assert set(COLORS) == set(BUCKETS)


def test_queries_use_the_chosen_data_source_and_known_variables() -> None:
    made = dashboard()
    names = {v["name"] for v in made["templating"]["list"]}
    for panel in made["panels"]:
        for target in panel["targets"]:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            used = {word.split('"')[0].strip("})") for word in target["expr"].split("$")[1:]}
            assert used <= names
    assert all("$" not in expression for expression in expressions())
    assert len({panel.title for panel in panels()}) == len(panels())


def test_the_foundation_sdk_reads_it_and_writes_the_same_queries() -> None:
    sdk = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="pip install grafana-foundation-sdk")
    from grafana_foundation_sdk.cog import plugins  # type: ignore[import-not-found]
    from grafana_foundation_sdk.cog.encoder import JSONEncoder  # type: ignore[import-not-found]

    plugins.register_default_plugins()
    made = dashboard()
    back: dict[str, Any] = json.loads(json.dumps(sdk.Dashboard.from_json(made), cls=JSONEncoder))
    assert [p["title"] for p in back["panels"]] == [p["title"] for p in made["panels"]]
    queries = [[t["expr"] for t in p["targets"]] for p in back["panels"]]
    assert queries == [[t["expr"] for t in p["targets"]] for p in made["panels"]]
