"""How did a benchmark do as a whole, and which claims about it hold?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.options import PATH, full_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError
from gpuledger.plain_text import visible

if TYPE_CHECKING:
    from gpuledger.scaling.statement import ScalingStatement

FAILED = 1
JUDGED = ("claims", "checks", "readiness")


@click.command("scaling")
@click.argument("results", metavar="RESULTS...", nargs=-1, type=PATH, required=True)
@click.option("--baseline", type=PATH, help="Measured results of a smaller run: the baseline for efficiency.")
@click.option("--claims", type=PATH, help="JSON list of {claim, value}: claims about the run to check.")
@click.option("--compare", "before", type=PATH, help="Results of an earlier run: show changes and which exceed noise.")
@click.option("--trend", is_flag=True, help="Treat the files as runs over time and show only the trend.")
@click.option(
    "--price", "prices", multiple=True, metavar="[GPU=]USD", help="Dollars per GPU-hour; default: the market median."
)
@click.option(
    "--predict", multiple=True, type=click.IntRange(1), default=(4, 8), show_default=True,
    help="Cluster sizes to predict; repeatable.",
)  # fmt: skip
@click.option("--thresholds", "thresholds_file", type=PATH, help="TOML file that replaces the built-in grade limits.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Random seed for confidence intervals."
)
@click.option(
    "--out",
    type=PATH,
    help="Folder for scaling.html, its Markdown and JSON versions and charts; or FILE.csv, FILE.xlsx.",
)
@click.option(
    "--fail-on",
    type=click.Choice(JUDGED),
    help="Exit 1 on a contradicted claim, a detected mistake or a not-ready verdict.",
)
@full_option
@screen_options
def command(
    screen: Screen, results: tuple[Path, ...], baseline: Path | None, claims: Path | None, before: Path | None,
    trend: bool, prices: tuple[str, ...], predict: tuple[int, ...], thresholds_file: Path | None, seed: int,
    out: Path | None, fail_on: str | None, full: bool,
) -> int:  # fmt: skip
    """Evaluate a benchmark: throughput, scaling, latency, claims.

    RESULTS are files written by gpuledger bench or import-loadgen. Given several, the largest run is evaluated and the
    others become points on its scaling curve. The smallest is the baseline unless --baseline or the header names one.
    """
    if trend:
        if any((baseline, claims, before, out, fail_on)):
            hint = "leave --baseline, --claims, --compare, --out and --fail-on out, or --trend"
            raise InputError("--trend shows how runs move and judges none of them", hint=hint)
        return _trend(screen, results, seed)
    from gpuledger.cli.price_options import price_of
    from gpuledger.cli.showing import show, write_files
    from gpuledger.cost.pricing import PriceChoice
    from gpuledger.cost.user_settings import with_set_prices
    from gpuledger.report.documents.scaling import scaling_document
    from gpuledger.scaling.build import gather, scaling_statement
    from gpuledger.scaling.grades import load_scaling_thresholds

    limits, price = load_scaling_thresholds(thresholds_file), PriceChoice(with_set_prices(price_of(prices)))
    with screen.stages() as stages:
        tick = stages.start("reading")
        given = gather(results, baseline=baseline, claims=claims, before=before, price=price, predict=predict)
        tick(1)
        tick = stages.start("analyzing")
        made = scaling_statement(given, limits, seed=seed)
        tick(1)
        document = scaling_document(made)
        files = write_files(document, out, screen, stages)
    failed = _failed(made, fail_on)
    if screen.as_json:
        screen.answer({**document.data(), "failed": failed or None, "files": files})
    show(document, files, screen, full=full)
    if failed:
        click.echo(visible(f"failed: {failed}"), err=True)
    return FAILED if failed else 0


def _trend(screen: Screen, results: tuple[Path, ...], seed: int) -> int:
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.scaling import trend_document
    from gpuledger.scaling.build import read_runs
    from gpuledger.scaling.trend import trend_of

    runs = read_runs(results)
    if len(runs) < 2:
        raise InputError(f"a trend needs at least two runs, not {len(runs)}", hint="name the files of two runs or more")
    document = trend_document(trend_of(runs, seed))
    give(document, screen)
    return 0


def _failed(made: ScalingStatement, fail_on: str | None) -> str:
    """Why it counts as failed, where asked; what is unknown is not ready."""
    if fail_on == "claims":
        wrong = [c.claim for c in made.claims if c.verdict == "contradicted"]
        return f"contradicted: {', '.join(wrong)}" if wrong else ""
    if fail_on == "checks":
        caught = [c.check for c in made.checks if c.caught]
        return f"caught: {', '.join(caught)}" if caught else ""
    if fail_on == "readiness" and made.readiness.verdict != "ready as far as measured":
        return f"readiness: {made.readiness.verdict}"
    return ""
