"""Small files of telemetry, and what must hold of a lake that any writer was killed over.

    python tests/s3_lakes.py          a process that forks a writer for every order: {"lake": ADDRESS, "files": [...]}

A writer that starts from nothing takes a second; a forked one is there at once, so it can be killed at every request.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.stores import lease
from gpuledger.ledger.day_writer import DAYS, HOURS, TABLES
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import Ledger
from gpuledger.ledger.tidying import Ages, tidy_lake
from gpuledger.units import MS_PER_DAY

DAY = 1_768_867_200_000
HERE = Path(__file__)


def write(file, *, devices=2, n=30, offset=0, days=2):
    """Telemetry of some GPUs on some days, `n` samples each from `offset` seconds on."""
    rows = [
        (DAY + d * 86_400_000 + (offset + i) * 1000, f"GPU-{g}", i / n, "NVIDIA A10G")
        for d in range(days)
        for g in range(devices)
        for i in range(n)
    ]
    at, uuid, util, model = zip(*rows, strict=True)
    pq.write_table(pa.table({"at_ms": at, "gpu_uuid": uuid, "gpu_util_ratio": util, "gpu_model": model}), file)
    return file


def sample_rows(lake):
    """All samples, read from their files: device and instant."""
    found = []
    for path in lake.paths(lake.manifest().parts):
        table = pq.read_table(path, columns=["gpu_uuid", "at_ms"], partitioning=None)
        found += zip(table["gpu_uuid"].to_pylist(), table["at_ms"].to_pylist(), strict=True)
    return found


def assert_whole(lake):
    """Every file that a manifest names is there and has the rows it says; no sample is there twice."""
    manifest, books = lake.manifest(), Ledger(lake).manifest()
    for part, path in zip(manifest.parts, lake.paths(manifest.parts), strict=True):
        assert pq.read_metadata(path).num_rows == part.rows
    for posted in books.days:
        for table in (*TABLES, DAYS, HOURS):
            for path in Ledger(lake).files_of(posted, table):
                assert pq.read_metadata(path).num_columns
    rows = sample_rows(lake)
    assert len(rows) == len(set(rows))
    return len(rows)


def lines_samples(lake):
    """How many samples the lines stand for."""
    return sum(day.samples for day in Ledger(lake).manifest().days)


def work(order):
    """What a writer does: import files one by one, then post; with `fold`, make day lines of the hours."""
    lease.LOST_S = order.get("lost_s", lease.LOST_S)
    lake = Lake(order["lake"])
    for file in order["files"]:
        import_files(lake, [Path(file)], processes=1)
        if order.get("post_each"):
            post_lake(lake, load_thresholds(None), processes=1)
    if order.get("fold"):
        tidy_lake(lake, load_thresholds(None), Ages(DAY + 30 * MS_PER_DAY, MS_PER_DAY))
    elif order.get("post", True):
        post_lake(lake, load_thresholds(None), processes=1)


class Writers:
    """The process that forks writers, from a test's side."""

    def __init__(self, env):
        paths = os.pathsep.join([str(HERE.parent), *sys.path])
        self.process = subprocess.Popen(
            [sys.executable, str(HERE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | env | {"PYTHONPATH": paths},
        )  # fmt: skip

    def start(self, **order):
        """The process id of a new writer."""
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def ended(self, pid):
        """Wait until a writer has ended; its exit status."""
        self.process.stdin.write(json.dumps({"wait": pid}) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self):
        """End it."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def say(number):
    """Answer the test."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def main():
    """Fork a writer for every order on the input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            say(os.waitstatus_to_exitcode(status))
            continue
        pid = os.fork()
        if pid == 0:
            try:
                os.environ.update(order.get("env", {}))
                work(order)
                os._exit(0)
            except BaseException as error:  # noqa: BLE001
                print(repr(error), file=sys.stderr, flush=True)  # noqa: T201
                os._exit(1)
        say(pid)


if __name__ == "__main__":
    main()
