"""Is a GPU paid for while no one holds it?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, bash, pct

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
    """Idle, with memory known to be free, for much of the time."""
    idle = case.idle_ratio
    if idle < limits.idle.idle_heavy_from_ratio or case.purchase in {"reserved", "owned"}:
        return None
    if not case.memory_known:
        return Reason(
            f"idle {pct(idle)} of the time; memory use is not recorded: see that no job holds it before giving it back"
        )
    return Reason(f"idle with its memory free {pct(idle)} of the time")
