"""Which rows does a scaling report give to its tables, as people read them? Every figure is the report's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpuledger.report.written import loose, money, percent, tenth, whole, write, yes_no
from gpuledger.scaling.analysis.standouts import MetricApart, Rating
from gpuledger.scaling.figures import Distribution, Facts, Figure, Latency, NodeFigures, Ranged
from gpuledger.scaling.statement import Comparison, Grade, ScalingStatement
from gpuledger.scaling.statistics import Interval
from gpuledger.units import Unknown

Row = dict[str, Any]
IN_OTHER_ROWS = frozenset({"machine", "load", "warmup", "model"})
CLIP = 120
MS = 1000
TREND_OF = {"success": "success_pct", "tail": "warm_latency_p95_s"}


def scaling_view(s: ScalingStatement) -> Row:
    """The statement by name, with the rows that combine several of its figures."""
    f = s.facts
    return {
        **vars(s),
        "scorecard": [
            {"title": g.title, "value": _graded(g), "change": _trend(g, s), "limits": g.limits,
             "grade": "not graded" if isinstance(g.mark, Unknown) else g.mark}
            for g in s.grades
        ],
        "claims": [
            {"claim": c.claim + (f" ({c.node})" if c.node else ""), "verdict": c.verdict, "why": c.why,
             "value": yes_no(c.value) if isinstance(c.value, bool) else str(c.value)}
            for c in s.claims
        ],
        "checks": [
            {"title": c.title, "found": "caught" if c.caught else "not found", "why": c.why if c.caught else ""}
            for c in sorted(s.checks, key=lambda c: not c.caught)
        ],
        "configuration": _configuration(s),
        "scaling": [*_scaling(f), *_against(s)],
        "standouts": [{**vars(x), "value": f"{loose(x.value)} {x.unit}"} for x in s.detail.standouts],
        "apart": [_apart(x) for x in s.detail.metrics_apart],
        "latencies": _latencies(f.latency),
        "node_latencies": [r for n, rated in zip(f.nodes, s.detail.ratings, strict=True) for r in _by_node(n, rated)],
        "tokens": _tokens(s),
        "nodes": [{**vars(n), "answered": f"{n.counts.ok:,} of {n.counts.planned:,}"} for n in f.nodes],
        "cold": [_cold(n) for n in f.nodes],
        "memory": _memory(f),
        "batches": [
            {**vars(p), "ttft_ms": _times(p.ttft_median_s, MS), "per_token_ms": _times(p.per_token_median_s, MS)}
            for p in f.batches.points
        ],
        "cost": _cost(f),
        "optimizations": [{**vars(o), "why": f"{o.why}. Rests on: {o.basis}"} for o in s.optimizations],
        "public": [
            {**vars(p), "name": f"{p.model} on {p.gpu}", "source": f"{p.source} ({p.as_of}). {p.note}"}
            for p in s.public
        ],
        "sources": [
            {**vars(x), "file": Path(x.file).name, "sha256": x.sha256[:16] or "unknown"} for x in f.sources
        ],
    }  # fmt: skip


def in_words(value: object, form: Callable[[Any], str], tail: str = "") -> str:
    """A figure in its form, or why it is unknown; an interval with its ends."""
    if isinstance(value, Unknown):
        return str(value)
    if isinstance(value, Interval):
        span = "" if value.low == value.high else f" ({form(value.low)} to {form(value.high)})"
        return f"{form(value.value)}{tail}{span}"
    return f"{form(value)}{tail}"


def _line(name: str, value: str, note: str = "") -> Row:
    return {"name": name, "value": value, "note": note}


def _times(value: Figure | Ranged, times: float) -> Figure | Ranged:
    if isinstance(value, Interval):
        return value.each(lambda v: times * v)
    return value if isinstance(value, Unknown) else times * value


def _graded(g: Grade) -> str | Unknown:
    if isinstance(g.value, Unknown):
        return g.value
    form = whole if g.unit == "answers" else tenth if g.unit == "%" else loose
    return in_words(g.value, form, "\u202f%" if g.unit == "%" else f" {g.unit}")


def _trend(g: Grade, s: ScalingStatement) -> str:
    """The change since the earlier run, where one was given and the grade has a figure in it."""
    found = s.comparison.changes if isinstance(s.comparison, Comparison) else ()
    return next((c.words for c in found if c.figure == TREND_OF.get(g.area)), "")


def _apart(x: MetricApart) -> Row:
    low, high = (f"{loose(v)}{'' if x.unit == '/s' else ' '}{x.unit}" for v in (x.low, x.high))
    return {"metric": x.metric, "low": f"{low} ({x.low_node})", "high": f"{high} ({x.high_node})",
            "apart": x.apart_pct, "status": x.status}  # fmt: skip


def _against(s: ScalingStatement) -> list[Row]:
    """Latency compared with the baseline's, where there is one."""
    found = s.detail.latency_of_baseline_pct
    if isinstance(found, Unknown):
        return []
    return [_line("Warm latency, of the baseline's", _ranged(found, " %"), "under 100 %: faster than the baseline")]


