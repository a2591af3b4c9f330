"""Which figures of a meter's report are shown, and in which words? The same on the terminal and in documents.

`report` is the JSON of a report, possibly one of an older version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuledger.training.mfu import ALL_PCT

Json = Mapping[str, Any]
# Names of phases, where they differ.
PHASES = {"data_wait": "data wait", "h2d": "host to device"}
SHARES = ("mfu_pct", "hfu_pct", "mfu_of_precision_pct", "mfu_of_measured_pct")


def rank_words(report: Json) -> str:
    """Which rank of how many; empty where there is one."""
    who = report["seen"]["who"]
    return f", rank {who['rank']} of {who['world_size']}" if who["world_size"] > 1 else ""


def steps_words(report: Json) -> str:
    """How many steps, and how it ended."""
    seen = report["seen"]
    return f"{seen['steps']:,} steps, {seen['timed_steps']:,} timed; {seen['state']}"


def figures(report: Json) -> Iterator[tuple[str, str, str]]:
    """Rates, shares, dollars and joules that are known: label, figure and note."""
    seen, work = report["seen"], report["seen"]["work"]
    if seen["precision"] is not None:
        yield "Precision", seen["precision"], _mix(seen)
    rows = (
        ("Tokens per second", "tokens_per_s", "{:,.0f}", ""),
        ("Samples per second", "samples_per_s", "{:,.1f}", ""),
        ("MFU", "mfu_pct", "{:.1f} %", report["denominator"]),
        ("HFU", "hfu_pct", "{:.1f} %", "all that the device did, over the same peak"),
        ("MFU in use", "mfu_of_precision_pct", "{:.1f} %", report["denominator_of_precision"]),
        ("MFU of measured", "mfu_of_measured_pct", "{:.1f} %", report["denominator_of_measured"]),
        ("Model TFLOP/s", "model_tflops", "{:,.3g}", work["how"] if work else ""),
        ("$ per million tokens", "usd_per_million_tokens", "{:,.4f}", report["price"]["words"]),
        ("$ per million samples", "usd_per_million_samples", "{:,.4f}", ""),
        ("Joules per step", "joules_per_step", "{:,.1f}", "the board's own counter"),
        ("Joules per token", "joules_per_token", "{:,.4f}", ""),
    )
    for label, name, form, note in rows:
        value = report[name]
        if value is not None and not (name in SHARES and value > ALL_PCT):
            yield label, form.format(value), note


def _mix(seen: Json) -> str:
    """The shares of the FLOPs; reports of older versions took the precision from the weights and have none."""
    ratios = seen.get("precision_ratios")
    if not ratios:
        return ""
    shares = ", ".join(f"{name} {100 * ratio:.1f} %" for name, ratio in ratios.items())
    return f"of the matrix products, as observed: {shares} of the FLOPs"


def unknown(report: Json) -> list[str]:
    """What is unknown, once per reason; a share above 100 % of an older report is refused."""
    reasons: dict[str, list[str]] = {}
    for missing in report["not_known"]:
        reasons.setdefault(missing["why"], []).append(missing["figure"].rpartition(".")[2])
    for name in SHARES:
        if (value := report[name]) is not None and value > ALL_PCT:
            why = f"{value:,.1f} % is impossible; a version that did not observe the precision wrote this report"
            reasons.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" for why, names in reasons.items()]
