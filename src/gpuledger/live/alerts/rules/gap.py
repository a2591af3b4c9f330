"""Does a namespace claim far more utilization than the power of its GPUs supports?"""

from collections.abc import Iterator

from gpuledger.live.alerts.rule import Owner, Reading, Subject, alert
from gpuledger.live.alerts.seen import Seen
from gpuledger.units import known


@alert(
    "gap",
    "Busy but not working",
    unit="points",
    next_step="see what its GPUs wait for: gpuledger analyze --namespace {subject} --last 1h --full",
)
def look(seen: Seen) -> Iterator[Reading]:
    """Utilization less realized FLOPS utilization (RFU), in points, of each namespace."""
    for row in seen.efficiency.by_namespace:
        evidence = {
            "gpus": row.means.gpus,
            "utilization_pct": known(row.means.gpu_util_pct),
            "rfu_pct": known(row.means.rfu_power_pct),
        }
        owner = Owner(namespace=row.name, team=seen.teams.set_team(None, row.name))
        subject = Subject("namespace", row.name, row.name)
        yield Reading(subject, row.means.efficiency_gap_pp, seen.newest_ms, None, owner, evidence)
