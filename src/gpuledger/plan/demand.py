"""What did each device really do for each namespace, on average and in its busiest hours?

Hours come from the one reader of lines. What a plan must carry is the 95th percentile over a device's hours, not their
mean; DuckDB works it out. Work is taken at the high end of what the counters can mean, pipe by pipe. Days that were
folded count as one long hour each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from gpuledger.advice.needs import MATTERS_FROM_RATIO, PIPES_NOT_RECORDED, Need
from gpuledger.catalog.gpu_facts import VECTOR_PRECISIONS
from gpuledger.catalog.gpus import Gpu, Precision
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.activity import COLUMNS as ACTIVITY
from gpuledger.physics.activity import PIPES, pipe_sums
from gpuledger.physics.evidence import ModelFacts
from gpuledger.physics.pipes import pipe_facts, precision_name
from gpuledger.units import MS_PER_HOUR, MS_PER_S, Unknown

Figure = float | Unknown
Evidence = Literal["counters", "power", "none"]
PHASES = ("idle", "underutilized", "productive", "compute_bound")
BUSY_HOURS = 0.95
# An hour with less work than this does not tell how fast the work goes.
TELLS_FROM_RATIO = 0.05
# A demand is known where its counters are recorded for this share of the time: vector pipes against the tensor pipe.
RECORDED_FROM_RATIO = 0.9
# Tensor work of a precision that has another name there: fp32 products run as tf32, fp64 ones have a peak of their own.
_TENSOR_NAMES = {"fp32": "tf32", "fp64": "fp64_tensor"}
_TENSOR = tuple(p for p in get_args(Precision) if p not in VECTOR_PRECISIONS)
_ASSUMED = "assumed"
_ENDS = ("low", "middle", "high")
NO_DRAM = Unknown("memory activity (DRAM) is not recorded")
NO_MEMORY = Unknown("memory use is not recorded")


@dataclass(frozen=True)
class Load:
    """One device's work for one namespace. Ratios are of observed time; `busy_hours` figures are p95 over hours.

    `tflops` is realized work, low to high; by power (`evidence`) it is a ceiling, not a count. `needs` and `working_*`
    are how fast it goes while it works: what another GPU must match. `unrecorded`: pipes that are not in `needs`
    because nobody recorded them. Not `busy_known`: neither activity nor utilization is recorded for enough of the time.
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
    needs: tuple[Need, ...] | Unknown
    busy_hours_dram_bytes_per_s: Figure
    working_dram_bytes_per_s: Figure
    memory_max_bytes: Figure
    nvlink_bytes_per_s: Figure
    phases_ms: Mapping[str, int]
    precision: str | None = None
    unrecorded: tuple[str, ...] = ()
    busy_known: bool = True


def read_loads(lake: Lake, scope: Scope) -> tuple[Load, ...]:
    """The load of every device and namespace in scope, in order of namespace and device."""
    rows, facts = _read_rows(lake, scope)
    return tuple(_load(row, facts[row["gpu_model"]]) for row in rows)


_LABELS = ("gpu_uuid", "gpu_instance_id", "namespace", "gpu_model", "tensor_precision")
_SUMS = (
    "observed_ms", "unstated_ms", "dram_ms", "fb_mib_ms", "fb_ms", "nvlink_bytes", "nvlink_ms", "fp32_ms", "fp64_ms",
    "fp16_ms", "tensor_ms", "hmma_ms", *(f"phase_{p}_ms" for p in PHASES),
)  # fmt: skip
_MORE = ("busy_ppm_ms", "dram_ppm_ms", "fp64_ppm_ms", "pif_ms", "pif_uj")


def _read_rows(lake: Lake, scope: Scope) -> tuple[list[dict[str, Any]], dict[str | None, ModelFacts]]:
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
    """What each pipe's activity is worth, by GPU model and precision; null where the catalog cannot say."""
    columns: dict[str, list[Any]] = {"model": [m for m, _ in pairs], "precision": [p for _, p in pairs]}
    worths = [facts[m].rates(precision_name(p)) for m, p in pairs]
    for pipe in PIPES:
        for i, end in enumerate(_ENDS):
            columns[f"{pipe}_{end}"] = [
                None if isinstance(w, Unknown) else w.per_activity.get(pipe, (0.0, 0.0, 0.0))[i] for w in worths
            ]
    columns |= _need_rates(pairs, facts)
    kinds = {name: pa.string() if name in {"model", "precision", "tensor_as"} else pa.float64() for name in columns}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})


