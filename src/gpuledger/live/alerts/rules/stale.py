"""Has the lake stopped growing?"""

from collections.abc import Iterator

from gpuledger.encode import iso
from gpuledger.live.alerts.rule import Reading, Subject, Unknown, alert
from gpuledger.live.alerts.seen import Seen
from gpuledger.units import MS_PER_MIN


@alert(
    "stale",
    "No new samples",
    unit="min",
    next_step="check that the recorder, the agent or the import still runs; other alerts wait for new samples",
)
def look(seen: Seen) -> Iterator[Reading]:
    """The age of the newest sample by the clock of this machine."""
    age = max(0, seen.now_ms - seen.newest_ms) / MS_PER_MIN if seen.newest_ms else Unknown("the lake has no samples")
    subject = Subject("lake", "lake", seen.lake.root.resolve().name)
    yield Reading(subject, age, seen.now_ms, seen.newest_ms, evidence={"newest_sample": iso(seen.newest_ms)})
