"""Advice: cool GPUs whose clocks were held down."""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, bash, pct

CHANGE = bash("""
# Ask the data center to raise the fan curve of these hosts, then compare the clocks again:
nvidia-smi --query-gpu=index,temperature.gpu,clocks.sm --format=csv
""")
GAIN = Gain("recovers", "assumed", "assumed: a twentieth of the stalled time", (0.0, 0.05, 0.1), of=("stalled",))


@advise("cool-down", "Cool the rack", "throughput", Effort("medium", 8), CHANGE, GAIN, limits={"busy_from_ratio": 0.8})
def when(case: Case, limits: Limits) -> Reason | None:
    """Busy nearly all the time: there the clocks matter most."""
    if case.busy_ratio < limits.rules["cool-down"]["busy_from_ratio"]:
        return None
    return Reason(f"busy {pct(case.busy_ratio)} of the time, so every degree costs clock speed")
