"""How does a lake stay small?"""

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
from gpuledger.units import MS_PER_DAY, count, size

if TYPE_CHECKING:
    from gpuledger.ledger.tidying import Ages, Plan, Tidied

KEPT_MS = 30 * MS_PER_DAY


@click.command("tidy")
@lake_option
@click.option(
    "--fold-older-than", "fold_ms", type=length_ms, metavar="LENGTH", default="30d", show_default=True,
    help="Fold hourly ledger lines older than this into daily lines.",
)  # fmt: skip
@click.option(
    "--drop-samples-older-than", "drop_ms", type=length_ms, metavar="LENGTH",
    help="Delete samples older than this and close their days.  [default: 30d, or the age for folding if longer]",
)  # fmt: skip
@click.option("--keep-samples", is_flag=True, help="Delete no samples.")
@click.option("--yes", is_flag=True, help="Delete samples without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@screen_options
def command(
    screen: Screen, lake_dir: Path, fold_ms: int, drop_ms: int | None, keep_samples: bool, yes: bool, dry_run: bool
) -> None:
    """Compact a lake and delete expired samples.

    Small files become one per day. Lines are kept forever: hourly lines fold into daily lines, and no bill changes.
    Samples are deleted after 30 days, and only for days that are posted and folded. Those days are then closed: late
    rows for them are rejected.
    """
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.tidying import Ages, plan_tidying, tidy_lake

    if keep_samples and drop_ms is not None:
        raise InputError("--keep-samples and --drop-samples-older-than contradict each other", hint="give one of them")
    drop_ms = None if keep_samples else drop_ms if drop_ms is not None else max(fold_ms, KEPT_MS)
    lake, ages = Lake(lake_dir), Ages(time.time_ns() // 1_000_000, fold_ms, drop_ms)
    plan = plan_tidying(lake, ages)
    if dry_run:
        _show_plan(plan, ages, lake_dir, screen)
        return
    if plan.drop.days and not yes:
        _ask(plan, screen)
    with screen.stages() as stages:
        done = tidy_lake(lake, load_thresholds(), ages, stages.start("folding days", len(plan.fold_days) or None))
    screen.answer(
        {
            "lake": str(lake_dir),
            "now_ms": ages.now_ms,
            "days_merged": done.days_merged,
            "parts_merged": done.parts_merged,
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


def _show_plan(plan: Plan, ages: Ages, lake_dir: Path, screen: Screen) -> None:
    screen.answer(
        {
            "lake": str(lake_dir),
            "now_ms": ages.now_ms,
            "dry_run": True,
            "days_to_merge": plan.merge_days,
            "days_to_fold": plan.fold_days,
            "days_to_drop": plan.drop.days,
            "rows_to_drop": plan.drop.rows,
            "size_bytes_to_drop": plan.drop.size_bytes,
            "closed_before": plan.drop.closed_before or None,
        }
    )
    merge, fold = count(len(plan.merge_days), "day"), count(len(plan.fold_days), "day")
    screen.say(f"would merge the sample files of {merge} and fold the lines of {fold}")
    screen.say(f"would delete {_going(plan)}" if plan.drop.days else "would delete no samples")
    screen.say("dry run: nothing was changed")


def _going(plan: Plan) -> str:
    days = f"{count(len(plan.drop.days), 'day')} up to {plan.drop.days[-1]}"
    return f"{count(plan.drop.rows, 'sample')} of {days} ({size(plan.drop.size_bytes)})"


def _ask(plan: Plan, screen: Screen) -> None:
    """Deleting samples cannot be undone: ask first."""
    what = f"{_going(plan)} would be deleted permanently"
    if screen.as_json or not sys.stdin.isatty():
        raise InputError(what, hint="add --yes to confirm, --keep-samples to keep them, or --dry-run to look")
    click.confirm(f"{what}. Continue?", abort=True, err=True)


def _report(done: Tidied, screen: Screen) -> None:
    days = len(done.days_folded)
    folded = f"{count(days, 'day')} folded: {done.lines_before:,} hour lines became {done.lines_after:,}"
    if done.days_merged:
        became = "one" if len(done.days_merged) == 1 else f"{len(done.days_merged)}, one per day"
        screen.say(f"{done.parts_merged:,} sample files became {became}")
    screen.say(folded if days else "nothing to fold")
    if done.drop.days:
        gone = f"{count(done.drop.rows, 'sample')} of {count(len(done.drop.days), 'day')}"
        screen.say(
            f"{gone} deleted, {size(done.drop.size_bytes)} freed",
            f"closed to late rows: every day before {done.drop.closed_before}",
        )
