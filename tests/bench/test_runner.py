"""Does a run account for every request, whatever happens to its workers and endpoints, and never hang?"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from gpuledger.bench.crew import Done, LocalCrew, Ready, Records, how_it_ended
from gpuledger.bench.load import Load
from gpuledger.bench.plan import Bench, Station
from gpuledger.bench.records import Node
from gpuledger.bench.results import read_run
from gpuledger.bench.runner import Watch, run_bench
from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.recording.runs import read_runs
from gpuledger.testing.openai_script import ServerFault, ServerScript
from gpuledger.testing.openai_server import OpenAiServer
from gpuledger.units import Unknown

REPLAY = f"replay:{Path(__file__).parents[1] / 'data' / 'h200_replay.csv.gz'}"
STEADY = ServerScript(ttft_s=0.01, per_token_s=0.001, tokens=8)
# Answers some and then none: a worker that asks it is in the middle of its work whenever a signal comes.
ENDLESS = msgspec.structs.replace(STEADY, faults=(ServerFault("stall", after=30),))


def bench(tmp_path, stations, load, **more):
    made = tuple(Station(name, {"url": url} if isinstance(url, str) else url) for name, url in stations.items())
    return Bench("openai_http", made, load, tmp_path / "r.jsonl", **{"device": "", "timeout_s": HUNG_S, **more})


def by_node(run, kind):
    return dict(Counter(r.node for r in run.measured if kind(r)))


class KillAfter(Watch):
    """Sends a signal to a worker once so many answers came in all."""

    def __init__(self, crew, node, after, number=signal.SIGKILL):
        self.crew, self.node, self.left, self.number = crew, node, after, number

    def answered(self, requests):
        self.left -= requests
        if self.left <= 0 and self.node:
            os.kill(self.crew.pids[self.node], self.number)
            self.node = ""


def test_one_killed_one_slow_one_dropping_streams(tmp_path):
    """Four workers: nothing hangs and every planned request has exactly one line."""
    crew = LocalCrew()
    slow = ServerScript(ttft_s=0.05, per_token_s=0.005, tokens=8)
    dropping = ServerScript(ttft_s=0.01, per_token_s=0.001, tokens=8, faults=(ServerFault("drop", share=0.2),))
    with contextlib.ExitStack() as open_servers:
        nodes = {
            name: open_servers.enter_context(OpenAiServer(script)).url
            for name, script in {"good": STEADY, "killed": ENDLESS, "slow": slow, "drops": dropping}.items()
        }
        load = Load(requests=120, concurrency=4, output_tokens=8, warmup=2)
        begun = time.monotonic()
        run = run_bench(bench(tmp_path, nodes, load), crew, KillAfter(crew, "killed", 60))
    assert time.monotonic() - begun < HUNG_S
    assert run.ended
    assert run.faults == ()
    assert run.planned == dict.fromkeys(nodes, 120)
    assert by_node(run, lambda _: True) == run.planned
    for node in nodes:
        assert {r.request for r in run.measured if r.node == node} == set(range(120))
    ok = by_node(run, lambda r: r.ok)
    assert (ok["good"], ok["slow"]) == (120, 120)
    lost = by_node(run, lambda r: r.lost)
    assert set(lost) == {"killed"}
    assert ok.get("killed", 0) + lost["killed"] == 120
    assert lost["killed"] >= 90
    assert {r.error for r in run.measured if r.lost} == {"lost: its worker was killed by SIGKILL"}
    assert run.problems["killed"] == ("its worker was killed by SIGKILL",)
    broken = [r for r in run.measured if r.node == "drops" and not r.ok]
    assert 8 <= len(broken) <= 45
    assert {r.error for r in broken} == {"the connection was closed in the middle of the answer"}
    assert all(r.output_tokens == 4 for r in broken)
    assert not any(r.lost for r in broken)
    assert run.wall_s >= max(r.end_s for r in run.measured if not isinstance(r.end_s, Unknown)) - 1e-3
    assert {r.warmup for r in run.requests if r.start_s and r.start_s < 0} == {True}
    warmed = Counter(r.node for r in run.requests if r.warmup)
    assert {n: warmed[n] for n in nodes if n != "killed"} == {"good": 2, "slow": 2, "drops": 2}


def test_a_worker_that_hangs_is_given_up(tmp_path):
    crew = LocalCrew()
    with OpenAiServer(STEADY) as good, OpenAiServer(ENDLESS) as endless:
        load = Load(requests=60, concurrency=2, output_tokens=8)
        made = bench(tmp_path, {"a": good.url, "hangs": endless.url}, load, silent_s=6.0)
        run = run_bench(made, crew, KillAfter(crew, "hangs", 10, signal.SIGSTOP))
    assert by_node(run, lambda r: r.ok)["a"] == 60
    assert by_node(run, lambda r: r.lost)["hangs"] > 0
    assert "was silent for 6 s" in run.problems["hangs"][0]
    assert by_node(run, lambda _: True) == {"a": 60, "hangs": 60}


class OneAnswer:
    """A worker that answers once, and ends when it is told to."""

    def start(self, _tasks, inbox):
        self.inbox, self.given_up = inbox, []
        inbox.put(Ready("a", {}, {}))

    def go(self, _nodes):
        self.inbox.put(Records("a", (0,), b'{"node": "a", "request": 0, "ok": true}\n', 0.1))
        return 0.0

    def end(self):
        client = {"cpu_s": 0.1, "wall_s": 1.0, "max_lag_s": 0.0, "bottleneck": False, "why": ""}
        self.inbox.put(Done("a", client))

    def kill(self, node):
        self.given_up.append(node)

    def close(self):
        pass


def test_a_worker_is_not_given_up_for_what_the_runner_slept_through(tmp_path):
    crew = OneAnswer()

    class Sleeps(Watch):
        def answered(self, requests):
            time.sleep(1.5)  # the machine stands still; the worker's next word comes after that
            threading.Timer(0.3, crew.end).start()

    made = bench(tmp_path, {"a": "http://127.0.0.1:1"}, Load(requests=1), silent_s=1.0)
    run = run_bench(made, crew, Sleeps())
    assert crew.given_up == []
    assert run.problems == {}


def test_endpoints_that_are_down_or_stall_still_give_results(tmp_path):
    stall = ServerScript(faults=(ServerFault("stall", times=2),))
    with OpenAiServer(stall) as stalls:
        load = Load(requests=20, concurrency=4, output_tokens=8)
        run = run_bench(bench(tmp_path, {"down": "http://127.0.0.1:1", "stalls": stalls.url}, load, timeout_s=2.0))
    ok = by_node(run, lambda r: r.ok)
    assert set(ok) == {"stalls"}
    assert ok["stalls"] <= 18
    assert by_node(run, lambda _: True) == {"down": 20, "stalls": 20}
    assert {r.error for r in run.measured if r.node == "down"} == {"cannot connect: connection refused"}
    late = {r.error for r in run.measured if r.node == "stalls" and not r.ok}
    assert late - {"cannot connect within 2 s"} == {"no whole answer within 2 s"}
    assert "does not list its models" in run.problems["down"][0]
    assert run.more["clients"]["down"]["bottleneck"] is False


def test_workers_start_together_and_open_loops_keep_their_times(tmp_path):
    begun = time.monotonic()
    with OpenAiServer(ServerScript(ttft_s=1.0)) as a:
        load = Load(requests=40, rate_per_s=100.0, output_tokens=4, seed=2)
        run = run_bench(bench(tmp_path, {"a": a.url, "b": a.url}, load))
    assert 0 < run.more["start_spread_s"] < time.monotonic() - begun
    assert run.more["load"]["kind"] == "poisson"
    assert all(r.ok for r in run.measured)
    for node in ("a", "b"):
        own = [r for r in run.measured if r.node == node]
        late = [r.start_s - r.more["due_s"] for r in own]
        assert min(late) > -0.002
        assert 0 <= run.more["clients"][node]["p95_late_s"] <= max(late) + 1e-3
        # Sent when due, not when the one before was answered: many are under way at once.
        at_once = [sum(other.start_s <= r.start_s < other.end_s for other in own) for r in own]
        assert max(at_once) >= 5


def test_a_sweep_marks_its_batches_and_its_warm_up(tmp_path):
    with OpenAiServer(STEADY) as a:
        run = run_bench(bench(tmp_path, {"a": a.url}, Load(batches=(1, 3), rounds=2, warmup=1, output_tokens=4)))
    assert Counter(r.batch for r in run.measured) == {1: 2, 3: 6}
    assert Counter(r.batch for r in run.requests if r.warmup) == {1: 1, 3: 3}
    first, second = ([r for r in run.measured if r.batch == b] for b in (1, 3))
    assert max(r.end_s for r in first) <= min(r.start_s for r in second)


def test_telemetry_lies_beside_the_run_and_the_header_says_on_what_it_ran(tmp_path):
    with OpenAiServer(ServerScript(ttft_s=0.3)) as a:
        load = Load(requests=4, concurrency=1, output_tokens=4)
        run = run_bench(bench(tmp_path, {"a": a.url}, load, device=REPLAY, hz=20.0, baseline=None))
    assert run.telemetry == "r.lake"
    (notes,) = read_runs(Lake(run.telemetry_dir))
    assert notes.state == "done"
    assert notes.rows == sum(p.rows for p in Lake(run.telemetry_dir).manifest().parts) >= 1
    assert notes.ticks + notes.skipped_ticks <= 20.0 * notes.seconds + 2
    assert run.nodes["a"].gpu == "NVIDIA H200"
    assert run.nodes["a"].gpus == 1
    assert run.nodes["a"].more["gpu_from"] == "driver"
    assert run.more["machine"]["driver"] == "NVIDIA 580.159.04"
    assert run.more["machine"]["versions"]["gpuledger"]


def test_cards_that_are_told_or_cannot_be_known(tmp_path):
    with OpenAiServer("quick") as a:
        stations = (Station("a", {"url": a.url}, Node("NVIDIA A30", 2)), Station("b", {"url": a.url}))
        load = Load(requests=3, output_tokens=2)
        run = run_bench(Bench("openai_http", stations, load, tmp_path / "r.jsonl", device=REPLAY))
    assert (run.nodes["a"].gpu, run.nodes["a"].gpus) == ("NVIDIA A30", 2)
    assert "2 nodes share the 1 GPU of this machine" in run.nodes["b"].gpu.why


def test_functions_run_in_processes_of_their_own(tmp_path, monkeypatch):
    (tmp_path / "served_here.py").write_text(
        "import os, time\ndef answer(output_tokens, request):\n    print('noise')\n    time.sleep(0.03)\n"
        "    if request == 5: os._exit(3)\n    return {'output_tokens': output_tokens, 'pid': os.getpid()}\n"
    )
    monkeypatch.chdir(tmp_path)
    stations = tuple(Station(f"w{i}", {"callable": "served_here:answer"}) for i in range(2))
    load = Load(requests=10, concurrency=1, output_tokens=7)
    run = run_bench(Bench("python_callable", stations, load, tmp_path / "r.jsonl", device=""))
    ok = [r for r in run.measured if r.ok]
    assert len({r.more["pid"] for r in ok}) == 2
    assert all(r.output_tokens == 7 for r in ok)
    # Both die at their sixth request; what was not reported by then is lost, and said.
    assert Counter(r.node for r in run.measured) == {"w0": 10, "w1": 10}
    assert {r.error for r in run.measured if r.lost} == {"lost: its worker ended with exit code 3"}
    assert sum(r.lost for r in run.measured) >= 10


def test_a_target_that_cannot_be_opened_loses_its_requests_and_says_why(tmp_path):
    stations = (Station("w", {"callable": "nowhere_at_all:f"}),)
    run = run_bench(Bench("python_callable", stations, Load(requests=3), tmp_path / "r.jsonl", device=""))
    assert all(r.lost for r in run.measured)
    assert len(run.measured) == 3
    assert "No module named" in run.problems["w"][0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_with_what_there_is(tmp_path, number):
    before = signal.getsignal(signal.SIGTERM)
    # A test run in the background may have inherited that Ctrl-C is ignored; whoever presses it has not.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)

    class Interrupted(Watch):
        def answered(self, requests):
            os.kill(os.getpid(), number)

    with OpenAiServer(STEADY) as a:
        threads = threading.active_count()
        try:
            run = run_bench(bench(tmp_path, {"a": a.url}, Load(requests=500, output_tokens=8)), watch=Interrupted())
        finally:
            signal.signal(signal.SIGINT, inherited)
        deadline = time.monotonic() + HUNG_S
        while threading.active_count() > threads and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threading.active_count() <= threads
    assert signal.getsignal(signal.SIGTERM) == before
    assert run.more["interrupted"] is True
    assert len(run.measured) == 500
    assert {r.error for r in run.measured if r.lost} == {"lost: the run was interrupted"}
    assert read_run(tmp_path / "r.jsonl") == run


def test_what_cannot_be_run_is_refused_first(tmp_path):
    one = {"a": "http://127.0.0.1:1"}
    with pytest.raises(InputError, match="nothing to benchmark"):
        run_bench(bench(tmp_path, {}, Load()))
    twice = Bench("openai_http", (Station("a", {}), Station("a", {})), Load(), tmp_path / "r.jsonl")
    with pytest.raises(InputError, match="two nodes are called 'a'"):
        run_bench(twice)
    with pytest.raises(InputError, match="timeout is 0"):
        run_bench(bench(tmp_path, one, Load(), timeout_s=0.0))
    with pytest.raises(InputError, match="no such file"):
        run_bench(bench(tmp_path, one, Load(), baseline="nowhere.jsonl"))
    (tmp_path / "r.jsonl").write_text("")
    with pytest.raises(InputError, match="exists already"):
        run_bench(bench(tmp_path, one, Load()))


def test_words_for_ends():
    assert how_it_ended(3) == "its worker ended with exit code 3"
    assert how_it_ended(-9) == "its worker was killed by SIGKILL"
    assert how_it_ended(-99) == "its worker was killed by signal 99"
