"""How is a benchmark run from the barrier to the last line, so that nothing hangs and no request goes missing?"""

from __future__ import annotations

import contextlib
import datetime as dt
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from gpuledger.bench.crew import Done, Gone, LocalCrew, Message, Ready, Records, Task
from gpuledger.bench.load import Phase, plan
from gpuledger.bench.plan import Bench, check_bench, header
from gpuledger.bench.records import Request, Run
from gpuledger.bench.results import ResultWriter, read_run
from gpuledger.bench.telemetry import RunRecording, unpack
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.bench.ray_crew import RayCrew

LOOK_S = 0.25
SAID = 3


class Watch:
    """Progress of a run; each call does nothing unless it is overridden."""

    def started(self) -> None:
        """The barrier opened."""

    def answered(self, requests: int) -> None:
        """This many more requests ended."""


class _Running:
    """One run."""

    def __init__(self, bench: Bench, crew: LocalCrew | RayCrew, watch: Watch) -> None:
        self._bench, self._crew, self._watch = bench, crew, watch
        phases = plan(bench.load, len(bench.stations))
        self.plans: dict[str, tuple[Phase, ...]] = dict(zip((s.name for s in bench.stations), phases, strict=True))
        self._missing = {n: {o.request: None for p in ps for o in p.orders} for n, ps in self.plans.items()}
        self.opened: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        self.problems: dict[str, list[str]] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        self.found: dict[str, dict[str, Any]] = {}
        self.parts: list[tuple[str, bytes]] = []
        self._over: dict[str, str] = {}
        self._heard_s: dict[str, float] = {}
        self._unreachable: dict[str, str] = {}
        self.last_end_s = self.death_s = 0.0
        self._inbox: SimpleQueue[Message] = SimpleQueue()
        self._begun_s: float | None = None
        self.run_id = f"{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"

    def open(self) -> None:
        """Start the workers and bring them to the barrier; those that are late are left out."""
        bench = self._bench
        shared = secrets.token_hex(16)  # names a file that workers share on their machine: it must not be guessable
        tasks = [
            Task(
                node=s.name, target=bench.target, settings=dict(s.settings), phases=self.plans[s.name],
                timeout_s=bench.timeout_s, seed=f"{bench.load.seed}/{s.name}", run=shared,
                device=bench.device if bench.elsewhere else "", hz=bench.hz,
            )
            for s in bench.stations
        ]  # fmt: skip
        self._crew.start(tasks, self._inbox)
        deadline = time.monotonic() + bench.open_s
        while waiting := [n for n in self.plans if n not in self.opened and n not in self._over]:
            for message in self._messages():
                self._take(message, None)
            if time.monotonic() > deadline:
                for node in waiting:
                    self._give_up(node, f"it was not ready within {bench.open_s:g} s")
                return

    def check_reached(self) -> None:
        """Refuse to measure where no node can be reached: every request would fail."""
        found = self._unreachable
        if len(found) == len(self.plans):
            said = "; ".join(f"{node}: {found[node]}" for node in list(self.plans)[:SAID])
            more = f"; and {len(found) - SAID} more" if len(found) > SAID else ""
            what = "the endpoint" if len(found) == 1 else f"any of the {len(found)} endpoints"
            hint = "check host and port, and that the server runs: curl URL/v1/models"
            raise InputError(f"cannot reach {what}: {said}{more}", hint=hint)

    def carry_out(self, out: ResultWriter) -> float:
        """Let all start together and keep every answer; the seconds between the first and the last start signal."""
        ready = [n for n in self.plans if n in self.opened and n not in self._over]
        self._watch.started()
        self._begun_s = time.monotonic()
        spread_s = self._crew.go(ready)
        now = time.monotonic()
        self._heard_s = dict.fromkeys(ready, now)
        while any(n not in self._over for n in ready):
            looked = time.monotonic()
            for message in self._messages():
                self._take(message, out)
            now = time.monotonic()
            # While this process stood still or wrote to a slow disk it read no messages: the worker was not silent.
            deaf_s = max(0.0, now - looked - LOOK_S)
            for node in ready:
                self._heard_s[node] = min(now, self._heard_s[node] + deaf_s)
                if node not in self._over and now - self._heard_s[node] > self._bench.silent_s:
                    self._give_up(node, f"its worker was silent for {self._bench.silent_s:g} s and was ended")
        return spread_s

    def _messages(self) -> Iterator[Message]:
        with contextlib.suppress(Empty):
            yield self._inbox.get(timeout=LOOK_S)
            while True:
                yield self._inbox.get_nowait()

    def _take(self, message: Message, out: ResultWriter | None) -> None:
        node = message.node
        self._heard_s[node] = time.monotonic()
        if isinstance(message, Records) and out is not None:
            out.append(message.lines)
            for name in message.requests:
                self._missing[node].pop(name, None)
            self.last_end_s = max(self.last_end_s, message.last_end_s)
            self._watch.answered(len(message.requests))
        elif isinstance(message, Ready):
            self.opened[node] = (message.facts, message.machine)
            if message.problem:
                self.problem(node, message.problem)
            if message.unreachable:
                self._unreachable[node] = message.unreachable
        elif isinstance(message, Done):
            self.clients[node], self.found[node] = message.client, message.facts
            self.parts += message.telemetry
            self._over[node] = ""
        elif isinstance(message, Gone) and node not in self._over:
            self._end(node, message.why)

    def problem(self, node: str, words: str) -> None:
        """Keep a problem of a node, once."""
        if words not in self.problems.setdefault(node, []):
            self.problems[node].append(words)

    def _end(self, node: str, why: str) -> None:
        self.problem(node, why)
        self._over[node] = why
        self.broken_off()

    def broken_off(self) -> None:
        """Something ended early: the run lasted until now, not only until the last answer."""
        if self._begun_s is not None:
            self.death_s = time.monotonic() - self._begun_s

    def _give_up(self, node: str, why: str) -> None:
        self._end(node, why)
        self._crew.kill(node)

    def close(self, out: ResultWriter, interrupted: bool) -> None:
        """Write a line for every planned request that has none."""
        for node, names in self._missing.items():
            why = self._over.get(node) or ("the run was interrupted" if interrupted else "its worker ended early")
            nothing = Unknown("it was never answered")
            for name in names:
                out.write(
                    Request(
                        node, name, ok=False, lost=True, error=f"lost: {why}", start_s=nothing, ttft_s=nothing,
                        latency_s=nothing, input_tokens=nothing, output_tokens=nothing,
                    )
                )  # fmt: skip


