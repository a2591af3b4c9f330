"""What did each device really do for each namespace, on average and in its busiest hours?

Hours are added up in DuckDB; what a plan must carry is the 95th percentile over a device's hours, not their mean. Work
is taken at the high end of what the counters can mean. Days that were folded count as one long hour each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from gpuledger.advice.stretches import WORK, window_test
from gpuledger.catalog.gpus import Gpu
from gpuledger.physics.activity import PIPES
from gpuledger.physics.evidence import ModelFacts
from gpuledger.physics.pipes import precision_name
from gpuledger.ledger.read.scope import SOURCE, Scope, open_books
from gpuledger.lake.layout import Lake
from gpuledger.units import MS_PER_HOUR, MS_PER_S, Unknown

Figure = float | Unknown
Evidence = Literal["counters", "power", "none"]
PHASES = ("idle", "underutilized", "productive", "compute_bound")
BUSY_HOURS = 0.95
# An hour with less work than this does not tell how fast the work goes.
TELLS_FROM_RATIO = 0.05
_ENDS = ("low", "middle", "high")
NO_DRAM = Unknown("memory activity (DRAM) is not recorded")
NO_MEMORY = Unknown("memory use is not recorded")


@dataclass(frozen=True)
class Load:
    """One device's work for one namespace. Ratios are of observed time; `busy_hours` figures are p95 over hours.

    `tflops` is realized work, low to high; `working_*` is how fast it goes while it works: what another GPU must match.
    By power (`evidence`) the figure is a ceiling, not a count.
    """

    device: str
    board: str
    sliced: bool
    namespace: str | None
    gpu_model: str | None
    gpu: Gpu | Unknown
    hours: int
    observed_h: float
    busy_ratio: float
    busy_hours_ratio: float
    evidence: Evidence
    tflops: tuple[float, float, float] | Unknown
    busy_hours_tflops: Figure
    working_tflops: Figure
    busy_hours_dram_bytes_per_s: Figure
    working_dram_bytes_per_s: Figure
    memory_max_bytes: Figure
    nvlink_bytes_per_s: Figure
    phases_ms: Mapping[str, int]
    precision: str | None = None


def read_loads(lake: Lake, scope: Scope) -> tuple[Load, ...]:
    """The load of every device and namespace in scope, in order of namespace and device."""
    test, given = window_test(scope)
    db, files = open_books(lake, scope)
    with db:
        db.execute("SET threads = 1")  # sums of floats depend on their order
        given["files"] = files
        kinds = f"SELECT DISTINCT gpu_model, tensor_precision FROM {SOURCE} WHERE {test}"  # noqa: S608
        facts: dict[str | None, ModelFacts] = {}
        pairs = [(m, p) for m, p in db.execute(kinds, given).fetchall()]
        for model, _ in pairs:
            facts.setdefault(model, ModelFacts(model))
        db.register("rates", _rates(pairs, facts))
        rows = db.sql(_sql(test), params=given).to_arrow_table().to_pylist()
    return tuple(_load(row, facts[row["gpu_model"]]) for row in rows)


def _rates(pairs: list[tuple[str | None, str | None]], facts: Mapping[str | None, ModelFacts]) -> pa.Table:
    """What each pipe's activity is worth, by GPU model and precision; null where the catalog cannot say."""
    columns: dict[str, list[Any]] = {"model": [m for m, _ in pairs], "precision": [p for _, p in pairs]}
    worths = [facts[m].rates(precision_name(p)) for m, p in pairs]
    for pipe in PIPES:
        for i, end in enumerate(_ENDS):
            columns[f"{pipe}_{end}"] = [
                None if isinstance(w, Unknown) else w.per_activity.get(pipe, (0.0, 0.0, 0.0))[i] for w in worths
            ]
    kinds = {name: pa.string() if name in {"model", "precision"} else pa.float64() for name in columns}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})


