"""How are the settings, the scaling, the tokens and the cost of a report put into words, line by line?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpuledger.efficiency.statement import Range
from gpuledger.report.scaling_rows import Words
from gpuledger.report.written import loose, money, percent, whole
from gpuledger.scaling.figures import Facts, Ranged
from gpuledger.units import Unknown

SAID_ELSEWHERE = frozenset({"machine", "load", "warmup", "model"})


def told(value: object, form: Callable[[Any], str], tail: str = "") -> str:
    """A figure in its form, or why it is not known."""
    return str(value) if isinstance(value, Unknown) else f"{form(value)}{tail}"


def configuration(facts: Facts) -> tuple[Words, ...]:
    """What ran, on what, and how."""
    cards: dict[str, int] = {}
    for n in facts.nodes:
        name = str(n.gpu) if isinstance(n.gpu, Unknown) else n.gpu
        cards[name] = cards.get(name, 0) + (1 if isinstance(n.gpus, Unknown) else n.gpus)
    rows = [
        Words("Nodes", ", ".join(n.node for n in facts.nodes) or "none"),
        Words("GPUs", ", ".join(f"{count} x {name}" for name, count in cards.items()) or "none"),
        Words("Model", str(facts.model)),
        Words(
            "Planned requests", f"{facts.counts.planned:,}" if facts.counts.planned_known else "the header does not say"
        ),
        Words(
            "Wall clock",
            told(facts.wall_s, lambda v: f"{v:.2f} s"),
            facts.wall_words,
        ),
    ]
    load = facts.config.get("load")
    if isinstance(load, Mapping):
        rows.append(Words("Load", ", ".join(f"{k} {v}" for k, v in load.items())))
    rest = {k: v for k, v in facts.config.items() if k not in SAID_ELSEWHERE and not isinstance(v, Mapping | list)}
    rows += [Words(_title(str(k)), _clip(v)) for k, v in rest.items()]
    return tuple(rows)


def _title(name: str) -> str:
    """A field's name as a heading, its unit after a comma."""
    words = name.removesuffix("_s").replace("_", " ").capitalize()
    return f"{words}, s" if name.endswith("_s") else words


def _clip(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = "not given" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 120 else text[:117] + "..."


def scaling_words(facts: Facts) -> tuple[Words, ...]:
    """Baseline, theory, what was reached, factor and efficiency; or why there is none."""
    s, rate = facts.scaling, facts.throughput_per_s
    rows = [Words("Throughput", _ranged(rate, "/s"), "answered requests over the whole wall clock")]
    if isinstance(facts.inverse_latency_per_s, float):
        said = f"{facts.inverse_latency_per_s:.2f}/s"
        rows.append(Words("1 / latency, added up over nodes", said, "no throughput: shown because reports use it"))
    if s.refused is not None:
        return (*rows, Words("Scaling efficiency", "refused", s.refused))
    times = (
        ""
        if isinstance(s.baseline_size, Unknown)
        else f"{s.baseline_size} {_unit(s.unit, s.baseline_size)}, {Path(s.baseline_file or '').name}"
    )
    theory = told(s.theoretical_per_s, loose, "/s")
    above = "the interval lies above 100 %"
    linear = above if s.superlinear else "the interval does not lie above 100 %: not super-linear"
    return (
        *rows,
        Words("Measured baseline", _ranged(s.baseline_per_s, "/s"), times),
        Words("That times the size", theory, f"{s.size} {s.unit}"),
        Words("Factor", _ranged(s.factor_x, " x")),
        Words("Scaling efficiency", _ranged(s.efficiency_pct, " %"), linear),
        Words("Factor in tokens", _ranged(s.token_factor_x, " x")),
    )


def _unit(unit: str, count: int) -> str:
    return unit.removesuffix("s") if count == 1 else unit


def _ranged(found: Ranged, unit: str) -> str:
    if isinstance(found, Unknown):
        return str(found)
    span = "" if found.low == found.high else f" ({loose(found.low)} to {loose(found.high)})"
    return f"{loose(found.value)}{unit}{span}"


def token_words(facts: Facts) -> tuple[Words, ...]:
    """Tokens by wall clock, and the rate within one request, which is something else."""
    t = facts.tokens
    seen = "tokens over latency, mean over requests: what one user sees, no throughput"
    return (
        Words("Output tokens by wall clock", _ranged(t.per_s, "/s")),
        Words("For each GPU", told(t.per_gpu_per_s, loose, "/s")),
        Words("Within one request", told(t.single_stream_per_s, loose, "/s"), seen),
        Words("Output tokens", told(t.output_tokens, whole)),
        Words("Input tokens", told(t.input_tokens, whole)),
    )


def cost_words(facts: Facts) -> tuple[Words, ...]:
    """Dollars, joules and what the GPUs did."""
    c, t = facts.cost, facts.telemetry
    low, high = told(c.low_usd_per_million_tokens, money), told(c.high_usd_per_million_tokens, money)
    span = "" if low == high else f" ({low} to {high})"
    return (
        Words("Dollars for a million output tokens", told(c.usd_per_million_tokens, money, span)),
        Words("Price", c.price_words, "every GPU of the run is paid for its whole wall clock"),
        Words("Joules for a million output tokens", told(c.joules_per_million_tokens, whole)),
        Words("GPU utilization", told(t.gpu_util_pct, percent)),
        Words("RFU by power", told(t.rfu_power_pct, percent)),
        Words("RFU by counters", _counters(t.rfu_counters_pct)),
    )


def _counters(found: Range | Unknown) -> str:
    if isinstance(found, Unknown):
        return str(found)
    return f"{percent(found.middle)} ({percent(found.low)} to {percent(found.high)})"
