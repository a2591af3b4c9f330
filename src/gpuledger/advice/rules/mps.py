"""Would several processes on one GPU at once fill it?"""

from gpuledger.advice.rule import SHARE_A_GPU, Case, Effort, Gain, Limits, Reason, advise, bash
from gpuledger.advice.signs import nvidia, room_to_share, shared_gain

CHANGE = bash("""
# Multi-Process Service (MPS): kernels of several processes of one user run at the same time.
export CUDA_VISIBLE_DEVICES=0
nvidia-cuda-mps-control -d
CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 python serve.py --port 8000 &
CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 python serve.py --port 8001 &
wait
echo quit | nvidia-cuda-mps-control
""")
GAIN = Gain("computed", "measured", "the busy and memory shares of this case, planned to fill a shared GPU")


@advise(
    "mps", "Share the GPU between processes: MPS", "hours", Effort("medium", 16), CHANGE, GAIN, exclusive=SHARE_A_GPU
)
def when(case: Case, limits: Limits) -> Reason | None:
    """Idle-heavy, and small enough for two on an NVIDIA card."""
    sign = room_to_share(case, limits)
    if not sign or not nvidia(case):
        return None
    return Reason(sign, shared_gain(case, limits))
