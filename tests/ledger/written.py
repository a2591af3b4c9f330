"""Ledgers written without posting: lines by hand, and lines as version 1 wrote them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines, posting, spells
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.facts import rules_fingerprint
from gpuledger.ledger.store import Ledger, LedgerManifest, PostedDay
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, PPM, day_start_ms, utc_day

START = day_start_ms("2026-01-20")
HOUR = MS_PER_HOUR
H100 = "NVIDIA H100 80GB HBM3"

Row = dict[str, Any]


def line(
    hour: int = 0, gpu: str = "GPU-a", *, util: float | None = None, pif: float | None = None, **given: Any
) -> Row:
    """One hour of one H100 in one state, at a constant utilization and power (ratios)."""
    start = START + hour * HOUR
    row: Row = {name: 0 if column.merge == "sum" else None for name, column in lines.columns().items()}
    row |= {
        "hour_ms": start, "grain_ms": HOUR, "gpu_uuid": gpu, "gpu_model": H100, "first_ms": start,
        "last_ms": start + HOUR, "samples": 60, "observed_ms": HOUR, "cluster": "c1", "namespace": "n1", "host": "h1",
        "limit_mw": 700_000, "state": "plain",
    }  # fmt: skip
    if util is not None:
        share, active = round(util * PPM), HOUR if util > 0.01 else 0
        row |= {"util_ms": HOUR, "util_ppm_ms": share * HOUR, "active_ms": active, "active_util_ppm_ms": share * active}
        row |= {f"util_h{min(int(util * 20), 19):02d}": HOUR}
    if pif is not None:
        energy = round(pif * 700_000) * HOUR
        row |= {"power_ms": HOUR, "power_uj": energy, "energy_ms": HOUR, "energy_mj": energy // 1000}
        row |= {"pif_ms": HOUR, "pif_uj": energy}
        if row["active_ms"]:
            row |= {"active_pif_ms": HOUR, "active_pif_uj": energy}
    return row | given


def write_books(folder: Path, rows: Sequence[Row], quiet: Sequence[Row] = ()) -> Lake:
    """Lines and spells in a lake of their own, without samples."""
    lake = Lake(folder)
    rules = rules_fingerprint(load_thresholds())
    with lake.locked():
        lake.commit([])
        for day in sorted({utc_day(r["hour_ms"]) for r in rows}):
            mine = [r for r in rows if utc_day(r["hour_ms"]) == day]
            still = [s for s in quiet if utc_day(s["start_ms"]) == day]
            tables = {
                "lines": pa.Table.from_pylist(mine, lines.arrow_schema()),
                "spells": pa.Table.from_pylist(still, spells.SCHEMA),
                "pods": posting.PODS.empty_table(),
            }
            Ledger(lake).put(PostedDay(day, 1, (1,), (), len(mine), 0, rules), tables)
    return lake


def write_samples(folder: Path, name: str, rows: Iterable[Row]) -> Path:
    """Samples as a Parquet file in gpuledger's own columns."""
    found = list(rows)
    names = sorted({k for r in found for k, v in r.items() if v is not None})
    file = folder / f"{name}.parquet"
    pq.write_table(pa.table({n: [r.get(n) for r in found] for n in names}), file)
    return file


def posted(folder: Path, rows: Iterable[Row]) -> Lake:
    """A lake of samples, posted."""
    lake = Lake(folder / "lake")
    import_files(lake, [write_samples(folder, "samples", rows)])
    post_lake(lake, load_thresholds())
    return lake


# A line of version 1 had no state, one power (the board's own), no slice in its key, and these columns more.
_V1_KEYS = (
    "hour_ms", "grain_ms", "gpu_uuid", "gpu_instance_id", "cluster", "namespace", "workload", "run_id",
    "tensor_precision",
)  # fmt: skip
_V1_ONLY = ("engine_known_ms", "energy_counter_ms", *(f"pif_h{i:02d}" for i in range(20)))
_V1_RANGES = ("util_min_ppm", "util_max_ppm", "power_min_mw", "power_max_mw")
_SINCE_V2 = (
    "state", "limit_mw", "idle_unknown_ms", "wait_1s_ms", "wait_10s_ms", "wait_30s_ms", "waits", "occupancy_ms",
    "occupancy_ppm_ms", "integer_ms", "integer_ppm_ms", "unclocked_ms", "throttle_ms", "tensor_capped_ppm_ms",
)  # fmt: skip
_STILL = ("idle_unknown_ms", "wait_1s_ms", "wait_10s_ms", "wait_30s_ms")


def version_1(table: pa.Table, grain_ms: int = HOUR) -> pa.Table:
    """Lines as version 1 would have posted them: states made one, every pause idle time."""
    groups: dict[tuple, list[Row]] = defaultdict(list)
    for row in table.to_pylist():
        start = row["hour_ms"] // grain_ms * grain_ms
        groups[tuple((row | {"hour_ms": start, "grain_ms": grain_ms})[k] for k in _V1_KEYS)].append(row)
    out = []
    for key, rows in groups.items():
        made = dict(zip(_V1_KEYS, key, strict=True))
        for name, column in lines.columns().items():
            known = [r[name] for r in rows if r[name] is not None]
            if name in made or name in _SINCE_V2:
                continue
            if column.merge == "sum":
                made[name] = sum(known)
            else:
                made[name] = min(known, default=None) if column.merge in ("min", "first") else max(known, default=None)
        made["idle_ms"] += sum(r[name] for r in rows for name in _STILL)
        made["board_mw"] = max((r["limit_mw"] for r in rows if r["limit_mw"] is not None), default=None)
        out.append(made | dict.fromkeys(_V1_ONLY, 0) | dict.fromkeys(_V1_RANGES))
    kinds = {c.name: pa.string() if c.type == "string" else pa.int64() for c in lines.columns().values()}
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in out[0]], {"gpuledger.lines.version": "1"})
    return pa.Table.from_pylist(out, schema)


def make_version_1(lake: Lake, *, folded: bool = False, samples_kept: bool = True) -> None:
    """Rewrite the ledger of a lake as version 1 left it."""
    ledger = Ledger(lake)
    days = []
    for day in ledger.manifest().days:
        table = ledger.read("lines", day.day)
        pq.write_table(version_1(table, MS_PER_DAY if folded else HOUR), ledger.files_of(day, "lines")[0])
        pq.write_table(version_1(table, MS_PER_DAY), ledger.files_of(day, "days")[0])
        was = {"rules": "version 1", "folded": folded, "samples_kept": samples_kept, "hourly": False, "by_gpu": False}
        days.append(msgspec.structs.replace(day, **was))
    manifest = msgspec.json.encode(LedgerManifest(1, tuple(days)))
    (ledger.root / "manifest.json").write_bytes(manifest)
