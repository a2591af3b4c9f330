"""What does a plan of autoscaling say in sentences, and which manifests go with it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np

from gpuledger.catalog.gpus import Gpu
from gpuledger.plan.autoscale.demand.trace import Trace
from gpuledger.plan.autoscale.facts import facts
from gpuledger.plan.autoscale.manifests.kubernetes import Target, hpa, karpenter, keda
from gpuledger.plan.autoscale.policies import PolicyKind
from gpuledger.plan.autoscale.replays.replay import Replays
from gpuledger.plan.autoscale.setting import Setting, Slo
from gpuledger.plan.autoscale.statement import PolicyRow
from gpuledger.plan.outcome import Refused
from gpuledger.units import Unknown, count

KEDA_POLICIES = ("queue-length", "predictive", "scheduled")


def headline_of(rows: Sequence[PolicyRow], chosen: PolicyRow | None, slo: Slo) -> str:
    """Which policy, for how much, with how many misses, against the static peak."""
    if chosen is None:
        near = min(rows, key=lambda r: r.missed_pct)
        return (
            f"No policy meets the goal ({slo.words}). {near.title} is nearest: {_percent(near.missed_pct)} of requests "
            f"wait longer, {slo.missed_ratio * 100:.3g} % may."
        )
    static = next((r for r in rows if r.policy == "static-peak"), None)
    return (
        f"{chosen.title} meets the goal for the least: {amount(chosen)} per month, "
        f"{_percent(chosen.missed_pct)} of requests wait longer than {slo.wait_s:g} s.{_against(chosen, static)}"
    )


def amount(row: PolicyRow) -> str:
    """Dollars with their range, else GPU-hours."""
    usd = row.usd_per_month
    if isinstance(usd, Unknown):
        return f"{row.gpu_h_per_month:,.0f} GPU-hours"
    ends = f" (${usd.low_usd:,.0f} to ${usd.high_usd:,.0f})" if usd.low_usd != usd.high_usd else ""
    return f"${usd.middle_usd:,.0f}{ends}"


def _percent(value: float) -> str:
    if value < 0.01:
        return "under 0.01 %" if value else "0 %"
    return f"{value:.{0 if value >= 10 else 1 if value >= 1 else 2}f} %"


def _against(chosen: PolicyRow, static: PolicyRow | None) -> str:
    if static is None or static is chosen:
        return ""
    usd, of_static = chosen.usd_per_month, static.usd_per_month
    if isinstance(usd, Unknown) or isinstance(of_static, Unknown):
        now, then, words = static.gpu_h_per_month, chosen.gpu_h_per_month, f"{static.gpu_h_per_month:,.0f} GPU-hours"
    else:
        now, then, words = float(of_static.middle_usd), float(usd.middle_usd), f"${of_static.middle_usd:,.0f}"
    if not static.meets:
        return f" A static peak of {count(static.most_replicas, 'replica')} costs {words} and misses it."
    side = "less" if then <= now else "more"
    return f" That is {100 * abs(1 - then / now):.0f} % {side} than a static peak ({words})." if now else ""


def refusals(
    rows: Sequence[PolicyRow], cannot: Mapping[PolicyKind, str], setting: Setting, needed: np.ndarray
) -> tuple[Refused, ...]:
    """Policies that miss the goal, and those that cannot be tried."""
    allowed = 100 * setting.slo.missed_ratio
    most = setting.max_replicas
    out = []
    for row in (r for r in rows if not r.meets):
        why = f"{_percent(row.missed_pct)} of requests wait longer than {setting.slo.wait_s:g} s, {allowed:.3g} % may"
        if row.hindsight is not None:
            instead = (
                f"in hindsight, {row.hindsight.says} would have met it for {row.hindsight.gpu_h_per_month:,.0f} "
                "GPU-hours per month; learn from a longer trace"
            )
        elif most is not None and needed.max(initial=0) >= most:
            instead = f"allow more than {count(most, 'replica')}"
        else:
            instead = "a shorter cold start, more minimum replicas, or a looser goal"
        out.append(Refused(f"{row.title}, {row.says}", why, instead))
    more = "give a longer trace, or learn from more of it"
    return (*out, *(Refused(kind.title, why, more) for kind, why in cannot.items()))


def assumptions_of(trace: Trace, replays: Replays) -> tuple[str, ...]:
    """What the figures rest on."""
    setting, rules = replays.setting, facts().kubernetes
    service = setting.service
    times = (
        "service times follow the generated tokens of each request"
        if trace.generated is not None
        else "service times are exponential"
    )
    spot = setting.spot
    seeds = (
        f"{count(len(replays.seeds), 'seed')}: ranges over them"
        if replays.by_chance
        else "the replay has no chance in it"
    )
    on_spot = (
        f"{100 * spot.share_ratio:g} % of replicas are on spot, each taken back {spot.reclaims_per_day:g} times a day "
        "on average; its requests are finished within the notice, and another starts in its place"
    )
    tuned = (
        f"policies are tuned on the first {replays.split_s / 3600:,.1f} h (less {replays.warm_up_s:,.0f} s to warm up) "
        f"with {100 * facts().tried.miss_margin_ratio:g} % of the allowed misses, and judged on the other "
        f"{(trace.length_s - replays.split_s) / 3600:,.1f} h"
    )
    paid = (
        f"a replica is paid from its start and takes {setting.cold_start_s:g} s to get ready; replicas: at least "
        f"{setting.min_replicas}, at most {'any number' if setting.max_replicas is None else setting.max_replicas}"
    )
    decided = (
        f"decisions every {setting.interval_s:g} s by the rules of Kubernetes (tolerance "
        f"{100 * rules.tolerance_ratio:g} %, at most double or {rules.scale_up_pods} more per {rules.sync_s} s, fewer "
        f"after {setting.scale_down_delay_s:g} s)"
    )
    return (
        f"one replica: {service.words} ({service.basis}); {count(service.gpus, 'GPU')} per replica",
        f"goal: {setting.slo.words}; a wait is the time in the queue, before a replica works on the request",
        replays.words,
        f"{times}; one queue, in order of arrival; {seeds}",
        tuned,
        paid,
        decided,
        "a month is 720 h; needed replicas are those of a planner that knows the demand (Erlang C for each step)",
        *([on_spot] if spot.share_ratio else []),
    )


def pasted(
    rows: Sequence[PolicyRow], chosen: PolicyRow | None, setting: Setting, deployment: str, gpu: Gpu | None
) -> dict[str, str]:
    """Manifests by file name: of the chosen policy, and of the best that each tool can run."""
    target = Target(deployment, setting, max(row.most_replicas for row in rows))
    by_name = {row.policy: row for row in rows}
    out = {}
    if (row := by_name.get("target-utilization")) is not None:
        out["hpa.yaml"] = hpa(target, row.value, _comments(row, setting, chosen))
    able = [by_name[name] for name in KEDA_POLICIES if name in by_name]
    if able:
        best = chosen if chosen in able else min(able, key=lambda r: (not r.meets, _usd(r)))
        out["keda.yaml"] = keda(target, best.policy, best.value, _comments(best, setting, chosen))
    pool = f"Nodes for up to {count(target.limit, 'replica')} of {count(setting.service.gpus, 'GPU')}"
    out["karpenter.yaml"] = karpenter(target, gpu, [pool, "nodeClassRef: name your own EC2NodeClass"])
    return out


def _usd(row: PolicyRow) -> Decimal:
    usd = row.usd_per_month
    return Decimal(repr(row.gpu_h_per_month)) if isinstance(usd, Unknown) else usd.middle_usd


def _comments(row: PolicyRow, setting: Setting, chosen: PolicyRow | None) -> list[str]:
    verdict = (
        "the chosen policy" if row is chosen else "meets the goal" if row.meets else "misses the goal: not advised"
    )
    missed = f"{_percent(row.missed_pct)} of requests wait longer than {setting.slo.wait_s:g} s"
    return [
        f"{row.title}: {row.says} ({verdict})",
        f"Replayed: {amount(row)} per month, {missed}",
        f"A replica works on {count(setting.service.slots, 'request')} at a time, {setting.cold_start_s:g} s to start",
    ]
