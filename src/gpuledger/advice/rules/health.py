"""Does a GPU report faults, or is it held down by heat?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, bash, pct
from gpuledger.efficiency.health import FAULTS, THERMAL_ABOVE_PCT
from gpuledger.units import Unknown, count

CHANGE = bash("""
# Drain the node, then check it: a job lost to a failing GPU costs more.
NODE=gpu-node-1  # the node of {{gpu}}
kubectl cordon "$NODE"
kubectl drain "$NODE" --ignore-daemonsets --delete-emptydir-data
# On the node: a long diagnosis, the state of the row remapper, and what the driver logged.
dcgmi diag -r 3
nvidia-smi -q -i {{gpu}} -d ROW_REMAPPER,TEMPERATURE,PERFORMANCE
sudo dmesg | grep -i xid
""")
# Remapped rows and PCIe replays alone are repairs that worked.
_SERIOUS = ("xid_events", "row_remap_failures")
SOURCE = (
    "the fault counters and clock event reasons of these GPUs; a check saves nothing by itself, a failed job costs "
    "what it computed"
)
GAIN = Gain("none", "measured", SOURCE)


@advise("health", "Drain and check the node of a failing or hot GPU", None, Effort("small", 2), CHANGE, GAIN)
def when(case: Case, _: Limits) -> Reason | None:
    """Driver errors, failed row remappings, or clocks held down by heat."""
    health = case.health
    if not health.affected:
        return None
    said = [count(getattr(health, name), *FAULTS[name]) for name in _SERIOUS if getattr(health, name)]
    hottest = health.hottest_ratio
    if not isinstance(hottest, Unknown) and 100 * hottest > THERMAL_ABOVE_PCT:
        said.append(f"clocks held down by heat for up to {pct(hottest)} of a GPU's time")
    more = len(health.affected) - 1
    where = health.affected[0] + (f" and {count(more, 'other GPU')}" if more else "")
    return Reason(f"{', '.join(said)} on {where}", fills={"gpu": health.affected[0]}, devices=health.affected)
