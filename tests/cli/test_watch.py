"""Does gpuledger watch look, notify, keep quiet, and go on after it was killed?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from alert_fleets import write_samples
from gpuledger import settings
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake

FILE = '[alerts.receivers.log]\nkind = "file"\npath = "alerts.jsonl"\n'


@pytest.fixture
def lake(cli, monkeypatch, tmp_path):
    """One GPU of four stopped reporting; all of it long ago."""
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    found = Lake("lake")
    import_files(found, [write_samples(tmp_path / "s.csv", lambda gpu, m: None if gpu == 1 and m >= 100 else {})])
    Path(settings.FILE).write_text(FILE)
    yield found
    settings.use(None)


def keys(answer, part="firing"):
    return sorted(event["key"] for event in answer[part])


def logged():
    file = Path("alerts.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


WINDOW = "Window: 2026-01-20 01:00 to 2026-01-20 02:00 UTC."


def test_once_notifies_of_each_alert_once(cli, lake):
    ended = cli("watch", "--lake", "lake", "--once")
    assert (ended.code, ended.err) == (0, "")
    assert "CRITICAL  GPU stopped reporting: node-1/1, 19 min (limit 10 min)" in ended.out
    assert ended.out.endswith(f"2 alerts fire. {WINDOW}\n")
    assert sorted(e["key"] for e in logged()) == ["gpu_lost:GPU-1", "stale:lake"]
    again = cli("watch", "--lake", "lake", "--once")
    assert again.out == f"2 alerts fire. {WINDOW}\n"
    assert len(logged()) == 2
    assert all(len(line) <= 100 for line in ended.out.splitlines())


def test_recovery_is_reported_once(cli, lake, tmp_path):
    cli("watch", "--lake", "lake", "--once")
    import_files(lake, [write_samples(tmp_path / "more.csv", lambda _gpu, _minute: {}, first=120, minutes=5)])
    ended = cli("watch", "--lake", "lake", "--once")
    assert "recovered  GPU stopped reporting: node-1/1, recovered after" in ended.out
    cli("watch", "--lake", "lake", "--once")
    assert [e["what"] for e in logged() if e["rule"] == "gpu_lost"] == ["firing", "resolved"]


def test_json(cli, lake):
    found = cli("watch", "--lake", "lake", "--once", "--json").json()
    assert (found["v"], found["statement"]) == (1, "alerts")
    assert keys(found) == keys(found, "events") == ["gpu_lost:GPU-1", "stale:lake"]
    assert {box["receiver"]: box["delivered"] for box in found["receivers"]} == {"log": 2, "terminal": 2}
    listed = cli("watch", "--lake", "lake", "--list", "--json").json()
    assert (keys(listed), listed["events"]) == (["gpu_lost:GPU-1", "stale:lake"], [])


def test_dry_run_and_list_write_and_send_nothing(cli, lake):
    ended = cli("watch", "--lake", "lake", "--dry-run")
    assert ended.code == 0
    assert "would notify log (everyone) at once" in ended.out
    assert "Nothing was written or sent" in ended.out
    assert cli("watch", "--lake", "lake", "--list").out.startswith("0 alerts fire")
    assert not Path("lake/alerts").exists()
    assert logged() == []


def test_silence_and_its_end(cli, lake):
    assert cli("watch", "--lake", "lake", "--silence", "gpu_lost:*", "--for", "2h", "--why", "moving racks").code == 0
    cli("watch", "--lake", "lake", "--once")
    assert [e["key"] for e in logged()] == ["stale:lake"]
    listed = cli("watch", "--lake", "lake", "--list")
    assert "moving racks" in listed.out
    assert "critical (silenced)" in listed.out
    wrong = cli("watch", "--lake", "lake", "--end-silence", "gpu_lots:*")
    assert (wrong.code, "did you mean gpu_lost:*" in wrong.err) == (2, True)
    assert cli("watch", "--lake", "lake", "--end-silence", "gpu_lost:*").code == 0
    cli("watch", "--lake", "lake", "--once")
    assert sorted(e["key"] for e in logged()) == ["gpu_lost:GPU-1", "stale:lake"]


def test_a_rule_that_is_turned_off_and_other_limits(cli, lake):
    Path(settings.FILE).write_text(FILE + "[alerts.rules.stale]\non = false\n[alerts.rules.gpu_lost]\nfire = 60\n")
    found = cli("watch", "--lake", "lake", "--once", "--json").json()
    assert keys(found) == []


def test_a_receiver_that_is_down_is_reported_and_nothing_is_lost(cli, lake):
    text = '[alerts.receivers.hook]\nkind = "webhook"\nurl = "http://127.0.0.1:9/"\n'
    Path(settings.FILE).write_text(text)
    ended = cli("watch", "--lake", "lake", "--once")
    assert ended.code == 0
    assert "2 messages waiting" in ended.out
    assert "hook: 2 messages waiting: 127.0.0.1: Connection refused; next try at" in ended.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--once", "--list"), "different things to do"),
        (("--silence", "x:*"), "needs --for"),
        (("--for", "2h"), "belong to --silence"),
        (("--silence", "nmespace=x", "--for", "2h"), "no field of an alert is called 'nmespace'"),
        (("--once", "--every", "soon"), "not a length of time"),
    ],
)
def test_bad_input(cli, lake, args, words):
    ended = cli("watch", "--lake", "lake", *args)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert "next:" in ended.err


def test_bad_settings_and_no_lake(cli, lake):
    assert cli("watch", "--lake", "nowhere", "--once").code == 2
    Path(settings.FILE).write_text('[alerts.receivers.x]\nkind = "slak"\nurl = "http://h/"\n')
    ended = cli("watch", "--lake", "lake", "--once")
    assert (ended.code, "did you mean slack" in ended.err) == (2, True)


def test_show_lists_the_settings_of_alerts(cli, lake):
    found = {v["name"]: v["value"] for v in cli("config", "show", "--json").json()["values"]}
    assert found["alerts.receivers.log.kind"] == "file"
    assert found["alerts.rules.idle_held.fire"] == 30.0


@pytest.mark.scale
def test_killed_and_started_again_it_goes_on_and_ends_when_asked(cli, lake):
    def start():
        line = [sys.executable, "-m", "gpuledger", "watch", "--lake", "lake", "--every", "0.1s", "--json"]
        return subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=dict(os.environ))

    def until(done, process):
        deadline = time.monotonic() + 30
        while not done() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        assert done(), process.poll()

    first = start()
    until(lambda: len(logged()) == 2, first)
    second = cli("watch", "--lake", "lake", "--once")
    assert (second.code, "another gpuledger watch is running" in second.err) == (2, True)
    assert cli("watch", "--lake", "lake", "--list").code == 0
    first.send_signal(signal.SIGKILL)
    first.communicate()
    Path(settings.FILE).write_text(FILE + "[alerts.rules.stale]\non = false\n")
    process = start()
    until(lambda: len(logged()) == 3, process)
    out = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    out += process.communicate(timeout=20)[0]
    assert process.returncode == 0
    sent = [(e["key"], e["what"], e["ending"]) for e in logged()]
    assert sorted(sent[:2]) == [("gpu_lost:GPU-1", "firing", None), ("stale:lake", "firing", None)]
    assert sent[2] == ("stale:lake", "resolved", "rule off")
    assert "resolved" in [json.loads(line)["what"] for line in out.splitlines()]


def test_what_is_pending_counts_up_to_its_newest_sample(cli, lake):
    """Of old samples the time since then is not time beyond a limit."""
    settings = '[alerts.rules.gpu_lost]\nfor = "30d"\n'
    Path("gpuledger.toml").write_text(Path("gpuledger.toml").read_text() + settings)
    cli("watch", "--lake", "lake", "--once")
    found = cli("watch", "--lake", "lake", "--list", "--json").json()
    assert found["pending"]
    for one in found["pending"]:
        assert 0 <= one["for_ms"] < 30 * 86_400_000
        assert one["since_ms"] + one["for_ms"] < found["at_ms"]
