"""How is the report written as JSON?

The main figures stand at the top under their own names. A figure with an interval is an object {value, low, high}, but
for those of the first lines, whose interval stands beside them. A figure that is not known is null, and `not_known`
says which and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from gpuledger.cost.money import as_text
from gpuledger.scaling.figures import Distribution, Facts, Latency, NodeFigures, Scaling
from gpuledger.scaling.statement import ScalingStatement
from gpuledger.scaling.statistics import Interval
from gpuledger.scaling.trend import Trend
from gpuledger.units import Unknown

VERSION = 1
Json = dict[str, Any]
_QUANTILES = ("p50_s", "p90_s", "p95_s", "p99_s")


def to_json(s: ScalingStatement) -> Json:
    """The whole report."""
    missing: dict[str, str] = {}
    f = s.facts
    out: Json = {
        "v": VERSION,
        "headline": [s.headline, s.second],
        "file": f.file,
        "results": list(f.files),
        "throughput_per_s": _value(f.throughput_per_s, "throughput_per_s", missing),
        "throughput_interval": plain(f.throughput_per_s, "", {}),
        "success_pct": _value(f.counts.success_pct, "success_pct", missing),
        "counts": plain(f.counts, "counts", missing),
        "wall_s": plain(f.wall_s, "wall_s", missing),
        "wall_words": f.wall_words,
        "latency_s": _latency(f.latency, missing),
        "nodes": [_node(n, missing) for n in f.nodes],
        "scaling": _scaling(f.scaling, missing),
        "grades": {g.area: plain(g, f"grades.{g.area}", missing) for g in s.grades},
        "overall_grade": plain(s.overall, "overall_grade", missing),
        "overall_words": s.overall_words,
        "claims": [plain(c, "claims", missing) for c in s.claims],
        "checks": [plain(c, "checks", missing) for c in s.checks],
    }
    out |= _facts(f, missing)
    own = ("causes", "bottlenecks", "optimizations", "public", "public_words", "readiness", "summary")
    out |= {name: plain(getattr(s, name), name, missing) for name in own}
    out["recommendations"] = {horizon: list(lines) for horizon, lines in s.recommendations}
    out["comparison"] = plain(s.comparison, "comparison", missing)
    out["not_known"] = [{"figure": k, "why": v} for k, v in missing.items()]
    return out


def trend_json(trend: Trend) -> Json:
    """Stored runs in order."""
    missing: dict[str, str] = {}
    out: Json = {"v": VERSION, **plain(trend, "", missing)}
    return out | {"not_known": [{"figure": k, "why": v} for k, v in missing.items()]}


def _facts(f: Facts, missing: dict[str, str]) -> Json:
    names = (
        "inverse_latency_per_s",
        "in_flight",
        "tokens",
        "batches",
        "memory_pct",
        "telemetry",
        "cost",
        "factors",
        "gpus",
        "model",
    )
    out = {name: plain(getattr(f, name), name, missing) for name in names}
    rest = ("client_bottleneck", "config", "samples", "samples_note", "sources", "faults", "assumptions", "seed")
    return out | {name: plain(getattr(f, name), name, missing) for name in rest}


def _value(found: Interval | Unknown, name: str, missing: dict[str, str]) -> float | None:
    if isinstance(found, Unknown):
        missing[name] = found.why
        return None
    return found.value


def _latency(latency: Latency, missing: dict[str, str]) -> Json:
    """All answers at the top; warm, cold and marked warm-up requests apart."""
    out = _spread(latency.all, "latency_s", missing)
    for name in ("warm", "cold", "warmup", "ttft", "per_token"):
        # Nothing to say of a kind of request there was none of is no gap in what is known.
        found: Distribution = getattr(latency, name)
        out[name] = _spread(found, f"latency_s.{name}", missing if found.n else {})
    return out


def _spread(d: Distribution, path: str, missing: dict[str, str]) -> Json:
    out: Json = {"n": d.n}
    for name in ("min_s", "max_s", "sd_s"):
        out[name.removesuffix("_s")] = plain(getattr(d, name), f"{path}.{name.removesuffix('_s')}", missing)
    interval: Json = {}
    for name in ("mean_s", *_QUANTILES):
        short, found = name.removesuffix("_s"), getattr(d, name)
        out[short] = _value(found, f"{path}.{short}", missing)
        interval[short] = None if isinstance(found, Unknown) else [found.low, found.high]
    out["interval"] = interval
    out["consistency_pct"] = plain(d.consistency_pct, f"{path}.consistency_pct", missing)
    return out


def _node(n: NodeFigures, missing: dict[str, str]) -> Json:
    path = f"nodes.{n.node}"
    out: Json = {"node": n.node, "success_pct": _value(n.counts.success_pct, f"{path}.success_pct", missing)}
    for f in fields(n):
        if f.name in {"latency", "warm"}:
            spread = getattr(n, f.name)
            name = "latency_s" if f.name == "latency" else "warm_latency_s"
            out[name] = _spread(spread, f"{path}.{name}", missing if spread.n else {})
        elif f.name != "node":
            out[f.name] = plain(getattr(n, f.name), f"{path}.{f.name}", missing)
    return out


def _scaling(s: Scaling, missing: dict[str, str]) -> Json:
    found = s.efficiency_pct
    known = not isinstance(found, Unknown)
    out: Json = {
        "efficiency_pct": found.value if not isinstance(found, Unknown) else None,
        "low_pct": found.low if not isinstance(found, Unknown) else None,
        "high_pct": found.high if not isinstance(found, Unknown) else None,
        "refused": s.refused,
        "why": s.refused,
    }
    rest = ("unit", "size", "baseline_file", "baseline_size", "baseline_per_s", "theoretical_per_s", "factor_x")
    for name in (*rest, "token_factor_x", "superlinear", "curve"):
        out[name] = plain(getattr(s, name), f"scaling.{name}", missing if known or name == "curve" else {})
    if not known:
        missing["scaling.efficiency_pct"] = str(s.refused)
    return out


def plain(value: Any, path: str, missing: dict[str, str]) -> Any:
    """Any figure as JSON can hold it; one that is not known is null and noted."""
    if isinstance(value, Unknown):
        missing[path] = value.why
        return None
    if isinstance(value, Decimal):
        return as_text(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v, f"{path}.{k}", missing) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return _listed(value, path, missing)
    if is_dataclass(value) and not isinstance(value, type):
        own = (f.name for f in fields(value))
        return {name: plain(getattr(value, name), f"{path}.{name}" if path else name, missing) for name in own}
    return value


def _listed(values: Iterable[Any], path: str, missing: dict[str, str]) -> list[Any]:
    return [plain(v, f"{path}[{i}]", missing) for i, v in enumerate(values)]
