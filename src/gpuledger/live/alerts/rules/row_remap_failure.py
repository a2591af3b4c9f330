"""Which GPUs have no spare memory rows left?"""

from collections.abc import Iterator

from gpuledger.live.alerts.rule import Reading, alert
from gpuledger.live.alerts.seen import Seen


@alert(
    "row_remap_failure",
    "Memory row could not be remapped",
    unit="count",
    next_step="drain the node and replace the GPU: it has no spare rows left for this memory bank",
)
def look(seen: Seen) -> Iterator[Reading]:
    """Failed remappings in the window."""
    for board in seen.boards.values():
        count = float(board.sums["row_remap_failures"])
        yield Reading(board.subject, count, seen.newest_ms, None, board.owner, {"host": board.host})
