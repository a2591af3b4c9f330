"""Could this run on capacity that may be taken back?"""

from gpuledger.advice.offers import spot_discount
from gpuledger.advice.rule import PRICE, Case, Effort, Gain, Limits, Range, Reason, advise, pct, python
from gpuledger.catalog.gpus import Gpu
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
SOURCE = "dated list prices, spot against on-demand in the same zone: 10th percentile, median, 90th percentile"
GAIN = Gain("computed", "published", SOURCE)


@advise("spot", "Run on spot capacity", "rate", Effort("medium", 24), CHANGE, GAIN, exclusive=PRICE)
def when(case: Case, limits: Limits) -> Reason | None:
    """Training, research or batch work, by its name, paid on demand. Never production, never a server."""
    if not case.works or case.purchase in {"spot", "reserved", "owned"} or not isinstance(case.gpu, Gpu):
        return None
    what = _can_stop(case, limits)
    if what is None:
        return None
    cut = spot_discount(case.gpu.key, case.instance)
    if isinstance(cut, Unknown) or cut.middle <= 0:
        return None
    unless = "" if case.purchase == "on_demand" else ", unless what is paid is a spot price already"
    sign = f"{what}, which can resume from a checkpoint; spot is {pct(cut.middle)} cheaper for {cut.what}{unless}"
    return Reason(sign, Range.of(cut.low, cut.middle, cut.high), cut.words)


def _can_stop(case: Case, limits: Limits) -> str | None:
    """What its name says it is, where that can stop and resume. A server may be as busy, so use is not evidence."""
    names = limits.names
    if case.words & set(names.production):
        return None
    if batch := sorted(case.words & set(names.batch)):
        return f"batch work by its name ({batch[0]})"
    if case.purpose == "inference":
        return None
    if research := sorted(case.words & set(names.research)):
        return f"research by its name ({research[0]})"
    if case.purpose == "training" and case.purpose_by == "name":
        return f"training {case.purpose_how}"
    return None
