"""A real Prometheus that scrapes a real gpuledger serve: do figures, rules and the dashboard's queries work there?"""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from dashboards import Server
from gpuledger.advice.limits import load_limits
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.layout import Lake
from gpuledger.live.grafana import expressions
from gpuledger.live.rules import RuleTerms, rules_text
from servers.real_prometheus import RealPrometheus, needs_prometheus

pytestmark = needs_prometheus
# Without heat or failing memory in the fleet these have nothing to show.
QUIET = ("gpuledger_gpu_thermal_ratio", "gpuledger_gpu_row_remap_failures")


class Scraping(RealPrometheus):
    """A Prometheus with a scrape of the dashboard and the rules."""

    def __init__(self, folder: Path, server: Server) -> None:
        super().__init__(folder)
        terms = RuleTerms(load_limits(), load_thresholds(), {}, 900_000)
        (folder / "rules.yml").write_text(rules_text(terms))
        token = {"type": "Bearer", "credentials": server.token}
        job = {"job_name": "gpuledger", "static_configs": [{"targets": [f"127.0.0.1:{server.port}"]}]}
        every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config = {"global": every, "rule_files": ["rules.yml"], "scrape_configs": [{**job, "authorization": token}]}
        self.config.write_text(json.dumps(config))

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """The newest values of an expression."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://{self.at}/api/v1/query?{query}", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def wait(self, expression: str) -> list[dict[str, Any]]:
        for _ in range(200):
            if found := self.ask(expression):
                return found
            time.sleep(0.1)
        raise AssertionError(f"{expression} never had a value:\n{self.log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def server(lake: Lake) -> Iterator[Server]:
    made = Server(lake.root, "--token", "a-secret")
    for _ in range(300):
        answer = httpx.get(f"{made.base}/metrics", headers={"Authorization": "Bearer a-secret"}, timeout=30)
        if answer.status_code == 200:
            break
        time.sleep(0.1)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def prometheus(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraping]:
    with Scraping(tmp_path_factory.mktemp("prometheus"), server) as made:
        made.wait("gpuledger:waste_usd_per_hour:sum")
        yield made


def test_the_page_is_guarded_and_says_what_it_is(server: Server) -> None:
    assert httpx.get(f"{server.base}/metrics").status_code == 401
    answer = httpx.get(f"{server.base}/metrics", headers={"Authorization": "Bearer a-secret"})
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.startswith("# HELP gpuledger_build_info ")


def test_an_address_may_name_window_and_owner(server: Server) -> None:
    own = {"Authorization": "Bearer a-secret"}
    page = httpx.get(f"{server.base}/metrics?last=6h&namespace=research", headers=own, timeout=30).text
    assert 'namespace="research"' in page
    assert 'namespace="ml-training"' not in page
    wrong = httpx.get(f"{server.base}/metrics?last=soon", headers=own)
    assert wrong.status_code == 400


def test_scraped_figures_are_those_of_the_page(prometheus: Scraping, server: Server) -> None:
    page = httpx.get(f"{server.base}/metrics", headers={"Authorization": "Bearer a-secret"}, timeout=30).text
    (line,) = [x for x in page.splitlines() if x.startswith("gpuledger_paid_usd_per_hour ")]
    (found,) = prometheus.ask("gpuledger_paid_usd_per_hour")
    assert float(found["value"][1]) == pytest.approx(float(line.split()[1]))


def test_recording_rules_are_evaluated(prometheus: Scraping) -> None:
    (waste,) = prometheus.wait("gpuledger:waste_usd_per_hour:sum")
    by_gpu = prometheus.ask("sum(gpuledger_gpu_waste_usd_per_hour)")
    assert float(waste["value"][1]) == pytest.approx(float(by_gpu[0]["value"][1]))
    assert prometheus.wait("gpuledger:gpu_idle:ratio")
    assert prometheus.wait('ALERTS{alertname="GpuledgerNoSamples"}')  # the fleet's samples are of the past


@pytest.mark.parametrize("expression", list(expressions()))
def test_every_query_of_the_dashboard_has_an_answer(prometheus: Scraping, expression: str) -> None:
    found = prometheus.ask(expression)  # an expression that cannot be read is an error
    assert found or any(name in expression for name in QUIET)
