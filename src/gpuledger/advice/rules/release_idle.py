"""Is a GPU paid for while no one holds it?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, bash, pct
from gpuledger.advice.signs import of_long, stays_up

CHANGE = bash("""
# The cluster autoscaler gives a node back ten minutes after its last GPU pod ends.
kubectl -n kube-system set env deployment/cluster-autoscaler --list
helm upgrade cluster-autoscaler autoscaler/cluster-autoscaler -n kube-system --reuse-values \\
  --set extraArgs.scale-down-unneeded-time=10m \\
  --set extraArgs.scale-down-utilization-threshold=0.5
""")
SOURCE = "assumed: the share of idle time a cluster autoscaler can give back; a few minutes are lost at each end"
GAIN = Gain("recovers", "assumed", SOURCE, (0.5, 0.8, 0.95), of=("idle",))


@advise("release-idle", "Give idle GPUs back: scale the node group down", "hours", Effort("small", 4), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """Idle, with memory known to be free, for much of the time and for a day or longer at a stretch.

    Never production or a service, and no slice: it frees nothing while others use its board.
    """
    idle, long = case.idle_ratio, tuple(h for h in case.long_idle.free_h if h >= limits.idle.release_from_h)
    if idle < limits.idle.idle_heavy_from_ratio or case.purchase in {"reserved", "owned"} or not long:
        return None
    if case.sliced or stays_up(case, limits):
        return None
    gain, most = of_long(GAIN, case, sum(long)), f"for up to {max(long):,.1f} h at a stretch"
    if not case.memory_known:
        unknown = "memory use is not recorded: see that no job holds it before giving it back"
        return Reason(f"idle {pct(idle)} of the time, {most}; {unknown}", gain)
    return Reason(f"idle with its memory free {pct(idle)} of the time, {most}", gain)