def _sql(test: str) -> str:
    done = {e: " + ".join(f"({expr}) * r.{pipe}_{e}" for pipe, expr in PIPES.items()) for e in _ENDS}
    sums = (
        "observed_ms", "dram_ms", "fb_mib_ms", "fb_ms", "nvlink_bytes", "nvlink_ms", *(f"phase_{p}_ms" for p in PHASES),
    )  # fmt: skip
    hourly = [
        *(f"sum({name})::DOUBLE AS {name}" for name in sums),
        "sum(busy_ppm_ms) / 1e6 AS busy",
        "sum(dram_ppm_ms) / 1e6 AS dram",
        f"sum({WORK['work_ms']})::DOUBLE AS work_ms",
        *(f"sum({expr}) AS done_{e}" for e, expr in done.items()),
        "max(fb_max_bytes) AS fb_max_bytes",
        "sum(pif_uj)::DOUBLE AS pif_uj",
        "sum(pif_ms * limit_mw)::DOUBLE AS pif_uj_max",
        "mode(tensor_precision) AS tensor_precision",
    ]
    key = "gpu_uuid, gpu_instance_id, namespace, gpu_model"
    inner = (
        f"SELECT {key}, hour_ms, {', '.join(hourly)} FROM (SELECT * FROM {SOURCE} WHERE {test}) l "  # noqa: S608
        "LEFT JOIN rates r ON l.gpu_model IS NOT DISTINCT FROM r.model "
        f"AND l.tensor_precision IS NOT DISTINCT FROM r.precision GROUP BY {key}, hour_ms"
    )
    busy, tells = "busy / observed_ms", f"FILTER (busy >= {TELLS_FROM_RATIO} * observed_ms)"
    outer = [
        "count(*) AS hours",
        *(f"sum({name}) AS {name}" for name in (*sums, "busy", "dram", "work_ms", *(f"done_{e}" for e in _ENDS))),
        "sum(pif_uj) / nullif(sum(pif_uj_max), 0) AS pif",
        "max(fb_max_bytes) AS fb_max_bytes",
        "mode(tensor_precision) AS tensor_precision",
        f"quantile_cont({busy}, {BUSY_HOURS}) AS busy_p95",
        f"quantile_cont(done_high / nullif(work_ms, 0), {BUSY_HOURS}) AS done_p95",
        f"quantile_cont(dram / nullif(dram_ms, 0), {BUSY_HOURS}) AS dram_p95",
        f"quantile_cont(pif_uj / nullif(pif_uj_max, 0), {BUSY_HOURS}) AS pif_p95",
        f"quantile_cont(done_high / nullif(work_ms, 0) / ({busy}), {BUSY_HOURS}) {tells} AS done_working",
        f"quantile_cont(dram / nullif(dram_ms, 0) / ({busy}), {BUSY_HOURS}) {tells} AS dram_working",
        f"quantile_cont(pif_uj / nullif(pif_uj_max, 0) / ({busy}), {BUSY_HOURS}) {tells} AS pif_working",
    ]
    order = "namespace NULLS LAST, gpu_uuid, gpu_instance_id, gpu_model"
    return (
        f"SELECT {key}, {', '.join(outer)} FROM ({inner}) WHERE observed_ms > 0 "  # noqa: S608
        f"GROUP BY {key} ORDER BY {order}"
    )


def _load(row: Mapping[str, Any], facts: ModelFacts) -> Load:
    board, part = row["gpu_uuid"], row["gpu_instance_id"]
    observed = row["observed_ms"]
    evidence, tflops, busiest, working = _work(row, facts)
    wide = None if isinstance(facts.gpu, Unknown) else facts.gpu.memory_bandwidth_bytes_per_s.value
    return Load(
        device=f"{board}/{part}" if part else board,
        board=board,
        sliced=bool(part),
        namespace=row["namespace"],
        gpu_model=row["gpu_model"],
        gpu=facts.gpu,
        hours=row["hours"],
        observed_h=observed / MS_PER_HOUR,
        busy_ratio=min(1.0, row["busy"] / observed),
        busy_hours_ratio=min(1.0, row["busy_p95"]),
        evidence=evidence,
        tflops=tflops,
        busy_hours_tflops=busiest,
        working_tflops=working,
        busy_hours_dram_bytes_per_s=_share(row["dram_p95"], wide, NO_DRAM),
        working_dram_bytes_per_s=_share(row["dram_working"] or row["dram_p95"], wide, NO_DRAM),
        memory_max_bytes=float(row["fb_max_bytes"]) if row["fb_max_bytes"] is not None else NO_MEMORY,
        nvlink_bytes_per_s=row["nvlink_bytes"] * MS_PER_S / row["nvlink_ms"]
        if row["nvlink_ms"]
        else Unknown("NVLink traffic is not recorded"),
        phases_ms={p: int(row[f"phase_{p}_ms"]) for p in PHASES},
        precision=precision_name(row["tensor_precision"]),
    )


def _share(ratio: float | None, whole: float | None, why: Unknown) -> Figure:
    """A share of what the GPU can do, never more than all of it: the division by busy time may overshoot."""
    return why if ratio is None or whole is None else min(ratio, 1.0) * whole


def _work(
    row: Mapping[str, Any], facts: ModelFacts
) -> tuple[Evidence, tuple[float, float, float] | Unknown, Figure, Figure]:
    """Evidence, realized TFLOPS, those of the busiest hours, and those while working."""
    peak = facts.peak_tflops
    if isinstance(peak, Unknown):
        return "none", peak, peak, peak
    if row["work_ms"] and row["done_high"] is not None:
        low, middle, high = (peak * row[f"done_{e}"] / row["work_ms"] for e in _ENDS)
        return "counters", (low, middle, high), peak * row["done_p95"], peak * (row["done_working"] or row["done_p95"])
    if row["pif"] is not None:
        ceiling = peak * min(row["pif"], 1.0)
        while_working = min(row["pif_working"] or row["pif_p95"], 1.0)
        return "power", (0.0, ceiling, ceiling), peak * min(row["pif_p95"], 1.0), peak * while_working
    why = Unknown("neither pipe counters nor power are recorded")
    return "none", why, why, why
