"""How does a meter's report look on a terminal of 80 columns or more?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console, RenderableType
from rich.markup import escape as escape_markup
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpuledger.plain_text import visible
from gpuledger.training.meter.rank import Ranks
from gpuledger.training.meter.report import MeterReport, to_json
from gpuledger.training.mfu import ALL_PCT

Json = Mapping[str, Any]
BAR = 30
# Names of phases on screen, where they differ.
_WORDS = {"data_wait": "data wait", "h2d": "host to device"}


def escape(text: str) -> str:
    """Text as it is: neither markup nor a control character in it takes effect."""
    return escape_markup(visible(text))


def show_report(report: MeterReport, ranks: Ranks | None = None) -> None:
    """Print it on stderr, as stdout is the job's own."""
    console = Console(stderr=True, highlight=False, emoji=False)
    for part in parts(to_json(report), ranks):
        console.print(part)


def parts(report: Json, ranks: Ranks | None = None) -> Iterator[RenderableType]:
    """Head, phases, figures, findings, unknown figures; `report` is the JSON."""
    yield head(report)
    if report["seen"]["timed_steps"]:
        yield phases(report)
        yield figures(report)
    if ranks is not None:
        yield ""
        yield escape(ranks.words)
    if report["findings"]:
        yield ""
        yield from findings(report)
    notes = report["seen"]["notes"]
    if notes:
        yield ""
        yield from (f"[yellow]{escape(n)}[/]" for n in notes)
    for missing in shown_unknown(report):
        yield f"[dim]not known: {escape(missing)}[/]"


def head(report: Json) -> str:
    """Who ran where, and how it ended."""
    seen = report["seen"]
    who, place = seen["who"], seen["place"]
    rank = f", rank {who['rank']} of {who['world_size']}" if who["world_size"] > 1 else ""
    steps = f"{seen['steps']:,} steps, {seen['timed_steps']:,} timed; {seen['state']}"
    return f"[bold]{escape(who['run_id'])}[/]{rank} on {escape(place['name'])}\n[dim]{escape(steps)}[/]"


def _table() -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=20)
    table.add_column(justify="right", no_wrap=True, style="bold")
    return table


def phases(report: Json) -> Table:
    """Where the step's time goes."""
    table = _table()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, style="cyan")
    for name, ms in report["phases_ms"].items():
        pct = report["phases_pct"][name]
        table.add_row(escape(_WORDS.get(name, name)), f"{ms:,.2f} ms", f"{pct:.1f} %", "█" * round(BAR * pct / 100))
    table.add_row("step", f"{report['step_ms']:,.2f} ms", "", "")
    return table


def figures(report: Json) -> Table:
    """Rates, MFU, dollars, joules; unknown ones are left out here and listed below."""
    table = _table()
    table.add_column(style="dim")
    work, price = report["seen"]["work"], report["price"]
    rows = (
        ("tokens per second", report["tokens_per_s"], "{:,.0f}", ""),
        ("samples per second", report["samples_per_s"], "{:,.1f}", ""),
        ("MFU", report["mfu_pct"], "{:.1f} %", report["denominator"]),
        ("HFU", report["hfu_pct"], "{:.1f} %", "all the device did, over the same peak"),
        ("MFU in use", report["mfu_of_precision_pct"], "{:.1f} %", report["denominator_of_precision"]),
        ("MFU of measured", report["mfu_of_measured_pct"], "{:.1f} %", report["denominator_of_measured"]),
        ("model TFLOP/s", report["model_tflops"], "{:,.3g}", work["how"] if work else ""),
        ("$ per million tokens", report["usd_per_million_tokens"], "{:,.4f}", price["words"]),
        ("$ per million samples", report["usd_per_million_samples"], "{:,.4f}", ""),
        ("joules per step", report["joules_per_step"], "{:,.1f}", "the board's own counter"),
        ("joules per token", report["joules_per_token"], "{:,.4f}", ""),
    )
    if report["seen"]["precision"] is not None:
        table.add_row("precision", escape(report["seen"]["precision"]), escape(_mix(report["seen"])))
    for name, value, form, note in rows:
        if value is not None and not (form.endswith("%") and value > ALL_PCT):
            table.add_row(name, form.format(value), escape(note))
    return table


def _mix(seen: Json) -> str:
    """The shares of the FLOPs; reports of older versions took the precision from the weights and have none."""
    ratios = seen.get("precision_ratios")
    if not ratios:
        return ""
    mix = ", ".join(f"{name} {100 * ratio:.1f} %" for name, ratio in ratios.items())
    return f"of the matrix products, as observed: {mix} of the FLOPs"


def findings(report: Json) -> Iterator[RenderableType]:
    """Each with its evidence, what it saves and the change."""
    for number, found in enumerate(report["findings"], 1):
        yield f"[bold]{number}. {escape(found['title'])}[/]"
        saved = f"[green]{escape(found['gain_words'])}[/] [dim]({escape(found.get('source', ''))})[/]"
        yield Padding(f"{escape(found['why'])}\n{saved}", (0, 0, 0, 3))
        change = visible(found["change"].rstrip(), lines=True)
        yield Padding(Text(change, style="cyan", no_wrap=True, overflow="ignore"), (0, 0, 0, 5))


def shown_unknown(report: Json) -> list[str]:
    """Unknown figures, by reason."""
    by_why: dict[str, list[str]] = {}
    for missing in report["not_known"]:
        by_why.setdefault(missing["why"], []).append(missing["figure"].rpartition(".")[2])
    for name in ("mfu_pct", "hfu_pct", "mfu_of_precision_pct", "mfu_of_measured_pct"):
        if (value := report[name]) is not None and value > ALL_PCT:
            why = (
                f"{value:,.1f} % is impossible; this report was written by a version that did not observe the precision"
            )
            by_why.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" for why, names in by_why.items()]
