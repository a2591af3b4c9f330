"""What should a reader of a single page know?"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.scaling.figures import Facts
from gpuledger.scaling.grades import Thresholds
from gpuledger.scaling.statement import Bottleneck, Check, Optimization, Readiness
from gpuledger.units import Unknown

HORIZONS = ("immediate", "1-3 months", "later")
NAMED = 3


def headline(facts: Facts, ready: Readiness, holds: Sequence[Bottleneck]) -> tuple[str, str]:
    """The result in one sentence, and the first thing to do in another."""
    counts, rate = facts.counts, facts.throughput_per_s
    nodes = f"{facts.nodes_n} node{'s' * (facts.nodes_n != 1)}"
    done = f"{counts.ok:,} of {counts.planned:,} requests answered on {nodes}"
    if isinstance(rate, Unknown):
        return f"{done}; the rate is not known", _first(holds, ready)
    shown = f"{rate.value:,.1f}" if rate.value >= 10 else f"{rate.value:.2f}"
    return f"{done}: {shown} per second by wall clock", _first(holds, ready)


def _first(holds: Sequence[Bottleneck], ready: Readiness) -> str:
    verdict = {"not ready": "Not ready for production", "cannot tell": "Readiness is not known"}.get(
        ready.verdict, "Ready as far as measured"
    )
    why = (ready.against or ready.unknown or ready.passed)[:1]
    first = f"{verdict}: {why[0]}." if why else f"{verdict}."
    for hold in holds:
        if not isinstance(hold.gain_pct, Unknown):
            return f"{first} Largest possible gain: {hold.name.lower()} (+{hold.gain_pct:.0f} % throughput)."
    return first


def summary(facts: Facts, ready: Readiness, holds: Sequence[Bottleneck], checks: Sequence[Check]) -> tuple[str, ...]:
    """The whole report in a few sentences."""
    counts, out = facts.counts, []
    if not isinstance(counts.success_pct, Unknown):
        out.append(
            f"{counts.success_pct.value:.1f} % of planned requests were answered ({counts.ok} of {counts.planned}; "
            f"{counts.failed} failed, {counts.lost} lost)."
        )
    rate = facts.throughput_per_s
    if not isinstance(rate, Unknown) and not isinstance(facts.wall_s, Unknown):
        out.append(
            f"Throughput is {rate.value:.3g}/s ({rate.low:.3g} to {rate.high:.3g}) over {facts.wall_s:.2f} s of wall "
            "clock."
        )
    scaling = facts.scaling
    if isinstance(scaling.efficiency_pct, Unknown):
        out.append(f"Scaling efficiency is not known: {scaling.refused}.")
    else:
        found = scaling.efficiency_pct
        linear = "above linear" if scaling.superlinear else "not shown to be above linear"
        out.append(f"Scaling efficiency is {found.value:.1f} % ({found.low:.1f} to {found.high:.1f} %), {linear}.")
    warm = facts.latency.warm.mean_s
    if not isinstance(warm, Unknown):
        out.append(f"A warm request takes {warm.value:.3f} s on average ({warm.low:.3f} to {warm.high:.3f} s).")
    out += [f"{h.name}: {h.why}{_gain(h)}." for h in holds[:NAMED]]
    if caught := [c.title.lower() for c in checks if c.caught]:
        out.append(f"Mistakes found: {', '.join(caught)}.")
    out.append(f"Readiness: {ready.verdict}.")
    return tuple(out)


def _gain(hold: Bottleneck) -> str:
    return "" if isinstance(hold.gain_pct, Unknown) else f"; fixing it adds {hold.gain_pct:.0f} % throughput"


def recommendations(
    facts: Facts, changes: Sequence[Optimization], limits: Thresholds
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What to do now, in the next months, later; what is unknown is measured first."""
    now: list[str] = []
    need = limits.readiness.answers_per_node_from
    if any(n.counts.ok < need for n in facts.nodes):
        now.append(f"Run at least {need} requests on every node before judging latency or readiness.")
    if facts.scaling.refused and facts.nodes_n > 1:
        now.append("Measure one node with the same requests and give it as the baseline.")
    if isinstance(facts.telemetry.gpu_util_pct, Unknown):
        now.append("Record telemetry with the run, so that utilization, energy and memory are known.")
    if facts.scaling.curve.refused and facts.nodes_n > 1:
        now.append("Run three sizes or more (1, 2 and 4 nodes) before planning for 4 or 8.")
    by_horizon: dict[str, list[str]] = {h: [] for h in HORIZONS}
    for change in changes:
        by_horizon[change.horizon].append(f"{change.name} ({change.gain}).")
    by_horizon["immediate"] += now
    return tuple((h, tuple(by_horizon[h])) for h in HORIZONS)
