"""How long does a command take to say what it can do? CPU and wall time of `--help`, alternating."""

from __future__ import annotations

import argparse
import compileall
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from installed import command_of, version_of

SOURCE = Path(__file__).resolve().parents[2] / "src"
OTHERS = {"gpustat": "gpustat", "nvitop": "nvitop", "accelerate": "accelerate", "ray": "ray"}


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Seconds of every round by command; a first run of each warms the caches and is not counted."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(SOURCE, quiet=1)
    ours = command_of("gpuledger", "gpuledger", sys.executable) or [sys.executable, "-m", "gpuledger"]
    commands = {"gpuledger --help": [*ours, "--help"], "gpuledger --version": [*ours, "--version"]}
    missing, versions = [], {}
    for package, name in OTHERS.items():
        command = command_of(package, name, asked.peers)
        if command is None:
            missing.append(name)
            continue
        commands[f"{name} --help"] = [*command, "--help"]
        versions[name] = version_of(package, asked.peers)
    for command in commands.values():
        once(command)
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for turn in range(asked.starts):
        for name in list(commands) if turn % 2 == 0 else list(reversed(commands)):
            runs[name].append(once(commands[name]))
    rows = {
        name: {"cpu_s": statistics.median(cpu for cpu, _ in took), "seconds": statistics.median(s for _, s in took)}
        for name, took in runs.items()
    }
    return {"rows": rows, "versions": versions, "missing": missing, "rounds": asked.starts}


def once(command: list[str]) -> tuple[float, float]:
    """CPU seconds and seconds of one run."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.stderr is not None
    with process.stderr as stream:
        said = stream.read().decode()
    if process.returncode:
        sys.exit(f"{' '.join(command)} exited with {process.returncode}: {said[-400:]}")
    return used.ru_utime + used.ru_stime, seconds


def lines(found: dict[str, Any]) -> list[str]:
    """A line per command, the fastest first."""
    said = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    out = [f"Medians of {found['rounds']} alternating runs, bytecode compiled. {said}.", ""]
    out += [f"Not installed, so not compared: {', '.join(found['missing'])}.", ""] if found["missing"] else []
    out += ["| command | CPU ms | wall ms | CPU, x gpuledger --help |", "|---|---:|---:|---:|"]
    rows, ours = found["rows"], found["rows"]["gpuledger --help"]["cpu_s"]
    for name in sorted(rows, key=lambda name: rows[name]["cpu_s"]):
        row = rows[name]
        out.append(f"| `{name}` | {1e3 * row['cpu_s']:.0f} | {1e3 * row['seconds']:.0f} | {row['cpu_s'] / ours:.2f} |")
    faster = [f"`{n}`" for n in rows if not n.startswith("gpuledger") and rows[n]["cpu_s"] < ours]
    return [*out, "", f"Quicker than `gpuledger --help`: {', '.join(faster) or 'none of them'}."]
