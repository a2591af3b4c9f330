"""What changed from one run to the next, and what of it is beyond noise?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpuledger.bench.records import Run
from gpuledger.scaling.analysis.counting import counts_of, throughput_draws, throughput_of, wall_of
from gpuledger.scaling.analysis.latency import by_node, split
from gpuledger.scaling.analysis.settings import model_of, swept
from gpuledger.scaling.analysis.tokens import tokens_of
from gpuledger.scaling.statement import Change, Comparison
from gpuledger.scaling.statistics import NOTHING, Interval, Statistic, fisher_p, interval_of, quantile, resampled
from gpuledger.units import Unknown

OTHER_SEED = 104_729  # the two runs are drawn on their own
SURE_P = 0.025
# What came of a run, or names it; settings are what else its header says.
LEFT_OUT = frozenset({
    "started", "ended", "started_at", "ended_at", "run_id", "run", "host", "clients", "found", "start_spread_s",
    "interrupted", "reported", "warmup",
})  # fmt: skip


def compare_runs(before: Run, after: Run, seed: int) -> Comparison:
    """Settings that differ, and every figure before and after."""
    changes = [_success(before, after), _throughput(before, after, seed), _tokens(before, after, seed)]
    for name, statistic, point in _LATENCIES:
        changes.append(_latency(name, before, after, statistic, point, seed))
    return Comparison(before.file, after.file, _settings(before, after), tuple(changes))


def _settings(before: Run, after: Run) -> tuple[str, ...]:
    said = []
    if (a := len(before.names)) != (b := len(after.names)):
        said.append(f"nodes: {a} before, {b} after")
    cards = [sorted({str(n.gpu) for n in r.nodes.values()}) for r in (before, after)]
    if cards[0] != cards[1]:
        said.append(f"GPUs: {', '.join(cards[0]) or 'none named'} before, {', '.join(cards[1]) or 'none named'} after")
    models = [model_of(r) for r in (before, after)]
    if models[0] != models[1] and "model" not in before.more and "model" not in after.more:
        said.append(f"model: {models[0]} before, {models[1]} after")
    was, now = (_flat({k: v for k, v in r.more.items() if k not in LEFT_OUT}) for r in (before, after))
    for key in sorted({*was, *now}):
        old, new = was.get(key), now.get(key)
        if old != new:
            said.append(f"{key}: {_short(old)} before, {_short(new)} after")
    return tuple(said)


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings within settings by their whole name, so that the one that differs is the one shown."""
    out: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{above}{key}"
        out |= _flat(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return out


def _short(value: Any) -> str:
    text = "not given" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _change(name: str, a: float, b: float, draws: np.ndarray) -> Change:
    """The difference in percent of before, with its interval."""
    if not a:
        why = Unknown("it was 0 before")
        return Change(name, a, b, why, why, "cannot be compared: it was 0 before")
    found = interval_of(100 * (b / a - 1), 100 * (draws - 1))
    beyond = not found.holds(0)
    words = "beyond noise" if beyond else "within noise"
    return Change(name, a, b, found, beyond, words)


def _missing(name: str, why: Unknown) -> Change:
    return Change(name, why, why, why, why, str(why))


def _throughput(before: Run, after: Run, seed: int) -> Change:
    name = "throughput_per_s"
    old, new = throughput_draws(before, seed), throughput_draws(after, seed + OTHER_SEED)
    rates = [throughput_of(r.measured, wall_of(r)[0], seed) for r in (before, after)]
    for found in (old, new, *rates):
        if isinstance(found, Unknown):
            return _missing(name, found)
    a, b = (r.value for r in rates if isinstance(r, Interval))
    assert isinstance(old, np.ndarray)
    assert isinstance(new, np.ndarray)
    return _change(name, a, b, _over(new, old))


def _tokens(before: Run, after: Run, seed: int) -> Change:
    name = "tokens_per_s"
    made = []
    for run in (before, after):
        wall, _ = wall_of(run)
        rate = throughput_of(run.measured, wall, seed)
        found = tokens_of(run, wall, rate, Unknown("")).per_s
        if isinstance(found, Unknown):
            return _missing(name, found)
        made.append(found.value)
    old, new = throughput_draws(before, seed), throughput_draws(after, seed + OTHER_SEED)
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return _missing(name, Unknown("one of the runs has no success"))
    each = [m / r.value for m, r in zip(made, (_rate(before), _rate(after)), strict=True)]
    return _change(name, made[0], made[1], _over(new * each[1], old * each[0]))


def _rate(run: Run) -> Interval:
    wall, _ = wall_of(run)
    assert not isinstance(wall, Unknown)
    value = counts_of(run).ok / wall
    return Interval(value, value, value)


def _over(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    kept = min(len(new), len(old))
    with np.errstate(divide="ignore", invalid="ignore"):
        return new[:kept] / old[:kept]


def _success(before: Run, after: Run) -> Change:
    """By Fisher's exact test, since successes are counts."""
    a, b = counts_of(before), counts_of(after)
    name = "success_pct"
    if isinstance(a.success_pct, Unknown) or isinstance(b.success_pct, Unknown):
        return _missing(name, Unknown("one of the runs planned nothing"))
    worse = (a, b) if a.success_pct.value <= b.success_pct.value else (b, a)
    p = fisher_p(worse[0].ok, worse[0].planned, worse[1].ok, worse[1].planned)
    beyond = p < SURE_P
    why = Unknown("counts are compared by Fisher's exact test, which gives no interval")
    words = f"{'beyond' if beyond else 'within'} noise (chance of it: {p:.2g})"
    return Change(name, a.success_pct.value, b.success_pct.value, why, beyond, words)


def _warm(run: Run) -> list[float]:
    _, warm = split(by_node(run), swept_batches=swept(run))
    return [v for values in warm.values() for v in values]


def _latency(
    name: str,
    before: Run,
    after: Run,
    statistic: Statistic,
    point: Callable[[Sequence[float]], float | Unknown],
    seed: int,
) -> Change:
    old, new = _warm(before), _warm(after)
    a, b = point(old), point(new)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return _missing(name, a if isinstance(a, Unknown) else b if isinstance(b, Unknown) else Unknown(NOTHING))
    draws = _over(resampled(new, statistic, seed + OTHER_SEED), resampled(old, statistic, seed))
    return _change(name, a, b, draws)


def _mean(values: Sequence[float]) -> float | Unknown:
    return float(np.mean(values)) if len(values) else Unknown(NOTHING)


_LATENCIES: tuple[tuple[str, Statistic, Callable[[Sequence[float]], float | Unknown]], ...] = (
    ("warm_latency_mean_s", lambda x: x.mean(axis=-1), _mean),
    ("warm_latency_p50_s", lambda x: np.quantile(x, 0.5, axis=-1), lambda v: quantile(v, 0.5)),
    ("warm_latency_p95_s", lambda x: np.quantile(x, 0.95, axis=-1), lambda v: quantile(v, 0.95)),
    ("warm_latency_p99_s", lambda x: np.quantile(x, 0.99, axis=-1), lambda v: quantile(v, 0.99)),
)
