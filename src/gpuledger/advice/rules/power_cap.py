"""Would a lower power limit save energy at next to no loss of speed?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Range, Reason, advise, bash, pct
from gpuledger.advice.signs import nvidia
from gpuledger.catalog.gpus import Gpu
from gpuledger.units import Unknown

# The middle of the limits that saved most energy for at most 5 % of time, over the highest limit.
_LIMIT_RATIO = 0.80
# Energy saved by the 89 training configurations, of the 218 in the sweep, that drew 70 % of their limit or more: for
# each (GPU, data set, network, batch size, optimizer) the limit with the least energy per epoch among those at most 5 %
# slower than the highest limit; 10th percentile, median, 90th percentile. A share of the energy, not of the bill.
_SAVES = (0.048, 0.113, 0.219)

CHANGE = bash("""
# Measure the step time before and after; raise the limit again if it grows by more than 5 %.
sudo nvidia-smi -pm 1
sudo nvidia-smi -pl {{watts}}
""")
SOURCE = (
    "ml-energy/zeus power limit sweep (Apache-2.0), 89 configurations on V100, A40, RTX 6000 and P100: energy per "
    "epoch at the best limit that costs at most 5 % of time"
)
GAIN = Gain("none", "measured", SOURCE, _SAVES)


@advise("power-cap", "Cap the power limit", None, Effort("small", 1), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """Near the power limit, where energy is paid for by itself: a cloud's price includes it."""
    power = case.signals.power_ratio
    if not nvidia(case) or not isinstance(case.gpu, Gpu) or power is None:
        return None
    if case.demand.capped_ratio >= limits.power.capped_from_ratio:
        return None  # capped already
    if power < limits.power.near_limit_from_ratio or (case.usd_per_kwh is None and case.purchase != "owned"):
        return None
    if isinstance(board := case.gpu.figure("board_power_w"), Unknown):
        return None
    watts = f"{_LIMIT_RATIO * board:.0f}"
    why = f"draws {pct(power)} of its power limit while it works"
    return Reason(why, fills={"watts": watts}, energy=Range.of(*_SAVES))
