"""Books with lines written by hand, and small fleets posted for real."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines, posting, spells
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.facts import rules_fingerprint
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet
from gpuledger.units import MS_PER_HOUR, PPM, day_start_ms, utc_day

START = day_start_ms("2026-01-20")
HOUR = MS_PER_HOUR
H100, A100, A10G = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "NVIDIA A10G"
BOARD_MW = {H100: 700_000, A100: 400_000, A10G: 300_000}

Row = dict[str, Any]


def make_line(
    hour: int = 0, gpu: str = "GPU-a", *, util: float | None = None, pif: float | None = None, model: str | None = H100,
    ms: int = HOUR, **given: Any,
) -> Row:  # fmt: skip
    """One hour of one device at a constant utilization and power (ratios), all active unless idle."""
    start = START + hour * HOUR
    row: Row = {name: 0 if column.merge == "sum" else None for name, column in lines.columns().items()}
    board = BOARD_MW.get(model or "")
    row |= {
        "hour_ms": start, "grain_ms": HOUR, "gpu_uuid": gpu, "gpu_model": model, "first_ms": start,
        "last_ms": start + ms, "samples": 60, "observed_ms": ms, "cluster": "c1", "namespace": "n1", "host": "h1",
        "limit_mw": board,
    }  # fmt: skip
    if util is not None:
        active = ms if util > 0.01 else 0
        row |= {"util_ms": ms, "util_ppm_ms": round(util * PPM) * ms, "active_ms": active}
        row |= {"busy_ppm_ms": round(util * PPM) * active}
        row |= {"active_util_ppm_ms": round(util * PPM) * active, f"util_h{min(int(util * 20), 19):02d}": ms}
    if pif is not None:
        energy = round(pif * (board or 500_000)) * ms
        row |= {"power_ms": ms, "power_uj": energy, "energy_ms": ms, "energy_mj": energy // 1000}
        if board:
            row |= {"pif_ms": ms, "pif_uj": energy}
            if row["active_ms"]:
                row |= {"active_pif_ms": ms, "active_pif_uj": energy}
    row |= given
    return row | {"state": given.get("state", _state(row))}


def _state(row: Row) -> str:
    """The state a sample with these readings is judged to be in, if its owner does not give one."""
    if row["idle_ms"] or row["idle_held_ms"] or row["idle_unknown_ms"]:
        return "idle"
    tensor, vector = row["tensor_ms"] > 0, row["fp32_ms"] > 0
    if not tensor and not vector:
        return "plain" if row["util_ms"] else "unstated"
    return ("matrix" if tensor else "vector") + ("" if tensor and vector else "-unseen")


def write_books(folder: Path, rows: Sequence[Row], quiet: Sequence[Row] = (), days: Sequence[str] = ()) -> Lake:
    """Lines and spells in a lake of their own; `days` puts lines into other days' files than their own."""
    lake = Lake(folder)
    of_day = days or [utc_day(r["hour_ms"]) for r in rows]
    rules = rules_fingerprint(load_thresholds())
    with lake.locked():
        lake.commit([])
        for day in sorted(set(of_day)):
            mine = [r for r, d in zip(rows, of_day, strict=True) if d == day]
            still = [s for s in quiet if utc_day(s["start_ms"]) == day]
            tables = {
                "lines": pa.Table.from_pylist(mine, lines.arrow_schema()),
                "spells": pa.Table.from_pylist(still, spells.SCHEMA),
                "pods": posting.PODS.empty_table(),
            }
            posted = PostedDay(
                day=day, generation=1, parts=(1,), next_parts=(), samples=len(mine), conflicts=0, rules=rules
            )
            Ledger(lake).put(posted, tables)
    return lake


@pytest.fixture(scope="session")
def line() -> Callable[..., Row]:
    return make_line


@pytest.fixture(scope="session")
def books(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Lake]:
    """Writes hand-made lines into a new lake each time."""

    def write(*rows: Row, quiet: Sequence[Row] = (), days: Sequence[str] = ()) -> Lake:
        return write_books(tmp_path_factory.mktemp("books"), rows, quiet, days)

    return write


@pytest.fixture(scope="session")
def state(books: Callable[..., Lake]) -> Callable[..., EfficiencyStatement]:
    """The statement over hand-made lines."""

    def make(*rows: Row, quiet: Sequence[Row] = (), **options: Any) -> EfficiencyStatement:
        return efficiency_statement(books(*rows, quiet=quiet), **options)

    return make


def _posted(folder: Path, spec: FleetSpec) -> tuple[Lake, Path]:
    file = folder / "fleet.parquet"
    write_fleet(spec, file)
    lake = Lake(folder / "lake")
    import_files(lake, [file])
    post_lake(lake, load_thresholds())
    return lake, file


@pytest.fixture(scope="session")
def small_fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Path]:
    """Twenty GPUs for a day and a bit: its lake and the file it came from."""
    return _posted(tmp_path_factory.mktemp("small"), FleetSpec(gpus=20, days=1.25))


@pytest.fixture(scope="session")
def demo_fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Path]:
    """The fifty GPUs of the demo, for twelve hours."""
    return _posted(tmp_path_factory.mktemp("demo"), FleetSpec(gpus=50, days=0.5))
