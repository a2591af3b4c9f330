"""How is a whole lake posted, touching only what is stale?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from gpuledger.arguments import takes
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.engines.choosing import in_use
from gpuledger.lake.engines.engine import Engine, everywhere
from gpuledger.lake.host_names import ByDevice, add_neighbors, refuse_two
from gpuledger.lake.jobs.store import read_manifest
from gpuledger.lake.layout import AnyLake, Lake, lake_of
from gpuledger.lake.parts import merge_day
from gpuledger.lake.stores.path import place_of
from gpuledger.ledger.day import DayDone, DayTask, post_day, set_aside
from gpuledger.ledger.facts import rules_fingerprint
from gpuledger.ledger.jobs.counts import JoinCounts, added
from gpuledger.ledger.store import Ledger, PostedDay, part_ids, stale_devices, writing
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day

Progress = Callable[[int], None]
# Below this many samples, starting processes costs more than they save.
ROWS_WORTH_PROCESSES = 4_000_000
# From this many tasks at once on, days are cut into fewer pieces than that: each piece is a file of each table.
_MANY = 16


@dataclass
class PostingResult:
    """What one posting did."""

    days_posted: list[str] = field(default_factory=list)
    days_clean: int = 0
    samples: int = 0
    conflicts: int = 0
    joined: list[JoinCounts] = field(default_factory=list)


@takes()
def post_lake(
    lake: AnyLake, limits: Thresholds, progress: Progress = lambda _rows: None, processes: int | None = None
) -> PostingResult:
    """Bring the books up to date with the samples. `processes`: how many at once (default: one a core if worth it)."""
    lake = lake_of(lake)
    lake.require()
    result, ledger = PostingResult(), Ledger(lake)
    rules = rules_fingerprint(limits)
    if _all_clean(lake, ledger, rules):  # nothing to write, so a lake that may only be read will do
        result.days_clean = len(lake.manifest().days())
        return result
    with lake.locked(), writing(lake):
        lake.sweep()  # parts that a killed posting had merged
        stale = _stale_days(lake, ledger, rules)
        result.days_clean = len(lake.manifest().days()) - len(stale)
        # Each day's parts become one first: posting a day also reads how the next one begins.
        ready = {day: _prepare(lake, ledger, limits, rules, day, devices) for day, devices in stale.items()}
        rows = sum(ready[day][2] for day in ready)
        engine = in_use(processes)
        wanted = engine.at_once(rows, ROWS_WORTH_PROCESSES)
        left: dict[str, list[DayDone | None]] = {}
        neighbors: ByDevice = {}
        for done in _run([task for task, _, _ in ready.values()], engine, wanted, progress, left):
            add_neighbors(neighbors, done.neighbors)
            refuse_two([neighbors], imported=True)
            task, posted, rows = ready[done.day]
            pieces = left[done.day]
            # Fewer samples than rows: some contradict each other, or are parts of one.
            conflicts = set_aside(lake, task.part) if rows > done.samples else 0
            counted = {"samples": done.samples, "conflicts": conflicts, "joined": done.joined}
            ledger.commit(replace(posted.written(len(pieces)), **counted))
            result.joined += [] if done.joined is None else [done.joined]
            result.days_posted.append(done.day)
            result.samples += done.posted
            result.conflicts += conflicts
    result.days_posted.sort()
    return result


def _stale_days(lake: Lake, ledger: Ledger, rules: str) -> dict[str, set[str] | None]:
    """The days to post, with the devices to post again (None: all)."""
    manifest, jobs, out = lake.manifest(), read_manifest(lake), dict[str, set[str] | None]()
    for day in manifest.days():
        held = jobs.of_day(day)
        devices = stale_devices(lake, manifest, _valid(ledger, day, rules, held), day, _next(day))
        if devices is None or devices:
            # Who held a GPU may depend on the others of its host, so with jobs a day is posted whole.
            out[day] = None if held else devices
    return out


def _all_clean(lake: Lake, ledger: Ledger, rules: str) -> bool:
    """Whether every day is posted under these rules from all parts there are; reads the manifests alone."""
    manifest, jobs = lake.manifest(), read_manifest(lake)
    return all(
        posted is not None
        and not set(part_ids(manifest, day)) - set(posted.parts)
        and not set(part_ids(manifest, _next(day))) - set(posted.next_parts)
        for day in manifest.days()
        for posted in [_valid(ledger, day, rules, jobs.of_day(day))]
    )


def _valid(ledger: Ledger, day: str, rules: str, jobs: str) -> PostedDay | None:
    """A day as posted, where its rules and job tables still hold or its samples are gone."""
    before = ledger.manifest().get(day)
    return before if before and ((before.rules, before.jobs) == (rules, jobs) or not before.samples_kept) else None


def _prepare(
    lake: Lake, ledger: Ledger, limits: Thresholds, rules: str, day: str, devices: set[str] | None
) -> tuple[DayTask, PostedDay, int]:
    """The task of one day, what will be said of it when done, and its rows."""
    manifest = lake.manifest()
    before = ledger.manifest().get(day)
    generation = ledger.next_generation(before)
    held = read_manifest(lake).of_day(day)
    posted = PostedDay(day, generation, part_ids(manifest, day), part_ids(manifest, _next(day)), 0, 0, rules, jobs=held)
    part = merge_day(lake, day)
    after = everywhere(lake.place(merge_day(lake, _next(day)))) if manifest.of_day(_next(day)) else None
    wanted = None if devices is None else tuple(sorted(devices))
    where = everywhere(lake.root), day, everywhere(lake.place(part))
    task = DayTask(*where, after, generation, wanted, limits, jobs=bool(held))
    return task, posted, part.rows


def _run(
    tasks: list[DayTask], engine: Engine, at_once: int, progress: Progress, left: dict[str, list[DayDone | None]]
) -> Iterator[DayDone]:
    """Days as they are done. The days left over where they do not divide evenly among processes are cut into pieces."""
    over = len(tasks) % at_once if at_once > 1 else 0
    cut = 1 if not over else at_once if at_once <= _MANY else -(-2 * at_once // over)
    counts = [cut if i >= len(tasks) - over and task.stale is None else 1 for i, task in enumerate(tasks)]
    pieces = [replace(task, piece=i, pieces=n) for task, n in zip(tasks, counts, strict=True) for i in range(n)]
    for piece in pieces:
        left.setdefault(piece.day, []).append(None)
    for done in _posted(pieces, engine, min(at_once, len(pieces)), progress):
        parts = left[done.day]
        parts[parts.index(None)] = done
        if None not in parts:
            whole = [p for p in parts if p is not None]
            joined = added(p.joined for p in whole) if any(p.joined for p in whole) else None
            neighbors: ByDevice = {}
            for p in whole:
                add_neighbors(neighbors, p.neighbors)
            yield DayDone(done.day, sum(p.posted for p in whole), sum(p.samples for p in whole), joined, neighbors)


def _posted(pieces: list[DayTask], engine: Engine, several: int, progress: Progress) -> Iterator[DayDone]:
    if several <= 1:
        yield from (post_day(p, lambda _stage, rows: progress(rows)) for p in pieces)
        return
    with engine.runner(several, [place_of(pieces[0].lake) / "manifest.json"]) as runner:
        for _, done in runner.run(post_day, pieces, lambda _stage, rows: progress(rows)):
            yield done


def _next(day: str) -> str:
    return utc_day(day_start_ms(day) + MS_PER_DAY)
