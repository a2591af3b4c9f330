"""Which files does an argument from Python stand for?"""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpuledger.errors import InputError


def given_files(item: Any, folder: Path) -> Iterable[Path]:
    """The files of one argument; tables in memory are written as Parquet first."""
    if isinstance(item, str | Path):
        named = sorted(glob.glob(str(item)))  # noqa: PTH207 - Path.glob takes no absolute pattern
        return [Path(p) for p in named] or [Path(item)]
    if hasattr(item, "to_parquet"):
        target = folder / f"table-{id(item)}.parquet"
        item.to_parquet(target)
        return [target]
    if hasattr(item, "schema") and hasattr(item, "num_rows"):
        import pyarrow.parquet as pq

        target = folder / f"table-{id(item)}.parquet"
        pq.write_table(item, target)
        return [target]
    if not isinstance(item, Iterable):
        hint = "give a path, a glob, a list of them, a pandas data frame or an Arrow table"
        raise InputError(f"{item!r} is not telemetry", hint=hint)
    return [file for inner in item for file in given_files(inner, folder)]
