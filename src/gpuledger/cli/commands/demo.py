"""What does gpuledger find in a sample fleet, from nothing to a report?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.folders import replacing
from gpuledger.cli.options import PATH, Chosen, full_option, screen_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.report.document import Document

MARKER = ".gpuledger-demo"
INVENTORY, TEAMS = "inventory.csv", "teams.toml"
HEADLINE = (
    "samples", "gpus", "clusters", "namespaces", "start_utc", "end_utc", "gpu_util_pct", "pif", "rfu_power_pct",
    "rfu_counters_pct", "rfu_counters", "efficiency_gap_pp", "bottlenecked_pct_of_active", "roi", "findings",
)  # fmt: skip
MONEY = ("paid_usd", "waste_usd", "waste_pct", "monthly_usd", "savings", "first")
EVERYTHING = Chosen(None, None, None, (), (), ())


@click.command("demo")
@click.option(
    "--out", type=PATH, default=Path("gpuledger-demo"), show_default=True, help="Folder to create or replace."
)
@click.option("--open", "open_it", is_flag=True, help="Open the report in a browser.")
@full_option
@screen_options
def command(screen: Screen, out: Path, open_it: bool, full: bool) -> None:
    """Build a sample fleet, audit it and write report.html.

    50 GPUs, 3 clusters, 7 days at one sample per minute: 504,000 samples with 36 columns. Running it again replaces the
    folder; a folder that the demo did not create is left alone.
    """
    from gpuledger.report.render.terminal import screen as drawn

    with replacing(out, MARKER) as folder:
        document, written = _run(folder, screen)
    files = {name: str(out / Path(path).relative_to(folder)) for name, path in written.items()}
    names = {"data": "fleet.parquet", "lake": "lake", "report": "report.html", "inventory": INVENTORY, "teams": TEAMS}
    where = {name: str(out / file) for name, file in names.items()}
    if screen.as_json:
        screen.answer({**_figures(document.data()), **where, "files": files})
    if screen.talks:
        screen.show(*drawn(document, screen.console().width, full=full))
        screen.say(
            f"report:   {where['report']} (money and efficiency; open it in a browser)",
            f"audit:    gpuledger audit --lake {where['lake']} --inventory {where['inventory']} --full",
            f"analyze:  gpuledger analyze --lake {where['lake']} --last 1d",
            "your own: gpuledger import YOUR_EXPORT.csv && gpuledger audit --out report",
        )
    if open_it:
        click.launch(where["report"])


def _run(folder: Path, screen: Screen) -> tuple[Document, dict[str, str]]:
    """The fleet, the lake, the ledger, the statements and their files, all in one folder."""
    from gpuledger.catalog.files import data_dir
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.analysis import post, state
    from gpuledger.cli.auditing import audit_lake, wanted
    from gpuledger.cli.published import comparison
    from gpuledger.cli.showing import write_files
    from gpuledger.lake.importing import import_files
    from gpuledger.lake.layout import Lake
    from gpuledger.report.document import joined
    from gpuledger.report.documents.audit import audit_document
    from gpuledger.report.documents.efficiency import efficiency_document
    from gpuledger.report.write import write_whole
    from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

    spec, lake, limits = FleetSpec(), Lake(folder / "lake"), load_thresholds()
    files: dict[str, str] = {}
    with screen.stages() as stages:
        write_fleet(spec, folder / "fleet.parquet", "parquet", stages.start("making the fleet", spec.rows))
        ticks = {"read": stages.start("reading", spec.rows), "write": stages.start("sorting, writing", spec.rows)}
        import_files(lake, [folder / "fleet.parquet"], progress=lambda stage, rows: ticks[stage](rows))
        for name, shipped in ((INVENTORY, "demo_inventory.csv"), (TEAMS, "demo_config.toml")):
            files[name] = str(write_whole(folder / name, data_dir("gpuledger.cost", "data", shipped).read_bytes()))
        post(lake, limits, stages)
        statement = state(lake, limits, EVERYTHING, "published")
        asked = wanted(
            inventory=folder / INVENTORY, prices=(), instance=None, region=None, teams=folder / TEAMS, limits=None,
            usd_per_kwh=None, previous=False, lake=lake.root,
        )  # fmt: skip
        efficiency = efficiency_document(statement, limits, comparison(statement))
        audit = audit_document(audit_lake(lake, EVERYTHING, asked, stages))
        both = joined(audit, efficiency, name="report")
        document = replace(both, data=lambda: {**efficiency.data(), "audit": audit.data()})
        files |= write_files(document, folder, screen, stages)
    return document, files


def _figures(whole: Any) -> dict[str, Any]:
    """The headline under the statements' own names, the money, and the published findings."""
    import msgspec

    from gpuledger.cli.published import published_findings

    money = {name: whole["audit"][name] for name in MONEY}
    published = msgspec.to_builtins(published_findings())
    return {**{name: whole[name] for name in HEADLINE}, "audit": money, "published": published}
