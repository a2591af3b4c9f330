"""How do books stay small: files merged by day, hour lines folded into day lines, samples dropped once settled?

Samples go only from days that are posted, folded and unchanged since. The books say so before the lake lets the
samples go: stopped in between, nothing is lost and the next run finishes the work. A day whose samples are dropped is
closed: a late row for it could no longer be posted together with the samples it belongs to, so import rejects it. Days
close in order, from the oldest on.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from gpuledger.arguments import takes, takes_names
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.errors import InputError, map_os_error
from gpuledger.lake.layout import AnyLake, Lake, Part, lake_of
from gpuledger.lake.parts import merge_day
from gpuledger.ledger.daily import fold_old
from gpuledger.ledger.day_writer import TABLES
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import Ledger, PostedDay, stale_devices, writing
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day


@takes_names
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
    """What tidying would do. `parts`: how many files of samples there are, `merge_days`: days with several of them."""

    fold_days: tuple[str, ...]
    drop: Dropped
    parts: int = 0
    merge_days: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tidied:
    """What tidying did. `parts_merged`: files of samples that became one for each day of `days_merged`."""

    days_merged: tuple[str, ...]
    parts_merged: int
    days_folded: tuple[str, ...]
    lines_before: int
    lines_after: int
    drop: Dropped


def plan_tidying(lake: Lake, ages: Ages) -> Plan:
    """What `tidy_lake` would do now, without doing it."""
    lake.require()
    posted = {d.day: d for d in Ledger(lake).manifest().days}
    manifest = lake.manifest()
    days = ended_before({*posted, *manifest.days()}, ages.now_ms - ages.fold_ms)
    fold = tuple(day for day in days if day not in posted or not posted[day].folded)
    drop = measure(lake, _old_sample_days(lake, ages))
    return Plan(fold, drop, len(manifest.parts), tuple(_in_parts(lake)))


def _in_parts(lake: Lake) -> dict[str, int]:
    """The days whose samples are in several files, and in how many."""
    found = Counter(part.day for part in lake.manifest().parts)
    return {day: number for day, number in sorted(found.items()) if number > 1}


@takes()
def tidy_lake(
    lake: AnyLake, limits: Thresholds, ages: Ages, progress: Callable[[int], None] = lambda _n: None
) -> Tidied:
    """Merge the files of each day, post what is stale, fold what is old, drop the samples that are older still.

    `progress` counts days. Readers are not held up; writers wait.
    """
    lake = lake_of(lake)
    lake.require()
    merged = _in_parts(lake)
    post_lake(lake, limits)
    with lake.locked(), writing(lake):
        ledger = Ledger(lake)
        for day in _in_parts(lake):  # what posting left apart; it makes one part of every day that it posts
            merge_day(lake, day)
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
    return Tidied(tuple(merged), sum(merged.values()), tuple(folded), before, after, dropped)


def _old_sample_days(lake: Lake, ages: Ages) -> tuple[str, ...]:
    if ages.drop_ms is None:
        return ()
    return ended_before(lake.manifest().days(), ages.now_ms - ages.drop_ms)


def _fold(ledger: Ledger, posted: PostedDay, before_ms: int) -> tuple[int, int]:
    """Replace one day's hour lines by day lines; returns how many lines there were and are."""
    tables = {name: ledger.read(name, posted.day) for name in TABLES}
    was = tables["lines"].num_rows
    tables["lines"] = fold_old(tables["lines"], before_ms)
    done = msgspec.structs.replace(posted, generation=ledger.next_generation(posted), folded=True)
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


@dataclass(frozen=True)
class Dropped:
    """What was taken out of the lake. `closed_before` is the first day that is still open, "" where all are."""

    days: tuple[str, ...] = ()
    rows: int = 0
    size_bytes: int = 0
    closed_before: str = ""


def ended_before(days: Iterable[str], before_ms: int) -> tuple[str, ...]:
    """The days that were over at an instant, in order."""
    return tuple(day for day in sorted(days) if day_start_ms(day) + MS_PER_DAY <= before_ms)


def measure(lake: Lake, days: Sequence[str]) -> Dropped:
    """What dropping the samples of these days would take out."""
    manifest = lake.manifest()
    if not days:
        return Dropped(closed_before=manifest.closed_before)
    closed = utc_day(day_start_ms(max(days)) + MS_PER_DAY)
    gone = [p for p in manifest.parts if p.day < closed]
    return Dropped(tuple(sorted({p.day for p in gone})), sum(p.rows for p in gone), _size_bytes(lake, gone), closed)


def drop_samples(lake: Lake, days: Sequence[str]) -> Dropped:
    """Take the samples up to the last of these days out of the lake and close those days. Call inside `locked()`.

    The manifest that no longer names the parts is replaced first; only then are their files deleted.
    """
    dropped = measure(lake, days)
    if not dropped.days:
        lake.sweep()
        return dropped
    gone = [p for p in lake.manifest().parts if p.day in dropped.days]
    lake.commit([], replaces=tuple(p.id for p in gone), closed_before=dropped.closed_before)
    try:
        lake.sweep()
    except OSError as error:
        raise map_os_error(error, lake.root, "delete old samples") from error
    for day in dropped.days:
        with contextlib.suppress(OSError):
            (lake.root / "samples" / f"day={day}").rmdir()
    return dropped


def _size_bytes(lake: Lake, parts: Iterable[Part]) -> int:
    total = 0
    for part in parts:
        with contextlib.suppress(OSError):
            total += lake.place(part).stat().st_size
    return total
