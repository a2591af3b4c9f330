"""Do the pages show the figures of the statements, also when something is wrong?"""

from __future__ import annotations

import html
import re
from pathlib import Path

import click
import pytest
from starlette.testclient import TestClient

import gpuledger
from dashboards import wait_ready
from gpuledger.report.document import Naming
from gpuledger.report.render.html import linked
from gpuledger.web.app import create_app
from gpuledger.web.contract import Filters
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.shell import PAGES, Asked
from gpuledger.web.views import Views
from reading import Page


@pytest.mark.parametrize("path", [path for path, _ in PAGES])
def test_every_page_is_whole_html_with_a_headline(client: TestClient, path: str) -> None:
    answer = client.get(path)
    page = Page(answer.text)
    assert answer.status_code == 200
    assert not page.open
    assert page.count("h1") == 1
    assert page.count("main") == 1


def test_overview_leads_with_the_money_of_the_audit(client: TestClient, lake: Path) -> None:
    audit = gpuledger.open(lake).audit()
    money, first = audit.statement.headline
    text = Page(client.get("/").text).text.replace("\xa0", " ").replace("\u202f", " ")
    assert money.split(";")[0].split(",")[0] in text
    assert first.split(":")[0] in text


@pytest.mark.parametrize("path", ["/", "/savings"])
def test_gpus_named_by_what_to_do_are_links_to_their_pages_with_the_same_filters(
    client: TestClient, lake: Path, path: str
) -> None:
    audit = gpuledger.open(lake).audit(last="24h").statement
    named = {device for r in audit.recommendations for target in r.targets for device in target.devices}
    text = client.get(path, params={"last": "24h"}).text
    steps = re.findall(r'<a class="device" href="([^"]+)" title="([^"]+)">([^<]+)</a>', text)
    assert steps
    for href, device, name in steps:
        assert device in named
        found = client.get(html.unescape(href))
        assert found.status_code == 200
        assert "last=24h" in href
        assert name in Page(found.text).text
    linked = re.sub(r"<a [^>]*>([^<]*)</a>", r"\1", text)
    first = re.findall(r"<li>[^<]* GPUs: ([^<]*?)[.]</li>", linked) if path == "/" else []
    for words in first:  # every name is a link
        names = re.split(r", | and \d+ more$", words)
        assert set(filter(None, names)) <= {name for _, _, name in steps}


def test_names_of_gpus_with_slashes_and_markup_are_linked_safely() -> None:
    text = Naming("n/<1>, n/<1>0", [(0, 5, 'GPU-"1"/2'), (7, 13, "GPU-10")]).within("See ", ".")
    made = linked(text, Asked("/", Filters(namespace=("a&b",))).gpu_href)
    assert made == (
        'See <a class="device" href="/gpus/GPU-%221%22%2F2?namespace=a%26b" title="GPU-&#34;1&#34;/2">n/&lt;1&gt;</a>, '
        '<a class="device" href="/gpus/GPU-10?namespace=a%26b" title="GPU-10">n/&lt;1&gt;0</a>.'
    )
    assert linked(text, None) == "See n/<1>, n/<1>0."


def test_statements_as_json_are_those_of_the_python_api(client: TestClient, lake: Path) -> None:
    assert client.get("/api/v1/audit").json() == gpuledger.open(lake).audit().to_dict()
    assert client.get("/api/v1/efficiency").json() == gpuledger.open(lake).analyze().to_dict()


def test_filters_are_those_of_a_statement(client: TestClient, lake: Path) -> None:
    names = [row.name for row in gpuledger.open(lake).analyze().by_namespace]
    got = client.get("/api/v1/efficiency", params={"namespace": names[0], "last": "24h"}).json()
    assert got == gpuledger.open(lake).analyze(namespace=names[0], last="24h").to_dict()