def _need_rates(
    pairs: list[tuple[str | None, str | None]], facts: Mapping[str | None, ModelFacts]
) -> dict[str, list[Any]]:
    """TFLOPS of each pipe at full activity, and the precision the tensor pipe's work is of.

    An unknown precision is taken as the reference precision: the GPU's tensor peak and another's are of the same kind.
    """
    out: dict[str, list[Any]] = {"tensor_as": [], **{f"need_{pipe}": [] for pipe in PIPES}}
    for model, label in pairs:
        gpu, peak = facts[model].gpu, facts[model].peak_tflops
        name = _tensor_precision(label, gpu)
        rates = facts[model].rates(gpu.reference_precision() if name is None and isinstance(gpu, Gpu) else name)
        out["tensor_as"].append(name or _ASSUMED)
        for pipe in PIPES:
            known = not isinstance(rates, Unknown) and not isinstance(peak, Unknown) and pipe in rates.per_activity
            # Two halves share an fp32 lane: fp16 vector work takes the time of half as many fp32 operations.
            lanes = pipe_facts().vector.fp16_per_fp32 if pipe == "fp16" else 1.0
            out[f"need_{pipe}"].append(rates.per_activity[pipe][2] * peak / lanes if known else None)  # type: ignore[union-attr]
    return out


def _tensor_precision(label: str | None, gpu: Gpu | Unknown) -> str | None:
    """The tensor precision a label stands for; None where it names none that this GPU has."""
    told = precision_name(label)
    name = _TENSOR_NAMES.get(told or "", told)
    if name is None or isinstance(gpu, Unknown) or isinstance(gpu.tensor_flop_per_clk_per_sm(name), Unknown):
        return None
    return name


def _need_sums() -> dict[str, str]:
    """Work of an hour by the precision whose peak must carry it, as TFLOPS x ms."""
    sums = {
        name: f"CASE WHEN r.tensor_as = '{name}' THEN l.matrix * r.need_matrix ELSE 0 END"
        for name in (*_TENSOR, _ASSUMED)
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
    done = {e: " + ".join(f"l.{pipe} * r.{pipe}_{e}" for pipe in PIPES) for e in _ENDS}
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
    busy, tells = "busy / observed_ms", f"FILTER (busy >= {TELLS_FROM_RATIO} * observed_ms)"
    outer = [
        "count(*) AS hours",
        *(f"sum({name}) AS {name}" for name in (*_SUMS, "busy", "dram", "work_ms", *(f"done_{e}" for e in _ENDS))),
        "sum(pif_uj) / nullif(sum(pif_uj_max), 0) AS pif",
        "max(fb_max_bytes) AS fb_max_bytes",
        "mode(tensor_precision) AS tensor_precision",
        f"quantile_cont({busy}, {BUSY_HOURS}) AS busy_p95",
        f"quantile_cont(done_high / nullif(work_ms, 0), {BUSY_HOURS}) AS done_p95",
        f"quantile_cont(dram / nullif(dram_ms, 0), {BUSY_HOURS}) AS dram_p95",
        f"quantile_cont(pif_uj / nullif(pif_uj_max, 0), {BUSY_HOURS}) AS pif_p95",
        *(
            f"coalesce(quantile_cont(need_{n} / nullif({_recorded_ms(n)}, 0) / ({busy}), {BUSY_HOURS}) {tells}, "
            f"quantile_cont(need_{n} / nullif({_recorded_ms(n)}, 0), {BUSY_HOURS})) AS need_{n}"
            for n in needs
        ),
        f"quantile_cont(fp64_active / nullif(fp64_ms, 0) / ({busy}), {BUSY_HOURS}) {tells} AS fp64_working",
        f"quantile_cont(dram / nullif(dram_ms, 0) / ({busy}), {BUSY_HOURS}) {tells} AS dram_working",
    ]
    order = "namespace NULLS LAST, gpu_uuid, gpu_instance_id, gpu_model"
    return (
        f"SELECT {key}, {', '.join(outer)} FROM ({inner}) WHERE observed_ms > 0 "  # noqa: S608
        f"GROUP BY {key} ORDER BY {order}"
    )


def _load(row: Mapping[str, Any], facts: ModelFacts) -> Load:
    board, part = row["gpu_uuid"], row["gpu_instance_id"]
    observed = row["observed_ms"]
    evidence, tflops, busiest = _work(row, facts)
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
        needs=_needs(row, facts.gpu),
        busy_hours_dram_bytes_per_s=_share(row["dram_p95"], wide, NO_DRAM),
        working_dram_bytes_per_s=_share(row["dram_working"] or row["dram_p95"], wide, NO_DRAM),
        memory_max_bytes=float(row["fb_max_bytes"]) if row["fb_max_bytes"] is not None else NO_MEMORY,
        nvlink_bytes_per_s=row["nvlink_bytes"] * MS_PER_S / row["nvlink_ms"]
        if row["nvlink_ms"]
        else Unknown("NVLink traffic is not recorded"),
        phases_ms={p: int(row[f"phase_{p}_ms"]) for p in PHASES},
        precision=_tensor_precision(row["tensor_precision"], facts.gpu),
        unrecorded=tuple(pipe for pipe in ("fp64", "fp16") if not row[f"{pipe}_ms"]),
        busy_known=observed - row["unstated_ms"] >= RECORDED_FROM_RATIO * observed,
    )


