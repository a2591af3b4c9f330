"""How do statements grow with the fleet? Time and memory of analyze and audit by GPUs x days of ledger lines.

    python benchmarks/growth.py [--gpus 1000 10000 100000] [--days 30] [--grain day hour] [--keep DIR] [--json]

Lines are made, not samples: the sample fleet is posted for real, and the lines of its 50 GPUs on one day are written
again under new names for as many GPUs and days as asked for. `day`: hours folded into days, as `gpuledger tidy` leaves
them; `hour`: as they were posted. Each statement is the command a user runs, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake, write_atomically
from gpuledger.lake.manifest import Manifest
from gpuledger.ledger.daily import fold_old
from gpuledger.ledger.day_writer import DayWriter
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.facts import rules_fingerprint
from gpuledger.ledger.posting import empty_tables
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day

PIECE_GPUS = 5_000
LIMIT_KIB = 2 * 1024 * 1024


def template(folder: Path) -> tuple[str, pa.Table]:
    """The lines of the sample fleet on its first day."""
    write_fleet(FleetSpec(days=1.0), folder / "fleet", files="day")
    lake = Lake(folder / "lake")
    import_files(lake, sorted((folder / "fleet").glob("*.parquet")))
    post_lake(lake, load_thresholds())
    ledger = Ledger(lake)
    day = ledger.manifest().days[0].day
    return day, ledger.read("lines", day)


def renamed(lines: pa.Table, first: int, gpus: int, shift_ms: int) -> pa.Table:
    """The lines of some more GPUs on another day, in order of device."""
    own = lines["gpu_uuid"].combine_chunks().dictionary_encode()
    per_fleet = len(own.dictionary)
    copies = -(-gpus // per_fleet)
    order = np.tile(np.arange(lines.num_rows), copies)
    number = np.repeat(np.arange(copies), lines.num_rows) * per_fleet + np.tile(own.indices.to_numpy(), copies)
    sort = np.argsort(number, kind="stable")
    sort = sort[number[sort] < gpus]
    number = number[sort] + first
    table = lines.take(pa.array(order[sort]))
    names, place = np.unique(number, return_inverse=True)
    columns = {name: table[name] for name in table.column_names}
    for name, word in (("gpu_uuid", "GPU-{:07d}"), ("host", "node-{:06d}")):
        texts = [word.format(n if name == "gpu_uuid" else n // 8) for n in names.tolist()]
        columns[name] = pa.array(texts).take(pa.array(place))
    for name in ("hour_ms", "first_ms", "last_ms"):
        columns[name] = pa.array(columns[name].to_numpy() + shift_ms)
    return pa.table(columns, schema=lines.schema)


def make(folder: Path, gpus: int, days: int, grain: str, day: str, lines: pa.Table) -> int:
    """Books of a fleet; returns how many lines they hold."""
    lake, rules = Lake(folder), rules_fingerprint(load_thresholds())
    folder.mkdir(parents=True)
    write_atomically(folder / "manifest.json", msgspec.json.encode(Manifest()))
    ledger, start, count = Ledger(lake), day_start_ms(day), 0
    source = fold_old(lines, start + 100 * MS_PER_DAY) if grain == "day" else lines
    source = source.cast(lines.schema)
    for number in range(days):
        name, pieces = utc_day(start + number * MS_PER_DAY), -(-gpus // PIECE_GPUS)
        samples = 0
        for piece in range(pieces):
            some = min(PIECE_GPUS, gpus - piece * PIECE_GPUS)
            table = renamed(source, piece * PIECE_GPUS, some, number * MS_PER_DAY)
            with DayWriter(ledger, name, 1, piece) as writer:
                for kind, empty in empty_tables().items():
                    writer.add(kind, empty)
                writer.add("lines", table)
            count, samples = count + table.num_rows, samples + writer.samples
        posted = PostedDay(name, 1, (), (), samples, 0, rules, grain == "day", samples_kept=False)
        ledger.commit(posted.written(pieces))
    return count


def measured(command: list[str]) -> tuple[float, float, int]:
    """Seconds, CPU seconds and peak KiB of a command."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--grain", nargs="*", choices=("day", "hour"), default=["day"])
    parser.add_argument("--keep", type=Path, help="folder for the books, kept afterwards")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    work = args.keep or Path(tempfile.mkdtemp())
    rows = []
    print(f"{'GPUs':>8} {'grain':>5} {'lines':>12} {'statement':>9} {'seconds':>8} {'CPU s':>7} {'peak MiB':>9} "
          f"{'us/device-day':>13}", flush=True)  # fmt: skip
    try:
        day, lines = template(work / "template")
        for grain in args.grain:
            for gpus in args.gpus:
                books = work / f"{grain}-{gpus}"
                count = make(books, gpus, args.days, grain, day, lines)
                for verb in ("analyze", "audit"):
                    command = [sys.executable, "-m", "gpuledger", verb, "--lake", str(books), "--json"]
                    seconds, cpu, peak = measured(command)
                    per = 1e6 * seconds / (gpus * args.days)
                    row = {"gpus": gpus, "days": args.days, "grain": grain, "lines": count, "statement": verb}
                    used = {"seconds": seconds, "cpu_s": cpu, "peak_mib": peak / 1024, "us_per_device_day": per}
                    rows.append(row | used)
                    print(f"{gpus:8,} {grain:>5} {count:12,} {verb:>9} {seconds:8.2f} {cpu:7.2f} {peak / 1024:9,.0f} "
                          f"{per:13.2f}", flush=True)  # fmt: skip
                if not args.keep:
                    shutil.rmtree(books)
    finally:
        if not args.keep:
            shutil.rmtree(work)
    if args.json:
        print(json.dumps(rows, indent=1))
    return 0 if all(r["peak_mib"] * 1024 < LIMIT_KIB for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
