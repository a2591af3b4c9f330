"""How is one day posted: all of it, or the devices that are stale?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.errors import LakeError
from gpuledger.lake.batch import board_of
from gpuledger.lake.host_names import ByDevice, add_neighbors, neighbors_of
from gpuledger.lake.jobs.store import read_claims, read_manifest
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import FIRST, first_of, open_part
from gpuledger.lake.processes import Progress
from gpuledger.lake.rows import without_conflicts
from gpuledger.lake.sorting.order import device_names
from gpuledger.lake.steady_labels import SteadyGroup, read_group, steady_groups
from gpuledger.lake.stores.path import place_of
from gpuledger.ledger.changes import ERRORS
from gpuledger.ledger.day_writer import TABLES, DayWriter
from gpuledger.ledger.jobs.counts import JoinCounts, added
from gpuledger.ledger.jobs.holding import Holdings, find_holdings
from gpuledger.ledger.jobs.joining import join_jobs
from gpuledger.ledger.jobs.places import labels_of, places_of
from gpuledger.ledger.measures import unrecorded
from gpuledger.ledger.posting import COLUMNS, COUNTERS, Posted, empty_tables, post
from gpuledger.ledger.spans import Clip, Edge
from gpuledger.ledger.store import Ledger, PostedDay, part_ids
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day


class DayTask(msgspec.Struct, frozen=True):
    """One day to post, or a piece of it: its samples, the next day's, what to write, the stale devices (None: all).

    `part`, `next_part`: where they lie, in a folder or a bucket; `jobs`: whether job tables say who held its GPUs.
    """

    lake: str
    day: str
    part: str
    next_part: str | None
    generation: int
    stale: tuple[str, ...] | None
    limits: Thresholds
    piece: int = 0
    pieces: int = 1
    jobs: bool = False


class DayDone(msgspec.Struct, frozen=True):
    """How many samples were posted, how many the day's lines now stand for, and how jobs were joined. `neighbors`: of
    devices whose rows name several hosts.
    """

    day: str
    posted: int
    samples: int
    joined: JoinCounts | None = None
    neighbors: ByDevice = {}


def post_day(task: DayTask, progress: Progress) -> DayDone:
    """Post a day and write its tables under the task's generation. Whoever gave the task commits them."""
    ledger = Ledger(Lake(task.lake))
    stale = None if task.stale is None else set(task.stale)
    wanted = [place_of(part) for part in (task.part, task.next_part) if part]
    here = ledger.lake.store.local(wanted)
    edges = first_samples(here[1]) if task.next_part else {}
    with open_part(here[0]) as file:
        groups, noted = list(_groups_with(file, stale)), steady_groups(file)
        size = -(-len(groups) // task.pieces)
        groups = groups[task.piece * size : (task.piece + 1) * size]
        posted, some, joined, neighbors = 0, list[Posted](), list[JoinCounts](), ByDevice()
        holdings = _holdings(ledger.lake, task.day, file) if task.jobs else None
        without = unrecorded(_said(file)) if stale is None else frozenset[str]()
        with DayWriter(ledger, task.day, task.generation, task.piece, without) as writer:
            for name, empty in empty_tables().items():
                writer.add(name, empty)
            for group in groups:
                steady = noted[group] if noted else None
                made, counts = _post_group(file, group, steady, task.limits, stale, edges, holdings)
                add_neighbors(neighbors, _neighbors(file, group, steady, stale))
                joined += [] if counts is None else [counts]
                posted += made.samples
                progress("post", made.samples)
                if stale is not None:
                    some.append(made)
                    continue
                for name in TABLES:
                    writer.add(name, getattr(made, name))
            if stale is not None:
                for name in TABLES:
                    writer.add(name, _replaced(ledger, task.day, name, stale, [getattr(p, name) for p in some]))
    odd = None
    if holdings:
        unclear, missed, unindexed = holdings.unclear, holdings.missed, holdings.unindexed
        odd = JoinCounts(hosts_unclear=unclear, missed=missed, hosts_unindexed=unindexed)
    return DayDone(task.day, posted, writer.samples, added([*joined, odd]) if task.jobs else None, neighbors)


def _neighbors(file: pq.ParquetFile, group: int, noted: SteadyGroup | None, stale: set[str] | None) -> ByDevice:
    """The neighbors of devices of a row group whose rows name several hosts; most parts note that there are none."""
    spoken = _spoken(file, group)[0]
    if "host" not in spoken or (noted is not None and "host" in noted.values):
        return {}
    columns = [c for c in spoken if c in (schema.TIME, *schema.DEVICE, "host", "fb_used_bytes")]
    table = file.read_row_group(group, columns=columns, use_threads=False)
    return neighbors_of(table if stale is None else _only(table, stale))


def _holdings(lake: Lake, day: str, file: pq.ParquetFile) -> Holdings:
    """Who held the boards of a day's part, by the job tables of the lake."""
    return find_holdings(places_of(file), read_claims(lake, day), day_start_ms(day), lambda: labels_of(file))


def post_clipped(lake: Lake, posted: PostedDay, limits: Thresholds, clips: Sequence[Clip]) -> pa.Table | None:
    """Lines of parts of a day, posted from the day's samples; None where those are not at hand."""
    manifest = lake.manifest()
    parts, after = manifest.of_day(posted.day), manifest.of_day(utc_day(day_start_ms(posted.day) + MS_PER_DAY))
    if len(parts) != 1 or len(after) > 1 or part_ids(manifest, posted.day) != posted.parts:
        return None
    if read_manifest(lake).of_day(posted.day) != posted.jobs:
        return None
    try:
        edges = first_samples(lake.path(after[0])) if after else {}
        found = []
        with open_part(lake.path(parts[0])) as file:
            noted = steady_groups(file)
            holdings = _holdings(lake, posted.day, file) if posted.jobs else None
            for group in range(file.num_row_groups):
                for clip in clips:
                    steady = noted[group] if noted else None
                    made, _ = _post_group(file, group, steady, limits, None, edges, holdings, clip)
                    found.append(made.lines)
    except (LakeError, OSError):
        return None  # swept by an import meanwhile
    return pa.concat_tables(found) if found else None


def _post_group(
    file: pq.ParquetFile,
    group: int,
    noted: SteadyGroup | None,
    limits: Thresholds,
    stale: set[str] | None,
    edges: dict[str, Edge],
    holdings: Holdings | None,
    clip: Clip | None = None,
) -> tuple[Posted, JoinCounts | None]:
    spoken, steady = _spoken(file, group)
    table, fixed = read_group(file, group, spoken, noted)
    if stale is not None:
        table = _only(table, stale)
    table, counts = without_conflicts(table, whole=bool(steady))[0], None
    if holdings is not None and table.num_rows:
        table, fixed, counts = join_jobs(table, fixed, holdings)
    return post(table, limits, edges, steady=steady, fixed=fixed, clip=clip), counts


def set_aside(lake: Lake, part: str) -> int:
    """How many rows of a day's part contradict each other, so that posting leaves them out."""
    with open_part(lake.store.local([place_of(part)])[0]) as file:
        tables = (file.read_row_group(i, columns=_here(file), use_threads=False) for i in range(file.num_row_groups))
        return sum(without_conflicts(table)[1] for table in tables)


def _here(file: pq.ParquetFile) -> list[str]:
    return [name for name in COLUMNS if name in file.schema_arrow.names]


def _replaced(ledger: Ledger, day: str, name: str, stale: set[str], fresh: list[pa.Table]) -> pa.Table:
    """The day's table with the stale devices' rows replaced."""
    kept = _only(ledger.read(name, day), stale, keep=False)
    order = [("gpu_uuid", "ascending"), ("gpu_instance_id", "ascending")]
    time = {"lines": "hour_ms", "spells": "start_ms", "pods": "first_ms"}[name]
    return pa.concat_tables([kept, *(t.cast(kept.schema) for t in fresh)]).sort_by([*order, (time, "ascending")])


def _groups_with(file: pq.ParquetFile, devices: set[str] | None) -> Iterator[int]:
    column = file.schema_arrow.get_field_index("gpu_uuid")
    boards = sorted({board_of(d) for d in devices}) if devices is not None else []
    for i in range(file.num_row_groups):
        stats = file.metadata.row_group(i).column(column).statistics
        if devices is None or stats is None or any(str(stats.min) <= b <= str(stats.max) for b in boards):
            yield i


def _said(file: pq.ParquetFile) -> frozenset[str]:
    """The columns that hold a value in some row group of a part."""
    facts, names = file.metadata, file.metadata.schema.names
    out = set()
    for place, name in enumerate(names):
        for group in range(facts.num_row_groups):
            column = facts.row_group(group).column(place)
            stats = column.statistics
            if stats is None or not stats.has_null_count or stats.null_count < facts.row_group(group).num_rows:
                out.add(name)
                break
    return frozenset(out)


def _spoken(file: pq.ParquetFile, group: int) -> tuple[list[str], dict[str, float]]:
    """The columns of a row group that posting must read; and of the error counters those that stand still throughout.

    Columns that are NULL throughout are neither.
    """
    facts, names = file.metadata.row_group(group), file.metadata.schema.names
    out, steady = [], {}
    for name in COLUMNS:
        if name not in names:  # a part of an older version
            continue
        stats = facts.column(names.index(name)).statistics
        if stats is None or not stats.has_null_count:
            out.append(name)
        elif name in ERRORS and not stats.null_count and stats.has_min_max and stats.min == stats.max:
            steady[name] = float(stats.min)
        elif stats.null_count < facts.num_rows:
            out.append(name)
    return out, steady


def _only(table: pa.Table, devices: set[str], *, keep: bool = True) -> pa.Table:
    """The rows of some devices and of all else on their boards, or all others."""
    coded, boards = device_names(table), {board_of(d) for d in devices}
    wanted = pa.array([(board_of(d) in boards) == keep for d in coded.dictionary.to_pylist()], pa.bool_())
    return table.filter(wanted.take(coded.indices))


def first_samples(path: Path) -> dict[str, Edge]:
    """The first sample of each device of a day: from the part's own note of them, else from its rows."""
    with open_part(path) as file:
        noted = (file.metadata.metadata or {}).get(FIRST.encode())
        if noted is not None:
            return msgspec.json.decode(noted, type=dict[str, Edge])
        found: dict[str, Edge] = {}
        for i in range(file.num_row_groups):
            table = file.read_row_group(i, columns=[schema.TIME, *schema.DEVICE, *schema.OWNER, *COUNTERS])
            found |= {d: Edge(at, known) for d, (at, known) in first_of(without_conflicts(table)[0]).items()}
    return found
