"""Does the host stop to ask the GPU for a number every step?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import launch_gaps, links_busy

CHANGE = python("""
import torch

torch.cuda.set_sync_debug_mode("warn")  # names every line at which the host waits for the GPU

total = torch.zeros((), device="cuda")
for step, (inputs, targets) in enumerate(loader):
    loss = train_step(inputs, targets)
    total += loss.detach()  # not loss.item(): that waits for the GPU every step
    if step % 100 == 99:
        print(step, (total / 100).item())
        total.zero_()
""")
SOURCE = "assumed: a profile shows how long the host waits at each of them"
GAIN = Gain("recovers", "assumed", SOURCE, (0.02, 0.1, 0.3), of=("underused", "stalled"))


@advise(
    "sync-points", "Remove sync points: .item(), .cpu(), print of a tensor", "throughput", Effort("small", 4), CHANGE,
    GAIN,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Gaps between kernels that neither input nor other GPUs explain."""
    sign = launch_gaps(case, limits)
    if not sign and case.klass == "sync-bound" and not links_busy(case, limits):
        shown = "; ".join(case.evidence[:3])
        sign = f"{shown}; the links are quiet, so it is the host that is waited for"
    return Reason(sign) if sign else None
