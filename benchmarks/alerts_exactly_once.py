"""Does every alert arrive exactly once while the watcher and the receiver are killed at random?

    python benchmarks/alerts_exactly_once.py --events 10000

Three real processes: a watcher (the one gpuledger watch runs, with scripted measurements instead of a lake), a webhook
receiver, and this one, which kills the two with SIGKILL at random instants and starts them again. The receiver also
answers 500, dies before it has recorded a message, and dies after it has recorded one but before it has answered.

Delivery is at least once with an id that never changes; the receiver drops ids it has. Both together are exactly once,
and that is what is counted: ids of the journal against ids the receiver recorded. A file of JSON lines is written at
the same time: nobody drops repetitions there, so each id must be in it once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

BATCH = 50
RULE = "scripted"
# Of every message the receiver gets: how often it dies before and after recording it, and how often it answers 500.
DIES_BEFORE, DIES_AFTER, ANSWERS_500 = 0.01, 0.01, 0.02


def run_receiver(folder: Path, port: int, seed: int) -> None:
    """A webhook receiver that drops ids it has; a line of its file is synced before it answers."""
    record, asked = folder / "received.txt", os.open(folder / "asked.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    text = record.read_text() if record.exists() else ""
    known = set(text.split())
    out = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    if text and not text.endswith("\n"):
        os.write(out, b"\n")
    chance = random.Random(seed)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            name = self.headers["Idempotency-Key"]
            assert json.loads(body)["id"] == name
            os.write(asked, f"{name}\n".encode())
            roll = chance.random()
            if roll < DIES_BEFORE:
                os._exit(1)
            if roll < DIES_BEFORE + ANSWERS_500:
                self._answer(500)
                return
            if name not in known:
                os.write(out, f"{name}\n".encode())
                os.fsync(out)
                known.add(name)
            if roll > 1 - DIES_AFTER:
                os._exit(1)
            self._answer(200)

        def _answer(self, code: int) -> None:
            self.send_response(code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    with HTTPServer(("127.0.0.1", port), Handler) as server:
        (folder / f"ready-{os.getpid()}").touch()
        server.serve_forever()


def run_watcher(folder: Path, events: int) -> None:
    """The watcher, with measurements that follow from what the journal holds: batch by batch, begun and then over."""
    from gpuledger import settings
    from gpuledger.live.alerts.deciding import Instant, Looked
    from gpuledger.live.alerts.journal import Journal
    from gpuledger.live.alerts.limits import AlertSettings, Limits
    from gpuledger.live.alerts.rule import Reading, Rule, Subject
    from gpuledger.live.alerts.watcher import Look, Watcher

    settings.use(folder / "gpuledger.toml")
    journal = Journal(folder / "alerts")
    rule = Rule(RULE, "Scripted", "count", "nothing", lambda _seen: ())
    limits, keys = Limits(on=True, severity="warning", fire=1.0, clear=0.0), events // 2

    def see(_settings: AlertSettings, now_ms: int) -> Look:
        select = "SELECT count(*) FROM events WHERE what = 'firing'"
        done = journal.db.execute(select).fetchone()[0]
        bad = dict.fromkeys(range(done, min(done + BATCH, keys)), 1.0)
        good = dict.fromkeys(range(max(0, done - BATCH), done), 0.0)
        readings = tuple(
            Reading(Subject("gpu", f"GPU-{n}", f"gpu {n}"), value, now_ms) for n, value in (bad | good).items()
        )
        return Look(Instant(now_ms, now_ms), (Looked(rule, limits, readings),), frozenset())

    with journal.deciding():
        watcher = Watcher(journal, see)
        (folder / f"ready-{os.getpid()}").touch()
        watcher.run(100)


def write_settings(folder: Path, port: int) -> None:
    """Two receivers: the webhook and the file."""
    (folder / "gpuledger.toml").write_text(
        '[alerts.delivery]\ntimeout = "2s"\nfirst_wait = "0.02s"\nlongest_wait = "0.2s"\n'
        f'[alerts.receivers.hook]\nkind = "webhook"\nurl = "http://127.0.0.1:{port}/"\n'
        f"[alerts.receivers.log]\nkind = \"file\"\npath = '{folder / 'alerts.jsonl'}'\n"
    )


class Chaos:
    """Keeps two processes running by starting them again, and kills them at random."""

    def __init__(self, folder: Path, events: int, seed: int, kill_s: tuple[float, float]) -> None:
        self.chance = random.Random(seed)
        self.folder, self.kill_s = folder, kill_s
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        write_settings(folder, port)
        me, common = [sys.executable, __file__], ["--folder", str(folder), "--events", str(events)]
        self._commands = {
            "watcher": lambda: [*me, "--role", "watcher", *common],
            "receiver": lambda: [*me, "--role", "receiver", "--port", str(port), "--seed",
                                 str(self.chance.randrange(1 << 30)), *common],
        }  # fmt: skip
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.kills: Counter[str] = Counter()
        self._ends: dict[int, float] = {}

    def _lived(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether its time is over; that starts when it is ready."""
        if process.pid not in self._ends and (self.folder / f"ready-{process.pid}").exists():
            self._ends[process.pid] = time.monotonic() + self.chance.uniform(*self.kill_s)
        return time.monotonic() > self._ends.get(process.pid, float("inf"))

    def step(self, most: int | None) -> None:
        """Start what is not running; kill what has lived long enough, each at most this often."""
        for name, command in self._commands.items():
            process = self.running.get(name)
            if process is None or process.poll() is not None:
                if process is not None and process.returncode not in {-signal.SIGKILL, 1}:
                    raise SystemExit(f"{name} ended by itself with {process.returncode}")
                self.kills[f"{name} died"] += process is not None and process.returncode == 1
                self.running[name] = subprocess.Popen(command())
            elif (most is None or self.kills[f"{name} killed"] < most) and self._lived(process):
                process.send_signal(signal.SIGKILL)
                process.wait()
                self.kills[f"{name} killed"] += 1

    def end(self) -> None:
        """Kill both for good."""
        for process in self.running.values():
            process.kill()
            process.wait()


