"""Does a namespace stay far below the target of what it runs?"""

from collections.abc import Iterator

from gpuledger.live.alerts.rule import Owner, Reading, Subject, Unknown, alert
from gpuledger.live.alerts.seen import Seen


@alert(
    "rfu",
    "Below its target of realized FLOPS",
    unit="points",
    next_step="see what would help: gpuledger audit --namespace {subject} --last 1d",
)
def look(seen: Seen) -> Iterator[Reading]:
    """Points of realized FLOPS utilization (RFU) below the target; a namespace without a target is left out."""
    for row in seen.efficiency.by_namespace:
        target, rfu = row.target_rfu_pct, row.means.rfu_power_pct
        if target is None:
            continue
        value = rfu if isinstance(rfu, Unknown) else target - rfu
        evidence = {"gpus": row.means.gpus, "target_pct": target, "rfu_pct": None if isinstance(rfu, Unknown) else rfu}
        owner = Owner(namespace=row.name, team=seen.teams.set_team(None, row.name))
        yield Reading(Subject("namespace", row.name, row.name), value, seen.newest_ms, None, owner, evidence)
