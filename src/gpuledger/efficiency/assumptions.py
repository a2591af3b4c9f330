"""What does the statement rest on, and where does it stop knowing?"""

from __future__ import annotations

from collections.abc import Sequence

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.efficiency.accounts import Accounts
from gpuledger.efficiency.means import NO_SHARE, Groups
from gpuledger.efficiency.statement import CapacityAnalysis, NotKnown, Range
from gpuledger.ledger import lines
from gpuledger.ledger.read.scope import Scope
from gpuledger.physics.calibration import Calibration
from gpuledger.settings import changed
from gpuledger.units import Unknown

_SOURCES = {
    "s0": "as published by GPU Efficiency Analytics (S0)",
    "peak": "the vendor's dense peak",
    "measured": "measured",
}


_BY_POWER = (
    "rfu_power_pct (realized FLOPS utilization, RFU, by power) is 100 x PIF (power intensity factor): power over the "
    "power limit in force, else over board power. Readings above the limit count as the limit. It measures watts, not "
    "FLOPs."
)
_COUNTERS = (
    "rfu_counters_pct is pipe activity x SM clock x SMs x FLOP per clock per SM over the dense peak at the reference "
    "precision (bf16, or fp16 where the GPU has no bf16) and rated clock."
)


def assumptions(
    accounts: Accounts,
    fleet: Groups,
    scope: Scope,
    limits: Thresholds,
    achievable: str,
    calibration: Calibration | None,
    other_rules: Sequence[str],
    *,
    cut_by_share: bool,
) -> tuple[str, ...]:
    """Every choice a figure depends on, in words."""
    b = limits.bottleneck
    said = [
        "Times are UTC. The window is exact to the millisecond: hours that it cuts are posted again from samples.",
        "Means are weighted by time: a sample stands for the time to its device's next one, at most 2.5 median steps.",
        _BY_POWER,
        "rfu_power_idle_corrected_pct takes the catalog's idle power off both power and board power.",
        _COUNTERS,
        f"Achievable TFLOPS: {_SOURCES[achievable]} ({achievable}). Realized TFLOPS by power are achievable x PIF.",
        _memory(calibration),
        (
            f"Bottlenecked: an active sample with utilization above {100 * b.util_above_ratio:.0f} % "
            f"and PIF below {b.pif_below_ratio:.2f}, over the active time in which PIF is known."
        ),
        "A GPU is bottlenecked on a UTC day when for over half of its active time; consistently: on most active days.",
        f"Quantiles come from histograms of {lines.bins()} bins: off by at most {100 / lines.bins():.0f} points.",
        "ROI scales from rfu_power_pct: GPUs x (target / current - 1); a month is 30 days. No prices are used.",
    ]
    said += changed(efficiency_classes=limits.origin)
    counted = fleet.counters_pct[0]
    if isinstance(counted, Range) and counted.note:
        said.append(f"Counters: {counted.note}.")
    if calibration and fleet.measured_pct[0] is not None:
        said.append(_measured(calibration))
    if any(i is not None for i in accounts.labels["gpu_instance_id"]):
        said.append("GPUs are counted as boards; a MIG instance is a row of its own with its share of the TFLOPS.")
    if cut_by_share:
        said.append("Samples of an hour or day that the window cuts are gone: its part is taken in proportion to time.")
    if scope.names_owners:
        said.append("Only some owners are in scope; unobserved time and idle stretches are those of the whole device.")
    if other_rules:
        days = other_rules[0] if len(other_rules) == 1 else f"{len(other_rules)} days from {other_rules[0]}"
        said.append(f"Classes of {days} were posted under other limits or board powers than those of now.")
    return tuple(said)


def _memory(calibration: Calibration | None) -> str:
    if calibration and any(m.bandwidth_bytes_per_s for m in calibration.gpus.values()):
        return (
            "memory_pct is memory interface activity over the bandwidth measured on each board, 100 % where none was."
        )
    return (
        "memory_pct is memory interface activity as the counter gives it: 100 % is every cycle, not what is attainable."
    )


def _measured(calibration: Calibration) -> str:
    found = [m for m in calibration.gpus.values() if m.achievable_tflops]
    dates, kinds = sorted(m.as_of[:10] for m in found), sorted({str(m.precision) for m in found})
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    return (
        f"rfu_measured_pct is the same work over the {', '.join(kinds)} TFLOPS measured on each board ({when}), not "
        "over the dense peak."
    )


def not_known(
    accounts: Accounts, fleet: Groups, capacity: CapacityAnalysis, unknown: Sequence[NotKnown]
) -> tuple[NotKnown, ...]:
    """Models without facts first, as they explain the rest; fleet figures without a value; totals over a part."""
    out = []
    for facts in accounts.models.values():
        if isinstance(facts.gpu, Unknown):
            out.append(NotKnown(f"figures of GPU model {facts.name}", facts.gpu.why))
        elif isinstance(idle := facts.idle_mw, Unknown):
            out.append(NotKnown(f"rfu_power_idle_corrected_pct of {facts.name}", idle.why))
    means = fleet.means[0]
    figures = {name: getattr(means, name) for name in means.__dataclass_fields__}
    out += [NotKnown(f"fleet.{name}", value.why) for name, value in figures.items() if isinstance(value, Unknown)]
    if fleet.sum("unshared_ms", 0) and fleet.sum("energy_ms", 0):
        out.append(NotKnown("fleet.energy_kwh for all devices", f"known in part: {NO_SHARE}"))
    if capacity.fleet.note:
        out.append(NotKnown("capacity.fleet for all GPUs", f"known in part: {capacity.fleet.note}"))
    return tuple(dict.fromkeys((*out, *unknown)))
