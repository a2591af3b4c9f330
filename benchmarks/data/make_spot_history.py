"""Makes the two files of AWS spot facts that ship: the price history as Parquet, and the reclaim bands as CSV.

    python benchmarks/data/make_spot_history.py --data DIR

DIR has prices/aws_gpu_spot_daily_*.csv.gz, prices/aws_spot_observation_times.csv and spot/aws_spot_advisor_*.csv. The
same input gives the same bytes. Prices are whole millionths of a dollar; an instant is its place in the list of
observations, which is in the metadata.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TARGET = Path(__file__).parents[2] / "src" / "gpuledger" / "catalog" / "data" / "prices"
SOURCE = "skypilot-org/skypilot-catalog, full history to f2624ac: prices read from the public AWS price lists"
MILLION = 1_000_000


def _seconds(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp())


def _millionths(text: str) -> int | None:
    return round(float(text) * MILLION) if text else None


def make_history(data: Path, target: Path) -> Path:
    """The change points of every pool, sorted, with the daily observation times as metadata."""
    source = next(iter(sorted((data / "prices").glob("aws_gpu_spot_daily_*.csv.gz"))))
    with gzip.open(source, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with (data / "prices" / "aws_spot_observation_times.csv").open(encoding="utf-8", newline="") as file:
        times = sorted({_seconds(r["observed_utc"]) for r in csv.DictReader(file) if r["in_daily_file"] == "1"})
    place = {at: i for i, at in enumerate(times)}
    kept = sorted(
        (r["instance_type"], r["region"], r["az"], place[_seconds(r["observed_utc"])],
         _millionths(r["on_demand_usd_h"]), _millionths(r["spot_usd_h"]))
        for r in rows
    )  # fmt: skip
    names = ("instance", "region", "zone", "observation", "on_demand_micro_usd", "spot_micro_usd")
    kinds = (pa.string(), pa.string(), pa.string(), pa.int16(), pa.int32(), pa.int32())
    table = pa.table(
        {n: pa.array([row[i] for row in kept], k) for i, (n, k) in enumerate(zip(names, kinds, strict=True))}
    )
    about = {
        "gpuledger.spot_history.version": "1",
        "source": SOURCE,
        "observed_s": json.dumps(times, separators=(",", ":")),
    }
    to = target / f"aws_gpu_spot_{dt.datetime.fromtimestamp(times[-1], dt.UTC):%Y-%m-%d}.parquet"
    pq.write_table(
        table.replace_schema_metadata(about), to, compression="zstd", compression_level=19, row_group_size=len(kept),
        use_dictionary=["instance", "region", "zone", "on_demand_micro_usd"],
        column_encoding={"observation": "DELTA_BINARY_PACKED", "spot_micro_usd": "DELTA_BINARY_PACKED"},
    )  # fmt: skip
    return to


def make_bands(data: Path, target: Path) -> Path:
    """The reclaim band of every GPU instance type under Linux, by region."""
    source = next(iter(sorted((data / "spot").glob("aws_spot_advisor_*.csv"))))
    with source.open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["os"] == "Linux" and r["instance_type"][0] in "gp"]
    to = target / f"aws_spot_bands_{rows[0]['snapshot_date']}.csv"
    lines = sorted(f"{r['instance_type']},{r['region']},{r['interruption_index']}" for r in rows)
    to.write_text("\n".join(["instance,region,band", *lines, ""]), encoding="utf-8")
    return to


def main() -> None:
    """Write both files and say how large they are."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--data", type=Path, required=True, help="Folder with prices/ and spot/.")
    asked.add_argument("--to", type=Path, default=TARGET, help="Folder to write to.")
    given = asked.parse_args()
    for made in (make_history(given.data, given.to), make_bands(given.data, given.to)):
        print(f"{made.name}: {made.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
