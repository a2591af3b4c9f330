"""Does the JSON API do what its description says, whatever it is asked?"""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import Phase, given, settings
from starlette.testclient import TestClient

from dashboards import Server
from gpuledger.web.app import create_app
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.views import Views

EXAMPLES = 25


@pytest.fixture(scope="module")
def api(served: Server) -> schemathesis.schemas.BaseSchema:
    """The description, and a server of the fleet behind it."""
    return schemathesis.openapi.from_url(f"{served.base}/openapi.json")


PATHS = ("status", "audit", "efficiency", "gpus", "gpus/{device}", "energy", "plans/move", "data")


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_as_described(api: schemathesis.schemas.BaseSchema, path: str) -> None:
    @given(case=api[f"/api/v1/{path}"]["GET"].as_strategy())
    @settings(max_examples=EXAMPLES, derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate])
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate()

    check()


def test_the_description_names_every_address_and_what_can_go_wrong(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert described["info"]["title"] == "gpuledger"
    assert set(described["paths"]) == {f"/api/v1/{path}" for path in PATHS}
    for ways in described["paths"].values():
        assert set(ways) == {"get"}
        assert ways["get"]["description"]
        assert all(given["description"] for given in ways["get"].get("parameters", ()))
        assert {"200", "401", "421"} <= set(ways["get"]["responses"])


def test_while_the_lake_is_read_the_api_says_to_come_back(tmp_path: Path) -> None:
    app = create_app(Views(LiveLake(tmp_path / "nothing")), every_s=60)
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.get("/api/v1/audit")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert set(answer.json()) == {"error", "hint"}
