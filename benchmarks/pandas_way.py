"""What would a person run instead? The same analyses in pandas, over the 36-column Parquet files.

    python benchmarks/pandas_way.py FILE.parquet ...      prints one JSON object

Written as a capable user would: only the columns needed, labels as categories, one table for power and TFLOPS.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from gpuledger.catalog.gpus import get_gpu

LABELS = ["UUID", "MODELNAME", "NAMESPACE", "CLUSTERNAME", "HOSTNAME"]
READINGS = ["SCRAPETIME", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"]


def load(paths: list[str]) -> pd.DataFrame:
    """The needed columns of all files in one frame."""
    table = pq.ParquetDataset(paths).read(columns=[*LABELS, *READINGS])
    frame = table.to_pandas(categories=LABELS)
    frame.columns = ["uuid", "model", "namespace", "cluster", "host", "at", "util", "power"]
    return frame


def analyse(f: pd.DataFrame) -> dict[str, object]:
    """Headline, per GPU, per hour, per model, per namespace, phases and idle spells."""
    gpus = {m: get_gpu(m) for m in f["model"].cat.categories}
    board = f["model"].map({m: g.board_power_w.value for m, g in gpus.items()}).astype("float64")
    able = f["model"].map({m: g.achievable_tflops("published") for m, g in gpus.items()}).astype("float64")
    f["pif"] = (f["power"] / board).clip(0, 1)
    f["tflops"] = f["pif"] * able
    f["rfu"] = f["pif"] * 100
    f["gap"] = f["util"] - f["rfu"]
    means = {k: (k, "mean") for k in ("util", "pif", "rfu", "gap")} | {"n": ("util", "size")}
    active = f["util"] > 1
    stuck = active & (f["util"] > 70) & (f["pif"] < 0.60)
    out: dict[str, object] = {
        "samples": len(f),
        "gpus": int(f["uuid"].nunique()),
        "clusters": int(f["cluster"].nunique()),
        "gpu_util_pct": f["util"].mean(),
        "pif": f["pif"].mean(),
        "rfu_power_pct": f["rfu"].mean(),
        "efficiency_gap_pp": f["gap"].mean(),
        "bottlenecked_pct_of_active": 100 * stuck.sum() / active.sum(),
        "active": {k: f.loc[active, k].mean() for k in ("util", "pif", "rfu", "gap")},
    }
    hour = f["at"].dt.floor("h")
    per_gpu = f.groupby("uuid", observed=True).agg(**means)
    fleet = f.groupby([hour, "uuid"], observed=True)["tflops"].mean().groupby(level=0).sum()
    hourly = f.groupby(hour).agg(**means)
    groups = {k: len(f.groupby(k, observed=True).agg(**means)) for k in ("model", "namespace")}
    phases = pd.cut(f["util"], [-1, 9.999, 69.999, 89.999, 101], labels=["idle", "under", "productive", "bound"])
    s = f.sort_values(["uuid", "at"])
    idle = (s["util"] < 10).to_numpy()
    opens = (s["uuid"] != s["uuid"].shift()).to_numpy(copy=True)
    opens[1:] |= idle[1:] != idle[:-1]
    lengths = np.bincount(opens.cumsum()[idle])
    return (
        out
        | groups
        | {
            "per_gpu": len(per_gpu),
            "hours": len(hourly),
            "fleet_tflops_mean": fleet.mean(),
            "phases": {str(k): int(v) for k, v in phases.value_counts().items()},
            "idle_spells_over_30": int((lengths > 30).sum()),
        }
    )


if __name__ == "__main__":
    start = time.perf_counter()
    result = analyse(load(sys.argv[1:]))
    result["seconds"] = time.perf_counter() - start
    result["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result, default=float))
