"""Is the dashboard one that Grafana imports?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuledger.cost.statement import BUCKETS
from gpuledger.live.grafana import COLORS, dashboard, expressions, panels


def test_it_is_json_and_says_which_version_of_the_model_it_is() -> None:
    made = json.loads(json.dumps(dashboard()))
    assert made["schemaVersion"] >= 36
    assert made["uid"]


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
