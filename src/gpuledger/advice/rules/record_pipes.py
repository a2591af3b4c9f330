"""Which evidence is missing to rate the unrated time?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, Snippet, advise, bash, pct
from gpuledger.units import Unknown

# Activity that no compute can hide from, by the signal that shows it is recorded.
_PIPES = {
    "tensor_ratio": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "fp32_ratio": "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
    "fp16_ratio": "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
    "fp64_ratio": "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
}
CHANGE = bash("""
# Lines for the counters file of dcgm-exporter; leave out those it has already. Import its metrics as before.
cat >> counters.csv <<'EOF'
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, Ratio of cycles the tensor pipe was active.
DCGM_FI_PROF_PIPE_FP32_ACTIVE, gauge, Ratio of cycles the fp32 pipe was active.
DCGM_FI_PROF_PIPE_FP16_ACTIVE, gauge, Ratio of cycles the fp16 pipe was active.
DCGM_FI_PROF_PIPE_FP64_ACTIVE, gauge, Ratio of cycles the fp64 pipe was active.
DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Ratio of time a kernel was running.
DCGM_FI_PROF_SM_ACTIVE, gauge, Ratio of cycles an SM had at least one warp.
DCGM_FI_PROF_SM_OCCUPANCY, gauge, Ratio of warps resident on the SMs.
DCGM_FI_PROF_DRAM_ACTIVE, gauge, Ratio of cycles the memory interface was active.
DCGM_FI_DEV_SM_CLOCK, gauge, SM clock frequency (in MHz).
DCGM_FI_DEV_POWER_USAGE, gauge, Power draw (in W).
DCGM_FI_DEV_ENFORCED_POWER_LIMIT, gauge, Power limit in force (in W).
DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, Reasons for held-down clocks (bitmask).
EOF
dcgm-exporter -f counters.csv
""")
_CALIBRATE = bash("""
# On a machine with this GPU and nothing else running: measures its idle power among other things, about a minute.
gpuledger calibrate
""")
_ADD_GPU = bash("""
# Add a file like this one for the GPU, with the name its driver reports among the aliases, to the folder printed last.
gpuledger catalog gpu h100-sxm5-80gb --json
python -c "from importlib.resources import files; print(files('gpuledger.catalog') / 'data' / 'gpus')"
""")
SOURCE = "the columns these samples have; recording saves nothing by itself: it shows whether the time did work"
GAIN = Gain("none", "measured", SOURCE)


@advise("record-pipes", "Record the counters that are missing", None, Effort("small", 2), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """A sizable part of the bill that the evidence cannot rate; what is missing decides the change."""
    unrated = case.share("unrated")
    if unrated < limits.unrated.sizable_from_ratio:
        return None
    found = _missing(case)
    if found is None:
        return None
    what, change = found
    return Reason(f"{what} ({pct(unrated)} of the bill of {case.owner} on {case.model} is unrated)", change=change)


def _missing(case: Case) -> tuple[str, Snippet] | None:
    """What is missing, and how to get it; None where neither is known."""
    if isinstance(case.gpu, Unknown):
        return f"the GPU's peaks are not known ({case.gpu.why})", _ADD_GPU
    signals, vendor = case.signals, case.gpu.vendor.casefold()
    fields = [field for name, field in _PIPES.items() if getattr(signals, name) is None]
    if len(fields) == len(_PIPES) and signals.power_ratio is not None and case.gpu.idle_power_w is None:
        return f"no pipe counters are recorded, and the idle power of {case.gpu.name} is not known", _CALIBRATE
    if not fields or vendor != "nvidia":
        return None
    if len(fields) < len(_PIPES):
        return f"work on these pipes is not recorded: {', '.join(fields)}", CHANGE
    power = ", and no power" if signals.power_ratio is None else ""
    return f"no pipe counters are recorded{power}", CHANGE
