"""What did the hardware really do? The efficiency statement at the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.analysis import books, jobs_option, reading_options, zone_named
from gpuledger.cli.options import (
    PATH,
    REPORT,
    by_option,
    engine_option,
    full_option,
    lake_option,
    screen_options,
    statement_options,
)
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.efficiency.snapshot import Snapshot
    from gpuledger.efficiency.statement import EfficiencyStatement
    from gpuledger.lake.taking import Reading
    from gpuledger.ledger.read.window import Window
    from gpuledger.report.document import Document


@click.command("analyze")
@click.argument("files", metavar="[FILE]...", nargs=-1)
@lake_option
@click.option(
    "--out",
    type=REPORT,
    help="Folder for report.html, its Markdown and JSON versions, charts and CSVs; or FILE.csv, FILE.xlsx.",
)
@statement_options
@by_option
@click.option(
    "--achievable", metavar="SOURCE", default="published", show_default=True,
    help="Baseline for achievable TFLOPS: published (GPU Efficiency Analytics, 2026-01), peak (the dense peak) "
    "or measured (by gpuledger calibrate, else by the catalog).",
)  # fmt: skip
@click.option("--thresholds", "thresholds_file", type=PATH, help="TOML file that replaces the built-in limits.")
@reading_options
@jobs_option
@engine_option
@full_option
@screen_options
def command(
    screen: Screen, chosen: Window, files: tuple[str, ...], lake_dir: Path, out: Path | None, achievable: str,
    thresholds_file: Path | None, reading: Callable[[], Reading], full: bool, by: str | None, tables: tuple[Path, ...],
) -> None:  # fmt: skip
    """Report what the GPUs did and what improving it is worth.

    With FILEs, of these files alone: no lake is read or written. Without, of the lake; new samples are posted to the
    ledger first.
    """
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.given_files import given_files
    from gpuledger.cli.showing import give, write_files
    from gpuledger.cost.teams import Config, set_teams
    from gpuledger.efficiency.calibration_files import load_calibration
    from gpuledger.efficiency.snapshot import Snapshot, statement_or_snapshot
    from gpuledger.efficiency.statement import to_json
    from gpuledger.encode import encode
    from gpuledger.ledger.read.window import scope_of
    from gpuledger.telemetry.formats import Kind

    kinds = given_files(files, reading().mapping is not None)
    if kinds.alone:
        return kinds.show(kinds.documents(zone_named()), out, screen, full=full)
    tables, zone = (*tables, *kinds.of(Kind.JOBS)), kinds.used_as(screen, zone_named(), Kind.JOBS)
    limits, given = load_thresholds(thresholds_file), (lake_dir, kinds.samples, reading, chosen)
    owners = bool(chosen) or by is not None
    with screen.stages() as stages, books(*given, limits, screen, stages, tables, owners=owners, zone=zone) as lake:
        statement = statement_or_snapshot(
            lake,
            scope_of(lake, **chosen),
            limits,
            achievable=achievable,
            calibration=load_calibration(lake),
            by=by,
            team_of=(set_teams() or Config()).set_team,
        )
        if screen.as_json and out is None:  # what documents take is not loaded
            made = encode("snapshot", statement) if isinstance(statement, Snapshot) else to_json(statement)
            return screen.answer({**made, "files": {}})
        document = _document(statement, limits)
        written = write_files(document, out, screen, stages)
    return give(document, screen, written, full=full)


def _document(statement: EfficiencyStatement | Snapshot, limits: Thresholds) -> Document:
    """The document of a statement; those of other statements are not loaded."""
    from gpuledger.efficiency.snapshot import Snapshot

    if isinstance(statement, Snapshot):
        from gpuledger.report.documents.snapshot import snapshot_document

        return snapshot_document(statement)
    from gpuledger.report.documents.efficiency import efficiency_document

    return efficiency_document(statement, limits)
