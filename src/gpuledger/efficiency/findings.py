"""What are the most important findings, one sentence each?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.efficiency.capacity import shows
from gpuledger.efficiency.health import faults_of, hot
from gpuledger.efficiency.naming import name_with_uuid
from gpuledger.efficiency.statement import EfficiencyStatement, Trend
from gpuledger.units import Bounds, Range, Unknown, count, known, utc

MOST = 8
# A stretch without any work worth naming a GPU for.
LONG_IDLE_H = 24.0
_SHOWN_UNKNOWN = 3
# Three rounded figures may miss each other by this much.
ROUNDING_PP = 0.16
# Weight in GPU-hours, sentence. What touches more of the fleet's time comes first.
Finding = tuple[float, str]
_HEADLINE, _LAST = float("inf"), -1.0


def findings(statement: EfficiencyStatement, limits: Thresholds) -> tuple[str, ...]:
    """The most important sentences first; what is not known is named last."""
    makers: tuple[Callable[[EfficiencyStatement, Thresholds], Finding | None], ...] = (
        _headline, _health, _bottleneck, _causes, _idle, _roi, _target, _gap_alert, _models, _trend, _not_known,
    )  # fmt: skip
    found = [f for make in makers if (f := make(statement, limits))]
    found.sort(key=lambda f: -f[0])
    last = [text for weight, text in found if weight == _LAST]
    return (*[text for weight, text in found if weight != _LAST][: MOST - len(last)], *last)


def _headline(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    util, rfu, gap, counted = (
        s.fleet.gpu_util_pct, s.fleet.rfu_power_pct, s.fleet.efficiency_gap_pp, s.fleet.rfu_counters_pct,
    )  # fmt: skip
    if isinstance(util, Unknown):
        return None
    whole, busy = count(s.gpus, "GPU"), _with(s, "gpu_util_pct")
    text = f"{whole if busy == s.gpus else f'{busy:,} of {whole}'} reported {util:.1f} % utilization"
    if not isinstance(rfu, Unknown) and not isinstance(gap, Unknown):
        drew, both = _with(s, "rfu_power_pct"), _with(s, "efficiency_gap_pp")
        if busy == drew == both and abs(util - rfu - gap) < ROUNDING_PP:
            whose = "it drew {:.1f} % of its" if s.gpus == 1 else "they drew {:.1f} % of their"
            text += f"; {whose.format(rfu)} power limit, a gap of {gap:.1f} points"
        else:  # the three figures rest on different GPUs or times
            text += f"; {count(drew, 'GPU')} drew {rfu:.1f} % of {'its' if drew == 1 else 'their'} power limit"
            text += f"; where both are known ({count(both, 'GPU')}) the gap is {gap:.1f} points"
    if isinstance(counted, Range):
        between = f", between {counted.low:.0f} and {counted.high:.0f}" if counted.high - counted.low >= 1 else ""
        whose = "its" if s.gpus == 1 else "their"
        if isinstance(counted, Bounds):
            text += f"; by {whose} own counters between {counted.low:.0f} and {counted.high:.0f} % of the dense peak"
        else:
            text += f"; by {whose} own counters {counted.middle:.0f} % of the dense peak{between}"
    return _HEADLINE, f"{text}."


def _with(s: EfficiencyStatement, figure: str) -> int:
    """How many GPUs a mean of the fleet rests on; the slices of a board are one."""
    return len({g.gpu_uuid for g in s.per_gpu if not isinstance(getattr(g.means, figure), Unknown)})


def _bottleneck(s: EfficiencyStatement, limits: Thresholds) -> Finding | None:
    share, slow = s.active.bottlenecked_pct_of_active, s.bottlenecked_gpus
    if isinstance(share, Unknown):
        return None
    b = limits.bottleneck
    rule = f"utilization above {100 * b.util_above_ratio:.0f} % at under {100 * b.pif_below_ratio:.0f} % of board power"
    if share < 0.5 and not slow:
        return 0.0, f"Hardly any busy time was wasted on waiting: {share:.1f} % of active time showed {rule}."
    text = f"{share:.0f} % of busy time did little work: {rule}"
    text += f", on most active days of {len(slow)} of {count(len(s.per_gpu), 'GPU')}" if slow else ""
    return share / 100 * s.active.active_h, f"{text}."


def _causes(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    slow, share = s.bottlenecked_gpus, s.active.bottlenecked_pct_of_active
    if not slow or isinstance(share, Unknown):
        return None
    # As heavy as the finding it explains, and so right behind it.
    weight = share / 100 * s.active.active_h
    counts = Counter(g.cause.cause for g in slow if g.cause and g.cause.cause)
    unknown = len(slow) - counts.total()
    if not counts:
        return weight, f"What holds up the {count(len(slow), 'bottlenecked GPU')} is {slow[0].likely_cause}."
    (cause, most), *others = counts.most_common()
    parts = [f"{cause.capitalize()} seems to hold up {most} of {count(len(slow), 'bottlenecked GPU')}"]
    parts += [f"{name} {n}" for name, n in others] + ([f"{unknown} not known"] if unknown else [])
    example = next(g for g in slow if g.cause and g.cause.cause == cause)
    seen = f"on {example.host} {example.cause_evidence}" if example.host else example.cause_evidence
    return weight, f"{', '.join(parts)}: {seen}."


def _idle(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    idle, held = (sum(known(getattr(g, name)) or 0.0 for g in s.per_gpu) for name in ("idle_h", "idle_held_h"))
    if not s.fleet.observed_h or idle + held == 0:
        return None
    whole, part = _gpu_time(idle + held), _gpu_time(held)
    text = f"{100 * (idle + held) / s.fleet.observed_h:.0f} % of GPU time was idle: {whole}"
    if held:
        text += f", {'all' if part == whole else part} of it holding memory"
    still = [g for g in s.per_gpu if (known(g.longest_idle_h) or 0.0) >= LONG_IDLE_H]
    if still:
        text += f"; {count(len(still), 'GPU')} stood still for a day or longer at a stretch"
    return idle + held, f"{text}."


def _gpu_time(hours: float) -> str:
    """GPU-hours, or minutes where an hour would read as nothing."""
    if hours >= 10:
        return f"{hours:,.0f} GPU-hours"
    if hours >= 1:
        return f"{hours:.1f} GPU-hours"
    minutes = round(60 * hours)
    return count(minutes, "GPU-minute") if minutes else "less than a GPU-minute"


def _roi(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    rfu = s.fleet.rfu_power_pct
    row = next((r for r in s.roi if shows(r)), None)
    if row is None or isinstance(rfu, Unknown):
        return None
    text = f"Raising RFU from {rfu:.1f} to {row.target_rfu_pct:.0f} % is worth {row.equivalent_gpus:.1f} GPUs"
    weight = (row.target_rfu_pct - rfu) / 100 * s.fleet.observed_h
    return weight, f"{text} without buying any: {row.gpu_hours_per_day:,.1f} GPU-hours per day."


def _target(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    short: list[Finding] = []
    for row in s.by_namespace:
        rfu, target = row.means.rfu_power_pct, row.target_rfu_pct
        if target is not None and not isinstance(rfu, Unknown) and rfu < target:
            text = f"Namespace {row.name} loses most against its target: RFU {rfu:.0f} % of {target:.0f} %"
            weight = (target - rfu) / 100 * row.means.observed_h
            short.append((weight, f"{text} on {count(row.means.gpus, 'GPU')}."))
    return max(short, key=lambda found: found[0], default=None)


def _gap_alert(s: EfficiencyStatement, limits: Thresholds) -> Finding | None:
    if s.bottlenecked_gpus:  # they say the same, with the cause
        return None
    limit = 100 * limits.targets.gap_alert_above_ratio
    wide = [g for g in s.per_gpu if not isinstance(gap := g.means.efficiency_gap_pp, Unknown) and gap > limit]
    if not wide:
        return None
    who, whose = ("1 GPU claims", "its") if len(wide) == 1 else (f"{len(wide):,} GPUs claim", "their")
    text = f"{who} over {limit:.0f} points more utilization than {whose} power supports."
    return sum(g.means.observed_h for g in wide) / 10, text


def _models(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    rated = [(r.means.rfu_power_pct, r) for r in s.by_model if not isinstance(r.means.rfu_power_pct, Unknown)]
    if len(rated) < 2:
        return None
    low, high = min(rated, key=lambda p: p[0]), max(rated, key=lambda p: p[0])
    if high[0] - low[0] < 1:
        return None
    text = (
        f"{low[1].name} is used least well of {len(rated)} models: RFU {low[0]:.0f} %, {high[1].name} {high[0]:.0f} %"
    )
    return (high[0] - low[0]) / 100 * low[1].means.observed_h, f"{text}."


def _trend(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    known = [t for t in s.trends if t.direction != "not known" or not isinstance(t.change_at_ms, Unknown)]
    trend = next((t for t in known if t.series == "rfu_power_pct"), known[0] if known else None)
    if trend is None:
        return None
    name = {"rfu_power_pct": "RFU", "gpu_util_pct": "Utilization"}.get(trend.series, trend.series)
    if not isinstance(trend.change_at_ms, Unknown):
        at = f"{utc(trend.change_at_ms):%Y-%m-%d %H:%M} UTC"
        return 1.0, f"{name} changed at {at}: {trend.before:.1f} before, {trend.after:.1f} after."
    return 1.0, f"{name} {_slope_words(trend)}."


def _slope_words(trend: Trend) -> str:
    if trend.direction == "flat" or isinstance(trend.slope_low, Unknown) or isinstance(trend.slope_high, Unknown):
        return f"shows no trend: {trend.slope_per_day:+.2f} points per day is within chance"
    ends = sorted((trend.slope_low, trend.slope_high))
    return f"is {trend.direction}: {trend.slope_per_day:+.2f} points per day (95 %: {ends[0]:+.2f} to {ends[1]:+.2f})"


def _health(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    """Faults that put work at risk, and heat: the worst GPU by name. Remapped rows and replays alone are repairs."""
    broken = [r for r in s.health.rows if r.xid_events or r.row_remap_failures or hot(r)]
    if not broken:
        return None
    worst = broken[0]
    more = f"; {count(len(broken) - 1, 'other GPU')} too" if len(broken) > 1 else ""
    # What may fail takes all of its time with it.
    weight = s.fleet.observed_h * len(broken) / max(s.health.gpus, 1)
    heat = [f"clocks held down by heat {worst.thermal_pct:.0f} % of the time"] if hot(worst) else []
    return weight, f"Check {name_with_uuid(worst)}: {', '.join([*faults_of(worst), *heat])}{more}."


def _not_known(s: EfficiencyStatement, _: Thresholds) -> Finding | None:
    if not s.not_known:
        return None
    reasons = list(dict.fromkeys(n.why for n in s.not_known))
    more = len(reasons) - _SHOWN_UNKNOWN
    text = "; ".join(reasons[:_SHOWN_UNKNOWN]) + (f"; and {more} more" if more > 0 else "")
    return _LAST, f"Not known: {text}."
