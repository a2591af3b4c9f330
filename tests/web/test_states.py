"""What is shown while a lake is old, half-written, gone, or ahead of the clock?"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import gpuledger
from gpuledger.errors import InputError, LakeError
from gpuledger.web import live_lake
from gpuledger.web.contract import Ask, Filters
from gpuledger.web.desk import FIRST, REST, Desk
from gpuledger.web.live_lake import LiveLake
from gpuledger.web.maker import MakerProcess, Start
from gpuledger.web.views import Views


@pytest.fixture
def own(tmp_path: Path, lake: Path) -> Path:
    """A lake to spoil."""
    return Path(shutil.copytree(lake, tmp_path / "lake"))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read is looked at again at once."""
    monkeypatch.setattr(live_lake, "RETRY_S", (0.0, 0.0))


def test_a_half_written_lake_is_an_error_until_it_is_whole(own: Path) -> None:
    shutil.rmtree(own / "ledger", ignore_errors=True)
    part = min((own / "samples").rglob("*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    live = LiveLake(own)
    assert live.refresh()
    assert live.status.state == "error"
    assert live.status.problem
    assert live.status.hint
    assert not live.refresh()  # the same problem is no news
    part.write_bytes(whole)
    assert live.refresh()
    assert (live.status.state, live.status.problem) == ("ready", "")


@pytest.mark.parametrize("name", ["manifest.json", "ledger/manifest.json"])
def test_a_lake_of_a_newer_version_says_to_upgrade(own: Path, name: str) -> None:
    gpuledger.open(own).analyze()  # posts
    written = json.loads((own / name).read_text())
    (own / name).write_text(json.dumps({**written, "version": 99}))
    live = LiveLake(own)
    live.refresh()
    assert live.status.state == "error"
    assert "upgrade" in live.status.hint


def test_books_of_an_older_version_are_posted_again(own: Path) -> None:
    gpuledger.open(own).analyze()
    manifest = own / "ledger" / "manifest.json"
    written = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**written, "version": 1}))
    live = LiveLake(own)
    live.refresh()
    assert live.status.state == "ready"


def test_a_lake_that_is_deleted_keeps_its_last_figures(own: Path) -> None:
    desk = Desk(Views(LiveLake(own)))
    assert desk.look()
    shown, edition = desk.kept(FIRST), desk.status.edition
    assert shown
    shutil.rmtree(own)
    assert desk.look()
    assert (desk.status.state, desk.status.edition) == ("ready", edition)
    assert desk.status.problem
    assert desk.kept(FIRST) == shown
    assert not desk.look()


def test_a_view_of_a_lake_that_is_gone_is_an_error_with_a_next_step(own: Path) -> None:
    views = Views(LiveLake(own))
    views.refresh()
    shutil.rmtree(own)
    with pytest.raises((LakeError, InputError)) as caught:
        views.view(Ask("page", "/", Filters(last="12h")))
    assert caught.value.hint


def test_samples_from_the_future_tell_of_clocks(tmp_path: Path) -> None:
    soon = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60 * m)) for m in range(10, 40)]
    rows = [f"{at},GPU-a,NVIDIA A100-SXM4-40GB,50,200" for at in soon]
    file = tmp_path / "ahead.csv"
    file.write_text("\n".join(["timestamp,UUID,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE", *rows]) + "\n")
    gpuledger.open(tmp_path / "lake").ingest(file)
    views = Views(LiveLake(tmp_path / "lake"))
    views.refresh()
    page = views.view(Ask("page", "/data")).body.decode()
    assert "min ahead" in page
    assert "check the clocks" in page


def test_pages_are_made_ahead_for_those_who_look(own: Path, fleet: Path) -> None:
    desk = Desk(Views(LiveLake(own)))
    desk.look()
    desk.make_rest()
    assert all(desk.kept(ask) for ask in REST)
    asked = Ask("page", "/gpus", Filters(last="24h"))
    assert desk.kept(asked) is None  # noted as looked at
    os.utime(own / "manifest.json")
    assert desk.look()
    assert desk.kept(asked)


# -- the process that makes the views


def _until(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("never")


@pytest.mark.scale
def test_a_maker_that_dies_is_started_again_and_nothing_is_lost(own: Path) -> None:
    maker = MakerProcess(Start(str(own)))
    try:
        maker.check()
        desk = Desk(maker)
        assert desk.look()
        shown, edition = desk.kept(FIRST), desk.status.edition
        os.kill(maker._process.pid, signal.SIGKILL)
        _until(desk.look)
        assert "ended" in desk.status.problem
        assert desk.kept(FIRST) == shown
        _until(desk.look)
        assert desk.status.problem == ""
        assert desk.status.edition > edition  # viewers look again
        assert desk.kept(FIRST)
    finally:
        maker.close()


def test_a_maker_leaves_no_process_behind(own: Path) -> None:
    maker = MakerProcess(Start(str(own)))
    maker.check()
    group = maker._process.pid
    maker.close()
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)


def test_a_maker_that_cannot_begin_says_why(tmp_path: Path) -> None:
    maker = MakerProcess(Start(str(tmp_path), inventory=(str(tmp_path / "none.csv"),)))
    with pytest.raises(InputError, match=r"none\.csv"):
        maker.check()
    assert maker._process.poll() is not None


def test_errors_pass_from_process_to_process(own: Path) -> None:
    maker = MakerProcess(Start(str(own)))
    try:
        maker.check()
        maker.refresh()
        with pytest.raises(InputError, match="3x"):
            maker.view(Ask("page", "/", Filters(last="3x")))
    finally:
        maker.close()
