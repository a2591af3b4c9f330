"""How does the dashboard do under many viewers? Missed updates, how long pages take, and the server's memory.

    python benchmarks/viewers.py [--viewers 200 1000] [--gpus 200] [--updates 6] [--json]

`gpuledger serve` runs as a process, as a user starts it. Each viewer does what a browser does: it holds a stream of
events open, fetches its page again at every edition after the wait the event names, and now and then looks at another
page. Meanwhile `gpuledger import` adds a part of a day at a time. An update is missed when a viewer's last page is
older than the last edition, or an edition never reached its stream. First pages, renewed ones and other looks are timed
apart: `first` begins as soon as the server is ready, while it still makes the pages behind the overview.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

PAGES = ("/", "/", "/", "/gpus", "/timeline", "/savings", "/owners", "/data")
LOOKS_EVERY_S = 20.0
EDITION = re.compile(rb'data-edition="(\d+)"')


def parts(folder: Path, gpus: int, updates: int) -> list[Path]:
    """A fleet in files: a first day, and then as many pieces of the second as there are updates."""
    write_fleet(FleetSpec(gpus=gpus, days=2), folder / "fleet", files="day")
    first, second = sorted((folder / "fleet").glob("*.parquet"))
    table = pq.read_table(second)
    stamp = next(name for name in table.column_names if "time" in name.casefold())
    table = table.take(pc.sort_indices(table, [(stamp, "ascending")]))
    made, size = [first], -(-table.num_rows // updates)
    for i in range(updates):
        piece = folder / f"piece-{i:02d}.parquet"
        pq.write_table(table.slice(i * size, size), piece)
        made.append(piece)
    return made


def command(*words: str) -> list[str]:
    """A command of gpuledger, run by this interpreter."""
    return [sys.executable, "-m", "gpuledger", *words]


@dataclass
class Seen:
    """What the viewers saw."""

    editions: list[list[int]] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    first_s: list[float] = field(default_factory=list)
    renewed_s: list[float] = field(default_factory=list)
    looked_s: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


async def fetch(port: int, path: str) -> tuple[float, int, bytes]:
    """One page: seconds, status, body."""
    start = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read(-1)
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return time.perf_counter() - start, int(head[9:12] or 0), body


class Viewer:
    """One browser: a stream of events, its page at every edition, and looks at other pages."""

    def __init__(self, number: int, port: int, seen: Seen) -> None:
        self.number, self.port, self.seen = number, port, seen
        self.chance, self.page = random.Random(number), PAGES[number % len(PAGES)]
        self.news: asyncio.Queue[float] = asyncio.Queue()

    async def stay(self, stop: asyncio.Event) -> None:
        """Look until told to stop."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        tasks = [asyncio.create_task(part) for part in (self._listen(reader), self._renew(), self._browse())]
        await stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            if line.startswith(b"data:"):
                told = json.loads(line[5:])
                if "edition" not in told:  # the server's clock
                    continue
                self.seen.editions[self.number].append(told["edition"])
                self.news.put_nowait(told["spread_ms"] / 1000)

    async def _renew(self) -> None:
        await self.news.get()
        await self._look(self.page, self.seen.first_s)
        while True:
            spread = await self.news.get()
            await asyncio.sleep(self.chance.random() * spread)
            await self._look(self.page, self.seen.renewed_s)

    async def _browse(self) -> None:
        while True:
            await asyncio.sleep(self.chance.random() * 2 * LOOKS_EVERY_S)
            await self._look(self.chance.choice(PAGES), self.seen.looked_s)

    async def _look(self, path: str, into: list[float]) -> None:
        try:
            took, answered, body = await fetch(self.port, path)
        except OSError as error:
            self.seen.failed.append(f"{path}: {error}")
            return
        into.append(took)
        if answered != 200:
            self.seen.failed.append(f"{path}: {answered}")
        elif found := EDITION.search(body):
            self.seen.pages[self.number] = max(self.seen.pages[self.number], int(found[1]))


