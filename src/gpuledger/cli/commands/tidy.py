"""How is old ledger data compacted?"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.options import lake_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError
from gpuledger.times import length_ms
from gpuledger.units import count, size

if TYPE_CHECKING:
    from gpuledger.ledger.tidying import Plan, Tidied


@click.command("tidy")
@lake_option
@click.option(
    "--fold-older-than", "fold_ms", type=length_ms, metavar="LENGTH", required=True,
    help="Fold hourly ledger lines older than this into daily lines (30d).",
)  # fmt: skip
@click.option(
    "--drop-samples-older-than", "drop_ms", type=length_ms, metavar="LENGTH",
    help="Delete samples older than this and close their days (90d).",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Delete samples without asking.")
@screen_options
def command(screen: Screen, lake_dir: Path, fold_ms: int, drop_ms: int | None, yes: bool) -> None:
    """Compact old ledger data and delete expired samples.

    Hourly lines fold into daily lines. Samples are deleted only with --drop-samples-older-than, and only for days that
    are posted and folded. Those days are then closed: late rows for them are rejected.
    """
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.tidying import Ages, plan_tidying, tidy_lake

    lake, ages = Lake(lake_dir), Ages(time.time_ns() // 1_000_000, fold_ms, drop_ms)
    plan = plan_tidying(lake, ages)
    if plan.drop.days and not yes:
        _ask(plan, screen)
    with screen.stages() as stages:
        done = tidy_lake(lake, load_thresholds(), ages, stages.start("folding days", len(plan.fold_days) or None))
    screen.answer(
        {
            "lake": str(lake_dir),
            "now_ms": ages.now_ms,
            "days_folded": done.days_folded,
            "lines_before": done.lines_before,
            "lines_after": done.lines_after,
            "days_dropped": done.drop.days,
            "rows_dropped": done.drop.rows,
            "size_bytes_dropped": done.drop.size_bytes,
            "closed_before": done.drop.closed_before or None,
        }
    )
    _report(done, screen)


def _ask(plan: Plan, screen: Screen) -> None:
    """Deleting samples cannot be undone: ask first."""
    what = (
        f"{count(plan.drop.rows, 'sample')} of {count(len(plan.drop.days), 'day')} up to {plan.drop.days[-1]} "
        f"({size(plan.drop.size_bytes)}) would be deleted permanently"
    )
    if screen.as_json or not sys.stdin.isatty():
        raise InputError(what, hint="add --yes to confirm")
    click.confirm(f"{what}. Continue?", abort=True, err=True)


def _report(done: Tidied, screen: Screen) -> None:
    days = len(done.days_folded)
    folded = f"{count(days, 'day')} folded: {done.lines_before:,} hour lines became {done.lines_after:,}"
    screen.say(folded if days else "nothing to fold")
    if done.drop.days:
        gone = f"{count(done.drop.rows, 'sample')} of {count(len(done.drop.days), 'day')}"
        screen.say(
            f"{gone} deleted, {size(done.drop.size_bytes)} freed",
            f"closed to late rows: every day before {done.drop.closed_before}",
        )
