"""What would a person who knows Spark run instead? The same analyses over the 36-column Parquet files.

    python benchmarks/spark_way.py FILE.parquet ...      prints one JSON object

The same figures as `duckdb_way.py`, written as a capable user would: one cached view, one query per analysis, all cores
of this machine, no shuffle wider than that. Needs pyspark and Java. The Java process is waited for, so that its CPU
time can be counted.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time

from pyspark import SparkContext
from pyspark.sql import SparkSession

from gpuledger.catalog.gpus import get_gpu

MEANS = "avg(util), avg(pif), avg(pif) * 100, avg(util) - avg(pif) * 100, count(*)"
GROUPS = {"per_gpu": "uuid", "hours": "hour", "model": "model", "namespace": "namespace"}
SPELLS = """WITH marked AS (SELECT uuid, at, util < 10 AS idle,
        row_number() OVER (PARTITION BY uuid ORDER BY at)
        - row_number() OVER (PARTITION BY uuid, util < 10 ORDER BY at) AS island FROM t)
    SELECT count(*) FROM (SELECT count(*) AS n FROM marked WHERE idle GROUP BY uuid, island) WHERE n > 30"""
PHASES = """SELECT CASE WHEN util < 10 THEN 'idle' WHEN util < 70 THEN 'under' WHEN util < 90 THEN 'productive'
    ELSE 'bound' END, count(*) FROM t GROUP BY 1"""
FLEET = """SELECT avg(s) FROM (SELECT hour, sum(m) AS s FROM (SELECT hour, uuid, avg(tflops) AS m
    FROM t GROUP BY 1, 2) GROUP BY 1)"""
ACTIVE = """SELECT avg(util), avg(pif), 100.0D * sum(CASE WHEN util > 70 AND pif < 0.6D THEN 1 ELSE 0 END) / count(*)
    FROM t WHERE util > 1"""


def session() -> SparkSession:
    """Spark on this machine alone, without its web page."""
    cores = str(len(os.sched_getaffinity(0)))
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": cores, "spark.log.level": "ERROR",
                "spark.driver.memory": "2g", "spark.sql.session.timeZone": "UTC"}  # fmt: skip
    made = SparkSession.builder.master(f"local[{cores}]")
    for name, value in settings.items():
        made = made.config(name, value)
    return made.getOrCreate()


def analyse(spark: SparkSession, paths: list[str]) -> dict[str, object]:
    """Headline, per GPU, per hour, per model, per namespace, phases and idle spells."""
    raw = spark.read.parquet(*paths)
    raw.createOrReplaceTempView("raw")
    models = [row[0] for row in raw.select("MODELNAME").distinct().collect()]
    facts = [
        (m, float(get_gpu(m).board_power_w.value), float(get_gpu(m).achievable_tflops("published"))) for m in models
    ]
    spark.createDataFrame(facts, "model string, board double, able double").createOrReplaceTempView("facts")
    power = "greatest(0D, least(1D, DCGM_FI_DEV_POWER_USAGE / board))"
    spark.sql(
        f"""CACHE TABLE t AS SELECT UUID AS uuid, f.model, NAMESPACE AS namespace, CLUSTERNAME AS cluster,
        SCRAPETIME AS at, date_trunc('hour', SCRAPETIME) AS hour, DCGM_FI_DEV_GPU_UTIL AS util,
        {power} AS pif, {power} * able AS tflops FROM raw r JOIN facts f ON r.MODELNAME = f.model"""
    )
    whole = spark.sql(f"SELECT {MEANS}, count(DISTINCT uuid), count(DISTINCT cluster) FROM t").first()
    active, fleet, spells = (spark.sql(query).first() for query in (ACTIVE, FLEET, SPELLS))
    assert whole is not None
    assert active is not None
    assert fleet is not None
    assert spells is not None
    groups = {n: len(spark.sql(f"SELECT {key}, {MEANS} FROM t GROUP BY 1").collect()) for n, key in GROUPS.items()}
    return groups | {
        "samples": whole[4],
        "gpus": whole[5],
        "gpu_util_pct": whole[0],
        "pif": whole[1],
        "bottlenecked_pct_of_active": active[2],
        "fleet_tflops_mean": fleet[0],
        "phases": {row[0]: row[1] for row in spark.sql(PHASES).collect()},
        "idle_spells_over_30": spells[0],
    }


def end(spark: SparkSession) -> None:
    """Stop Spark and wait for its Java process."""
    gateway = SparkContext._gateway  # noqa: SLF001 - the process has no public name
    spark.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


if __name__ == "__main__":
    start = time.perf_counter()
    running = session()
    result = analyse(running, sys.argv[1:])
    result["seconds"] = time.perf_counter() - start
    end(running)
    result["peak_mib"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(json.dumps(result, default=float))
