"""How do runs change from one to the next, and which changes are beyond noise?

Two runs are compared figure by figure. Several are put in the order they started, else as they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuledger.bench.records import Run, present
from gpuledger.efficiency.trend import two_sided_p
from gpuledger.scaling.analysis.counting import (
    counts_of,
    model_of,
    throughput_draws,
    throughput_of,
    tokens_of,
)  # fmt: skip
from gpuledger.scaling.analysis.latency import cold_and_warm, flat, latency_of
from gpuledger.scaling.figures import Figure, Ranged
from gpuledger.scaling.statement import Change, Comparison
from gpuledger.scaling.statistics import (
    NOTHING,
    Statistic,
    fisher_p,
    interval_of,
    quantile,
    quotient_of_draws,
    resampled,
)  # fmt: skip
from gpuledger.units import Unknown

OTHER_SEED = 104_729  # the two runs are drawn independently
BEYOND_P = 0.025
LEAST_RUNS = 4
SURE_P = 0.05
# Outcomes or names of a run; everything else in its header is a setting.
LEFT_OUT = frozenset({
    "started", "ended", "started_at", "ended_at", "run_id", "run", "host", "clients", "found", "start_spread_s",
    "interrupted", "reported", "warmup",
})  # fmt: skip


@dataclass(frozen=True)
class TrendPoint:
    """One run, and what changed since the one before it: its settings, and every figure."""

    file: str
    started: str | None
    nodes: int
    success_pct: Ranged
    throughput_per_s: Ranged
    warm_latency_mean_s: Ranged
    settings: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Slope:
    """The trend of one figure over the runs, in percent of its mean per run, and whether that is beyond chance."""

    figure: str
    per_run_pct: Figure
    direction: str


@dataclass(frozen=True)
class Trend:
    """Runs in order."""

    points: tuple[TrendPoint, ...]
    slopes: tuple[Slope, ...]
    order: str


def trend_of(runs: Sequence[Run], seed: int) -> Trend:
    """Every run with its changes since the last one, and the slope of the main figures."""
    dated = all(_started(r) is not None for r in runs)
    ordered = sorted(runs, key=lambda r: str(_started(r))) if dated else list(runs)
    points = []
    for last, run in zip((None, *ordered), ordered, strict=False):
        since = None if last is None else compare_runs(last, run, seed)
        points.append(
            TrendPoint(
                file=run.file,
                started=_started(run),
                nodes=len(run.names),
                success_pct=counts_of(run).success_pct,
                throughput_per_s=throughput_of(run, seed),
                warm_latency_mean_s=latency_of(run, seed).warm.mean_s,
                settings=() if since is None else since.settings,
                changes=() if since is None else since.changes,
            )
        )
    fields = ("success_pct", "throughput_per_s", "warm_latency_mean_s")
    order = "by the start in each header" if dated else "as given: some header has no start"
    return Trend(tuple(points), tuple(_slope(f, points) for f in fields), order)


def _started(run: Run) -> str | None:
    found = run.more.get("started") or run.more.get("started_at") or run.more.get("started_utc")
    return str(found) if found is not None else None


def _slope(figure: str, points: Sequence[TrendPoint]) -> Slope:
    values = [v.value for p in points if not isinstance(v := getattr(p, figure), Unknown)]
    if len(values) < LEAST_RUNS:
        why = Unknown(f"too few runs for a slope: {len(values)}, at least {LEAST_RUNS} are needed")
        return Slope(figure, why, str(why))
    y = np.asarray(values)
    x = np.arange(len(y)) - (len(y) - 1) / 2
    slope = float(x @ y / (x @ x))
    left = y - y.mean() - slope * x
    error = float(np.sqrt(left @ left / (len(y) - 2) / (x @ x)))
    per_run = 100 * slope / float(y.mean()) if y.mean() else 0.0
    sure = (error == 0 and slope != 0) or (error > 0 and two_sided_p(slope / error, len(y) - 2) < SURE_P)
    return Slope(figure, per_run, ("rising" if slope > 0 else "falling") if sure else "flat: within chance")


def compare_runs(before: Run, after: Run, seed: int) -> Comparison:
    """Settings that differ, and every figure before and after."""
    changes = [_success(before, after), *_rates(before, after, seed)]
    changes += [_latency(name, before, after, *how, seed) for name, how in _LATENCIES.items()]
    return Comparison(before.file, after.file, _settings(before, after), tuple(changes))


def _settings(before: Run, after: Run) -> tuple[str, ...]:
    found: dict[str, tuple[object, object]] = {"nodes": (len(before.names), len(after.names))}
    cards = [", ".join(sorted({str(n.gpu) for n in r.nodes.values()})) or "none named" for r in (before, after)]
    found["GPUs"] = (cards[0], cards[1])
    if "model" not in before.more and "model" not in after.more:
        found["model"] = (model_of(before), model_of(after))
    was, now = (_flat({k: v for k, v in r.more.items() if k not in LEFT_OUT}) for r in (before, after))
    found |= {key: (was.get(key), now.get(key)) for key in sorted({*was, *now})}
    return tuple(f"{k}: {_short(old)} before, {_short(new)} after" for k, (old, new) in found.items() if old != new)


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested settings by their whole name, so that the one that differs is the one shown."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{above}{key}"
        out |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return out


def _short(value: object) -> str:
    text = "not given" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _change(name: str, a: float, b: float, draws: np.ndarray) -> Change:
    """The difference in percent of before, with its interval."""
    if not a:
        why = Unknown("it was 0 before")
        return Change(name, a, b, why, why, "cannot be compared: it was 0 before")
    found = interval_of(100 * (b / a - 1), 100 * (draws - 1))
    beyond = not found.holds(0)
    return Change(name, a, b, found, beyond, f"{'beyond' if beyond else 'within'} noise")


def _missing(name: str, why: Unknown) -> Change:
    return Change(name, why, why, why, why, str(why))


def _rates(before: Run, after: Run, seed: int) -> list[Change]:
    """Throughput in requests and in tokens: the draws of requests, times the tokens of an answer."""
    old, new = throughput_draws(before, seed), throughput_draws(after, seed + OTHER_SEED)
    requests = [throughput_of(r, seed) for r in (before, after)]
    tokens = [tokens_of(r, rate).per_s for r, rate in zip((before, after), requests, strict=True)]
    made = []
    for name, (a, b) in {"throughput_per_s": requests, "tokens_per_s": tokens}.items():
        if isinstance(old, Unknown) or isinstance(new, Unknown) or isinstance(a, Unknown) or isinstance(b, Unknown):
            made.append(_missing(name, next(v for v in (old, new, a, b) if isinstance(v, Unknown))))
        else:
            was, now = (v.value / r.value for v, r in zip((a, b), present(requests), strict=True))
            made.append(_change(name, a.value, b.value, quotient_of_draws(new * now, old * was)))
    return made


def _success(before: Run, after: Run) -> Change:
    """By Fisher's exact test, since successes are counts."""
    a, b = counts_of(before), counts_of(after)
    name = "success_pct"
    if isinstance(a.success_pct, Unknown) or isinstance(b.success_pct, Unknown):
        return _missing(name, Unknown("one of the runs planned nothing"))
    worse = (a, b) if a.success_pct.value <= b.success_pct.value else (b, a)
    p = fisher_p(worse[0].ok, worse[0].planned, worse[1].ok, worse[1].planned)
    beyond = p < BEYOND_P
    why = Unknown("counts are compared by Fisher's exact test, which gives no interval")
    words = f"{'beyond' if beyond else 'within'} noise (p = {p:.2g})"
    return Change(name, a.success_pct.value, b.success_pct.value, why, beyond, words)


def _latency(name: str, before: Run, after: Run, statistic: Statistic, point: Point, seed: int) -> Change:
    old, new = (flat(cold_and_warm(r)[1]) for r in (before, after))
    a, b = point(old), point(new)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return _missing(name, next(v for v in (a, b) if isinstance(v, Unknown)))
    draws = quotient_of_draws(resampled(new, statistic, seed + OTHER_SEED), resampled(old, statistic, seed))
    return _change(name, a, b, draws)


Point = Callable[[Sequence[float]], float | Unknown]


def _quantile(share: float) -> tuple[Statistic, Point]:
    return lambda x: np.quantile(x, share, axis=-1), lambda v: quantile(v, share)


_LATENCIES: dict[str, tuple[Statistic, Point]] = {
    "warm_latency_mean_s": (
        lambda x: x.mean(axis=-1),
        lambda v: float(np.mean(v)) if len(v) else Unknown(NOTHING),
    ),
    "warm_latency_p50_s": _quantile(0.5),
    "warm_latency_p95_s": _quantile(0.95),
    "warm_latency_p99_s": _quantile(0.99),
}
