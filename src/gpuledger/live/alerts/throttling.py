"""For how much of the window were the clocks of each GPU held down?"""

from __future__ import annotations

from collections.abc import Iterator

from gpuledger.efficiency.health import no_reasons
from gpuledger.live.alerts.rule import Reading
from gpuledger.live.alerts.seen import Seen
from gpuledger.units import MS_PER_MIN, ratio


def held_down(seen: Seen, column: str) -> Iterator[Reading]:
    """The share of the time with the reasons recorded, in percent; unknown where they are not."""
    for board in seen.boards.values():
        known_ms = board.sums["throttle_ms"]
        value = ratio(100 * board.sums[column], known_ms, no_reasons([board.gpu_model]).why)
        evidence = {"host": board.host, "held_down_min": round(board.sums[column] / MS_PER_MIN)}
        yield Reading(board.subject, value, seen.newest_ms, None, board.owner, evidence)
