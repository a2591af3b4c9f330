"""What would a person who knows Polars run instead? The same analyses over the 36-column Parquet files.

python benchmarks/polars_way.py FILE.parquet ...      prints one JSON object
"""

from __future__ import annotations

import json
import resource
import sys
import time

import polars as pl

from gpuledger.catalog.gpus import get_gpu


def analyse(paths: list[str]) -> dict[str, object]:
    """Headline, per GPU, per hour, per model, per namespace, phases and idle spells."""
    raw = pl.scan_parquet(paths)
    models = raw.select(pl.col("MODELNAME").unique()).collect()["MODELNAME"].to_list()
    facts = pl.LazyFrame(
        {
            "model": [str(m) for m in models],
            "board": [get_gpu(str(m)).board_power_w.value for m in models],
            "able": [get_gpu(str(m)).achievable_tflops("published") for m in models],
        }
    )
    pif = (pl.col("DCGM_FI_DEV_POWER_USAGE") / pl.col("board")).clip(0, 1)
    t = (
        raw.with_columns(model=pl.col("MODELNAME").cast(pl.String))
        .join(facts, on="model")
        .select(
            uuid=pl.col("UUID"),
            model=pl.col("model").cast(pl.Categorical),
            namespace=pl.col("NAMESPACE"),
            cluster=pl.col("CLUSTERNAME"),
            at=pl.col("SCRAPETIME"),
            util=pl.col("DCGM_FI_DEV_GPU_UTIL"),
            pif=pif.cast(pl.Float32),
            tflops=(pif * pl.col("able")).cast(pl.Float32),
        )
        .collect()
        .lazy()
    )
    means = [pl.col("util").mean(), pl.col("pif").mean(), pl.len().alias("n")]
    hour = pl.col("at").dt.truncate("1h").alias("hour")
    whole = t.select(*means, pl.col("uuid").n_unique(), pl.col("cluster").n_unique()).collect()
    active = t.filter(pl.col("util") > 1)
    stuck = ((pl.col("util") > 70) & (pl.col("pif") < 0.6)).mean()
    spells = (
        t.sort("uuid", "at")
        .select("uuid", idle=pl.col("util") < 10)
        .with_columns(run=pl.struct("uuid", "idle").rle_id())
        .filter("idle")
        .group_by("run")
        .len()
        .filter(pl.col("len") > 30)
        .select(pl.len())
    )
    phases = t.group_by(pl.col("util").cut([9.999, 69.999, 89.999]).alias("phase")).len()
    fleet = t.group_by(hour, "uuid").agg(pl.col("tflops").mean()).group_by("hour").agg(pl.col("tflops").sum())
    return {
        "samples": whole["n"][0],
        "gpus": whole["uuid"][0],
        "gpu_util_pct": whole["util"][0],
        "pif": whole["pif"][0],
        "bottlenecked_pct_of_active": 100 * active.select(stuck).collect().item(),
        "per_gpu": t.group_by("uuid").agg(means).collect().height,
        "hours": t.group_by(hour).agg(means).collect().height,
        "model": t.group_by("model").agg(means).collect().height,
        "namespace": t.group_by("namespace").agg(means).collect().height,
        "fleet_tflops_mean": fleet.select(pl.col("tflops").mean()).collect().item(),
        "phases": dict(phases.collect().iter_rows()),
        "idle_spells_over_30": spells.collect().item(),
    }


if __name__ == "__main__":
    start = time.perf_counter()
    result = analyse(sys.argv[1:])
    result["seconds"] = time.perf_counter() - start
    result["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result, default=str))
