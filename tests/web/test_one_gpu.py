"""Does the page of one GPU show its stretches whole, and when it went silent?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import gpuledger
from dashboards import wait_ready
from gpuledger.efficiency.gpu_history import Spell
from gpuledger.report.documents.gpu_history import SHOWN, spells_table
from gpuledger.units import MS_PER_HOUR, MS_PER_S
from gpuledger.web.app import create_app
from gpuledger.web.contract import Filters
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.views import Views
from odd_fleet import odd_rows, write_odd

EVENING = dt.datetime(2026, 11, 15, 22, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The odd fleet from 22:00 to 02:10; one GPU stops at 01:10, and one row is not possible."""
    root = tmp_path_factory.mktemp("night")
    rows = [*odd_rows(EVENING, 190), *odd_rows(EVENING + dt.timedelta(minutes=190), 60, leave_out="odd")]
    wrong = [*rows[0][:11], 99999, *rows[0][12:]]
    gpuledger.open(root / "lake").ingest(write_odd(root / "night.csv", [*rows, wrong]))
    return root / "lake"


@pytest.fixture(scope="module")
def client(night: Path) -> Iterator[TestClient]:
    with TestClient(create_app(Views(LiveLake(night)), every_s=0.1), base_url="http://localhost") as made:
        wait_ready(made)
        yield made


def test_a_stretch_is_one_over_midnight(client: TestClient) -> None:
    found = client.get("/api/v1/gpus/GPU-idle").json()
    (spell,) = found["spells"]
    assert (spell["end_ms"] - spell["start_ms"]) / MS_PER_HOUR == pytest.approx(found["figures"]["longest_idle_h"])
    assert "4 h 10 min" in client.get("/gpus/GPU-idle").text


def test_a_stretch_ends_where_the_window_does(client: TestClient) -> None:
    (spell,) = client.get("/api/v1/gpus/GPU-idle", params={"last": "1h"}).json()["spells"]
    assert spell["end_ms"] - spell["start_ms"] == MS_PER_HOUR


def test_a_gpu_that_went_silent_says_since_when(client: TestClient) -> None:
    assert (
        "No samples since 2026-11-16 01:10 UTC, 1 h before the end of the window" in client.get("/gpus/GPU-acme").text
    )
    assert "No samples since" not in client.get("/gpus/GPU-idle").text
    assert "2026-11-15 22:00 to 2026-11-16 02:10 UTC" in client.get("/gpus/GPU-idle").text


def test_many_short_stretches_are_counted_not_listed(night: Path) -> None:
    live = LiveLake(night)
    live.refresh()
    gpu = live.gpu(Filters(), "GPU-idle")
    pauses = tuple(Spell("idle", at * MS_PER_HOUR, at * MS_PER_HOUR + 30 * MS_PER_S) for at in range(SHOWN + 7))
    table = spells_table(replace(gpu, history=replace(gpu.history, spells=pauses)))
    assert len(table.rows) == SHOWN
    assert table.rows[0][2].text == "30 s"
    assert table.note == "7 more stretches, none longer than 30 s."


def test_the_table_of_gpus_names_its_window_and_an_unknown_class(client: TestClient) -> None:
    page = client.get("/gpus").text
    assert "2026-11-15 22:00 to 2026-11-16 02:10 UTC" in page
    assert 'data-h="Class">unknown' in page
    assert "not known" not in page


def test_rejected_rows_name_their_file_and_reason(client: TestClient) -> None:
    page = client.get("/data").text
    assert "night.csv" in page
    assert "out of range" in page
    assert "DCGM_FI_DEV_POWER_USAGE" in page


def test_a_file_of_rejects_that_cannot_be_read_is_named(client: TestClient, night: Path) -> None:
    (night / "rejects" / "rejects-99.csv").write_bytes(b"file,row\n1,2,3\n")
    assert "rejects-99.csv" in client.get("/data?last=2h").text


def test_the_owners_asked_for_come_first(client: TestClient) -> None:
    page = client.get("/owners", params={"by": "user"}).text
    assert page.index("By user") < page.index("By namespace")


def test_owners_are_teams_where_any_has_a_name(client: TestClient) -> None:
    assert "by team and bucket" in client.get("/owners").text
    assert "by namespace and bucket" in client.get("/owners", params={"namespace": "edge"}).text


def test_the_window_of_anomalies_ends_with_the_samples(night: Path) -> None:
    found = gpuledger.open(night).anomalies().statement
    assert found.end_ms == int((EVENING + dt.timedelta(minutes=250)).timestamp() * 1000)
    assert found.slices == 2
