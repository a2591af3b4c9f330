"""Would replaying a recorded step spare the launches?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import launch_gaps, nvidia

CHANGE = python("""
import torch

# One launch replays the whole step. Shapes must stay the same, and nothing in it may wait for the host.
model = torch.compile(model, mode="reduce-overhead")  # CUDA graphs by themselves

# By hand, where the model does not compile:
model = torch.cuda.make_graphed_callables(model, (torch.randn_like(inputs),))
""")
SOURCE = (
    "ends published: often 1.2x to 3x, NVIDIA, CUDA Graph Best Practice for PyTorch (docs.nvidia.com/dl-cuda-graph); "
    "middle assumed"
)
GAIN = Gain("speedup", "assumed", SOURCE, (1.2, 1.5, 3.0))


@advise("cuda-graphs", "Replay the step as a CUDA graph", "throughput", Effort("medium", 16), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """The host cannot launch small kernels fast enough."""
    sign = launch_gaps(case, limits)
    return Reason(sign) if sign and nvidia(case) else None
