"""Does a real agent record, ship, survive and end as it should?"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from spools import START, keys, record, sealed_minutes, spool_at

import gpuledger
from gpuledger.agent.listening import Address, Listener, address_of, families
from gpuledger.agent.notes import AgentNotes, Loss, Why, forget_nameless, publish, read_agents, write_status
from gpuledger.agent.running import Agent, Settings
from gpuledger.cli.app import run
from gpuledger.devices.clock import Clock
from gpuledger.devices.device import Source
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.doors import from_scenario
from gpuledger.devices.replay.faults import LostGpu
from gpuledger.devices.replay.script import Scenario, Segment
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.live.exposition import text_of

DATA = Path(__file__).parents[1] / "data" / "h200_replay.csv.gz"
ENV = {**os.environ, "PYTHONPATH": str(Path(gpuledger.__file__).parents[1])}


class Running:
    """An agent in a process of its own."""

    def __init__(self, folder: Path, *more: str, env: dict[str, str] | None = None) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.spool, self.lake = folder / "spool", folder / "lake"
        command = [sys.executable, "-m", "gpuledger", "agent", "--json", "--device", f"replay:{DATA}", "--hz", "10"]
        command += ["--spool", str(self.spool), "--lake", str(self.lake), "--every", "1s"]
        command += ["--listen", f"127.0.0.1:{self.port}", *more]
        self.process = subprocess.Popen(
            command, env={**ENV, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def asked(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return str(answer.read().decode())

    def metric(self, name: str) -> float:
        found = re.search(rf"^gpuledger_agent_{name} (\S+)$", self.asked("/metrics"), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def until(self, done: Callable[[], object], seconds: float = 60.0) -> None:
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            assert self.process.poll() is None, self.process.communicate()
            try:
                if done():
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError("it took too long")

    def end(self) -> dict:
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return json.loads(out)


@pytest.fixture
def agent(tmp_path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(*more: str, env: dict[str, str] | None = None) -> Running:
        started.append(Running(tmp_path, *more, env=env))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


def test_it_records_ships_answers_and_is_asked_to_end(agent):
    """In a pod: the node's name is the host, and idle time is not billed to the agent's own pod."""
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAME": "agent-x7k2p", "POD_NAMESPACE": "gpuledger"}
    one = agent(env={**pod, "NODE_NAME": "node-7", "CLUSTER_NAME": "prod"})
    one.until(lambda: one.metric("shipped_samples_total") > 0)
    assert one.asked("/healthz") == "ok\n"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        one.asked("/other")
    second = subprocess.run(
        [sys.executable, "-m", "gpuledger", "agent", "--device", f"replay:{DATA}", "--spool", str(one.spool)],
        env=ENV, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert second.returncode == 2
    assert "another agent records into this spool" in second.stderr
    notes = one.end()
    assert (notes["state"], notes["host"], notes["waiting_rows"], notes["losses"]) == ("stopped", "node-7", 0, [])
    found = keys(Lake(one.lake))
    assert len(found) == len(set(found)) == notes["shipped_rows"] > 0
    rows = gpuledger.open(one.lake).samples().arrow().to_pylist()
    assert {(r["host"], r["cluster"], r["pod"], r["namespace"], r["workload"]) for r in rows} == {
        ("node-7", "prod", None, None, None)
    }
    (left,) = (one.lake / "agents").glob("node-7-*.json")
    assert json.loads(left.read_text())["shipped_rows"] == notes["shipped_rows"]


def test_killed_and_started_again_it_goes_on_and_loses_only_what_was_not_written(agent, tmp_path, capsys):
    (tmp_path / "lake").write_text("the lake is away")
    first = agent()
    first.until(lambda: first.metric("ship_failures_total") >= 1 and list(first.spool.glob("outbox/*")))
    assert first.asked("/healthz") == "ok\n"  # a restart would not bring the lake back
    first.until((first.spool / "status.json").exists)
    first.process.kill()
    first.process.communicate()
    assert run(["agent", "status", "--spool", str(first.spool)]) == 1
    assert "not recording: it ended without being stopped" in capsys.readouterr().out
    waiting = spool_at(first.spool)
    rows = sum(b.rows for b in waiting.batches()) + sum(p.rows for p in waiting.live.manifest().parts)
    assert rows > 0
    (tmp_path / "lake").unlink()
    again = agent()
    again.until(lambda: again.metric("shipped_samples_total") >= rows)
    notes = again.end()
    found = keys(Lake(again.lake))
    assert len(found) == len(set(found)) == notes["shipped_rows"] >= rows
    assert notes["waiting_rows"] == 0


class Flaky:
    """A driver of two GPUs: the first time one is lost, the second time it is missing, then both answer."""

    takes = ""

    def __init__(self) -> None:
        self.opened = 0

    def open(self, _rest: str, clock: Clock | None) -> Source:
        self.opened += 1
        busy = Scenario([Segment(600, power_w=300, gpu_util_ratio=1.0, sm_clock_mhz=1980)])
        faults = [LostGpu(at_s=0.6, gpu=1)] if self.opened == 1 else []
        return NvmlSource(from_scenario(busy, gpus=1 if self.opened == 2 else 2, faults=faults))


def test_a_lost_gpu_is_recorded_again_once_it_answers(tmp_path, monkeypatch):
    driver = Flaky()
    monkeypatch.setattr("gpuledger.devices.device.DEVICES.get", lambda _name: driver)
    monkeypatch.setattr("gpuledger.agent.running.TURN_S", 0.05)
    monkeypatch.setattr("gpuledger.agent.running.STATUS_S", 0.1)
    monkeypatch.setattr("gpuledger.agent.running.LOST_AGAIN_S", (0.2, 0.4))
    one = Agent(Settings(str(tmp_path / "lake"), tmp_path / "spool", hz=20, every_s=1, device="flaky"))
    done: list[AgentNotes] = []
    thread = threading.Thread(target=lambda: done.append(one.run()))
    thread.start()
    over = time.monotonic() + 60
    while thread.is_alive() and time.monotonic() < over and (driver.opened < 3 or one.unwell()):
        time.sleep(0.05)
    time.sleep(1.0)
    one.stop()
    thread.join(60)
    assert driver.opened == 3
    (last,) = done
    assert (last.waiting_rows, last.losses) == (0, ())
    table = gpuledger.open(tmp_path / "lake").samples().arrow().to_pylist()
    by_gpu = Counter(r["gpu_uuid"] for r in table)
    assert len(by_gpu) == 2
    assert min(by_gpu.values()) >= 15  # from before it was lost and from after


def notes(**changed) -> AgentNotes:
    given = {"host": "h", "state": "running", "at_ms": START, "started_ms": START, "lake": "/lake"} | changed
    return AgentNotes(**given)


@pytest.mark.parametrize(
    ("changed", "later_ms", "why"),
    [
        ({}, 0, ""),
        ({"last_sample_ms": START - 1000}, 1000, ""),
        ({"problem": "the lake is away"}, 1000, ""),
        ({"state": "stopped"}, 0, "stopped"),
        ({}, 61_000, "no sign of life for 61 s"),
        ({"last_sample_ms": START - 90_000}, 0, "no sample for 90 s"),
    ],
)
def test_when_it_is_unwell(changed, later_ms, why):
    assert why in notes(**changed).unwell(START + later_ms)
    assert bool(notes(**changed).unwell(START + later_ms)) == bool(why)


def test_an_unwell_agent_answers_503():
    with Listener(Address("127.0.0.1", 0), notes, lambda: "no GPU answers") as listener:
        with pytest.raises(urllib.error.HTTPError, match="503") as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{listener.port}/healthz", timeout=5)
        assert caught.value.read() == b"no GPU answers\n"
        caught.value.close()


def test_losses_are_in_the_metrics_by_reason_and_what_is_unknown_is_left_out():
    page = text_of(families(notes(losses=(Loss(Why.SPOOL_FULL, 7, 0, 1), Loss(Why.SPOOL_FULL, 5, 2, 3)))))
    assert 'gpuledger_agent_lost_samples_total{reason="spool_full"} 12' in page
    assert "last_ship_timestamp" not in page


@pytest.mark.parametrize("text", ["", "nine", "127.0.0.1:", "127.0.0.1:99999"])
def test_addresses_that_are_none(text):
    with pytest.raises(InputError, match="not an address"):
        address_of(text)


def test_addresses():
    assert address_of("0.0.0.0:9465") == Address("0.0.0.0", 9465)
    assert address_of("9465") == Address("127.0.0.1", 9465)
    assert address_of("[::1]:9465") == Address("::1", 9465)


class TestStatus:
    def test_of_this_host(self, tmp_path, capsys):
        now = time.time_ns() // 1_000_000
        spool = spool_at(tmp_path)
        record(spool, START, seconds=240)
        spool.seal()
        spool.lose(spool.batches(), Why.SPOOL_FULL)
        write_status(tmp_path, notes(at_ms=now, last_sample_ms=now - 3000))
        assert run(["agent", "status", "--spool", str(tmp_path)]) == 0
        said = capsys.readouterr().out
        assert "480 samples lost, 2026-01-20 00:00:00 to 00:03:59 UTC: the spool was full" in said
        write_status(tmp_path, notes(at_ms=now - 600_000))
        assert run(["agent", "status", "--spool", str(tmp_path), "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["unwell"] == ["h"]

    def test_after_another_process_has_shipped(self, tmp_path, capsys):
        """What an agent wrote before it ended is not what is there now."""
        now = time.time_ns() // 1_000_000
        spool, lake = spool_at(tmp_path / "spool"), tmp_path / "lake"
        sealed_minutes(spool, 2)
        spool.lose(spool.batches()[:1], Why.SPOOL_FULL)
        earlier = {"waiting_rows": 413, "losses": (Loss(Why.SPOOL_FULL, 7, 0, 1),), "problem": "the lake is away"}
        with spool.owned():  # the agent runs on
            write_status(spool.root, notes(at_ms=now, last_sample_ms=now, **earlier))
            assert run(["agent", "--once", "-q", "--spool", str(spool.root), "--lake", str(lake)]) == 0
            assert run(["agent", "status", "--spool", str(spool.root)]) == 0
            said = capsys.readouterr().out
        assert "h: recording" in said
        assert "0 samples waiting" in said
        assert "120 shipped" in said
        assert "120 samples lost" in said
        assert "cannot ship" not in said
        assert run(["agent", "status", "--lake", str(lake), "--json"]) == 0
        (there,) = json.loads(capsys.readouterr().out)["agents"]
        assert (there["waiting_rows"], there["shipped_rows"], there["state"]) == (0, 120, "running")

    def test_one_broken_file_does_not_hide_the_other_hosts(self, tmp_path, capsys):
        spool, lake = spool_at(tmp_path / "spool"), tmp_path / "lake"
        sealed_minutes(spool, 1)
        assert run(["agent", "--once", "--spool", str(spool.root), "--lake", str(lake), "-q"]) == 0
        publish(Lake(lake), notes(host="fresh", at_ms=time.time_ns() // 1_000_000))
        (lake / "agents" / "broken.json").write_text('{"host": 7')
        assert run(["agent", "status", "--lake", str(lake)]) == 1
        said = capsys.readouterr().out
        assert "fresh: 0 GPUs, last shipped" in said
        assert "broken.json: not the notes of an agent" in said
        assert "next: delete it" in said
        assert run(["agent", "status", "--lake", str(lake), "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
        assert [a["host"] for a in found["agents"]] == ["fresh"]
        assert len(found["unreadable"]) == 1

    def test_of_all_hosts_of_a_lake(self, tmp_path, capsys):
        spool = spool_at(tmp_path / "spool")
        sealed_minutes(spool, 1)
        lake = tmp_path / "lake"
        assert run(["agent", "--once", "--spool", str(spool.root), "--lake", str(lake), "-q"]) == 0
        assert run(["agent", "status", "--lake", str(lake)]) == 2
        now = time.time_ns() // 1_000_000
        publish(Lake(lake), notes(host="fresh", at_ms=now))
        assert run(["agent", "status", "--lake", str(lake)]) == 0
        publish(Lake(lake), notes(host="silent", at_ms=now - 3_600_000))
        assert run(["agent", "status", "--lake", str(lake)]) == 1
        assert re.search(r"silent for more than 15 min.*: silent$", capsys.readouterr().out, re.MULTILINE)

    def test_a_host_that_ships_every_hour_is_not_silent_before_that(self, tmp_path):
        now = time.time_ns() // 1_000_000
        hourly = notes(at_ms=now - 70 * 60_000, every_s=3600)
        assert not hourly.is_silent(now)
        assert hourly.is_silent(now + 90 * 60_000)
        assert notes(at_ms=now - 16 * 60_000).is_silent(now)

    def test_agents_of_one_host_keep_their_own_notes(self, tmp_path, capsys):
        """As sidecars do, whose host is the node: what each lost stays known."""
        lake, now = tmp_path / "lake", time.time_ns() // 1_000_000
        for lost in (1, 2):
            spool = spool_at(tmp_path / f"spool-{lost}")
            sealed_minutes(spool, 1 + lost)
            spool.lose(spool.batches()[:lost], Why.SPOOL_FULL)
            write_status(spool.root, notes(host="node-7", state="stopped", at_ms=now - 2 * 86_400_000))
            assert run(["agent", "--once", "-q", "--spool", str(spool.root), "--lake", str(lake)]) == 0
        found, _ = read_agents(Lake(lake))
        assert sorted((n.host, n.lost_rows) for n in found) == [("node-7", 120), ("node-7", 240)]
        publish(Lake(lake), notes(host="done", state="stopped", at_ms=now - 2 * 86_400_000))
        assert run(["agent", "status", "--lake", str(lake)]) == 0
        said = capsys.readouterr().out
        assert len(re.findall(r"node-7 \(spool [0-9a-f]{8}\): .* samples lost", said)) == 2
        assert "1 more agent stopped over a day ago, all samples shipped" in said
        assert "done" not in said

    def test_notes_of_an_older_agent_give_way(self, tmp_path):
        lake = Lake(tmp_path / "lake")
        publish(lake, notes(host="old"))
        publish(lake, notes(host="old", spool="0a1b2c3d"))
        publish(lake, notes(host="other"))
        forget_nameless(lake, "old")
        assert sorted((n.host, n.spool) for n in read_agents(lake)[0]) == [("old", "0a1b2c3d"), ("other", "")]

    def test_where_none_ever_ran(self, tmp_path, capsys):
        assert run(["agent", "status", "--spool", str(tmp_path)]) == 2
        assert "no agent has run" in capsys.readouterr().err


def test_once_ends_with_2_where_the_lake_is_away(tmp_path, capsys):
    spool = spool_at(tmp_path / "spool")
    sealed_minutes(spool, 1)
    (tmp_path / "lake").write_text("away")
    assert run(["agent", "--once", "--spool", str(spool.root), "--lake", str(tmp_path / "lake")]) == 2
    assert "next:" in capsys.readouterr().err
    assert len(spool.batches()) == 1


@pytest.mark.parametrize("wrong", [{"spool_max": 1000}, {"every_s": 0.1}, {"every_s": 7200}])
def test_settings_that_cannot_work(wrong, tmp_path):
    with pytest.raises(InputError):
        Settings(lake="l", spool=tmp_path, **wrong)
