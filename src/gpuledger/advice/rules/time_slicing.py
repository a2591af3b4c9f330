"""Could workloads that do not need a GPU all the time take turns on one?"""

from gpuledger.advice.rule import SHARE_A_GPU, Case, Effort, Gain, Limits, Reason, advise, yaml
from gpuledger.advice.signs import need, nvidia, room_to_share, shared_gain

# Slices take turns and each keeps a context of its own.
_LOSS = 0.10

CHANGE = yaml("""
# For the NVIDIA device plugin (GPU operator): each GPU is offered {{replicas}} times. Memory is not kept apart.
apiVersion: v1
kind: ConfigMap
metadata:
  name: time-slicing
  namespace: gpu-operator
data:
  any: |-
    version: v1
    sharing:
      timeSlicing:
        resources:
          - name: nvidia.com/gpu
            replicas: {{replicas}}
""")
SOURCE = (
    "the busy and memory shares of this case, planned to fill a shared GPU; a tenth less than MPS, as slices take "
    "turns (assumed)"
)
GAIN = Gain("computed", "measured", SOURCE)


@advise(
    "time-slicing", "Let workloads take turns on a GPU: time-slicing", "hours", Effort("small", 4), CHANGE, GAIN,
    exclusive=SHARE_A_GPU,
)  # fmt: skip
def when(case: Case, limits: Limits) -> Reason | None:
    """Idle-heavy, and small enough for two on an NVIDIA card."""
    sign, needed = room_to_share(case, limits), need(case)
    if not sign or not nvidia(case) or needed is None:
        return None
    replicas = max(2, min(8, int(limits.fill.bold_ratio / needed[1])))
    return Reason(sign, shared_gain(case, limits, _LOSS), fills={"replicas": str(replicas)})
