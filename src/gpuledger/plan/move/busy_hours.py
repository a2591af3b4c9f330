"""What adds up to the load of a device: sums by hour, what they are worth, and the busiest of the hours?

Hours come from the one reader of lines. What a plan must carry is the 95th percentile over a device's hours, not their
mean; DuckDB computes it. Work is taken at the high end of what the counters can mean, pipe by pipe. Days that were
folded count as one long hour each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from gpuledger.catalog.gpus import Gpu, Precision
from gpuledger.catalog.gpus.facts import VECTOR_PRECISIONS
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.activity import COLUMNS as ACTIVITY
from gpuledger.physics.activity import PIPES, pipe_sums
from gpuledger.physics.evidence import ModelFacts
from gpuledger.physics.pipe_facts import pipe_facts
from gpuledger.physics.pipes import precision_name
from gpuledger.units import Unknown

PHASES = ("idle", "underutilized", "productive", "compute_bound")
BUSY_HOURS = 0.95
# An hour with less work than this does not show how fast the work goes.
SHOWS_FROM_RATIO = 0.05
# Tensor work of a precision that has another name there: fp32 products run as tf32, fp64 ones have a peak of their own.
_TENSOR_NAMES = {"fp32": "tf32", "fp64": "fp64_tensor"}
TENSOR = tuple(p for p in get_args(Precision) if p not in VECTOR_PRECISIONS)
ASSUMED = "assumed"
ENDS = ("low", "middle", "high")
_LABELS = ("gpu_uuid", "gpu_instance_id", "namespace", "gpu_model", "tensor_precision")
_SUMS = (
    "observed_ms", "unstated_ms", "dram_ms", "fb_mib_ms", "fb_ms", "nvlink_bytes", "nvlink_ms", "fp32_ms", "fp64_ms",
    "fp16_ms", "tensor_ms", "hmma_ms", *(f"phase_{p}_ms" for p in PHASES),
)  # fmt: skip
_MORE = ("busy_ppm_ms", "dram_ppm_ms", "fp64_ppm_ms", "pif_ms", "pif_uj")


def read_rows(lake: Lake, scope: Scope) -> tuple[list[dict[str, Any]], dict[str | None, ModelFacts]]:
    """One row per device and namespace with the columns of `_sql`."""
    import duckdb  # for its quantiles

    lines = _read_hours(lake, scope)  # duckdb reads it by name
    pairs = sorted(set(zip(*(lines[c].to_pylist() for c in _LABELS[3:]), strict=True)), key=str)
    facts = {model: ModelFacts(model) for model, _ in pairs}
    with duckdb.connect() as db:
        db.execute("SET threads = 1")  # sums of floats depend on their order
        db.register("lines", lines)
        db.register("rates", _rates(pairs, facts))
        rows = db.sql(_sql()).to_arrow_table().to_pylist()
    return rows, facts


def _read_hours(lake: Lake, scope: Scope) -> pa.Table:
    """Sums of each device by namespace, model, precision and hour."""
    books, sums = Books(lake, scope), Accumulator(most=("fb_max_bytes",))
    numbers = tuple(dict.fromkeys((*_SUMS, *_MORE, *ACTIVITY)))
    for _, rows in books.blocks(_LABELS, numbers, ("fb_max_bytes", "limit_mw"), hourly=True):
        made = {c: rows[c] for c in (*_SUMS, *_MORE)} | pipe_sums(rows)
        made["pif_uj_max"] = np.nan_to_num(rows["pif_ms"] * rows["limit_mw"]).astype(np.int64)
        made["fb_max_bytes"] = np.nan_to_num(rows["fb_max_bytes"], nan=-1.0)
        sums.add([rows["hour_ms"], *(rows[c] for c in _LABELS)], made)
    keys, totals = sums.total()
    if not keys:
        raise books.nothing_found()
    columns = {c: pa.array(books.names[c].text(k), pa.string()) for c, k in zip(_LABELS, keys[1:], strict=True)}
    numbers_of = {c: pa.array(v.astype(np.float64)) for c, v in totals.items() if c != "fb_max_bytes"}
    most = totals["fb_max_bytes"]
    columns["fb_max_bytes"] = pa.array(most, pa.float64(), mask=most < 0)
    return pa.table(columns | {"hour_ms": pa.array(keys[0])} | numbers_of)


def _rates(pairs: list[tuple[str | None, str | None]], facts: Mapping[str | None, ModelFacts]) -> pa.Table:
    """What each pipe's activity is worth, by GPU model and precision; null where the catalog has no figure.

    `need_`: TFLOPS of each pipe at full activity; `tensor_as`: the precision the tensor pipe's work is of. An unknown
    precision is taken as the reference precision: the GPU's tensor peak and another's are of the same kind.
    """
    texts = ("model", "precision", "tensor_as")
    figures = [f"{pipe}_{end}" for pipe in PIPES for end in ENDS] + [f"need_{pipe}" for pipe in PIPES]
    rows: list[dict[str, Any]] = []
    for model, label in pairs:
        known, gpu, peak = facts[model], facts[model].gpu, facts[model].peak_tflops
        worth, name = known.rates(precision_name(label)), tensor_precision(label, gpu)
        most = known.rates(gpu.reference_precision() if name is None and isinstance(gpu, Gpu) else name)
        row: dict[str, Any] = {"model": model, "precision": label, "tensor_as": name or ASSUMED}
        for pipe in PIPES:
            if not isinstance(worth, Unknown):
                ends = worth.per_activity.get(pipe, (0.0, 0.0, 0.0))
                row |= {f"{pipe}_{end}": each for end, each in zip(ENDS, ends, strict=True)}
            if not isinstance(most, Unknown) and not isinstance(peak, Unknown) and pipe in most.per_activity:
                # Two halves share an fp32 lane: fp16 vector work takes the time of half as many fp32 operations.
                lanes = pipe_facts().vector.fp16_per_fp32 if pipe == "fp16" else 1.0
                row[f"need_{pipe}"] = most.per_activity[pipe][2] * peak / lanes
        rows.append(row)
    kinds = [*((name, pa.string()) for name in texts), *((name, pa.float64()) for name in figures)]
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def tensor_precision(label: str | None, gpu: Gpu | Unknown) -> str | None:
    """The tensor precision a label stands for; None where it names none that this GPU has."""
    named = precision_name(label)
    name = _TENSOR_NAMES.get(named or "", named)
    if name is None or isinstance(gpu, Unknown) or isinstance(gpu.tensor_flop_per_clk_per_sm(name), Unknown):
        return None
    return name


def _need_sums() -> dict[str, str]:
    """Work of an hour by the precision whose peak must carry it, as TFLOPS x ms."""
    sums = {
        name: f"CASE WHEN r.tensor_as = '{name}' THEN l.matrix * r.need_matrix ELSE 0 END"
        for name in (*TENSOR, ASSUMED)
    }
    for name, pipe in (("int8", "imma"), ("fp64_tensor", "dfma")):
        sums[name] += f" + l.{pipe} * coalesce(r.need_{pipe}, 0)"
    vector = (f"l.{pipe} * coalesce(r.need_{pipe}, 0)" for pipe in ("fp32", "fp16"))
    return sums | {"fp32": " + ".join(vector), "fp64": "l.fp64 * r.need_fp64"}


def _recorded_ms(precision: str) -> str:
    """The time the pipe of a precision was recorded for."""
    return f"{precision}_ms" if precision in VECTOR_PRECISIONS else "work_ms"


def _sql() -> str:
    needs = _need_sums()
    done = {e: " + ".join(f"l.{pipe} * r.{pipe}_{e}" for pipe in PIPES) for e in ENDS}
    hourly = [
        *(f"sum({name}) AS {name}" for name in _SUMS),
        "sum(busy_ppm_ms) / 1e6 AS busy",
        "sum(dram_ppm_ms) / 1e6 AS dram",
        "sum(counters_ms) AS work_ms",
        *(f"sum({expr}) AS done_{e}" for e, expr in done.items()),
        *(f"sum({expr}) AS need_{name}" for name, expr in needs.items()),
        "sum(fp64_ppm_ms) / 1e6 AS fp64_active",
        "max(fb_max_bytes) AS fb_max_bytes",
        "sum(pif_uj) AS pif_uj",
        "sum(pif_uj_max) AS pif_uj_max",
        "mode(tensor_precision) AS tensor_precision",
    ]
    key = "gpu_uuid, gpu_instance_id, namespace, gpu_model"
    inner = (
        f"SELECT {key}, hour_ms, {', '.join(hourly)} FROM lines l "  # noqa: S608
        "LEFT JOIN rates r ON l.gpu_model IS NOT DISTINCT FROM r.model "
        f"AND l.tensor_precision IS NOT DISTINCT FROM r.precision GROUP BY {key}, hour_ms"
    )
    busy, shows = "busy / observed_ms", f"FILTER (busy >= {SHOWS_FROM_RATIO} * observed_ms)"
    outer = [
        "count(*) AS hours",
        *(f"sum({name}) AS {name}" for name in (*_SUMS, "busy", "dram", "work_ms", *(f"done_{e}" for e in ENDS))),
        "sum(pif_uj) / nullif(sum(pif_uj_max), 0) AS pif",
        "max(fb_max_bytes) AS fb_max_bytes",
        "mode(tensor_precision) AS tensor_precision",
        f"quantile_cont({busy}, {BUSY_HOURS}) AS busy_p95",
        f"quantile_cont(done_high / nullif(work_ms, 0), {BUSY_HOURS}) AS done_p95",
        f"quantile_cont(dram / nullif(dram_ms, 0), {BUSY_HOURS}) AS dram_p95",
        f"quantile_cont(pif_uj / nullif(pif_uj_max, 0), {BUSY_HOURS}) AS pif_p95",
        *(
            f"coalesce(quantile_cont(need_{n} / nullif({_recorded_ms(n)}, 0) / ({busy}), {BUSY_HOURS}) {shows}, "
            f"quantile_cont(need_{n} / nullif({_recorded_ms(n)}, 0), {BUSY_HOURS})) AS need_{n}"
            for n in needs
        ),
        f"quantile_cont(fp64_active / nullif(fp64_ms, 0) / ({busy}), {BUSY_HOURS}) {shows} AS fp64_working",
        f"quantile_cont(dram / nullif(dram_ms, 0) / ({busy}), {BUSY_HOURS}) {shows} AS dram_working",
    ]
    order = "namespace NULLS LAST, gpu_uuid, gpu_instance_id, gpu_model"
    return (
        f"SELECT {key}, {', '.join(outer)} FROM ({inner}) WHERE observed_ms > 0 "  # noqa: S608
        f"GROUP BY {key} ORDER BY {order}"
    )
