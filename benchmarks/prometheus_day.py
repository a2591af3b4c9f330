"""How long does the import of a day of a fleet from a real Prometheus take, killed on the way and resumed?

Writes a day of the synthetic fleet as OpenMetrics text, makes blocks of it with promtool, serves them with Prometheus,
imports them with the command a user runs, kills that (SIGKILL) after a few windows, runs it again, and compares the
statement with that of a direct import of the same samples. Needs Prometheus: apt-get install prometheus.

    python benchmarks/prometheus_day.py [--gpus 50] [--step 10] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gpuledger
from gpuledger.telemetry.synthetic import FleetSpec, batches, write_fleet

LABELS = {
    "UUID": "UUID", "MODELNAME": "modelName", "HOSTNAME": "Hostname", "NAMESPACE": "namespace", "POD": "pod",
    "CONTAINER": "container", "CLUSTERNAME": "cluster", "CLOUDREGION": "region", "NODEGROUP": "node_group",
}  # fmt: skip
WINDOW = ("--since", "2026-01-20", "--until", "2026-01-21")
KILL_AFTER_WINDOWS = 3


def main() -> None:
    """Run it and print the figures."""
    options = argparse.ArgumentParser()
    options.add_argument("--gpus", type=int, default=50)
    options.add_argument("--step", type=float, default=10.0)
    options.add_argument("--keep", type=Path)
    wanted = options.parse_args()
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        sys.exit("Prometheus is not installed: apt-get install prometheus")
    folder = wanted.keep or Path(tempfile.mkdtemp(prefix="prometheus-day-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        run(FleetSpec(gpus=wanted.gpus, days=1.0, step_s=wanted.step), folder)
    finally:
        if not wanted.keep:
            shutil.rmtree(folder, ignore_errors=True)


def run(spec: FleetSpec, folder: Path) -> None:
    """The whole way: make, serve, import, kill, resume, compare."""
    export, data = folder / "fleet.parquet", folder / "data"
    if not data.exists():
        with timed("write the export"):
            write_fleet(spec, export)
        with timed("write OpenMetrics text"):
            points = write_openmetrics(spec, folder / "fleet.om")
        print(f"{points:,} points, {(folder / 'fleet.om').stat().st_size / 1e9:.1f} GB of text")
        with timed("make blocks (promtool)"):
            command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "fleet.om"), str(data)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (folder / "fleet.om").unlink()
    shutil.rmtree(folder / "lake", ignore_errors=True)
    shutil.rmtree(folder / "direct", ignore_errors=True)
    with serving(data, folder) as address:
        with timed("import, killed on the way"):
            killed(address, folder / "lake")
        with timed("import, resumed"):
            said = subprocess.run(importing(address, folder / "lake"), check=True, capture_output=True).stdout
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"resumed: {json.loads(said)['rows_added']:,} rows added, {json.loads(said)['rows_duplicate']:,} again")
    print(f"largest child process (Prometheus, promtool or the import): {peak:.0f} MiB")
    with timed("direct import of the same samples"):
        direct = gpuledger.open(folder / "direct")
        direct.ingest(export)
    ours = gpuledger.open(folder / "lake")
    same = ours.analyze().to_dict() == direct.analyze().to_dict()
    same &= ours.audit(prices=2).to_dict() == direct.audit(prices=2).to_dict()
    print("the statements are the same" if same else "THE STATEMENTS DIFFER")
    if not same:
        sys.exit(1)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long something took."""
    start = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - start:.1f} s", flush=True)


def write_openmetrics(spec: FleetSpec, file: Path) -> int:
    """The fleet as OpenMetrics text, one metric after another."""
    points = 0
    metrics = [n for n in next(iter(batches(spec))).schema.names if n.startswith("DCGM_")]
    parts = {metric: file.with_suffix(f".{metric}") for metric in metrics}
    streams = {metric: part.open("w") for metric, part in parts.items()}
    for batch in batches(spec):
        stamps = [f"{ms / 1000:.3f}" for ms in batch.column("SCRAPETIME").cast("int64").to_pylist()]
        texts = [batch.column(name).to_pylist() for name in LABELS]
        labels = [
            ",".join(f'{name}="{text}"' for name, text in zip(LABELS.values(), row, strict=True) if text)
            for row in zip(*texts, strict=True)
        ]
        for metric, out in streams.items():
            rows = zip(labels, batch.column(metric).to_pylist(), stamps, strict=True)
            out.writelines(f"{metric}{{{own}}} {value} {at}\n" for own, value, at in rows)
            points += len(labels)
    with file.open("wb") as whole:
        for metric, part in parts.items():
            streams[metric].close()
            with part.open("rb") as piece:
                shutil.copyfileobj(piece, whole)
            part.unlink()
        whole.write(b"# EOF\n")
    return points


@contextmanager
def serving(data: Path, folder: Path) -> Iterator[str]:
    """A Prometheus on the blocks."""
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 10s}\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=50y", f"--web.listen-address={at}",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(f"http://{at}/-/ready")
            yield f"prometheus://{at}"
        finally:
            process.terminate()


def wait_for(url: str) -> None:
    """Until the server is ready."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    sys.exit("Prometheus did not start")


def importing(address: str, lake: Path) -> list[str]:
    """The command of a user."""
    return [sys.executable, "-m", "gpuledger", "import", address, "--lake", str(lake), *WINDOW, "--json"]


def killed(address: str, lake: Path) -> None:
    """Start the import and kill it after some windows."""
    noted: set[str] = set()
    with subprocess.Popen(importing(address, lake), stdout=subprocess.DEVNULL, env=os.environ) as process:
        while process.poll() is None and len(noted) < KILL_AFTER_WINDOWS:
            noted.update(f.read_text() for f in lake.glob("servers/*.json"))
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    print(f"killed after {len(noted)} windows")


if __name__ == "__main__":
    main()