def _configuration(s: ScalingStatement) -> list[Row]:
    """What ran, on what, how, and when to look again."""
    f = s.facts
    started = next((x.started for x in f.sources if x.started), None)
    cards: dict[str, int] = {}
    for n in f.nodes:
        cards[str(n.gpu)] = cards.get(str(n.gpu), 0) + (1 if isinstance(n.gpus, Unknown) else n.gpus)
    planned = f"{f.counts.planned:,}" if f.counts.planned_known else "unknown: not in the header"
    rows = [
        *([_line("Started", started)] if started else []),
        _line("Kind of study", s.detail.study),
        _line("Next review", s.detail.next_review),
        _line("Nodes", ", ".join(n.node for n in f.nodes) or "none"),
        _line("GPUs", ", ".join(f"{count} x {name}" for name, count in cards.items()) or "none"),
        _line("Model", str(f.model)),
        _line("Planned requests", planned),
        _line("Wall clock", in_words(f.wall_s, lambda v: f"{v:.2f} s"), f.wall_words),
    ]
    load = f.config.get("load")
    if isinstance(load, Mapping):
        rows.append(_line("Load", ", ".join(f"{k} {v}" for k, v in load.items())))
    rest = {k: v for k, v in f.config.items() if k not in IN_OTHER_ROWS and not isinstance(v, Mapping | list)}
    return rows + [_line(_title(str(k)), _clip(v)) for k, v in rest.items()]


def _title(name: str) -> str:
    """A field's name as a heading, its unit after a comma."""
    words = name.removesuffix("_s").replace("_", " ").capitalize()
    return f"{words}, s" if name.endswith("_s") else words


def _clip(value: Any) -> str:
    if isinstance(value, bool):
        return yes_no(value)
    text = "not given" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= CLIP else text[: CLIP - 3] + "..."


def _scaling(f: Facts) -> list[Row]:
    """Baseline, theory, what was reached, factor and efficiency; or why there is none."""
    s = f.scaling
    rows = [_line("Throughput", _ranged(f.throughput_per_s, "/s"), "answered requests over the whole wall clock")]
    if isinstance(f.inverse_latency_per_s, float):
        note = "not a throughput; shown because other reports use it"
        rows.append(_line("1 / latency, summed over nodes", f"{f.inverse_latency_per_s:.2f}/s", note))
    if s.refused is not None:
        return [*rows, _line("Scaling efficiency", "refused", s.refused)]
    unit = s.unit.removesuffix("s") if s.baseline_size == 1 else s.unit
    size = (
        "" if isinstance(s.baseline_size, Unknown) else f"{s.baseline_size} {unit}, {Path(s.baseline_file or '').name}"
    )
    linear = (
        "the interval lies above 100 %" if s.superlinear else "not super-linear: the interval reaches 100 % or less"
    )
    return [
        *rows,
        _line("Measured baseline", _ranged(s.baseline_per_s, "/s"), size),
        _line("Baseline times the size", in_words(s.theoretical_per_s, loose, "/s"), f"{s.size} {s.unit}"),
        _line("Factor", _ranged(s.factor_x, " x")),
        _line("Scaling efficiency", _ranged(s.efficiency_pct, " %"), linear),
        _line("Factor in tokens", _ranged(s.token_factor_x, " x")),
    ]


def _ranged(found: Ranged, unit: str) -> str:
    return in_words(found, loose, unit)


def _spread(name: str, d: Distribution, times: float = 1) -> Row:
    """One list of latencies in seconds or, with times 1000, in milliseconds; empty without samples."""
    found = {k: _times(v, times) for k, v in vars(d).items() if k.endswith("_s")}
    return {"name": name, "n": d.n, "consistency_pct": d.consistency_pct, **found}


def _by_node(n: NodeFigures, rated: Rating) -> list[Row]:
    """All answers of a node, and the warm ones, each with its rating."""
    kinds = ((n.node, n.latency, rated.all), (f"{n.node}, warm", n.warm, rated.warm))
    return [_spread(name, d) | {"rating": mark} for name, d, mark in kinds]


