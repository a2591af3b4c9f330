"""Does `gpuledger --help` stay under 150 ms of CPU?"""

from __future__ import annotations

import os
import resource
import subprocess
import sys

LIMIT_S = 0.150


def cpu_s(command: list[str], env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_is_quick(tmp_path):
    # Compiled once into a folder of its own, as an installed package is; some machines forbid Python to write its own.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE" and not k.startswith("COV")}
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    command = [sys.executable, "-m", "gpuledger", "--help"]
    cpu_s(command, env)
    best = min(cpu_s(command, env) for _ in range(5))
    assert best < LIMIT_S, f"{best * 1000:.0f} ms"
