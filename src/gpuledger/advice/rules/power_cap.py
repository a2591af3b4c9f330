"""Would a lower power limit save energy at next to no loss of speed?"""

from __future__ import annotations

from gpuledger.advice.case import Case
from gpuledger.advice.gains import Range, gain_of
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import Effort, Reason, advise, bash, pct
from gpuledger.advice.signs import nvidia
from gpuledger.catalog.gpus import Gpu

# The middle of the limits that saved most energy for at most 5 % of time, over the highest limit.
_LIMIT_RATIO = 0.80

CHANGE = bash("""
# Measure the step time before and after; raise the limit again if it grows by more than 5 %.
sudo nvidia-smi -pm 1
sudo nvidia-smi -pl {{watts}}
""")


@advise(
    "power-cap",
    title="Cap the power limit",
    lever=None,
    effort=Effort("small", 1),
    change=CHANGE,
)
def when(case: Case, limits: Limits) -> Reason | None:
    """Near the power limit, where somebody pays for the energy: a cloud's price includes it."""
    power = case.signals.power_ratio
    if not nvidia(case) or not isinstance(case.gpu, Gpu) or power is None:
        return None
    if case.demand.capped_ratio >= limits.power.capped_from_ratio:
        return None  # capped already
    if power < limits.power.near_limit_from_ratio or (case.usd_per_kwh is None and case.purchase != "owned"):
        return None
    gain = gain_of("power-cap")
    energy = Range.of(gain.low or 0.0, gain.middle or 0.0, gain.high or 0.0)
    watts = f"{_LIMIT_RATIO * case.gpu.board_power_w.value:.0f}"
    return Reason(f"draws {pct(power)} of its power limit while it works", fills={"watts": watts}, energy=energy)
