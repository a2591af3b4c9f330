"""Which GPUs replaced rows of their memory?"""

from collections.abc import Iterator

from gpuledger.live.alerts.rule import Reading, alert
from gpuledger.live.alerts.seen import Seen


@alert(
    "row_remap",
    "Memory rows remapped",
    unit="count",
    next_step="reset the GPU when its job is over, so that the remapping takes effect; replace it if this repeats",
)
def look(seen: Seen) -> Iterator[Reading]:
    """Rows remapped in the window."""
    for board in seen.boards.values():
        count = float(board.sums["rows_remapped"])
        yield Reading(board.subject, count, seen.newest_ms, None, board.owner, {"host": board.host})
