"""What does gpuledger say about a sample fleet, from nothing to a report?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.folders import replacing
from gpuledger.cli.options import PATH, Chosen, screen_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.efficiency.statement import EfficiencyStatement

MARKER = ".gpuledger-demo"
INVENTORY, TEAMS = "inventory.csv", "teams.toml"
HEADLINE = (
    "samples", "gpus", "clusters", "namespaces", "start_utc", "end_utc", "gpu_util_pct", "pif", "rfu_power_pct",
    "rfu_counters_pct", "rfu_counters", "efficiency_gap_pp", "bottlenecked_pct_of_active", "roi", "findings",
)  # fmt: skip
EVERYTHING = Chosen(None, None, None, (), (), ())


@click.command("demo")
@click.option(
    "--out", type=PATH, default=Path("gpuledger-demo"), show_default=True, help="Folder to create or replace."
)
@click.option("--open", "open_it", is_flag=True, help="Open the report in a browser.")
@screen_options
def command(screen: Screen, out: Path, open_it: bool) -> None:
    """Build a sample fleet, analyze it and write report.html.

    50 GPUs, 3 clusters, 7 days at one sample per minute: 504,000 samples with 36 columns. Running it again replaces the
    folder; a folder that the demo did not create is left alone.
    """
    from gpuledger.cli.views.demo import parts

    with replacing(out, MARKER) as folder:
        statement, written = _run(folder, screen)
    data, lake, report = out / "fleet.parquet", out / "lake", out / "report.html"
    inventory, teams = out / INVENTORY, out / TEAMS
    files = {name: str(out / path.relative_to(folder)) for name, path in written.items()}
    where = {"data": data, "lake": lake, "report": report, "inventory": inventory, "teams": teams}
    screen.answer({**_figures(statement), **{name: str(path) for name, path in where.items()}, "files": files})
    if screen.talks:
        screen.show(*parts(statement, **where))
    if open_it:
        click.launch(str(report))


def _run(folder: Path, screen: Screen) -> tuple[EfficiencyStatement, dict[str, Path]]:
    """The fleet, the lake, the books, the statement and its files, all in one folder."""
    from gpuledger.catalog.files import data_dir
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.analysis import post, state, write_files
    from gpuledger.cli.published import comparison
    from gpuledger.lake.importing import import_files
    from gpuledger.lake.layout import Lake
    from gpuledger.report.write import write_whole
    from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

    spec, lake, limits = FleetSpec(), Lake(folder / "lake"), load_thresholds()
    with screen.stages() as stages:
        write_fleet(spec, folder / "fleet.parquet", "parquet", stages.start("making the fleet", spec.rows))
        ticks = {"read": stages.start("reading", spec.rows), "write": stages.start("sorting, writing", spec.rows)}
        import_files(lake, [folder / "fleet.parquet"], progress=lambda stage, rows: ticks[stage](rows))
        post(lake, limits, stages)
        statement = state(lake, limits, EVERYTHING, "s0")
        files = write_files(statement, folder, limits, stages, comparison(statement))
        for name, shipped in ((INVENTORY, "demo_inventory.csv"), (TEAMS, "demo_config.toml")):
            files[name] = write_whole(folder / name, data_dir("gpuledger.cost", "data", shipped).read_bytes())
    return statement, files


def _figures(statement: EfficiencyStatement) -> dict[str, Any]:
    """The headline under the statement's own names, and the published findings."""
    import msgspec

    from gpuledger.cli.published import published_s0
    from gpuledger.efficiency.statement import to_json

    whole = to_json(statement)
    return {**{name: whole[name] for name in HEADLINE}, "published": msgspec.to_builtins(published_s0())}
