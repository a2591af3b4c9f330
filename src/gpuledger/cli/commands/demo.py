"""What does gpuledger find in a sample fleet, from nothing to a report?"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gpuledger.cli.options import PATH, full_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import FileFault, map_os_error
from gpuledger.units import Unknown

if TYPE_CHECKING:
    from gpuledger.efficiency.statement import EfficiencyStatement
    from gpuledger.report.document import Document

MARKER = ".gpuledger-demo"
INVENTORY, TEAMS = "inventory.csv", "teams.toml"
HEADLINE = (
    "samples", "gpus", "clusters", "namespaces", "start_utc", "end_utc", "gpu_util_pct", "pif", "rfu_power_pct",
    "rfu_counters_pct", "rfu_counters", "efficiency_gap_pp", "bottlenecked_pct_of_active", "roi", "findings",
)  # fmt: skip
MONEY = ("paid_usd", "waste_usd", "waste_pct", "monthly_usd", "savings", "first")

ROI_TARGET_PCT = 70.0


class PublishedFigure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published finding; `name` is the field of our own answer it is compared with."""

    name: str
    label: str
    value: float
    unit: str
    digits: int


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The findings of one publication."""

    version: int
    source: str
    note: str
    figures: tuple[PublishedFigure, ...]


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
            "your own: gpuledger audit YOUR_EXPORT.csv --out report",
        )
    if open_it:
        click.launch(where["report"])


def _run(folder: Path, screen: Screen) -> tuple[Document, dict[str, str]]:
    """The fleet, the lake, the ledger, the statements and their files, all in one folder."""
    from gpuledger.advice.asking import asked, audit
    from gpuledger.catalog.files import data_dir
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cli.showing import write_files
    from gpuledger.cost.inventory import read_inventory
    from gpuledger.efficiency.build import efficiency_statement
    from gpuledger.lake.importing import import_files
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.read.scope import Scope
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
        stages.post(lake, limits)
        statement = efficiency_statement(lake, thresholds=limits)
        efficiency = efficiency_document(statement, limits, comparison(statement))
        stock = replace(read_inventory(folder / INVENTORY), path=INVENTORY)  # the folder is given its name at the end
        terms = asked(lake.root, inventory=stock, teams=folder / TEAMS)
        money = audit_document(audit(lake, Scope(), terms))
        both = joined(money, efficiency, name="report")
        document = replace(both, data=lambda: {**efficiency.data(), "audit": money.data()})
        files |= write_files(document, folder, screen, stages)
    return document, files


def _figures(whole: Any) -> dict[str, Any]:
    """The headline under the statements' own names, the money, and the published findings."""
    money = {name: whole["audit"][name] for name in MONEY}
    published = msgspec.to_builtins(published_findings())
    head = {"v": whole["v"], "statement": "demo", **{name: whole[name] for name in HEADLINE}}
    return {**head, "audit": money, "published": published}


def published_findings() -> Published:
    """The findings published for the sample fleet."""
    from gpuledger.catalog.files import data_dir, load_toml

    return load_toml(data_dir("gpuledger.cli", "data", "published.toml"), Published)


def ours(statement: EfficiencyStatement) -> dict[str, float | Unknown]:
    """The figures of a statement under the names of the published ones."""
    worth = (r.equivalent_gpus for r in statement.roi if r.target_rfu_pct == ROI_TARGET_PCT)
    return {
        "gpu_util_pct": statement.fleet.gpu_util_pct,
        "pif": statement.fleet.pif,
        "rfu_power_pct": statement.fleet.rfu_power_pct,
        "efficiency_gap_pp": statement.fleet.efficiency_gap_pp,
        "bottlenecked_pct_of_active": statement.active.bottlenecked_pct_of_active,
        "equivalent_gpus_at_70": next(worth, Unknown("RFU by power is 70 % or more already")),
    }


def comparison(statement: EfficiencyStatement) -> list[tuple[str, str, str]]:
    """Each published finding in words: what it is, theirs, ours."""
    figures = ours(statement)
    return [(f.label, _text(f.value, f), _text(figures[f.name], f)) for f in published_findings().figures]


def _text(value: float | Unknown, figure: PublishedFigure) -> str:
    return "not known" if isinstance(value, Unknown) else f"{value:,.{figure.digits}f} {figure.unit}".strip()


@contextlib.contextmanager
def replacing(target: Path, marker: str) -> Iterator[Path]:
    """A new folder that takes the place of `target` when all went well; only a folder with `marker` is replaced."""
    if target.exists() and not target.is_dir():
        raise FileFault(target, "it is a file, not a folder", hint="name another folder with --out")
    if target.is_dir() and any(target.iterdir()) and not (target / marker).is_file():
        raise FileFault(
            target, "the folder holds other things and would be replaced", hint="name a new or empty folder with --out"
        )
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.absolute().parent))
    except OSError as error:
        raise map_os_error(error, target, "write") from error
    try:
        fresh = aside / "new"
        fresh.mkdir()
        yield fresh
        (fresh / marker).write_text("made by gpuledger; replaced when it runs again\n", encoding="utf-8")
        _swap(fresh, target, aside / "old")
    except OSError as error:
        raise map_os_error(error, target, "write") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _swap(fresh: Path, target: Path, old: Path) -> None:
    """Put `fresh` where `target` is; put the old one back should that fail."""
    there = target.exists()
    if there:
        target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        if there:
            old.rename(target)
        raise
