"""Does a page learn of new samples, and is each statement made once?"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

import gpuledger
from dashboards import Server
from gpuledger import settings
from gpuledger.ledger.read.owners import By
from gpuledger.web.contract import Filters
from gpuledger.web.desk import Desk
from gpuledger.web.events import Hub
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.views import Views


def test_a_statement_is_made_once_whoever_asks(lake: Path) -> None:
    live = LiveLake(lake)
    live.refresh()
    made: list[int] = []
    gate = threading.Barrier(8)

    def make() -> int:
        made.append(1)
        return 7

    def ask() -> None:
        gate.wait()
        assert live.once("x", Filters(), make) == 7

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


@pytest.mark.parametrize("by", list(By))
def test_an_audit_by_any_owner_is_the_one_of_the_command(lake: Path, by: By) -> None:
    live = LiveLake(lake)
    live.refresh()
    assert live.audit(Filters(), by=by).cost == gpuledger.open(lake).audit(by=by).statement.cost


def test_nothing_new_is_no_new_edition(lake: Path) -> None:
    live = LiveLake(lake)
    assert live.refresh()
    first = live.status.edition
    assert not live.refresh()
    assert live.status.edition == first


def test_settings_that_are_gone_are_reported_and_looked_for_again(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "gpuledger.toml"
    file.write_text("[prices]\nL4 = 0.7\n")
    settings.use(file)
    try:
        live = LiveLake(lake)
        assert live.refresh()
        file.unlink()
        assert live.refresh()
        assert "no such file" in live.status.problem
        file.write_text("[prices]\nL4 = 0.7\n")
        assert live.refresh()
        assert not live.status.problem
    finally:
        settings.use(None)


def test_new_samples_reach_a_viewer_over_a_real_socket(tmp_path: Path, fleet: Path) -> None:
    days = sorted(fleet.glob("*.parquet"))
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(days[0])
    server = Server(tmp_path / "lake")
    try:
        editions: list[int] = []
        with httpx.stream("GET", f"{server.base}/events", timeout=60) as stream:
            for line in stream.iter_lines():
                if line.startswith("data:") and "edition" in json.loads(line[5:]):
                    editions.append(json.loads(line[5:])["edition"])
                    if len(editions) == 1:
                        before = httpx.get(f"{server.base}/api/v1/efficiency", timeout=60).json()["samples"]
                        lake.ingest(days[1])
                    if len(editions) == 2:
                        break
        assert editions[1] > editions[0]
        after = httpx.get(f"{server.base}/api/v1/efficiency", timeout=60).json()["samples"]
        assert after == 2 * before
    finally:
        code, errors = server.stop()
    assert "Traceback" not in errors, errors
    assert code in (0, -15)


def test_a_lake_that_cannot_be_written_is_still_shown(
    tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(lake, tmp_path / "lake")

    def refuse(*_given: object) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr("gpuledger.web.live_lake.post_lake", refuse)
    gpuledger.open(lake).analyze()  # posts the original
    shutil.rmtree(tmp_path / "lake")
    shutil.copytree(lake, tmp_path / "lake")
    live = LiveLake(tmp_path / "lake")
    live.refresh()
    assert live.status.state == "ready"


def test_bound_elsewhere_a_token_is_made_and_asked_for(lake: Path) -> None:
    server = Server(lake, "--host", "0.0.0.0")
    try:
        assert server.token
        assert httpx.get(f"{server.base}/", timeout=30).status_code == 401
        answer = httpx.get(
            f"{server.base}/api/v1/status", headers={"Authorization": f"Bearer {server.token}"}, timeout=30
        )
        assert answer.status_code == 200
    finally:
        server.stop()


def test_a_port_in_use_is_said_with_a_next_step(served: Server, lake: Path) -> None:
    command = [sys.executable, "-m", "gpuledger", "serve", "--lake", str(lake), "--port", str(served.port)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--port" in done.stderr


def test_a_viewer_learns_the_server_s_clock_and_the_age_of_the_newest_sample(lake: Path) -> None:
    desk = Desk(Views(LiveLake(lake)))
    desk.look()

    async def first() -> str:
        return await anext(Hub(desk, 1.0, stale_ms=900_000).events(desk.status.edition))

    before = time.time() * 1000
    said = asyncio.run(first())
    facts = json.loads(said.partition("event: clock\ndata: ")[2])
    assert (facts["newest_ms"], facts["stale_ms"]) == (desk.status.newest_ms, 900_000)
    assert before - 1 <= facts["now_ms"] <= time.time() * 1000


def test_serving_a_lake_that_is_not_there_says_so_and_waits(tmp_path: Path) -> None:
    server = Server(tmp_path / "none")
    scrape = httpx.get(f"{server.base}/metrics", timeout=60)
    _, errors = server.stop()
    assert "no lake was found here yet" in errors
    assert scrape.status_code == 503
    assert scrape.headers["content-type"].startswith("text/plain")
    assert "<html" not in scrape.text