def test_plans_name_every_planner_and_its_command(client: TestClient) -> None:
    from gpuledger.cli.commands.plan import command

    text = Page(client.get("/plans").text).text
    for name in command.list_commands(click.Context(command)):
        assert f"gpuledger plan {name} --help" in text
        made = command.get_command(click.Context(command), name)
        assert made is not None
        assert made.get_short_help_str(200).rstrip(".") in text


def test_gpus_sort_and_filter(client: TestClient) -> None:
    rows = client.get("/api/v1/gpus").json()["gpus"]
    assert [r["waste_usd"] for r in rows] == sorted((r["waste_usd"] for r in rows), reverse=True)
    model = rows[0]["gpu_model"]
    some = client.get("/api/v1/gpus", params={"q": model.lower(), "sort": "name"}).json()["gpus"]
    assert {r["gpu_model"] for r in some} == {model}
    assert [r["place"] for r in some] == sorted(r["place"] for r in some)
    assert f"{len(some)} of {len(rows)} GPUs" in client.get("/gpus", params={"q": model}).text


def test_one_gpu_has_its_hours_and_its_observed_time(client: TestClient, lake: Path) -> None:
    row = gpuledger.open(lake).analyze().per_gpu[0]
    found = client.get(f"/api/v1/gpus/{row.gpu_uuid}").json()
    minutes = sum(hour["observed_min"] for hour in found["hours"])
    assert minutes / 60 == pytest.approx(row.means.observed_h)
    for hour in found["hours"]:
        assert sum(hour["minutes"].values()) == pytest.approx(hour["observed_min"])
    assert row.gpu_uuid in client.get(f"/gpus/{row.gpu_uuid}").text


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("/?last=3x", 400, "3x"),
        ("/gpus/GPU-none", 404, "GPU-none"),
        ("/nothing", 404, "No such page"),
        ("/gpus?page=0", 422, "page"),
        ("/static/..%2f..%2fapp.py", 404, "No such page"),
    ],
)
def test_what_cannot_be_shown_is_said_with_a_next_step(client: TestClient, path: str, code: int, words: str) -> None:
    answer = client.get(path)
    assert answer.status_code == code
    assert words in Page(answer.text).text
    assert "Traceback" not in answer.text


def test_errors_of_the_api_are_json(client: TestClient) -> None:
    answer = client.get("/api/v1/audit", params={"since": "never"})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error", "hint"}
    assert client.get("/api/v1/gpus/GPU-none").status_code == 404


def test_labels_cannot_become_markup(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    file = tmp_path / "bad.csv"
    rows = [f"2026-03-02T00:{m:02d}:00Z,GPU-a,NVIDIA A100-SXM4-40GB,{bad},50,200" for m in range(30)]
    head = "timestamp,UUID,modelName,namespace,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE"
    file.write_text("\n".join([head, *rows]) + "\n")
    gpuledger.open(tmp_path / "lake").ingest(file)
    with TestClient(create_app(Views(LiveLake(tmp_path / "lake")), every_s=0.1), base_url="http://localhost") as client:
        wait_ready(client)
        for path, _ in PAGES:
            assert bad not in client.get(path).text


def test_an_empty_lake_says_what_to_do_and_comes_alive(tmp_path: Path, fleet: Path) -> None:
    live = LiveLake(tmp_path / "lake")
    with TestClient(create_app(Views(live), every_s=0.05), base_url="http://localhost") as client:
        assert wait_ready(client)["state"] == "empty"
        answer = client.get("/")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "gpuledger import" in answer.text
        gpuledger.open(tmp_path / "lake").ingest(*sorted(fleet.glob("*.parquet"))[:1])
        for _ in range(400):
            if client.get("/").status_code == 200:
                break
        assert client.get("/").status_code == 200


def test_a_broken_lake_is_an_error_page_not_a_crash(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    root.mkdir()
    (root / "manifest.json").write_text("{ not json")
    with TestClient(create_app(Views(LiveLake(root)), every_s=0.1), base_url="http://localhost") as client:
        assert wait_ready(client)["state"] == "error"
        answer = client.get("/")
        assert answer.status_code == 503
        assert "manifest.json" in answer.text
