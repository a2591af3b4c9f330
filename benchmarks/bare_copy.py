"""What does reading all columns and writing them again take, and nothing else? On as many cores as there are.

python benchmarks/bare_copy.py FOLDER FILE.parquet ...
"""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def copy(path: str, target: str, groups: list[int]) -> int:
    """Read some row groups and write them with the codec and the encodings of the lake."""
    source = pq.ParquetFile(path)
    text = [f.name for f in source.schema_arrow if pa.types.is_dictionary(f.type) or pa.types.is_string(f.type)]
    source = pq.ParquetFile(path, read_dictionary=text)
    writer, rows = None, 0
    for group in groups:
        table = source.read_row_group(group)
        writer = writer or pq.ParquetWriter(target, table.schema, compression="zstd", compression_level=1)
        writer.write_table(table, row_group_size=table.num_rows)
        rows += table.num_rows
    if writer:
        writer.close()
    return rows


def main() -> None:
    """Copy all files, each in as many pieces as there are cores."""
    folder, cores = Path(sys.argv[1]), os.cpu_count() or 1
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ProcessPoolExecutor(cores) as pool:
        jobs = []
        for number, path in enumerate(sys.argv[2:]):
            groups = list(range(pq.read_metadata(path).num_row_groups))
            for piece in range(cores):
                some = groups[len(groups) * piece // cores : len(groups) * (piece + 1) // cores]
                jobs.append(pool.submit(copy, path, str(folder / f"{number}-{piece}.parquet"), some))
        print(sum(job.result() for job in jobs))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