class Memory:
    """The memory of a process and its children, looked at twice a second."""

    def __init__(self, pid: int) -> None:
        self._process, self._stop = psutil.Process(pid), threading.Event()
        self.mb: list[float] = []
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(0.5):
            try:
                family = [self._process, *self._process.children(recursive=True)]
                self.mb.append(sum(p.memory_info().rss for p in family) / 1e6)
            except psutil.Error:
                continue

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()


async def status(port: int) -> dict[str, object]:
    """How the server says it stands."""
    return json.loads((await fetch(port, "/api/v1/status"))[2])


async def measure(port: int, viewers: int, lake: Path, pieces: list[Path], gap_s: float) -> tuple[Seen, int, int]:
    """Open the viewers, add the pieces, wait until nothing is new; what was seen, and the first and last edition."""
    while (await status(port))["state"] == "loading":
        await asyncio.sleep(0.2)
    seen, stop = Seen([[] for _ in range(viewers)], [0] * viewers), asyncio.Event()
    tasks = []
    for i in range(viewers):
        tasks.append(asyncio.create_task(Viewer(i, port, seen).stay(stop)))
        await asyncio.sleep(0.01)  # a thousand people do not press Enter at once
    while not all(seen.pages):
        await asyncio.sleep(0.1)
    first = int(str((await status(port))["edition"]))
    for piece in pieces:
        words = command("import", str(piece), "--lake", str(lake), "--quiet")
        writer = await asyncio.create_subprocess_exec(*words)
        if await writer.wait():
            raise SystemExit(f"{piece.name} could not be imported")
        await asyncio.sleep(gap_s)
    last, waited = first, 0.0
    while waited < 60:
        last = int(str((await status(port))["edition"]))
        if all(page == last for page in seen.pages) and waited > 5:
            break
        await asyncio.sleep(0.5)
        waited += 0.5
    stop.set()
    await asyncio.gather(*tasks)
    return seen, first, last


def at(values: list[float], share: float) -> float:
    """A quantile in milliseconds."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] * 1000 if values else float("nan")


def times(name: str, values: list[float]) -> dict[str, object]:
    """How many there were, and how long they took."""
    return {name: len(values), f"{name}_p50_p95_p99_ms": [round(at(values, q)) for q in (0.5, 0.95, 0.99)]}


def run(viewers: int, gpus: int, updates: int, gap_s: float) -> dict[str, object]:
    """One server, and so many viewers of it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        first_day, *pieces = parts(folder, gpus, updates)
        lake = folder / "lake"
        subprocess.run(command("import", str(first_day), "--lake", str(lake), "--quiet"), check=True)
        server = subprocess.Popen(
            command("serve", "--lake", str(lake), "--port", "0", "--every", "0.5"), stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        found = re.search(r":(\d+)/", server.stdout.readline())
        assert found
        memory = Memory(server.pid)
        try:
            seen, first, last = asyncio.run(measure(int(found[1]), viewers, lake, pieces, gap_s))
        finally:
            memory.stop()
            server.terminate()
            server.wait()
    told = [sum(1 for e in range(first + 1, last + 1) if e not in got) for got in seen.editions]
    quarter = max(len(memory.mb) // 4, 1)
    return {
        "viewers": viewers, "gpus": gpus, "editions": last - first, "missed_events": sum(told),
        "stale_pages": sum(page != last for page in seen.pages), "failed": len(seen.failed), "why": seen.failed[:3],
        **times("first", seen.first_s), **times("renewed", seen.renewed_s), **times("looked", seen.looked_s),
        "memory_mb": [round(max(memory.mb[i : i + quarter])) for i in range(0, len(memory.mb), quarter)],
        "load_of_machine": round(os.getloadavg()[0], 1), "cores": os.cpu_count(),
    }  # fmt: skip


def main() -> None:
    """Print what was measured."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--viewers", type=int, nargs="+", default=[200, 1000])
    options.add_argument("--gpus", type=int, default=200)
    options.add_argument("--updates", type=int, default=6)
    options.add_argument("--gap", type=float, default=4.0, help="seconds between updates")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    for viewers in given.viewers:
        found = run(viewers, given.gpus, given.updates, given.gap)
        if given.json:
            print(json.dumps(found))
        else:
            print("\n".join(f"{name:24} {value}" for name, value in found.items()), end="\n\n")


if __name__ == "__main__":
    main()
