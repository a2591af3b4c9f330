"""Does any reader answer a hostile file with a traceback, a hang or all of the memory?

python fuzz/run.py --inputs 100000 --seed 1

Each target gets its share of the inputs, in processes with a limit on memory and time. Prints a table and exits with 1
where any input failed; these are kept in fuzz/found, each with its traceback. `--replay TARGET NUMBER` runs one again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from targets import HERE, ROOT, Target, families, targets_of

BATCH = 1_000


@dataclass
class Row:
    """What happened to the inputs of a target."""

    target: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    failed: dict[str, list[int]] = field(default_factory=dict)
    slowest_ms: float = 0.0
    peak_kib: int = 0
    cpu_s: float = 0.0

    def take(self, number: int, what: str, took_ms: float = 0.0, kib: int = 0) -> None:
        """Count one input."""
        self.inputs += 1
        self.slowest_ms, self.peak_kib = max(self.slowest_ms, took_ms), max(self.peak_kib, kib)
        self.cpu_s += took_ms / 1000
        if what == "accepted":
            self.accepted += 1
        elif what == "refused":
            self.refused += 1
        else:
            self.failed.setdefault(what, []).append(number)

    def count(self, *kinds: str) -> int:
        """How many inputs failed in one of these ways."""
        return sum(len(self.failed.get(kind, ())) for kind in kinds)


def run_target(target: Target, count: int, seed: int, found: Path, state: Path | None) -> Row:
    """All inputs of a target, in one process after another; `state`: a folder with what earlier runs got done."""
    kept = state / f"{target.name.replace('/', '-')}-{seed}.json" if state else None
    row = Row(**json.loads(kept.read_text())) if kept and kept.exists() else Row(target.name)
    number = row.inputs
    while number < count:
        number = _batch(row, target, number, min(number + BATCH, count), seed, found)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(row.__dict__))
    return row


def _batch(row: Row, target: Target, first: int, end: int, seed: int, found: Path) -> int:
    """Run a process; returns the number of the next input: after a hang or a crash the one after it."""
    command = [
        sys.executable,
        str(HERE / "child.py"),
        families()[target.name],
        target.name,
        str(first),
        str(end),
        "--seed",
        str(seed),
        "--found",
        str(found),
    ]
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        errors="replace",
    )
    assert child.stdout is not None
    with ThreadPoolExecutor(1) as pool:
        errors = pool.submit(child.stderr.read)
        begun = first - 1
        for line in child.stdout:
            number, what, *more = line.split()
            if what == "begins":
                begun = int(number)
            else:
                row.take(int(number), what, float(more[0]), int(more[1]))
                begun = -1
        code, words = child.wait(), errors.result()
    if code == 0:
        return end
    if begun < first:
        raise SystemExit(f"target {target.name!r}: the process could not start:\n{words[-3000:]}")
    row.take(begun, "hang" if "Timeout (" in words else "crash")
    folder = found / target.name.replace("/", "-") / str(begun)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "why.txt").write_text(f"exit {code}\n{words[-6000:]}")
    return begun + 1


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    names = "target,inputs,accepted,refused,tracebacks,hangs or crashes,over memory,slowest (ms CPU),peak growth (MiB)"
    head = f"| {' | '.join(names.split(','))} |"
    lines = [head, "|" + "---|" * 9]
    total = Row("all")
    for row in rows:
        lines.append(_line(row))
        for name in ("inputs", "accepted", "refused"):
            setattr(total, name, getattr(total, name) + getattr(row, name))
        for kind, numbers in row.failed.items():
            total.failed.setdefault(kind, []).extend(numbers)
        total.slowest_ms, total.peak_kib = max(total.slowest_ms, row.slowest_ms), max(total.peak_kib, row.peak_kib)
    return "\n".join([*lines, _line(total)])


def _line(row: Row) -> str:
    cells = (
        row.inputs,
        row.accepted,
        row.refused,
        row.count("traceback"),
        row.count("hang", "crash", "slow"),
        row.count("memory"),
    )
    return (
        f"| {row.target} | {' | '.join(f'{c:,}' for c in cells)} | {row.slowest_ms:,.0f} | {row.peak_kib / 1024:,.0f} |"
    )


def main() -> int:
    """Run what is asked for; returns the exit code."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--inputs", type=int, default=100_000, help="how many in all [100000]")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--target", action="append", help="only this one; repeatable")
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument("--found", type=Path, default=HERE / "found", help="where failing inputs are kept")
    asked.add_argument("--state", type=Path, help="folder that keeps what is done, to go on after a stop")
    asked.add_argument("--json", action="store_true")
    said = asked.parse_args()
    targets = targets_of()
    if unknown := set(said.target or ()) - set(targets):
        asked.error(f"no target is called {', '.join(sorted(unknown))}; there are: {', '.join(targets)}")
    chosen = [t for t in targets.values() if not said.target or t.name in said.target]
    shares = sum(t.share for t in chosen)
    start = time.monotonic()
    with ThreadPoolExecutor(said.processes) as pool:
        by_size = sorted(chosen, key=lambda t: -t.share)  # the quick ones have most inputs
        counts = {t.name: math.ceil(said.inputs * t.share / shares) for t in chosen}
        jobs = {pool.submit(run_target, t, counts[t.name], said.seed, said.found, said.state): t.name for t in by_size}
        done = {}
        for job in as_completed(jobs):
            row = done[jobs[job]] = job.result()
            sys.stderr.write(
                f"{row.target}: {row.inputs:,} inputs, {sum(map(len, row.failed.values()))} failed, {row.cpu_s:.0f} s\n"
            )
    rows = [done[t.name] for t in chosen]
    if said.json:
        print(json.dumps([row.__dict__ for row in rows]))
    else:
        print(table(rows))
        print(f"\n{sum(r.inputs for r in rows):,} inputs, seed {said.seed}, {time.monotonic() - start:,.0f} s.")
    if failed := {r.target: r.failed for r in rows if r.failed}:
        for name, kinds in failed.items():
            for kind, numbers in kinds.items():
                place = said.found / name.replace("/", "-") / str(numbers[0])
                print(f"failed: {name}: {len(numbers)} x {kind}: see {place}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
