"""Which question can only a profile of the kernels answer?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, bash, pct, python
from gpuledger.advice.signs import spins, trains, waits_for_input

# Classes whose cause lies within the kernels or between them, where means over seconds do not reach.
_ASK = ("spinning", "launch-bound", "sync-bound", "steady-partial", "memory-bound")

CHANGE = python("""
from torch.profiler import ProfilerActivity, profile, schedule

# A whole timeline of host and GPU. NVIDIA (Nsight Systems): nsys profile -t cuda,nvtx,osrt -o trace python train.py
# AMD: rocprofv3 --sys-trace -d trace -- python train.py
with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=schedule(wait=5, warmup=2, active=5),
    on_trace_ready=lambda done: done.export_chrome_trace("trace.json"),
) as profiler:
    for step, batch in enumerate(loader):
        train_step(batch)
        profiler.step()
        if step == 12:
            break
print(profiler.key_averages().table(sort_by="cuda_time_total", row_limit=20))
""")
TIMELINE = bash("""
# A timeline of host and GPU, whatever the job is written in: which kernels run, and what is between them.
nsys profile --duration 60 --trace cuda,nvtx,osrt --output trace COMMAND
nsys stats trace.nsys-rep
# AMD: rocprofv3 --sys-trace -d trace -- COMMAND
""")
GAIN = Gain("none", "assumed", "a profile saves nothing by itself: it says which of the other changes will")


@advise("profile", "Look at the kernels: a profile, then a whole timeline", None, Effort("small", 2), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """A class whose cause lies within the kernels, or one that was judged without counters."""
    waits = case.klass == "starved" and not (trains(case, limits) and waits_for_input(case, limits))
    unseen = case.works and not case.by_counters
    if not (case.klass in _ASK or waits or unseen or spins(case, limits)):
        return None
    shown = "; ".join(case.evidence[:3])
    if case.klass != "spinning" and spins(case, limits):
        shown = f"a kernel is there and the board draws next to nothing for {pct(case.spun_ratio)} of the working time"
    change = None if trains(case, limits) else TIMELINE
    why = f"{case.klass}: {shown}. Which kernels, and what is between them, only a profile shows"
    return Reason(why, change=change)
