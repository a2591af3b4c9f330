"""How do old books get small: hour lines folded into day lines, samples dropped once their days are settled?

Samples go only from days that are posted, folded and unchanged since. The books say so before the lake lets the
samples go: stopped in between, nothing is lost and the next run finishes the work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.lake.retention import Dropped, drop_samples, ended_before, measure
from gpuledger.ledger.daily import fold_old
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import TABLES, Ledger, PostedDay, stale_devices
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day


@dataclass(frozen=True)
class Ages:
    """How old is old, counted back from `now_ms`. Without an age for samples they all stay."""

    now_ms: int
    fold_ms: int
    drop_ms: int | None = None

    def __post_init__(self) -> None:
        if self.drop_ms is not None and self.drop_ms < self.fold_ms:
            raise InputError(
                "samples would be dropped before their hour lines are folded",
                hint="make the age for dropping samples at least the age for folding",
            )


@dataclass(frozen=True)
class Plan:
    """What tidying would do."""

    fold_days: tuple[str, ...]
    drop: Dropped


@dataclass(frozen=True)
class Tidied:
    """What tidying did."""

    days_folded: tuple[str, ...]
    lines_before: int
    lines_after: int
    drop: Dropped


def plan_tidying(lake: Lake, ages: Ages) -> Plan:
    """What `tidy_lake` would do now, without doing it."""
    lake.require()
    posted = {d.day: d for d in Ledger(lake).manifest().days}
    days = ended_before({*posted, *lake.manifest().days()}, ages.now_ms - ages.fold_ms)
    fold = tuple(day for day in days if day not in posted or not posted[day].folded)
    return Plan(fold, measure(lake, _old_sample_days(lake, ages)))


def tidy_lake(lake: Lake, limits: Thresholds, ages: Ages, progress: Callable[[int], None] = lambda _n: None) -> Tidied:
    """Post what is stale, fold what is old, drop the samples that are older still. `progress` counts days."""
    post_lake(lake, limits)
    with lake.locked():
        ledger = Ledger(lake)
        folded, before, after = [], 0, 0
        for day in ended_before((d.day for d in ledger.manifest().days), ages.now_ms - ages.fold_ms):
            posted = ledger.manifest().get(day)
            if posted is not None and not posted.folded:
                was, became = _fold(ledger, posted, ages.now_ms - ages.fold_ms)
                folded.append(day)
                before, after = before + was, after + became
            progress(1)
        settled = _settled(lake, ledger, _old_sample_days(lake, ages))
        for posted in settled:
            done = msgspec.structs.replace(posted, samples_kept=False)
            ledger.put(done, {})
        dropped = drop_samples(lake, [p.day for p in settled])
    return Tidied(tuple(folded), before, after, dropped)


def _old_sample_days(lake: Lake, ages: Ages) -> tuple[str, ...]:
    if ages.drop_ms is None:
        return ()
    return ended_before(lake.manifest().days(), ages.now_ms - ages.drop_ms)


def _fold(ledger: Ledger, posted: PostedDay, before_ms: int) -> tuple[int, int]:
    """Replace one day's hour lines by day lines; returns how many lines there were and are."""
    tables = {name: ledger.read(name, posted.day) for name in TABLES}
    was = tables["lines"].num_rows
    tables["lines"] = fold_old(tables["lines"], before_ms)
    done = msgspec.structs.replace(posted, generation=posted.generation + 1, folded=True)
    ledger.put(done, tables)
    return was, tables["lines"].num_rows


def _settled(lake: Lake, ledger: Ledger, days: tuple[str, ...]) -> list[PostedDay]:
    """The oldest days in a row whose books are folded and rest on all samples there are."""
    manifest, out = lake.manifest(), []
    for day in days:
        posted = ledger.manifest().get(day)
        after = utc_day(day_start_ms(day) + MS_PER_DAY)
        if posted is None or not posted.folded or stale_devices(lake, manifest, posted, day, after) != set():
            break
        out.append(posted)
    return out
