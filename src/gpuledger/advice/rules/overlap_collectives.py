"""Would communication hidden behind the backward pass shorten the wait for other GPUs?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import waits_for_gpus

CHANGE = python("""
import torch
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

model = torch.nn.parallel.DistributedDataParallel(
    model,
    bucket_cap_mb=100,  # fewer, larger messages that overlap with the backward pass
    gradient_as_bucket_view=True,  # no copy between gradient and message
    static_graph=True,
)
model.register_comm_hook(None, bf16_compress_hook)  # half the bytes
""")
SOURCE = "assumed: communication hidden behind the backward pass; a profile shows how much of it is exposed"
GAIN = Gain("recovers", "assumed", SOURCE, (0.05, 0.15, 0.4), of=("stalled",))


@advise(
    "overlap-collectives", "Hide communication behind the backward pass, send half the bytes", "throughput",
    Effort("medium", 16), CHANGE, GAIN,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Several GPUs that train together and wait for each other."""
    sign = waits_for_gpus(case, limits)
    return Reason(sign) if sign and case.gpus > 1 and case.purpose != "inference" else None
