"""How do import, posting and statements grow as weeks of samples keep coming? The commands a user runs, week by week.

    python benchmarks/scale.py [--gpus 5000] [--weeks 10] [--keep DIR] [--ahead 2] [--out FILE.json]

Each week 50.4 million samples of 5,000 GPUs arrive: they are imported (`gpuledger import`), then `gpuledger analyze`
posts what is new and states the whole lake, and once more with nothing new. Seconds are of whole commands; memory is
the largest sum over a command and its workers, seen five times a second. Telemetry is made ahead by processes of its
own (`--ahead`), and deleted once it is imported. Run again with the same --keep, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

FIRST = dt.date(2026, 1, 19)
LOOK_S = 0.2
KIB = 1024


def make_week(folder: Path, week: int, gpus: int) -> int:
    """The telemetry of one week, a file a day."""
    from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

    shutil.rmtree(folder / f"week-{week}", ignore_errors=True)
    start = (FIRST + dt.timedelta(weeks=week)).isoformat()
    return write_fleet(FleetSpec(gpus=gpus, start=start, seed=7 + week), folder / f"week-{week}", files="day")


def resident_kib(root: int) -> int:
    """Memory of a process and all below it; pages they share count in parts."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                of = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(of, []).append(int(entry.name))
    total, left = 0, [root]
    while left:
        one = left.pop()
        left += parents.get(one, [])
        try:
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
    return total


def command(*args: str, cores: str) -> dict[str, float]:
    """Run one command of ours on some cores: seconds, CPU seconds, and the peak of it and its workers."""
    before, start = os.times(), time.perf_counter()
    pinned = ["taskset", "-c", cores] if cores else []
    process = subprocess.Popen(
        [*pinned, sys.executable, "-m", "gpuledger", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    peak = 0

    def look() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, resident_kib(process.pid))
            time.sleep(LOOK_S)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    out, errors = process.communicate()
    seconds = time.perf_counter() - start
    thread.join()
    if process.returncode:
        sys.exit(errors.decode() or out.decode())
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"seconds": seconds, "cpu_s": cpu, "peak_mib": peak / KIB}


def size_mib(folder: Path) -> float:
    """What a folder takes on disk."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / KIB**2


def one_week(work: Path, week: int, rows: int, cores: str) -> dict[str, Any]:
    """Import a week, state the lake with its posting, and once more with nothing new."""
    lake = work / "lake"
    found: dict[str, Any] = {"week": week + 1, "rows": rows}
    quiet = ("--lake", str(lake), "--json")
    found["import"] = command("import", str(work / f"week-{week}"), *quiet, cores=cores)
    shutil.rmtree(work / f"week-{week}")
    found["post"] = command("analyze", *quiet, cores=cores)
    found["analyze"] = command("analyze", *quiet, cores=cores)
    found["analyze_week"] = command("analyze", *quiet, "--last", "7d", cores=cores)
    found["samples_mib"], found["ledger_mib"] = size_mib(lake / "samples"), size_mib(lake / "ledger")
    return found


def table(done: list[dict[str, Any]]) -> str:
    """A line a week."""
    names = ("import", "post", "analyze", "analyze_week")
    head = ["samples so far", "import s", "post + analyze s", "analyze all s", "analyze 7 d s", "peak MiB", "lake MiB"]
    out, rows = ["| " + " | ".join(head) + " |", "|" + "---:|" * len(head)], 0
    for week in done:
        rows += week["rows"]
        peak = max(week[name]["peak_mib"] for name in names)
        cells = [f"{week[name]['seconds']:.1f}" for name in names]
        size = week["samples_mib"] + week["ledger_mib"]
        out.append("| " + " | ".join([f"{rows:,}", *cells, f"{peak:,.0f}", f"{size:,.0f}"]) + " |")
    return "\n".join(out)


def main() -> None:
    """Week by week, as far as asked or as time allows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=5000)
    parser.add_argument("--weeks", type=int, default=10)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--ahead", type=int, default=1, help="processes that make telemetry ahead of time")
    parser.add_argument("--cores", default="", help="cores for our commands, as taskset takes them")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further week after this time")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    work = args.keep or Path(tempfile.mkdtemp(prefix="gpuledger-scale-"))
    work.mkdir(parents=True, exist_ok=True)
    kept, start = work / "weeks.json", time.monotonic()
    done: list[dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else []
    with ProcessPoolExecutor(args.ahead) as ahead:
        left = range(len(done), args.weeks)
        made = {w: ahead.submit(make_week, work, w, args.gpus) for w in left[: args.ahead + 1]}
        for week in left:
            if time.monotonic() - start > args.seconds:
                break
            done.append(one_week(work, week, made.pop(week).result(), args.cores))
            kept.write_text(json.dumps(done, indent=1))
            if args.out:
                args.out.write_text(json.dumps(done, indent=1))
            print(json.dumps(done[-1]), flush=True)
            after = week + args.ahead + 1
            if after < args.weeks and time.monotonic() - start < args.seconds:
                made[after] = ahead.submit(make_week, work, after, args.gpus)
        for later in made.values():
            later.cancel()
    print(table(done))
    if not args.keep:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