def _share(ratio: float | None, whole: float | None, why: Unknown) -> Figure:
    """A share of what the GPU can do, never more than all of it: the division by busy time may overshoot."""
    return why if ratio is None or whole is None else min(ratio, 1.0) * whole


def _pipes_recorded(row: Mapping[str, Any]) -> bool:
    """Whether both the tensor pipe and the fp32 vector pipe were recorded, so that the sum is not a lower bound."""
    tensor_ms = max(row["tensor_ms"], row["hmma_ms"])
    return bool(tensor_ms) and row["fp32_ms"] >= RECORDED_FROM_RATIO * tensor_ms


def _needs(row: Mapping[str, Any], gpu: Gpu | Unknown) -> tuple[Need, ...] | Unknown:
    """TFLOPS while working by precision, each at most what the GPU can do; pipes that hardly work are left out."""
    if isinstance(gpu, Unknown):
        return gpu
    if not _pipes_recorded(row):
        return PIPES_NOT_RECORDED
    if row["done_high"] is None:
        return Unknown(f"the catalog cannot rate the pipes of {gpu.name}")
    if row["need_fp64"] is None and (row["fp64_working"] or 0.0) >= MATTERS_FROM_RATIO:
        return Unknown(f"the fp64 pipe is busy, and the catalog has no fp64 peak for {gpu.name}")
    found = []
    for name in (*_TENSOR, _ASSUMED, *sorted(VECTOR_PRECISIONS)):
        tflops, known = row[f"need_{name}"], name != _ASSUMED
        precision = name if known else gpu.reference_precision()
        peak = gpu.peak(precision)
        most = tflops if isinstance(peak, Unknown) else peak
        if tflops and tflops >= MATTERS_FROM_RATIO * most:
            found.append(Need(precision, min(tflops, most), known))
    return tuple(found)


def _work(row: Mapping[str, Any], facts: ModelFacts) -> tuple[Evidence, tuple[float, float, float] | Unknown, Figure]:
    """Evidence, realized TFLOPS, and those of the busiest hours."""
    peak = facts.peak_tflops
    if isinstance(peak, Unknown):
        return "none", peak, peak
    if _pipes_recorded(row) and row["done_high"] is not None:
        low, middle, high = (peak * row[f"done_{e}"] / row["work_ms"] for e in _ENDS)
        return "counters", (low, middle, high), peak * row["done_p95"]
    if row["pif"] is not None:
        ceiling = peak * min(row["pif"], 1.0)
        return "power", (0.0, ceiling, ceiling), peak * min(row["pif_p95"], 1.0)
    if row["work_ms"]:
        return "none", PIPES_NOT_RECORDED, PIPES_NOT_RECORDED
    why = Unknown("neither pipe counters nor power are recorded")
    return "none", why, why
