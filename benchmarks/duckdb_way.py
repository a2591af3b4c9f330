"""What would a person who knows SQL run instead? The same analyses in DuckDB, over the 36-column Parquet files.

    python benchmarks/duckdb_way.py FILE.parquet ...      prints one JSON object

The same figures as `pandas_way.py`, written as a capable user would: one view, one query an analysis.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import duckdb

from gpuledger.catalog.gpus import get_gpu


def analyse(paths: list[str]) -> dict[str, object]:
    """Headline, per GPU, per hour, per model, per namespace, phases and idle spells."""
    db = duckdb.connect()
    db.execute("SET memory_limit = '1500MB'")
    files = ", ".join(f"'{p}'" for p in paths)
    models = [r[0] for r in db.execute(f"SELECT DISTINCT MODELNAME FROM read_parquet([{files}])").fetchall()]
    facts = [(m, get_gpu(m).board_power_w.value, get_gpu(m).achievable_tflops("published")) for m in models]
    db.execute("CREATE TABLE facts (model VARCHAR, board DOUBLE, able DOUBLE)")
    db.executemany("INSERT INTO facts VALUES (?, ?, ?)", facts)
    db.execute(
        f"""CREATE TABLE t AS SELECT UUID AS uuid, f.model, NAMESPACE AS namespace, CLUSTERNAME AS cluster,
        epoch_ms(SCRAPETIME) AS stamp, DCGM_FI_DEV_GPU_UTIL AS util,
        greatest(0, least(1, DCGM_FI_DEV_POWER_USAGE / board)) AS pif,
        greatest(0, least(1, DCGM_FI_DEV_POWER_USAGE / board)) * able AS tflops
        FROM read_parquet([{files}]) r JOIN facts f ON r.MODELNAME = f.model"""
    )
    means = "avg(util), avg(pif), avg(pif) * 100, avg(util) - avg(pif) * 100, count(*)"
    whole = db.execute(f"SELECT {means}, count(DISTINCT uuid), count(DISTINCT cluster) FROM t").fetchone()
    active = db.execute(
        "SELECT avg(util), avg(pif), 100.0 * count(*) FILTER (util > 70 AND pif < 0.6) / count(*) FROM t WHERE util > 1"
    ).fetchone()
    assert whole is not None
    assert active is not None
    groups = {
        name: len(db.execute(f"SELECT {key}, {means} FROM t GROUP BY 1").fetchall())
        for name, key in {
            "per_gpu": "uuid", "hours": "stamp // 3600000", "model": "model", "namespace": "namespace"
        }.items()
    }  # fmt: skip
    fleet = db.execute(
        "SELECT avg(s) FROM (SELECT h, sum(m) AS s FROM (SELECT stamp // 3600000 AS h, uuid, avg(tflops) AS m "
        "FROM t GROUP BY 1, 2) GROUP BY 1)"
    ).fetchone()
    phases = db.execute(
        "SELECT CASE WHEN util < 10 THEN 'idle' WHEN util < 70 THEN 'under' WHEN util < 90 THEN 'productive' "
        "ELSE 'bound' END, count(*) FROM t GROUP BY 1"
    ).fetchall()
    spells = db.execute(
        """WITH marked AS (SELECT uuid, stamp, util < 10 AS idle,
            row_number() OVER (PARTITION BY uuid ORDER BY stamp)
            - row_number() OVER (PARTITION BY uuid, util < 10 ORDER BY stamp) AS island FROM t)
        SELECT count(*) FROM (SELECT count(*) AS n FROM marked WHERE idle GROUP BY uuid, island) WHERE n > 30"""
    ).fetchone()
    assert fleet is not None
    assert spells is not None
    return groups | {
        "samples": whole[4],
        "gpus": whole[5],
        "gpu_util_pct": whole[0],
        "pif": whole[1],
        "bottlenecked_pct_of_active": active[2],
        "fleet_tflops_mean": fleet[0],
        "phases": dict(phases),
        "idle_spells_over_30": spells[0],
    }


if __name__ == "__main__":
    start = time.perf_counter()
    result = analyse(sys.argv[1:])
    result["seconds"] = time.perf_counter() - start
    result["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result, default=float))
