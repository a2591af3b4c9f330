"""How is a whole lake posted on this machine, touching only what is stale?"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpuledger.catalog.gpus import load_gpus
from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.batch import Batch
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import merge_day, open_part
from gpuledger.lake.rows import without_conflicts
from gpuledger.lake.sorting import device_names
from gpuledger.ledger import lines, spells
from gpuledger.ledger.posting import COLUMNS, COUNTERS, PODS, Posted, post
from gpuledger.ledger.spans import Edge
from gpuledger.ledger.store import Ledger, PostedDay, part_ids, stale_devices
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day

Progress = Callable[[int], None]


@dataclass
class PostingResult:
    """What one posting did."""

    days_posted: list[str] = field(default_factory=list)
    days_clean: int = 0
    samples: int = 0
    conflicts: int = 0


def rules_fingerprint(limits: Thresholds) -> str:
    """Changes when a limit or a board power changes, so that days with samples are posted again."""
    boards = sorted((name.casefold(), g.board_power_w.value) for g in load_gpus().values() for name in g.spellings())
    text = f"{lines.version()} {schema.version()} {limits.fingerprint()} {boards}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def post_lake(lake: Lake, limits: Thresholds, progress: Progress = lambda _rows: None) -> PostingResult:
    """Bring the books up to date with the samples."""
    lake.require()
    result, ledger = PostingResult(), Ledger(lake)
    rules = rules_fingerprint(limits)
    with lake.locked(), ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        manifest = lake.manifest()
        same_rules = ledger.manifest().rules == rules
        edges: dict[str, Edge] = {}
        edges_day = ""
        for day in reversed(manifest.days()):
            after = utc_day(day_start_ms(day) + MS_PER_DAY)
            posted = ledger.manifest().get(day) if same_rules or _frozen(ledger, day) else None
            stale = stale_devices(lake, manifest, posted, day, after)
            if stale is not None and not stale:
                result.days_clean += 1
                continue
            ids, next_ids = part_ids(manifest, day), part_ids(manifest, after)
            part = merge_day(lake, day)
            manifest = lake.manifest()
            if edges_day != after:
                edges = _first_samples(lake.path(merge_day(lake, after))) if manifest.of_day(after) else {}
            work = _Day(ledger, day, limits, stale, edges)
            made = work.run(pool, lake.path(part), progress)
            tables = work.tables(made)
            samples = int(pc.sum(tables["lines"]["samples"]).as_py() or 0)
            generation = (old.generation if (old := ledger.manifest().get(day)) else 0) + 1
            ledger.put(PostedDay(day, generation, ids, next_ids, samples, part.rows - samples), tables, rules)
            edges, edges_day = work.first, day
            result.days_posted.append(day)
            result.samples += made.samples
            result.conflicts += part.rows - samples
    result.days_posted.reverse()
    return result


def _frozen(ledger: Ledger, day: str) -> bool:
    posted = ledger.manifest().get(day)
    return posted is not None and not posted.samples_kept


class _Day:
    """Posting one day, all of it or some devices."""

    def __init__(
        self, ledger: Ledger, day: str, limits: Thresholds, stale: set[str] | None, edges: dict[str, Edge]
    ) -> None:
        self.ledger, self.day, self.limits, self.stale, self.edges = ledger, day, limits, stale, edges
        self.first: dict[str, Edge] = {}

    def run(self, pool: ThreadPoolExecutor, path: Path, progress: Progress) -> Posted:
        """Post every row group that holds a stale device, a few at a time."""
        done: list[Posted] = []
        waiting: deque[Future[tuple[Posted, dict[str, Edge]]]] = deque()

        def collect() -> None:
            posted, first = waiting.popleft().result()
            done.append(posted)
            self.first.update(first)
            progress(posted.samples)

        with open_part(path) as file:
            groups = list(_groups_with(file, self.stale))
        for group in groups:
            waiting.append(pool.submit(self._post_group, path, group))
            if len(waiting) > 3:
                collect()
        while waiting:
            collect()
        if self.stale is not None:
            self.first = _first_samples(path)
        return Posted(
            pa.concat_tables([lines.arrow_schema().empty_table(), *(d.lines for d in done)]),
            pa.concat_tables([spells.SCHEMA.empty_table(), *(d.spells for d in done)]),
            pa.concat_tables([PODS.empty_table(), *(d.pods for d in done)]),
            sum(d.samples for d in done),
        )

    def _post_group(self, path: Path, group: int) -> tuple[Posted, dict[str, Edge]]:
        with open_part(path) as file:
            table = file.read_row_group(group, columns=_spoken(file, group), use_threads=False)
        if self.stale is not None:
            table = _only(table, self.stale)
        table, _ = without_conflicts(table)
        return post(table, self.limits, self.edges), first_of(table) if self.stale is None else {}

    def tables(self, made: Posted) -> dict[str, pa.Table]:
        """The day's tables with the stale devices replaced."""
        fresh = {"lines": made.lines, "spells": made.spells, "pods": made.pods}
        if self.stale is None:
            return fresh
        out = {}
        for name, table in fresh.items():
            kept = _only(self.ledger.read(name, self.day), self.stale, keep=False)
            order = [("gpu_uuid", "ascending"), ("gpu_instance_id", "ascending")]
            time = {"lines": "hour_ms", "spells": "start_ms", "pods": "first_ms"}[name]
            out[name] = pa.concat_tables([kept, table]).sort_by([*order, (time, "ascending")])
        return out


def _groups_with(file: pq.ParquetFile, devices: set[str] | None) -> Iterator[int]:
    column = file.schema_arrow.get_field_index("gpu_uuid")
    boards = sorted({d.split("/")[0] for d in devices}) if devices is not None else []
    for i in range(file.num_row_groups):
        stats = file.metadata.row_group(i).column(column).statistics
        if devices is None or stats is None or any(str(stats.min) <= b <= str(stats.max) for b in boards):
            yield i


def _spoken(file: pq.ParquetFile, group: int) -> list[str]:
    """The columns posting needs that are not NULL throughout a row group."""
    facts = file.metadata.row_group(group)
    out = []
    for name in COLUMNS:
        stats = facts.column(file.schema_arrow.get_field_index(name)).statistics
        if stats is None or not stats.has_null_count or stats.null_count < facts.num_rows:
            out.append(name)
    return out


def _only(table: pa.Table, devices: set[str], *, keep: bool = True) -> pa.Table:
    """The rows of some devices, or all others."""
    coded = device_names(table)
    wanted = pa.array([(d in devices) == keep for d in coded.dictionary.to_pylist()], pa.bool_())
    return table.filter(wanted.take(coded.indices))


def first_of(table: pa.Table) -> dict[str, Edge]:
    """The first sample of each device in rows in order."""
    if not table.num_rows:
        return {}
    batch = Batch(table)
    columns = [schema.TIME, *(c for c in COUNTERS if c in table.column_names)]
    rows = table.select(columns).take(pa.array(batch.device_starts)).to_pylist()
    return {
        name: Edge(row[schema.TIME], {c: float(row[c]) for c in COUNTERS if row.get(c) is not None})
        for name, row in zip(batch.devices, rows, strict=True)
    }


def _first_samples(path: Path) -> dict[str, Edge]:
    """The first sample of each device of a day."""
    found: dict[str, Edge] = {}
    with open_part(path) as file:
        for i in range(file.num_row_groups):
            table = file.read_row_group(i, columns=[schema.TIME, *schema.DEVICE, *schema.OWNER, *COUNTERS])
            found |= first_of(without_conflicts(table)[0])
    return found
