"""Who gets in, and what may a page do?"""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gpuledger.web.app import create_app
from gpuledger.web.guard import COOKIE, HEADERS
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.views import Views


@pytest.fixture
def locked(lake: Path) -> TestClient:
    app = create_app(Views(LiveLake(lake)), token="s3cret", hosts=["books.example"], every_s=60)
    return TestClient(app, base_url="http://books.example")


def test_without_the_token_nothing_is_shown(locked: TestClient) -> None:
    for path in ("/", "/gpus", "/api/v1/status", "/events", "/openapi.json", "/static/style.css"):
        assert locked.get(path).status_code == 401
    assert locked.get("/api/v1/status", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert locked.get("/?token=wr%C3%B6ng").status_code == 401
    assert locked.get("/health").text == "ok\n"


def test_the_token_opens_and_leaves_the_address(locked: TestClient) -> None:
    assert locked.get("/api/v1/status", headers={"Authorization": "Bearer s3cret"}).status_code == 200
    answer = locked.get("/gpus?token=s3cret&sort=util", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/gpus?sort=util"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=s3cret")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert locked.get("/api/v1/status").status_code == 200  # the browser keeps it


def test_a_browser_is_asked_for_the_token_in_words(locked: TestClient) -> None:
    for path, words in (("/", "A token is needed"), ("/?token=wrong", "The token is not right")):
        page = locked.get(path, headers={"Accept": "text/html"})
        assert page.status_code == 401
        assert words in page.text
        assert 'name="token"' in page.text


def test_a_redirect_never_leaves_the_server(locked: TestClient) -> None:
    answer = locked.get("//evil.example/x?token=s3cret", follow_redirects=False)
    assert not answer.headers.get("location", "/").startswith("//")


def test_a_foreign_host_name_is_refused(client: TestClient) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"Host": "localhost:1"}).status_code == 200
    assert client.get("/", headers={"Host": "[::1]:8200"}).status_code == 200


def test_every_answer_has_safe_headers(client: TestClient) -> None:
    for path in ("/", "/nothing", "/api/v1/status", "/health"):
        answer = client.get(path)
        for name in HEADERS:
            assert name in answer.headers
    assert "script-src 'self'" in client.get("/").headers["content-security-policy"]


def test_nothing_can_be_changed(client: TestClient) -> None:
    for path in ("/", "/api/v1/audit", "/events"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            answer = client.request(method, path)
            assert answer.status_code == 405
            assert answer.headers["allow"] == "GET"
