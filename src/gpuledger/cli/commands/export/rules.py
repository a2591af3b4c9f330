"""What should Prometheus record, and when should it alert?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.exporting import deliver
from gpuledger.cli.options import PATH, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.times import length_ms


@click.command("rules")
@click.option("--out", type=PATH, metavar="FILE", help="File to write.  [default: standard output]")
@click.option(
    "--stale", type=length_ms, default="15m", show_default=True, metavar="LENGTH",
    help="Alert when the newest sample is older.",
)  # fmt: skip
@click.option(
    "--idle-for", default="2h", show_default=True, metavar="LENGTH", help="Alert on GPUs that are idle for this long."
)
@screen_options
def command(screen: Screen, out: Path | None, stale: int, idle_for: str) -> None:
    """Write recording and alerting rules for Prometheus.

    They work on what gpuledger serve gives at /metrics. Limits are those of gpuledger.toml: idle-heavy, the utilization
    gap, and one alert per budget. Check the file with promtool check rules FILE.
    """
    from gpuledger.advice.limits import load_limits
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.cost.user_settings import set_budgets
    from gpuledger.live.rules import RuleTerms, prometheus_length, rules_text

    lasting = prometheus_length(length_ms(idle_for))
    terms = RuleTerms(load_limits(), load_thresholds(), set_budgets(), stale, lasting)
    deliver(screen, rules_text(terms), out, "rules")
