"""Would a smaller GPU do?"""

from gpuledger.advice.offers import smaller_gpu
from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, yaml
from gpuledger.advice.signs import is_service, waits_for_gpus, waits_for_input
from gpuledger.units import Unknown

CHANGE = yaml("""
# Try one replica on {{smaller}} and compare its latency or step time before moving the rest.
apiVersion: v1
kind: Pod
metadata:
  name: try-smaller
  namespace: {{namespace}}
spec:
  nodeSelector:
    nvidia.com/gpu.product: {{smaller}}
  containers:
    - name: main
      image: registry.example/your-image:latest
      resources:
        limits:
          nvidia.com/gpu: "1"
""")
GAIN = Gain("computed", "published", "dated list prices of both GPUs, and this case's measured demand")


@advise("smaller-sku", "Move to a smaller GPU (SKU)", "sku", Effort("medium", 24), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """Measured headroom: memory, compute and bandwidth fit a cheaper GPU. A job to be sped up first will need more."""
    if case.sliced or case.namespace is None or waits_for_input(case, limits) or waits_for_gpus(case, limits):
        return None
    if case.klass in {"compute-bound", "memory-bound", "spinning", "launch-bound"}:
        return None
    # What trains, or is not known, may need what counters do not show; what idles is to be ended, not moved.
    if not is_service(case, limits) or case.health.affected or case.words & set(limits.names.other):
        return None
    found = smaller_gpu(case, limits)
    if isinstance(found, Unknown):
        return None
    asked, paid = found.price.usd_per_gpu_h, found.paid_usd_per_gpu_h
    prices = f"${asked:.2f} on the market against ${paid:.2f} paid per GPU-hour"
    sign = f"the most it needs fits {found.gpu.name} ({found.fits}): {prices}"
    fills = {"smaller": found.gpu.name.replace(" ", "-"), "namespace": case.namespace}
    return Reason(sign, found.gain, found.price.words, fills=fills)
