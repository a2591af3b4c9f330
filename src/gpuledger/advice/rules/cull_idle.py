"""Is a GPU held by something that no longer works?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, bash, pct, python
from gpuledger.advice.signs import is_interactive, of_long, stays_up

CHANGE = python("""
# jupyter_server_config.py: a notebook that idles gives its GPU back after an hour.
c.MappingKernelManager.cull_idle_timeout = 3600
c.MappingKernelManager.cull_interval = 300
c.MappingKernelManager.cull_connected = True
c.ServerApp.shutdown_no_activity_timeout = 3600
""")
PROCESS = bash("""
# Who holds memory and does nothing? Ask its owner, then end it: TERM first, so that it can save.
nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv
ps -o pid,user,lstart,etime,args -p "$PID"
kill -TERM "$PID"
""")
SOURCE = "assumed: the share of the stretches named, beyond the timeout, that culling gives back"
GAIN = Gain("recovers", "assumed", SOURCE, (0.5, 0.8, 0.95), of=("idle_held",))


@advise(
    "cull-idle", "End what idles and holds memory: culling, idle timeouts", "hours", Effort("small", 4), CHANGE, GAIN
)
def when(case: Case, limits: Limits) -> Reason | None:
    """Idle with memory held, for much of the time and for longer than a timeout. Never production, never a service.

    What is not known to be interactive may pause for hours and work on: only what has stopped for good is to be ended.
    """
    held, rule = case.idle_held_ratio, limits.idle
    if held < rule.idle_heavy_from_ratio or stays_up(case, limits):
        return None
    if is_interactive(case, limits):
        timeout, found, change = rule.cull_timeout_h, case.long_idle.held_h, None
    else:
        timeout, found, change = rule.release_from_h, case.long_idle.held_last_h, PROCESS
    found = tuple(h for h in found if h >= timeout)
    if not found:
        return None
    beyond = sum(h - rule.cull_timeout_h for h in found)
    why = f"idle with memory held {pct(held)} of the time, for up to {max(found):,.1f} h at a stretch"
    return Reason(why, of_long(GAIN, case, beyond), change=change)
