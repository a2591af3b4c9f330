"""Can a FinOps tool read GPU cost and waste?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.carbon_options import carbon_options, placing_of
from gpuledger.cli.exporting import export_options, ready
from gpuledger.cli.options import PATH, statement_options
from gpuledger.cli.screen import Screen

if TYPE_CHECKING:
    from gpuledger.ledger.read.window import Window
    from gpuledger.live.focus.build import FocusExport


@click.command("focus")
@click.option(
    "--out", type=PATH, metavar="FILE", help="FILE.csv or FILE.parquet.  [default: CSV on standard output]"
)  # fmt: skip
@click.option(
    "--spec", type=click.Choice(["1.4", "1.0"]), default="1.4", show_default=True,
    help="FOCUS version; 1.0 adds the columns that older tools ask for.",
)  # fmt: skip
@click.option("--issuer", metavar="NAME", help="Who charges the owners.  [default: Internal GPU platform]")
@click.option("--account", metavar="NAME", help="Billing account of all rows.  [default: gpu-fleet]")
@click.option(
    "--no-billed", is_flag=True,
    help="BilledCost 0: for merging with the file of the cloud, which bills the same GPUs.",
)  # fmt: skip
@carbon_options
@statement_options
@export_options
def command(
    screen: Screen, chosen: Window, lake_dir: Path, paid: dict[str, Any], carbon: dict[str, Any], out: Path | None,
    spec: str, issuer: str | None, account: str | None, no_billed: bool,
) -> None:  # fmt: skip
    """Write cost and waste as FOCUS rows, by day, GPU and owner.

    EffectiveCost adds up to the audit of the same window, to the last digit. Waste by bucket, evidence, utilization,
    energy and carbon are in columns that begin with x_. Time whose price is unknown is left out and reported: FOCUS
    does not allow an unknown cost.
    """
    from gpuledger.efficiency.calibration_files import load_calibration
    from gpuledger.ledger.read.window import scope_of
    from gpuledger.live.focus.build import focus_export
    from gpuledger.live.focus.files import check_name, focus_csv, write_rows
    from gpuledger.live.focus.rows import Naming

    if out is not None:
        check_name(out)
    placing = placing_of(**carbon)
    lake, asked = ready(screen, lake_dir, paid)
    naming = Naming(issuer or Naming.issuer, account or Naming.account, not no_billed)
    terms = asked.terms.copy()
    terms["calibration"] = load_calibration(lake)
    made = focus_export(lake, scope_of(lake, **chosen), naming, placing, **terms)
    older = spec != "1.4"
    if out is None and not screen.as_json:
        click.echo(focus_csv(made.rows, older=older), nl=False)
    if out is not None:
        write_rows(made.rows, out, older=older)
    _report(screen, made, out)


def _report(screen: Screen, made: FocusExport, out: Path | None) -> None:
    from gpuledger.cost.money import ZERO
    from gpuledger.encode import plain
    from gpuledger.units import count, known

    paid = sum((row["EffectiveCost"] for row in made.rows), ZERO)
    if out is not None:
        screen.say(f"{count(len(made.rows), 'row')}, ${paid:,.2f}: {out}")
    for left in made.left_out:
        hours = f"{left.paid_h:,.1f} GPU-hours of {count(left.gpus, 'GPU')}"
        screen.say(f"left out: {count(left.rows, 'row')}, {hours}: {left.why}", err=True)
    if made.left_out:
        screen.say("next: give their price with --price GPU=USD or --inventory FILE", err=True)
    figures = {"rows": len(made.rows), "effective_usd": paid, "audit_usd": known(made.statement.paid_usd)}
    figures |= {"left_out": made.left_out, "file": str(out) if out else None}
    screen.answer({"v": 1, "statement": "focus", **plain(figures)})
