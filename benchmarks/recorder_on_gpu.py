"""What does recording cost on a real GPU, and does the job beside it get slower?

    python benchmarks/recorder_on_gpu.py [--seconds 90] [--repeat 7] [--steps 60]

Needs a GPU, torch and the recorder's own libraries. The recorder is a process of its own, so its CPU is its own; the
job runs with and without it in turns, so that drift falls on both alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

JOB = Path(__file__).resolve().parents[1] / "examples" / "train_lm.py"
RECORDER = """
import json, resource, sys, time
from gpuledger.recording.record import record
with record(sys.argv[1], device="nvml", of_job=False) as run:
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    print("ready", flush=True)
    sys.stdin.read()
    after, seconds = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - start
notes = run.notes()
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps({"cpu_pct_of_a_core": 100 * cpu / seconds / len(notes.devices), "rows": notes.rows,
                  "seconds": seconds, "skipped_ticks": notes.skipped_ticks}))
"""


def recorder(folder: str) -> subprocess.Popen[str]:
    """A recorder that runs until its input is closed."""
    started = subprocess.Popen(
        [sys.executable, "-c", RECORDER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    if started.stdout.readline().strip() != "ready":
        sys.exit("the recorder did not start: is there a GPU?")
    return started


class Job:
    """The training loop in a process of its own, started once: a run a line."""

    def __init__(self, steps: int) -> None:
        command = [sys.executable, str(JOB), "--steps", str(steps), "--again"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._seconds()  # the first run warms up

    def _seconds(self) -> float:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if " in " not in line:
            sys.exit("the job did not run: is torch there?")
        return float(line.split(" in ")[1].split(" s")[0])

    def run_s(self) -> float:
        """Seconds the steps took, this time."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._seconds()

    def end(self) -> None:
        """No more runs."""
        self._process.communicate()


def main() -> None:
    """Measure the cost alone, then the slow-down, and print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        alone = recorder(folder)
        time.sleep(args.seconds)
        cost = json.loads(alone.communicate()[0])
    print(json.dumps(cost), file=sys.stderr, flush=True)
    job = Job(args.steps)
    plain: list[float] = []
    beside: list[float] = []
    for turn in range(args.repeat):
        for recorded in (False, True) if turn % 2 else (True, False):
            if not recorded:
                plain.append(job.run_s())
                continue
            with tempfile.TemporaryDirectory() as folder:
                running = recorder(folder)
                beside.append(job.run_s())
                running.communicate()
    job.end()
    slower = {
        "plain_s": plain,
        "recorded_s": beside,
        "median_pct": 100 * (statistics.median(beside) / statistics.median(plain) - 1),
        "best_pct": 100 * (min(beside) / min(plain) - 1),
    }
    print(json.dumps({"recorder": cost, "slow_down": slower}, indent=1))


if __name__ == "__main__":
    main()