def _latencies(found: Latency) -> list[Row]:
    """Those kinds of requests that have samples."""
    kinds = (
        ("All answers", found.all, 1),
        ("Warm", found.warm, 1),
        ("Cold", found.cold, 1),
        ("Marked as warm-up", found.warmup, 1),
        ("To the first token, ms", found.ttft, MS),
        ("Between tokens, ms", found.per_token, MS),
    )
    return [_spread(name, d, times) for name, d, times in kinds if d.n or d is found.all]


def _tokens(s: ScalingStatement) -> list[Row]:
    """Tokens by wall clock, and the rate within one request, which is something else."""
    t = s.facts.tokens
    seen = "tokens over latency, mean over requests: what one user sees, not a throughput"
    return [
        _line("Output tokens by wall clock", _ranged(t.per_s, "/s")),
        _line("Per GPU", in_words(t.per_gpu_per_s, loose, "/s")),
        _line("Within one request", in_words(t.single_stream_per_s, loose, "/s"), seen),
        _line("Output tokens", in_words(t.output_tokens, whole), _means(s.detail.mean_output_tokens, t.output_range)),
        _line("Input tokens", in_words(t.input_tokens, whole), _means(s.detail.mean_input_tokens, t.input_range)),
    ]


def _means(mean: Figure, span: tuple[int, int] | Unknown) -> str:
    """Tokens of one request: the mean, and from where to where."""
    if isinstance(mean, Unknown) or isinstance(span, Unknown):
        return ""
    return f"{mean:.1f} per request ({span[0]} to {span[1]})"


def _cold(n: NodeFigures) -> Row:
    """The cold start of one node; the reason where it has none."""
    names = ("requests", "mean_s", "warm_mean_s", "over_warm_pct", "over_mean_pct", "over_min_pct")
    c = n.cold_start
    if c is None:
        note = "the first requests are not slower than the rest"
        return {"node": n.node, **dict.fromkeys(names, ""), "requests": 0, "note": note}
    if isinstance(c, Unknown):
        return {"node": n.node, **dict.fromkeys(names, ""), "note": str(c)}
    return {"node": n.node, **vars(c), "note": ""}


def _memory(f: Facts) -> list[Row]:
    """Memory of each node's real card, and the peak in the telemetry."""
    rows: list[Row] = [
        {
            "node": n.node,
            "card": n.card,
            "used": _gb(n.memory_used_bytes),
            "size": _gb(n.card_bytes),
            "pct": n.memory_pct,
        }
        for n in f.nodes
    ]
    used = [n.memory_used_bytes for n in f.nodes if not isinstance(n.memory_used_bytes, Unknown)]
    sizes = [n.card_bytes for n in f.nodes if not isinstance(n.card_bytes, Unknown)]
    if 1 < len(f.nodes) == len(used) == len(sizes):
        whole_pct = 100 * sum(used) / sum(sizes)
        row = {"node": "together", "card": "one GPU of each", "used": _gb(sum(used)), "size": _gb(sum(sizes))}
        rows.append(row | {"pct": whole_pct})
    peak = f.telemetry.memory_peak_bytes
    if not isinstance(peak, Unknown):
        name, card = "any GPU, at its peak", "from the telemetry"
        rows.append({"node": name, "card": card, "used": _gb(peak), "size": "", "pct": f.memory_pct})
    return rows


def _gb(value: float | Unknown) -> str | Unknown:
    return value if isinstance(value, Unknown) else f"{value / 1e9:.2f} GB"


def _cost(f: Facts) -> list[Row]:
    """Dollars, joules and what the GPUs did."""
    c, t = f.cost, f.telemetry
    low, high = in_words(c.low_usd_per_million_tokens, money), in_words(c.high_usd_per_million_tokens, money)
    span = "" if low == high else f" ({low} to {high})"
    return [
        _line("Dollars per million output tokens", in_words(c.usd_per_million_tokens, money, span)),
        _line("Price", c.price_words, "every GPU of the run is paid for its whole wall clock"),
        _line("Joules per million output tokens", in_words(c.joules_per_million_tokens, whole)),
        _line("GPU utilization", in_words(t.gpu_util_pct, percent)),
        _line("RFU by power", in_words(t.rfu_power_pct, percent), "realized FLOPS utilization (RFU)"),
        _line("RFU by counters", write(t.rfu_counters_pct, "percent")),
    ]
