"""How far could these GPUs be filled by sharing or packing them?"""

from __future__ import annotations

import math

from gpuledger.advice.case import Case
from gpuledger.advice.gains import Range
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import pct
from gpuledger.advice.signs import waits_for_gpus
from gpuledger.units import Unknown


def room_to_share(case: Case, limits: Limits) -> str | None:
    """Idle-heavy, or a server with time to spare, and small enough for two on a card most of the time."""
    memory = case.demand.memory_mean_ratio
    if case.sliced or case.namespace is None or isinstance(memory, Unknown):
        return None
    if memory >= limits.memory.two_fit_below_ratio or waits_for_gpus(case, limits) or case.klass == "spinning":
        return None
    resting, fits = case.idle_ratio + case.idle_held_ratio, _fits(case, memory, limits)
    if resting >= limits.idle.idle_heavy_from_ratio:
        return f"idle {pct(resting)} of the time; {fits}"
    spare = case.share("idle", "idle_held", "underused")
    if case.purpose == "inference" and spare >= limits.idle.idle_heavy_from_ratio:
        return f"a server with nothing to do for {pct(spare)} of what is paid; {fits}"
    return None


def _fits(case: Case, mean: float, limits: Limits) -> str:
    most = case.demand.memory_max_ratio
    if isinstance(most, Unknown) or most < limits.memory.two_fit_below_ratio:
        return f"at most {pct(most)} of the memory is used, so two fit on a card"
    return f"{pct(mean)} of the memory is used on average, but {pct(most)} at its peak: two peaks at once may not fit"


def need(case: Case) -> tuple[float, float] | None:
    """The share of a card one load needs, of its time or its memory, whichever is more: at its peak, and typically.

    None where memory use is not recorded: a card may be full and nobody would know.
    """
    most, mean = case.demand.memory_max_ratio, case.demand.memory_mean_ratio
    if isinstance(most, Unknown) or isinstance(mean, Unknown):
        return None
    return max(case.busy_ratio, most, 0.01), max(case.busy_ratio, mean, 0.01)


def shared_gain(case: Case, limits: Limits, loss: float = 0.0) -> Range | None:
    """The fraction of the bill saved by sharing cards: cautiously by the peak, in the middle and boldly by the mean."""
    fill, wanted_by = limits.fill, need(case)
    if wanted_by is None:
        return None
    peak, mean = wanted_by
    plans = ((peak, fill.cautious_ratio), (mean, fill.middle_ratio), (mean, fill.bold_ratio))
    return Range.of(*((1 - wanted / full) * (1 - loss) for wanted, full in plans))


def packed(case: Case, limits: Limits) -> tuple[int, Range] | None:
    """How many GPUs the same load needs, packed; and the saving when it is planned cautiously, middling and boldly.

    Copies of a server hold the same weights: with fewer of them only the load adds up, not the memory.
    """
    fill, wanted_by = limits.fill, need(case)
    if wanted_by is None:
        return None
    peak, mean = wanted_by
    if case.purpose == "inference":
        peak = mean = max(case.busy_ratio, 0.01)
    plans = ((peak, fill.cautious_ratio), (mean, fill.middle_ratio), (mean, fill.bold_ratio))
    counts = [min(case.gpus, math.ceil(case.gpus * wanted / full)) for wanted, full in plans]
    return counts[1], Range.of(*(1 - n / case.gpus for n in counts))
