"""How do stale books become a statement, and a statement files?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.cli.drawing import with_charts
from gpuledger.cli.options import Chosen
from gpuledger.cli.screen import Stages
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.calibration_files import load_calibration
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.efficiency.tables import bottlenecked_rows, health_rows, hourly_rows, per_gpu_rows
from gpuledger.errors import map_os_error
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import Ledger
from gpuledger.plain_text import csv_text
from gpuledger.report.outline import Comparison
from gpuledger.report.write import write_report, write_whole
from gpuledger.units import MS_PER_DAY, day_start_ms

Table = tuple[Sequence[str], Sequence[Sequence[Any]]]


def post(lake: Lake, limits: Thresholds, stages: Stages) -> None:
    """Bring the books up to date, with a bar that knows its end when nothing was posted before."""
    lake.require()
    fresh = not Ledger(lake).manifest().days
    post_lake(lake, limits, stages.start("posting", sum(p.rows for p in lake.manifest().parts) if fresh else None))


def state(lake: Lake, limits: Thresholds, chosen: Chosen, achievable: str) -> EfficiencyStatement:
    """The statement over the chosen window and owners."""
    return efficiency_statement(
        lake,
        since_ms=since_ms(lake, chosen),
        until_ms=chosen.until_ms,
        clusters=chosen.clusters,
        namespaces=chosen.namespaces,
        owners=chosen.owners,
        thresholds=limits,
        achievable=achievable,
        calibration=load_calibration(lake),
    )


def since_ms(lake: Lake, chosen: Chosen) -> int | None:
    """Where the window starts; --last counts back from --until, else from the newest sample."""
    if chosen.last_ms is None:
        return chosen.since_ms
    if chosen.until_ms is not None:
        return chosen.until_ms - chosen.last_ms
    newest = max((p.last_ms + 1 for p in lake.manifest().parts), default=0)
    posted = max((day_start_ms(d.day) + MS_PER_DAY for d in Ledger(lake).manifest().days), default=0)
    return (newest or posted) - chosen.last_ms


def write_files(
    statement: EfficiencyStatement, out: Path, limits: Thresholds, stages: Stages, comparison: Comparison | None = None
) -> dict[str, Path]:
    """The report, its twins, the charts and the CSVs in a folder; their paths by name."""
    makers: dict[str, Callable[[EfficiencyStatement], Table]] = {
        "gpu_summary.csv": per_gpu_rows,
        "bottlenecked_gpus.csv": bottlenecked_rows,
        "hourly_fleet.csv": hourly_rows,
        "gpu_health.csv": health_rows,
    }
    tick = stages.start("writing the report")
    try:
        out.mkdir(parents=True, exist_ok=True)
        files = write_report(
            statement,
            out,
            charts=with_charts(),
            progress=lambda _step: tick(1),
            comparison=comparison,
            limits=limits,
        )
        for name, make in makers.items():
            files[name] = write_whole(out / name, csv_text(_with_head(make(statement))))
    except OSError as error:
        raise map_os_error(error, out, "write the report") from error
    return files


def _with_head(table: Table) -> Sequence[Sequence[Any]]:
    header, rows = table
    return [header, *rows]
