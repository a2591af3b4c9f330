"""Does a power limit below the board's own hold the work down?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, bash, pct
from gpuledger.advice.signs import nvidia
from gpuledger.catalog.gpus import Gpu
from gpuledger.units import Unknown

CHANGE = bash("""
# Only if the limit is not wanted (racks and power contracts set limits too). More power makes the work faster, and may
# take more energy for the same work: compare step time and energy before and after.
nvidia-smi -q -d POWER
sudo nvidia-smi -pm 1
sudo nvidia-smi -pl {{watts}}
""")
SOURCE = (
    "the power, the power limit and the clock event reasons of these GPUs; a limit may be wanted, so no dollars are "
    "claimed"
)
GAIN = Gain("none", "measured", SOURCE)


@advise("lift-power-limit", "Lift the power limit, if it is not wanted", None, Effort("small", 1), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """At a lowered limit for a good part of the working time. It may be wanted, so no dollars are claimed."""
    limit = case.demand.capped_w
    if not nvidia(case) or not isinstance(case.gpu, Gpu) or isinstance(limit, Unknown):
        return None
    if case.demand.capped_ratio < limits.power.capped_from_ratio:
        return None
    if isinstance(board := case.gpu.figure("board_power_w"), Unknown):
        return None
    why = (
        f"at a power limit of {limit:.0f} W for {pct(case.demand.capped_ratio)} of the working time; "
        f"the board is made for {board:.0f} W"
    )
    return Reason(why, fills={"watts": f"{board:.0f}"})
