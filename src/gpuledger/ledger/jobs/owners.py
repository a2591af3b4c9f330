"""What do the job tables of a lake explain of its posted time?"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.lake.jobs.store import read_manifest
from gpuledger.lake.layout import Lake
from gpuledger.ledger.jobs.counts import JoinCounts, added
from gpuledger.ledger.store import Ledger


@dataclass(frozen=True)
class Owners:
    """Samples joined over all days; `kept_days`: days that keep the owners they have, as their samples are gone."""

    samples: int
    joined: JoinCounts
    kept_days: tuple[str, ...]


def owners_of(lake: Lake) -> Owners:
    """What the job tables said of all days as they are posted."""
    jobs, days = read_manifest(lake), Ledger(lake).manifest().days
    gone = tuple(d.day for d in days if not d.samples_kept and d.jobs != jobs.of_day(d.day))
    return Owners(sum(d.samples for d in days), added(d.joined for d in days), gone)
