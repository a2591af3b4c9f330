"""How fast are the books, beside a bare scan and beside pandas? One table, ratios in one run.

    python benchmarks/books.py [--gpus 50 5000] [--keep DIR] [--repeat 1] [--json]

Each step runs in a process of its own, so that its peak memory is its own. Every step but `pandas` is gpuledger.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULES = (
    "duckdb",
    "gpuledger.telemetry.synthetic",
    "gpuledger.lake.importing",
    "gpuledger.ledger.engine",
    "gpuledger.efficiency.build",
    "gpuledger.api",
)
STEPS = ("synth", "bare_write", "import", "floor", "post", "analyze", "pandas")
COMPARED = ("floor", "post", "analyze", "pandas")


def synth(work: Path, gpus: int) -> int:
    from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

    return write_fleet(FleetSpec(gpus=gpus), work / "fleet", files="day")


def bare_write(work: Path, _gpus: int) -> int:
    """Write the finished table again, file by file: what synth is measured against."""
    import pyarrow.parquet as pq

    rows, seconds = 0, 0.0
    for file in sorted((work / "fleet").glob("*.parquet")):
        source = pq.ParquetFile(file, read_dictionary=["UUID", "HOSTNAME", "POD"])
        writer = pq.ParquetWriter(work / "bare.parquet", source.schema_arrow, compression="zstd")
        for group in range(source.num_row_groups):
            table = source.read_row_group(group)
            start = time.perf_counter()
            writer.write_table(table, row_group_size=table.num_rows)
            seconds += time.perf_counter() - start
            rows += table.num_rows
        writer.close()
    (work / "bare.parquet").unlink()
    print(json.dumps({"seconds": seconds}))
    return rows


def do_import(work: Path, _gpus: int) -> int:
    from gpuledger.lake.importing import import_files
    from gpuledger.lake.layout import Lake

    shutil.rmtree(work / "lake", ignore_errors=True)
    return import_files(Lake(work / "lake"), sorted((work / "fleet").glob("*.parquet"))).rows_added


def floor(work: Path, _gpus: int) -> int:
    """Scan the columns posting needs and add each up: nothing that reads them can be faster."""
    import duckdb

    from gpuledger.ledger.posting import COLUMNS
    from gpuledger.telemetry import schema

    numbers = [c for c in COLUMNS if c not in schema.labels()]
    labels = [c for c in COLUMNS if c in schema.labels()]
    sums = ", ".join([f"sum({c})" for c in numbers] + [f"count({c})" for c in labels])
    with duckdb.connect() as db:
        db.execute("SET memory_limit = '1GB'")
        (row,) = db.execute(f"SELECT {sums} FROM read_parquet('{work}/lake/samples/*/*.parquet')").fetchall()
    return int(row[-len(labels)])


def post(work: Path, _gpus: int) -> int:
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.engine import post_lake

    shutil.rmtree(work / "lake" / "ledger", ignore_errors=True)
    return post_lake(Lake(work / "lake"), load_thresholds()).samples


def analyze(work: Path, _gpus: int) -> int:
    import gpuledger

    statement = gpuledger.open(work / "lake").analyze().statement
    print(json.dumps({"figures": {"gpu_util_pct": statement.fleet.gpu_util_pct, "pif": statement.fleet.pif}}))
    return statement.samples


STAGES = {
    "synth": synth,
    "bare_write": bare_write,
    "import": do_import,
    "floor": floor,
    "post": post,
    "analyze": analyze,
}


def stage(name: str, work: Path, gpus: int) -> None:
    """Run one step here and print what it took; libraries are loaded first, as they are for pandas."""
    from gpuledger import quick_start

    for module in MODULES:
        importlib.import_module(module)
    quick_start.keep_memory()  # as every command does
    start = time.perf_counter()
    rows = STAGES[name](work, gpus)
    seconds = time.perf_counter() - start
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "seconds_whole": seconds, "peak_mib": own, "child_peak_mib": child}))


def run(name: str, work: Path, gpus: int) -> dict[str, float]:
    """One step in a process of its own."""
    here = Path(__file__).resolve()
    files = [str(f) for f in sorted((work / "fleet").glob("*.parquet"))]
    command = [sys.executable, str(here.with_name("pandas_way.py")), *files]
    if name != "pandas":
        command = [sys.executable, str(here), "--stage", name, "--keep", str(work), "--gpus", str(gpus)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    facts: dict[str, float] = {}
    for line in done.stdout.splitlines():
        facts |= json.loads(line)
    facts.setdefault("seconds", facts.get("seconds_whole", 0.0))
    facts.setdefault("rows", facts.get("samples", 0))
    # Posting starts a worker a core: its peak is its own and all of theirs.
    facts["peak_mib"] += facts.get("child_peak_mib", 0.0) * len(os.sched_getaffinity(0))
    return facts


def middle(runs: list[dict[str, float]], others: list[dict[str, float]]) -> float:
    """How many times as long the others took: the median over turns, run beside run."""
    ratios = [other["seconds"] / mine["seconds"] for mine, other in zip(runs, others, strict=False)]
    return statistics.median(ratios)


def table(results: dict[int, dict[str, list[dict[str, float]]]]) -> str:
    """The figures, a line a step: medians of seconds and of ratios over turns, the highest peak."""
    out = [
        f"{'samples':>11}  {'step':<11}{'seconds':>9}{'rows/s':>13}{'vs floor':>10}{'vs pandas':>11}{'peak MiB':>10}"
    ]
    for steps in results.values():
        for name in STEPS:
            runs = steps[name]
            rows, seconds = runs[0]["rows"], statistics.median(f["seconds"] for f in runs)
            floor_x, pandas_x = 1 / middle(runs, steps["floor"]), middle(runs, steps["pandas"])
            out.append(
                f"{int(rows):>11,}  {name:<11}{seconds:>9.2f}{rows / seconds:>13,.0f}"
                f"{floor_x:>9.1f}x{pandas_x:>10.1f}x{max(f['peak_mib'] for f in runs):>10,.0f}"
            )
        out.append("")
    last = results[max(results)]
    peak = max(f["peak_mib"] for step in ("synth", "import", "post", "analyze") for f in last[step])
    loaded = last["import"][0]
    at_least = [
        ("posting is at least 6x faster than pandas", middle(last["post"], last["pandas"]), 6.0),
        ("analysis from the ledger is at least 60x faster than pandas", middle(last["analyze"], last["pandas"]), 60.0),
        ("import takes at least 300,000 rows per second", loaded["rows"] / loaded["seconds"], 300_000),
    ]
    at_most = [
        ("posting takes at most 3x the time of a bare scan", 1 / middle(last["post"], last["floor"]), 3.0),
        ("synth takes at most 2.5x the time of a bare write", 1 / middle(last["synth"], last["bare_write"]), 2.5),
        ("synth, import, post and analyze peak below 2 GiB (in MiB)", peak, 2048.0),
    ]
    checks = [(text, got, bar, got >= bar) for text, got, bar in at_least]
    checks += [(text, got, bar, got <= bar) for text, got, bar in at_most]
    out += [f"{'ok  ' if met else 'MISS'} {text}: {got:,.2f} (bar {bar:,})" for text, got, bar, met in checks]
    for step in ("post", "analyze"):
        turns = zip(last[step], last["pandas"], strict=True)
        ratios = ", ".join(f"{p['seconds'] / m['seconds']:.1f}x" for m, p in turns)
        out.append(f"{step} beside pandas, turn by turn: {ratios}")
    return "\n".join(out)


def main() -> None:
    """Run all steps at every size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=[50, 5000])
    parser.add_argument("--keep", type=Path, help="work here and keep what was made")
    parser.add_argument(
        "--repeat", type=int, default=1, help="turns of the steps compared; ratios are medians over turns"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stage", choices=STAGES)
    args = parser.parse_args()
    if args.stage:
        stage(args.stage, args.keep, args.gpus[0])
        return
    folder = args.keep or Path(tempfile.mkdtemp(prefix="gpuledger-bench-"))
    results: dict[int, dict[str, list[dict[str, float]]]] = {}
    try:
        for gpus in args.gpus:
            work = folder / str(gpus)
            work.mkdir(parents=True, exist_ok=True)
            results[gpus] = {}
            shutil.rmtree(work / "fleet", ignore_errors=True)
            for name in STEPS:
                print(f"{gpus} GPUs: {name} ...", file=sys.stderr)
                results[gpus][name] = [run(name, work, gpus)]
            for turn in range(2, args.repeat + 1):  # in turns: what is compared meets the same moods of the machine
                print(f"{gpus} GPUs: {', '.join(COMPARED)}, turn {turn} ...", file=sys.stderr)
                for name in COMPARED:
                    results[gpus][name].append(run(name, work, gpus))
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(results) if args.json else table(results))


if __name__ == "__main__":
    main()
