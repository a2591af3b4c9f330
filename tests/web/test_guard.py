"""Who gets in, and what may a page do?"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gpuledger.cli.commands import serve
from gpuledger.errors import InputError
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
    assert cookie.startswith(f"{COOKIE}_80=s3cret")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert locked.get("/api/v1/status").status_code == 200  # the browser keeps it


def test_a_browser_is_asked_for_the_token_in_words(locked: TestClient) -> None:
    for path, words in (("/", "A token is needed"), ("/?token=wrong", "The token is not right")):
        page = locked.get(path, headers={"Accept": "text/html"})
        assert page.status_code == 401
        assert words in page.text
        assert 'name="token"' in page.text


@pytest.mark.parametrize("path", ["//evil.example/x", "///evil.example/", "/////evil.example", "/\\/evil.example"])
def test_a_redirect_never_leaves_the_server(locked: TestClient, path: str) -> None:
    answer = locked.get(f"http://books.example{path}?token=s3cret", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/")
    assert not answer.headers["location"].startswith(("//", "/\\"))


def test_dashboards_on_two_ports_of_a_host_keep_their_tokens_apart(lake: Path) -> None:
    kept = set()
    for port in (8200, 8201):
        app = create_app(Views(LiveLake(lake)), token="t", every_s=60)
        answer = TestClient(app, base_url=f"http://localhost:{port}").get("/?token=t", follow_redirects=False)
        kept.add(answer.headers["set-cookie"].split("=")[0])
    assert len(kept) == 2


def test_head_is_answered_as_get_without_the_page(client: TestClient) -> None:
    found, headers = client.get("/health"), client.head("/health")
    assert headers.status_code == 200
    assert headers.content == b""
    assert headers.headers["content-length"] == found.headers["content-length"]


def test_a_foreign_host_name_is_refused(client: TestClient) -> None:
    answer = client.get("/", headers={"Host": "evil.example", "Accept": "application/json"})
    assert answer.status_code == 421
    assert "--name" in answer.json()["hint"]
    page = client.get("/", headers={"Host": "<b>evil.example", "Accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (421, "text/html; charset=utf-8")
    assert "--name" in page.text
    assert "<b>" not in page.text
    assert client.get("/", headers={"Host": "10.1.2.3:8200"}).status_code == 200  # no foreign name stands for digits
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


def test_the_machine_is_known_by_its_own_names_next_to_those_given() -> None:
    assert {"books.example", socket.gethostname()} <= set(serve._hosts("0.0.0.0", ("books.example",)))
    assert "*" not in serve._hosts("0.0.0.0", ())
    assert serve._hosts("127.0.0.1", ()) == ("127.0.0.1",)


def test_an_address_of_another_machine_is_not_about_the_port() -> None:
    with pytest.raises(InputError) as caught:
        serve._listening("203.0.113.7", 0)
    assert "--host" in caught.value.hint
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError) as caught:
        serve._listening("127.0.0.1", taken.getsockname()[1])
    assert "--port" in caught.value.hint
