"""Which series should Prometheus keep, and when should it alert? Rules on the figures of a scrape.

Limits are those of the settings in force: what counts as idle-heavy in advice, the alert limit of the utilization gap,
and the budgets that were set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpuledger.advice.limits import Limits
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.cost.month_budget import ALL
from gpuledger.efficiency.health import THERMAL_ABOVE_PCT
from gpuledger.encode import as_text
from gpuledger.units import MS_PER_S

MONTH_H = 720
# A day in steps of 5 min, of which an hour may be missing: less says nothing of a month.
DAY_STEPS = 276
Rule = Mapping[str, Any]


@dataclass(frozen=True)
class RuleTerms:
    """What the rules rest on. `stale_ms`: age of the newest sample to alert on; `idle_for`: how long a GPU idles."""

    limits: Limits
    thresholds: Thresholds
    budgets: Mapping[str, Decimal]
    stale_ms: int
    idle_for: str = "2h"


def prometheus_length(length_ms: int) -> str:
    """A length of time as Prometheus writes it: whole hours or minutes where it is, else seconds."""
    seconds = max(1, round(length_ms / MS_PER_S))
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


AGE = "time() - gpuledger_newest_sample_timestamp_seconds"


def rule_groups(terms: RuleTerms) -> list[dict[str, Any]]:
    """The groups of a rule file."""
    return [
        {"name": "gpuledger-recording", "rules": list(_recording())},
        {"name": "gpuledger-alerts", "rules": list(_alerts(terms))},
    ]


def rules_text(terms: RuleTerms) -> str:
    """The rule file, as YAML."""
    head = "# Rules on the figures of gpuledger serve at /metrics. Check: promtool check rules FILE\n"
    return head + "\n".join(("groups:", *_yaml(rule_groups(terms), 2))) + "\n"


def _recording() -> Iterator[Rule]:
    # Not from the buckets: without a rated hour some of them are unknown, and the sum of the others is not the waste.
    waste = "sum(gpuledger_waste_usd_per_hour)"
    yield _record("gpuledger:waste_usd_per_hour:sum", waste)
    yield _record("gpuledger:waste:ratio", f"{waste} / sum(gpuledger_paid_usd_per_hour)")
    for label in ("namespace", "team"):
        part = f"sum by ({label}) (gpuledger_{label}_waste_usd_per_hour)"
        yield _record(f"gpuledger:{label}_waste_usd_per_hour:sum", part)
        yield _record(
            f"gpuledger:{label}_waste:ratio", f"{part} / sum by ({label}) (gpuledger_{label}_paid_usd_per_hour)"
        )
    idle = "(gpuledger_gpu_idle_seconds + gpuledger_gpu_idle_held_seconds) / (gpuledger_gpu_observed_seconds > 0)"
    yield _record("gpuledger:gpu_idle:ratio", idle)
    yield _record("gpuledger:gpu_gap:ratio", "gpuledger_gpu_utilization_ratio - gpuledger_gpu_realized_high_ratio")
    yield _record("gpuledger:sample_age_seconds", AGE)


def _record(name: str, expression: str) -> Rule:
    return {"record": name, "expr": expression}


def _alerts(terms: RuleTerms) -> Iterator[Rule]:
    yield _alert(
        # Not by the record: of another group, it may be an interval old.
        "GpuledgerNoSamples", f"{AGE} > {terms.stale_ms / MS_PER_S:g}", "5m", "warning",
        "No new GPU samples",
        "The newest sample is {{ $value | humanizeDuration }} old. Check the exporters and the import.",
    )  # fmt: skip
    yield _alert(
        "GpuledgerAbsent", "absent(gpuledger_build_info)", "10m", "warning",
        "gpuledger is not scraped", "No figures of gpuledger arrive. Check gpuledger serve and its scrape job.",
    )  # fmt: skip
    idle = terms.limits.idle.idle_heavy_from_ratio
    yield _alert(
        "GpuIdle", f"gpuledger:gpu_idle:ratio > {idle:g}", terms.idle_for, "info",
        "{{ $labels.name }} is idle",
        "It was idle for {{ $value | humanizePercentage }} of the last hour, and so for "
        f"{terms.idle_for}. Give it back, or schedule work on it.",
    )  # fmt: skip
    gap = terms.thresholds.targets.gap_alert_above_ratio
    yield _alert(
        "GpuUtilizationGap", f"gpuledger:gpu_gap:ratio > {gap:g}", "1h", "info",
        "{{ $labels.name }} looks busier than it is",
        "Its utilization is {{ $value | humanizePercentage }} above the highest share of the peak its counters allow.",
    )  # fmt: skip
    yield from _faults()
    for name, budget in terms.budgets.items():
        yield _budget(name, budget)


def _faults() -> Iterator[Rule]:
    yield _alert(
        "GpuRowRemapFailure", "gpuledger_gpu_row_remap_failures > 0", "", "critical",
        "{{ $labels.name }} cannot remap failing memory", "Drain it and have it replaced.",
    )  # fmt: skip
    yield _alert(
        "GpuXidErrors", "gpuledger_gpu_xid_events > 0", "", "warning",
        "{{ $labels.name }} reports XID errors", "{{ $value }} in the last hour. Look them up in the kernel log.",
    )  # fmt: skip
    yield _alert(
        "GpuHeldDownByHeat", f"gpuledger_gpu_thermal_ratio > {THERMAL_ABOVE_PCT / 100:g}", "15m", "warning",
        "{{ $labels.name }} is held down by heat",
        "Its clocks were held down for {{ $value | humanizePercentage }} of the last hour. Check its cooling.",
    )  # fmt: skip


def _budget(name: str, budget: Decimal) -> Rule:
    """A month at this rate of spending: of all GPUs, of a team, else of a namespace of that name."""
    text, shown = json.dumps(name, ensure_ascii=False), name.replace("{{", "{ {")
    team, space = (f"gpuledger_{of}_paid_usd_per_hour{{{of}={text}}}" for of in ("team", "namespace"))
    spent = "gpuledger_paid_usd_per_hour" if name == ALL else f"({team} or on () {space})"
    enough = f"count_over_time({spent}[1d:5m]) >= {DAY_STEPS}"
    return _alert(
        "GpuBudget", f"avg_over_time({spent}[1d:5m]) * {MONTH_H} > {as_text(budget)} and {enough}", "1h", "warning",
        f"{shown} spends more than its budget",
        f"At the rate of the last day it spends ${{{{ $value | humanize }}}} per month; the budget is ${budget:,.0f}.",
        budget=shown,
    )  # fmt: skip


def _alert(name: str, when: str, lasting: str, severity: str, summary: str, text: str, **labels: str) -> Rule:
    rule: dict[str, Any] = {"alert": name, "expr": when}
    if lasting:
        rule["for"] = lasting
    return rule | {
        "labels": {"severity": severity, **labels},
        "annotations": {"summary": summary, "description": text},
    }


def _yaml(value: Any, indent: int) -> Iterator[str]:
    """Lists and mappings as YAML lines; texts are quoted as JSON, which YAML reads alike."""
    pad = " " * indent
    if isinstance(value, list):
        for item in value:
            first, *rest = _yaml(item, indent + 2)
            yield f"{pad}- {first.lstrip()}"
            yield from rest
        return
    for key, inner in value.items():
        if isinstance(inner, dict | list):
            yield f"{pad}{key}:"
            yield from _yaml(inner, indent + 2)
        else:
            yield f"{pad}{key}: {json.dumps(inner, ensure_ascii=False)}"
