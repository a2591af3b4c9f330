"""Which external sort is fastest for import: our own, DuckDB's or Polars'?

    python benchmarks/sorting.py [--gpus 1000] [--days 2] [--repeat 3] [--memory-mb 1024]

Rows of a synthetic fleet in the schema of the lake, ordered by time as exporters write them, are put in the order of
the lake (day, device, time) and written as Parquet with the lake's own encodings or the tool's own. Each contestant
runs in a process of its own with two threads, in turns; the table has the medians. Polars takes part where installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEYS = "gpu_uuid, gpu_instance_id, at_ms"


def make(gpus: int, days: float, folder: Path) -> tuple[Path, int]:
    """Samples in the schema of the lake, ordered by time."""
    import duckdb

    import gpuledger

    spec = gpuledger.FleetSpec(gpus=gpus, days=days, step_s=10)
    lake = gpuledger.open(folder / "lake")
    gpuledger.write_fleet(spec, folder / "fleet.parquet")
    lake.ingest(folder / "fleet.parquet")
    target = folder / "by_time.parquet"
    duckdb.sql(
        f"copy (select * exclude (day) from read_parquet('{folder}/lake/samples/*/*.parquet', hive_partitioning=true) "
        f"order by at_ms) to '{target}' (row_group_size 262144)"
    )
    return target, spec.rows


def ours(source: Path, out: Path, _memory_mb: int) -> None:
    """The sorter of import, and its writer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gpuledger.lake.parts import PartWriter, with_all_columns
    from gpuledger.lake.sorting.days import DaySorter
    from gpuledger.telemetry import schema

    sorter = DaySorter(out)
    labels = [name for name in schema.labels() if name in pq.read_schema(source).names]
    with pq.ParquetFile(source, read_dictionary=labels) as file:
        for batch in file.iter_batches(1 << 18):
            sorter.add(with_all_columns(pa.table(batch)))
    for day in sorter.days():
        writer = PartWriter(out / f"{day}.parquet", day, sorter.never_null())
        for chunk in sorter.chunks(day):
            writer.add(chunk.select(schema.arrow_schema().names))
        writer.close()


def with_duckdb(source: Path, out: Path, memory_mb: int) -> None:
    """ORDER BY with spilling, written by DuckDB."""
    import duckdb

    con = duckdb.connect(config={"memory_limit": f"{memory_mb}MB", "threads": 2, "temp_directory": str(out / "spill")})
    con.sql(
        f"copy (select * from read_parquet('{source}') order by at_ms // 86400000, {KEYS}) "
        f"to '{out}/sorted.parquet' (row_group_size 262144, compression zstd, compression_level 1)"
    )


def with_polars(source: Path, out: Path, _memory_mb: int) -> None:
    """The streaming engine's sort, written by Polars."""
    import polars as pl

    frame = pl.scan_parquet(source).with_columns(day=pl.col("at_ms") // 86_400_000)
    keys = ["day", *KEYS.split(", ")]
    frame.sort(keys).drop("day").sink_parquet(out / "sorted.parquet", compression="zstd", compression_level=1)


def peak_mib() -> float:
    """The most memory this process held; what its parent held before it does not count."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


CONTESTANTS = {"ours": ours, "duckdb": with_duckdb, "polars": with_polars}


def measure(name: str, source: Path, memory_mb: int) -> tuple[float, float, float]:
    """Wall and CPU seconds and peak MiB of one run in a process of its own."""
    with tempfile.TemporaryDirectory(dir=source.parent) as out:
        begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, __file__, "--contestant", name, "--source", str(source), "--out", out]
        done = subprocess.run(
            [*command, "--memory-mb", str(memory_mb)], check=True, capture_output=True, text=True
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return time.monotonic() - begin, cpu, float(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--days", type=float, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory-mb", type=int, default=1024)
    parser.add_argument("--contestant", choices=CONTESTANTS)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.contestant:
        CONTESTANTS[given.contestant](given.source, given.out, given.memory_mb)
        print(peak_mib())
        return
    there = [n for n in CONTESTANTS if n != "polars" or importlib.util.find_spec("polars")]
    with tempfile.TemporaryDirectory() as folder:
        source, rows = make(given.gpus, given.days, Path(folder))
        runs = {name: [] for name in there}
        for _ in range(given.repeat):
            for name in there:
                runs[name].append(measure(name, source, given.memory_mb))
    print(f"{rows:,} rows, medians of {given.repeat} runs in turns\n")
    print(f"{'sort':8s} {'wall s':>8s} {'CPU s':>8s} {'peak MiB':>9s}")
    for name, found in runs.items():
        wall, cpu, peak = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"{name:8s} {wall:8.1f} {cpu:8.1f} {peak:9.0f}")


if __name__ == "__main__":
    main()
