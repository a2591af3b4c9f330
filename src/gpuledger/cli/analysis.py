"""How does a stale ledger become a statement, and a statement files?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpuledger.cli.options import Chosen
from gpuledger.cli.screen import Screen, Stages
from gpuledger.units import MS_PER_DAY, day_start_ms

if TYPE_CHECKING:
    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.efficiency.statement import EfficiencyStatement
    from gpuledger.lake.layout import Lake
    from gpuledger.report.document import Document


def post(lake: Lake, limits: Thresholds, stages: Stages) -> None:
    """Bring the ledger up to date, with a bar that knows its end when nothing was posted before."""
    from gpuledger.ledger.engine import post_lake
    from gpuledger.ledger.store import Ledger

    lake.require()
    fresh = not Ledger(lake).manifest().days
    post_lake(lake, limits, stages.start("posting", sum(p.rows for p in lake.manifest().parts) if fresh else None))


def state(lake: Lake, limits: Thresholds, chosen: Chosen, achievable: str) -> EfficiencyStatement:
    """The statement over the chosen window and owners."""
    from gpuledger.efficiency.build import efficiency_statement
    from gpuledger.efficiency.calibration_files import load_calibration

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
    from gpuledger.ledger.store import Ledger

    if chosen.last_ms is None:
        return chosen.since_ms
    if chosen.until_ms is not None:
        return chosen.until_ms - chosen.last_ms
    newest = max((p.last_ms + 1 for p in lake.manifest().parts), default=0)
    posted = max((day_start_ms(d.day) + MS_PER_DAY for d in Ledger(lake).manifest().days), default=0)
    return (newest or posted) - chosen.last_ms


def write_files(document: Document, out: Path | None, screen: Screen, stages: Stages) -> dict[str, str]:
    """The document's files in a folder, their paths by name; none without a folder."""
    if out is None:
        return {}
    from gpuledger.report.charts import can_draw
    from gpuledger.report.write import write_document

    charts = can_draw()
    if not charts:
        screen.say('written without charts; for charts: pip install "gpuledger[charts]"', err=True)
    tick = stages.start("writing the report")
    written = write_document(document, out, charts=charts, progress=lambda _step: tick(1))
    return {name: str(path) for name, path in written.items()}


def show(
    document: Document, files: dict[str, str], screen: Screen, *, full: bool | None = None, err: bool = False
) -> None:
    """The short answer on the terminal (the whole document with `full`), and where the rest is.

    Without `full` the command has neither --full nor --out, and the document is the whole answer.
    """
    if not screen.talks:
        return
    from gpuledger.report.render.terminal import screen as drawn

    screen.show(*drawn(document, screen.console(err=err).width, full=bool(full)), err=err)
    if full is None:
        return
    page = files.get(f"{document.name}.html")
    where = f"the report: {page}" if page else "as a page: add --out DIR"
    screen.say(where if full else f"everything: add --full; {where}", err=err)
