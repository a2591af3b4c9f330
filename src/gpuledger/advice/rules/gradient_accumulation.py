"""Would exchanging gradients less often spare the links?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import waits_for_gpus

CHANGE = python("""
from contextlib import nullcontext

every = 4  # gradient accumulation: exchange gradients once in four steps
for i, (inputs, targets) in enumerate(loader):
    last = (i + 1) % every == 0
    with nullcontext() if last else model.no_sync():
        loss = criterion(model(inputs), targets) / every
        loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
""")
SOURCE = "assumed: four steps between two all-reduces leave a quarter of them; what is not gradient traffic stays"
GAIN = Gain("recovers", "assumed", SOURCE, (0.1, 0.25, 0.5), of=("stalled",))


@advise(
    "gradient-accumulation", "Exchange gradients less often: gradient accumulation", "throughput", Effort("small", 4),
    CHANGE, GAIN,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Several GPUs that train together and wait for each other."""
    sign = waits_for_gpus(case, limits)
    return Reason(sign) if sign and case.gpus > 1 and case.purpose != "inference" else None
