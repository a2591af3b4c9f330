"""Could this run on capacity that may be taken back?"""

from gpuledger.advice.offers import paid_per_gpu_h, spot_discount
from gpuledger.advice.rule import PRICE, Case, Effort, Gain, Limits, Range, Reason, advise, pct, python, yaml
from gpuledger.advice.signs import faults_first, trains
from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.prices import market_price
from gpuledger.units import Unknown

CHANGE = python("""
import signal
import sys
import torch

# A spot GPU is taken back within minutes: save on the warning, and resume where the last run stopped.
# Kubernetes: nodeSelector {karpenter.sh/capacity-type: spot}; AWS: InstanceMarketOptions MarketType=spot.
state = {"step": 0}


def save(*_):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), **state}, "checkpoint.pt")
    sys.exit(0)


signal.signal(signal.SIGTERM, save)
""")
MANIFEST = yaml("""
# A spot GPU is taken back within minutes: the work must resume where it stopped, or be small enough to run again.
apiVersion: batch/v1
kind: Job
metadata:
  name: on-spot
spec:
  backoffLimit: 20
  template:
    spec:
      restartPolicy: OnFailure
      nodeSelector:
        karpenter.sh/capacity-type: spot
      containers:
        - name: main
          image: registry.example/your-image:latest
          resources:
            limits:
              nvidia.com/gpu: "1"
""")
SOURCE = "dated list prices, spot against on-demand in the same zone: 10th percentile, median, 90th percentile"
GAIN = Gain("computed", "published", SOURCE)


@advise("spot", "Run on spot capacity", "rate", Effort("medium", 24), CHANGE, GAIN, exclusive=PRICE)
def when(case: Case, limits: Limits) -> Reason | None:
    """Training or batch work, by its name, paid on demand. Never production, never a server.

    Nor for what idles much, which is to be ended first, or for GPUs that fail or are held down by heat.
    """
    if not case.works or case.purchase in {"spot", "reserved", "owned"} or not isinstance(case.gpu, Gpu):
        return None
    what, resting = _can_stop(case, limits), case.idle_ratio + case.idle_held_ratio
    if what is None or resting >= limits.idle.idle_heavy_from_ratio or faults_first(case, limits):
        return None
    cut = spot_discount(case.gpu.key, case.instance)
    if isinstance(cut, Unknown) or cut.middle <= 0:
        return None
    unless = "" if case.purchase == "on_demand" else ", unless what is paid is a spot price already"
    sign = f"{what}, which can resume from a checkpoint; spot is {pct(cut.middle)} cheaper for {cut.what}{unless}"
    parts = (_below_paid(part, case) for part in (cut.low, cut.middle, cut.high))
    gain, change = Range.of(*parts), None if trains(case, limits) else MANIFEST
    return Reason(sign, gain, cut.words, change=change) if gain.middle else None


def _can_stop(case: Case, limits: Limits) -> str | None:
    """What its name says it is, where that can stop and resume. A server may be as busy, so use is not evidence."""
    names = limits.names
    if case.words & set(names.production):
        return None
    if batch := sorted(case.words & set(names.batch)):
        return f"batch work by its name ({batch[0]})"
    if not trains(case, limits):
        return None
    return f"training {case.purpose_how}" if case.purpose_by == "name" else "training by the name of its pods"


def _below_paid(cut: float, case: Case) -> float:
    """A cut of the list price, never below what spot asks compared with what is paid."""
    paid, listed = paid_per_gpu_h(case), market_price(case.gpu.key) if isinstance(case.gpu, Gpu) else case.gpu
    if isinstance(paid, Unknown) or isinstance(listed, Unknown) or not paid:
        return cut
    return min(cut, 1 - (1 - cut) * float(listed.usd_per_gpu_h / paid))
