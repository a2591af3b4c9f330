"""Is a run audited rightly while another process also uses the GPU?

    python benchmarks/shared_on_gpu.py [--seconds 15] [--memory-gib 4]

Needs a GPU, torch and what `gpuledger audit` needs. A background process holds memory and multiplies small matrices;
next to it, `gpuledger audit -- python -c ...` records a loop of large ones. Prints what the audit says about the two
as JSON, and a verdict: the time both held the GPU must be split evenly and booked under both names, and the two
together must have exactly the recorded time. Takes under a minute; exits with 1 where the verdict is bad.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

BACKGROUND = """
import sys, threading, torch
held = torch.empty(int(float(sys.argv[1]) * 2**30), dtype=torch.uint8, device="cuda")
small = torch.randn(512, 512, device="cuda", dtype=torch.bfloat16)
(small @ small).sum().item()
print("ready", flush=True)
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
while not over.is_set():
    for _ in range(20):
        small @ small
    torch.cuda.synchronize()
    over.wait(0.01)
"""
JOB = """
import sys, time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(10):
        a @ a
    torch.cuda.synchronize()
"""
LONGEST_S = 50.0
# Holders are looked at every second, so a start or an end may be off by one.
LOOK_S = 1.0
PRICE = "4"


@contextlib.contextmanager
def background(memory_gib: float) -> Iterator[int]:
    """Another process on the GPU, until the block ends; its process number."""
    started = subprocess.Popen(
        [sys.executable, "-c", BACKGROUND, str(memory_gib)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stdout is not None
    try:
        if started.stdout.readline().strip() != "ready":
            sys.exit("the background process did not start: is there a GPU, and torch?")
        yield started.pid
        if started.poll() is not None:
            sys.exit("the background process ended early: the figures below would mean nothing")
    finally:
        started.kill()
        started.communicate()


def gpuledger(*args: str) -> dict[str, Any]:
    """One call of the tool, as a user makes it; its JSON."""
    call = [sys.executable, "-m", "gpuledger", *args]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=False, timeout=LONGEST_S, env=os.environ)
    if done.returncode:
        sys.exit(f"gpuledger {args[0]} ended with {done.returncode}: {done.stdout[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def booked_s(lake: str) -> dict[str, float]:
    """Seconds of GPU time by owner, of the whole lake."""
    said = gpuledger("audit", "--lake", lake, "--json", "--price", PRICE)
    return {owner["name"]: round(3600 * owner["paid_h"], 3) for owner in said["by_owner"]}


def judge(run: dict[str, Any], booked: dict[str, float], other_pid: int) -> tuple[bool | None, list[str]]:
    """Whether the books are right (None: it cannot be known here who holds the GPU), and what was found."""
    if "problem" in run:
        return False, [f"there is no audit of the run: {run['problem']}"]
    device = next((d for d in run["recording"]["devices"] if d["held_by"]), None)
    if device is None:
        return None, ["the driver lists no processes here, so who shares the GPU cannot be found out"]
    seconds, shared_s, run_s = run["recording"]["seconds"], device["shared_s"], device["run_s"]
    mine = 3600 * run["paid_h"]
    if not any(h["matched"] for h in device["held_by"]):
        said = any("cannot be matched" in words for words in run["recording"]["notes"])
        good = said and device["owned"] and abs(mine - seconds) <= LOOK_S
        words = f"the driver's process numbers match nobody here; reported: {said}; the run has {mine:.1f} s"
        return (None if good else False), [words]
    others = [h for h in device["held_by"] if h["matched"] and not h["ours"]]
    right = run_s - shared_s / 2
    checks = {
        "the run has a part of the GPU's time": device["owned"] and mine > 0,
        "the background process is named, and nobody else": [h["pid"] for h in others] == [other_pid],
        f"the run has {right:.1f} s, half of what was shared (booked: {mine:.1f} s)": abs(mine - right) <= LOOK_S,
        f"all owners together have the {seconds:.1f} s recorded (booked: {sum(booked.values()):.1f} s)": abs(
            sum(booked.values()) - seconds
        )
        <= LOOK_S,
    }
    found = [f"{'ok' if good else 'WRONG'}: {what}" for what, good in checks.items()]
    return all(checks.values()), found


def main() -> None:
    """Share the GPU, audit, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--memory-gib", type=float, default=4)
    args = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as lake:
        with background(args.memory_gib) as pid:
            job = [sys.executable, "-c", JOB, str(args.seconds)]
            run = gpuledger("audit", "--lake", lake, "--json", "--price", PRICE, "--", *job)
        booked = booked_s(lake)
    good, found = judge(run, booked, pid)
    shown = {
        "background_pid": pid,
        "recording": run.get("recording"),
        "run_paid_s": None if "paid_h" not in run else round(3600 * run["paid_h"], 3),
        "booked_s_by_owner": booked,
        "share_of_owner": {name: round(s / sum(booked.values()), 4) for name, s in booked.items()},
        "took_s": round(time.monotonic() - begun, 1),
        "found": found,
        "verdict": {True: "good", False: "bad", None: "not judged"}[good],
    }
    print(json.dumps(shown, indent=1))
    sys.exit(1 if good is False else 0)


if __name__ == "__main__":
    main()
