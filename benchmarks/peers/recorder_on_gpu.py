"""What does watching one GPU once a second cost, by tool? CPU of each tool's own processes on a real GPU.

    python benchmarks/peers/recorder_on_gpu.py [--seconds 30] [--repeat 2] [--out FILE.json]

Every tool runs as its users run it, one reading a second, by itself and one after the other; a GEMM keeps the GPU busy.
CPU seconds are those of the tool and its children, over the time between its start-up (8 s are left out) and its end.
A tool that is not installed is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pty
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WARM_S = 8.0
BUSY = """
import torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
while True:
    for _ in range(50):
        a @ a
    torch.cuda.synchronize()
"""
ZEUS = """
import time
from zeus.monitor import PowerMonitor
if __name__ == "__main__":
    monitor = PowerMonitor(update_period=1.0)
    time.sleep(3600)
"""
NVITOP = """
import time
from nvitop import Device, ResourceMetricCollector
collector = ResourceMetricCollector(Device.cuda.all())
collector.start("all")
while True:
    collector.collect()
    time.sleep(1.0)
"""


def tools(folder: Path) -> dict[str, tuple[str, list[str], str]]:
    """By name: the module or program it needs, its command, and what it writes down."""
    python = sys.executable
    record = [python, "-m", "gpuledger", "record", "--lake", str(folder / "lake"), "--quiet"]
    smi = ["nvidia-smi", "--query-gpu=timestamp,uuid,utilization.gpu,power.draw,memory.used,clocks.sm,temperature.gpu"]
    return {
        "gpuledger record, 1 Hz": ("gpuledger", [*record, "--hz", "1"], "samples with activity counters, in a lake"),
        "gpuledger record, 10 Hz": ("gpuledger", record, "the same at ten times the rate (its default)"),
        "nvitop collector": ("nvitop", [python, "-c", NVITOP], "means in memory, per process too"),
        "nvitop screen": ("nvitop", [python, "-m", "nvitop", "--monitor", "full", "--interval", "1"], "nothing"),
        "gpustat -i 1": ("gpustat", [python, "-m", "gpustat", "-i", "1"], "nothing"),
        "zeus PowerMonitor": ("zeus", [python, "-c", ZEUS], "power, in memory"),
        "nvidia-smi -l 1": ("nvidia-smi", [*smi, "--format=csv", "-l", "1"], "a line of CSV"),
    }


def there(needs: str) -> bool:
    return shutil.which(needs) is not None or importlib.util.find_spec(needs.replace("-", "_")) is not None


def cpu_s(root: int) -> float:
    """CPU seconds of a process, all below it, and those of them that have ended."""
    ticks, left, parents = 0, [root], dict[int, list[int]]()
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stats[int(entry.name)] = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
    for process, fields in stats.items():
        parents.setdefault(int(fields[1]), []).append(process)
    while left:
        one = left.pop()
        left += parents.get(one, [])
        ticks += sum(int(x) for x in stats[one][11:15]) if one in stats else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(command: list[str], seconds: float) -> float:
    """Percent of a core that a tool takes while it runs; on a terminal of its own, as a user would have it."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        command, stdin=other, stdout=other, stderr=subprocess.DEVNULL, start_new_session=True,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
    )  # fmt: skip
    os.close(other)
    os.set_blocking(main, False)

    def wait(until: float) -> None:
        while time.monotonic() < until:
            try:
                os.read(main, 1 << 16)
            except (BlockingIOError, OSError):
                time.sleep(0.05)

    wait(time.monotonic() + WARM_S)
    before, start = cpu_s(process.pid), time.monotonic()
    wait(start + seconds)
    alive, used, took = process.poll() is None, cpu_s(process.pid) - before, time.monotonic() - start
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    os.close(main)
    return 100 * used / took if alive else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    busy = subprocess.Popen([sys.executable, "-c", BUSY])
    folder = Path(tempfile.mkdtemp(prefix="gpuledger-peers-"))
    found: dict[str, list[float]] = {}
    try:
        for turn in range(args.repeat):
            for name, (needs, command, _) in tools(folder).items():
                if there(needs):
                    found.setdefault(name, []).append(measured(command, args.seconds))
                    print(f"turn {turn + 1}: {name}: {found[name][-1]:.2f} % of a core", file=sys.stderr, flush=True)
                    if args.out:
                        args.out.write_text(json.dumps(found, indent=1))
    finally:
        busy.kill()
        shutil.rmtree(folder, ignore_errors=True)
    print("| tool | % of a core | what it writes down |\n|---|---:|---|")
    for name, (_, _, writes) in tools(folder).items():
        figure = f"{statistics.median(found[name]):.2f}" if name in found else "not installed"
        print(f"| {name} | {figure} | {writes} |")


if __name__ == "__main__":
    main()
