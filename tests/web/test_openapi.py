"""Does the JSON API do what its description says, whatever it is asked?"""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import Phase, settings
from starlette.testclient import TestClient

from gpuledger.web.app import create_app
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.views import Views

EXAMPLES = 25


@pytest.fixture(scope="module")
def api(client: TestClient) -> schemathesis.schemas.BaseSchema:
    """The description, and the dashboard of the fleet behind it."""
    return schemathesis.openapi.from_asgi("/openapi.json", client.app)


described = schemathesis.pytest.from_fixture("api")


@described.parametrize()
@settings(max_examples=EXAMPLES, derandomize=True, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_every_answer_is_as_described(case: schemathesis.Case, client: TestClient) -> None:
    case.call_and_validate()


def test_the_description_names_every_address_and_what_can_go_wrong(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert described["info"]["title"] == "gpuledger"
    for path, ways in described["paths"].items():
        assert path.startswith("/api/v1/")
        assert set(ways) == {"get"}
        assert ways["get"]["description"]
        assert {"200", "401", "421"} <= set(ways["get"]["responses"])


def test_while_the_lake_is_read_the_api_says_to_come_back(tmp_path: Path) -> None:
    app = create_app(Views(LiveLake(tmp_path / "nothing")), every_s=60)
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.get("/api/v1/audit")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert set(answer.json()) == {"error", "hint"}