def waiting(folder: Path, events: int) -> int:
    """How many messages are still to be made or delivered."""
    file = folder / "alerts" / "journal.sqlite"
    if not file.exists():
        return 2 * events
    with sqlite3.connect(file, timeout=30) as db:
        try:
            (made,) = db.execute("SELECT count(*) FROM events").fetchone()
            (left,) = db.execute("SELECT count(*) FROM outbox WHERE state = 'waiting'").fetchone()
        except sqlite3.OperationalError:  # the tables are about to be made
            return 2 * events
    return 2 * (events - int(made)) + int(left)


def counted(folder: Path, events: int) -> dict[str, int]:
    """What was lost and what was doubled, of both receivers."""
    with sqlite3.connect(folder / "alerts" / "journal.sqlite") as db:
        made = {name for (name,) in db.execute("SELECT id FROM events")}
        alerts = db.execute("SELECT count(*) FROM (SELECT DISTINCT key, incident, what FROM events)").fetchone()[0]
    received = Counter((folder / "received.txt").read_text().split())
    lines = Counter(json.loads(line)["id"] for line in (folder / "alerts.jsonl").read_text().splitlines())
    asked = Counter((folder / "asked.txt").read_text().split())
    return {
        "events": len(made),
        "events_expected": events,
        "alerts_made_twice": len(made) - alerts,
        "webhook_lost": len(made - received.keys()),
        "webhook_doubled": sum(received.values()) - len(received),
        "webhook_unexpected": len(received.keys() - made),
        "file_lost": len(made - lines.keys()),
        "file_doubled": sum(lines.values()) - len(lines),
        "requests": sum(asked.values()),
        "requests_repeated": sum(asked.values()) - len(asked),
    }


def main() -> None:
    """Run it and print what was counted; exit 1 if anything was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit-s", type=float, default=900.0, help="give up after this long")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--kill-s", type=float, nargs=2, default=(0.02, 2.0), help="how long a process lives, at random"
    )
    parser.add_argument("--kills", type=int, help="let each process live once it was killed this often")
    for name in ("--role", "--folder", "--port"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.role == "watcher":
        run_watcher(Path(given.folder), given.events)
    elif given.role == "receiver":
        run_receiver(Path(given.folder), int(given.port), given.seed)
    else:
        orchestrate(given)


def orchestrate(given: argparse.Namespace) -> None:
    """Start, kill, wait until nothing is left, count."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, began = Path(temporary), time.monotonic()
        chaos = Chaos(folder, given.events, given.seed, tuple(given.kill_s))
        try:
            while waiting(folder, given.events) and time.monotonic() - began < given.limit_s:
                chaos.step(given.kills)
                time.sleep(0.05)
        finally:
            chaos.end()
        found = {**counted(folder, given.events), **chaos.kills, "seconds": round(time.monotonic() - began)}
    if given.json:
        print(json.dumps(found))
    else:
        print("\n".join(f"{name.replace('_', ' '):20} {value:>8,}" for name, value in found.items()))
    wrong = [n for n in found if n.endswith(("_lost", "_doubled", "_unexpected", "_twice")) and found[n]]
    sys.exit(1 if wrong or found["events"] != given.events else 0)


if __name__ == "__main__":
    main()
