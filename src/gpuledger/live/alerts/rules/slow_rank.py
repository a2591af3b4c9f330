"""Does one GPU of a job run slower than the others, so that all wait for it?"""

import statistics
from collections.abc import Iterator

from gpuledger.ledger.read.scope import owner_name
from gpuledger.live.alerts.rule import Evidence, Reading, alert
from gpuledger.live.alerts.seen import Seen
from gpuledger.units import MS_PER_MIN

# Fewer GPUs have no middle to compare with, less work no steady clock.
LEAST_GPUS = 3
LEAST_WORK_MS = 5 * MS_PER_MIN


@alert(
    "slow_rank",
    "GPU slower than the rest of its job",
    unit="% below the median clock",
    next_step="check heat, power limit and clock settings of this GPU; move the rank to another GPU if it stays",
)
def look(seen: Seen) -> Iterator[Reading]:
    """How far the SM clock of each GPU was below the median of its job while it worked, in percent."""
    for run, ranks in seen.run_clocks.items():
        worked = [rank for rank in ranks if rank.worked_ms >= LEAST_WORK_MS]
        if len(worked) < LEAST_GPUS:
            continue
        middle = statistics.median(rank.mhz for rank in worked)
        for rank in worked:
            device = seen.devices.get(rank.device)
            if device is None or not middle:
                continue
            evidence: Evidence = {
                "job": owner_name(run[1], run[2] or run[3]),
                "gpus_of_the_job": len(worked),
                "clock_mhz": round(rank.mhz),
                "median_mhz": round(middle),
            }
            below = max(0.0, 100 * (1 - rank.mhz / middle))
            yield Reading(device.subject, below, seen.newest_ms, None, device.owner, evidence)
