"""Would fewer GPUs do the same work?"""

from gpuledger.advice.rule import SHARE_A_GPU, Case, Effort, Gain, Limits, Reason, advise, bash, pct
from gpuledger.advice.signs import is_service, may_share, packed, room_to_share

CHANGE = bash("""
# The same work on {{fewer}} of {{gpus}} GPUs: fewer replicas, or a queue that starts the next job when one ends.
kubectl -n {{namespace}} scale deployment/"$DEPLOYMENT" --replicas={{fewer}}
kubectl -n {{namespace}} get pods -o wide
""")
GAIN = Gain("computed", "measured", "the busy and memory shares of this case, packed onto fewer GPUs")


@advise(
    "consolidation", "Consolidate onto fewer GPUs", "hours", Effort("medium", 16), CHANGE, GAIN, exclusive=SHARE_A_GPU
)
def when(case: Case, limits: Limits) -> Reason | None:
    """Two GPUs or more, none of them full, whose load fits on fewer."""
    sign = room_to_share(case, limits) or _spare_servers(case, limits)
    found = packed(case, limits)
    if not sign or case.gpus < 2 or found is None:
        return None
    fewer, gain = found
    if fewer >= case.gpus:
        return None
    busy = f"{case.gpus} GPUs are busy {pct(case.busy_ratio)} of the time: {fewer} would do"
    fills = {"fewer": str(fewer), "gpus": str(case.gpus), "namespace": case.namespace or "default"}
    return Reason(f"{sign}; {busy}", gain, fills=fills)


def _spare_servers(case: Case, limits: Limits) -> str | None:
    """Copies of a server, however much memory each holds, with time to spare."""
    spare = case.share("idle", "idle_held", "underused")
    if case.sliced or not case.works or spare < limits.idle.idle_heavy_from_ratio:
        return None
    if not is_service(case, limits) or not may_share(case, limits):
        return None
    return f"servers with nothing to do for {pct(spare)} of what is paid; if they are copies of one, fewer will do"
