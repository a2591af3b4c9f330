"""How does the ladder of a tuned training job look?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.figures import NOT_KNOWN, count, number, percent, size
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table

Figures = Mapping[str, Any]
_HOUR_S, _MINUTE_S = 3600, 60


def parts(told: Figures) -> list[RenderableType]:
    """The ladder, what did not stay and why, what it cost and when it is paid back."""
    kept = f"{told['effective_batch']} samples between optimizer steps, kept throughout"
    out: list[RenderableType] = [
        f"[bold]{escape(told['job'])}[/] on {escape(told['device'])}",
        f"[dim]{kept}[/]",
        f"[dim]{escape(_denominator(told))}[/]",
        "",
        _ladder(told),
        "",
    ]
    others = [s for s in told["steps"] if s["outcome"] not in ("start", "kept")]
    if others:
        out += [_others(others), ""]
    out += [_sums(told), ""]
    return out


def _denominator(told: Figures) -> str:
    if told["peak_tflops"] is None:
        return f"MFU {told['denominator']}"
    return f"MFU over the {told['denominator']}; beside it over the peak of the precision in use"


def _ladder(told: Figures) -> Table:
    table, rungs = plain_table("Step by step, gains with 95 % intervals"), told["ladder"]
    table.add_column("step", min_width=8)
    # What was measured at no step has no column: why not is said below.
    shown = {head: tell for head, (name, tell) in _CELLS.items() if any(r[name] is not None for r in rungs)}
    for head in shown:
        table.add_column(head, justify="right", no_wrap=head != _GAIN)
    for rung in rungs:
        table.add_row(escape(rung["name"]), *(tell(rung[_CELLS[head][0]]) for head, tell in shown.items()))
    return table


def _others(steps: list[Figures]) -> Table:
    table = plain_table("Not kept")
    table.add_column("step", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("why")
    for step in steps:
        again = f" (round {step['round']})" if step["round"] > 1 else ""
        table.add_row(escape(step["name"]) + again, step["outcome"], escape(step["why"]))
    return table


def _sums(told: Figures) -> Table:
    table, back = pairs(), told["payback"]
    if told["gained"]:
        words = f"[bold]{NOT_KNOWN}[/]: start and winner were not compared"
        if told["total"]:
            words = f"[bold]{times(told['total'])}[/], start and winner measured in turns{_both(told)}"
            if (told["total"]["low"] or 0.0) <= 1:
                words += "; too noisy to say that it is faster: run it again with a larger --budget"
        table.add_row("end to end", words)
    elif all(step["outcome"] in ("start", "left out", "not tried") for step in told["steps"]):
        table.add_row("end to end", f"[bold]{NOT_KNOWN}[/]: nothing was tried")
    else:
        least = percent(100 * told["min_gain_ratio"], 0)
        table.add_row("end to end", f"[bold]no gain[/]: nothing was faster beyond the noise and by {least} or more")
    late = sum(step["outcome"] == "not tried" for step in told["steps"])
    if late:
        table.add_row("not tried", f"{count(late, 'setting')}, for want of time: a larger --budget tries them")
    usd = "" if told["tuning_usd"] is None else f", ${float(told['tuning_usd']):.2f} ({escape(told['price_words'])})"
    table.add_row("tuning cost", f"{span(told['tuning_s'])}{usd}")
    if back:
        saved = f"{span(back['saved_per_epoch_s'])} saved an epoch"
        paid = f"after {back['epochs']:.3g} epochs, {span(back['hours'] * _HOUR_S)} of tuned training"
        table.add_row("paid back", f"{paid}; {saved}")
    for line in told["notes"]:
        table.add_row("note", escape(line))
    for why, names in ((why, names) for why, names in _by_reason(told["not_known"]).items() if names):
        table.add_row(NOT_KNOWN, escape(f"{', '.join(names)}: {why}"))
    return table


def _both(told: Figures) -> str:
    both = told["side_by_side"]
    if not both:
        return ""
    words = f": {number(both['start_samples_per_s'])} to {number(both['winner_samples_per_s'])} samples/s"
    if both["start_mfu_pct"] is None:
        return words
    return f"{words}, MFU {percent(both['start_mfu_pct'])} to {percent(both['winner_mfu_pct'])}"


def _by_reason(missing: Sequence[Figures]) -> dict[str, list[str]]:
    """What is not known, by why; what the table says in its own words is left out."""
    out: dict[str, list[str]] = {}
    for one in missing:
        name, names = one["figure"].rpartition(".")[2], out.setdefault(one["why"], [])
        if name not in ("total", "payback", *names):
            names.append(name)
    return out


def times(gain: Figures) -> str:
    """ "1.52x (1.49 to 1.55)"."""
    if gain["low"] is None:
        return f"{gain['ratio']:.2f}x"
    return f"{gain['ratio']:.2f}x ({gain['low']:.2f} to {gain['high']:.2f})"


def span(seconds: float) -> str:
    """A stretch of time in the unit that suits it."""
    if seconds >= _HOUR_S:
        return f"{seconds / _HOUR_S:,.1f} h"
    if seconds >= 2 * _MINUTE_S:
        return f"{seconds / _MINUTE_S:,.1f} min"
    return f"{seconds:,.1f} s"


def _or(tell: Callable[[Any], str], missing: str) -> Callable[[Any], str]:
    return lambda value: missing if value is None else tell(value)


_GAIN = "gain"
_CELLS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "samples/s": ("samples_per_s", number),
    _GAIN: ("gain", _or(times, "")),
    "util": ("utilization_pct", _or(lambda v: percent(v, 0), "?")),
    "MFU": ("mfu_pct", _or(lambda v: percent(v, 1), "?")),
    "in use": ("mfu_in_use_pct", _or(lambda v: percent(v, 1), "?")),
    "memory": ("peak_bytes", _or(size, "?")),
    "epoch": ("epoch_s", span),
    "loss off": ("parity", _or(lambda v: percent(100 * v["deviation_ratio"], 2), "")),
}