def run_bench(bench: Bench, crew: LocalCrew | RayCrew | None = None, watch: Watch | None = None) -> Run:
    """Run it, write its results and read them back. An interrupt or SIGTERM ends it early and keeps its results."""
    check_bench(bench)
    with _asked_to_end():
        return _run(bench, crew or LocalCrew(), watch or Watch())


@contextlib.contextmanager
def _asked_to_end() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C: a run that its cluster ends keeps its results too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(bench: Bench, crew: LocalCrew | RayCrew, watch: Watch) -> Run:
    running, interrupted, spread_s = _Running(bench, crew, watch), False, 0.0
    with contextlib.ExitStack() as ending:
        ending.callback(crew.close)
        try:
            running.open()
        except KeyboardInterrupt:
            interrupted = True
        if not interrupted:
            running.check_reached()
        # Loading and warm-up are over: from here on the samples belong to the run.
        local = bench.target == "local_model"
        labels = {"workload": "bench"} if local else {}
        device = "" if bench.elsewhere else bench.device
        recording = RunRecording(bench.lake, device, bench.hz, labels, of_job=local)
        ending.callback(recording.stop)
        started = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        first = header(bench, running.plans, running.opened, recording.facts, started, running.run_id)
        with ResultWriter(bench.out, first) as out:
            try:
                if not interrupted:
                    spread_s = running.carry_out(out)
            except KeyboardInterrupt:
                interrupted = True
                running.broken_off()
            running.close(out, interrupted)
            recording.stop()
            _finish(bench, running, out, recording, spread_s, interrupted)
    return read_run(bench.out)


def _finish(
    bench: Bench, running: _Running, out: ResultWriter, recording: RunRecording, spread_s: float, interrupted: bool
) -> None:
    lake = recording.lake
    if running.parts:
        unpack(Lake(bench.lake), running.parts)
        lake = bench.lake
    elif bench.elsewhere and bench.device:
        lake = Unknown("no samples came back from the machines of the cluster")
    if recording.problem:
        running.problem("telemetry", recording.problem)
    where = {"telemetry": lake.name} if not isinstance(lake, Unknown) else {"unknown": {"telemetry": lake.why}}
    out.finish(
        round(max(running.last_end_s, running.death_s), 6),
        client=_client(running.clients),
        clients=running.clients,
        problems=running.problems,
        found=running.found,
        start_spread_s=round(spread_s, 6),
        interrupted=interrupted,
        **where,
    )


def _client(clients: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """All workers as one: the sum of their processor time, the worst lag, every complaint."""
    if not clients:
        return None
    limited = {n: c["why"] for n, c in clients.items() if c["bottleneck"]}
    whys = [f"{n}: {why}" for n, why in limited.items()] or sorted({str(c["why"]) for c in clients.values()})
    return {
        "cpu_s": round(sum(c["cpu_s"] for c in clients.values()), 6),
        "wall_s": max(c["wall_s"] for c in clients.values()),
        "max_lag_s": max(c["max_lag_s"] for c in clients.values()),
        "bottleneck": bool(limited),
        "why": "; ".join(whys),
    }
