"""How do files of telemetry get into the lake, all of a file or nothing?"""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.catalog.gpus import find_gpu
from gpuledger.errors import FileFault, InputError, LakeError
from gpuledger.lake import rejects as why
from gpuledger.lake.batch import as_dictionary
from gpuledger.lake.layout import Lake, Part
from gpuledger.lake.parts import PartWriter, read_devices
from gpuledger.lake.rejects import Rejects, explained_conflicts
from gpuledger.lake.rows import settle
from gpuledger.lake.sorting import DaySorter, device_codes, device_names
from gpuledger.telemetry import schema
from gpuledger.telemetry.convert import AMBIGUOUS_TIME, IMPOSSIBLE_TIME, convert
from gpuledger.telemetry.finding import Strangers, find_files, named
from gpuledger.telemetry.mapping import NOTHING_GIVEN, Given, Mapping, bind
from gpuledger.telemetry.sources import open_source
from gpuledger.telemetry.stamps import StampReader, passes_of
from gpuledger.telemetry.untimed import Untimed
from gpuledger.units import Unknown, day_start_ms, utc

POWER_FACTOR = 2.0
Progress = Callable[[str, int], None]


@dataclass
class ImportResult:
    """What one import did. `notes` are things the user should hear."""

    files: int = 0
    rows_read: int = 0
    rows_added: int = 0
    rows_duplicate: int = 0
    rows_rejected: int = 0
    rows_spread: int = 0
    rejects: dict[str, int] = field(default_factory=dict)
    rejects_file: str | None = None
    examples: dict[str, str] = field(default_factory=dict)
    days: list[str] = field(default_factory=list)
    unknown_models: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def import_files(
    lake: Lake,
    paths: Iterable[str | Path],
    *,
    zone: str = "UTC",
    mapping: Mapping | None = None,
    given: Given = NOTHING_GIVEN,
    progress: Progress = lambda _stage, _rows: None,
) -> ImportResult:
    """Add the samples of all files, folders, patterns and addresses. A fault in any leaves the lake as it was."""
    wanted = list(paths)
    if not wanted:
        raise InputError("no file was named", hint="gpuledger import FILE... --lake DIR")
    fresh = not lake.root.exists()
    try:
        with lake.staging() as folder:
            job = _Import(lake, folder, zone, mapping, given, progress)
            strangers = Strangers(mapping, given)
            for found in find_files(wanted, folder / "fetched"):
                with named(found):
                    if not strangers.is_one(found):
                        job.take(found.path, found.name)
            job.result.notes[:0] = strangers.notes()
            with lake.locked():
                return job.finish()
    except BaseException:
        if fresh and not lake.exists():
            shutil.rmtree(lake.root, ignore_errors=True)
        raise


class _Import:
    """One import under way."""

    def __init__(
        self, lake: Lake, folder: Path, zone: str, mapping: Mapping | None, given: Given, progress: Progress
    ) -> None:
        self.lake, self.folder, self.progress = lake, folder, progress
        self.zone, self.mapping, self.given = zone, mapping, given
        self.result = ImportResult()
        self.sorter = DaySorter(folder)
        self.rejects = Rejects(folder / "rejects.csv")
        self.starts: list[tuple[int, str]] = []
        self.rows_before = 0
        self.closed_before = lake.manifest().closed_before
        self.closed_ms = day_start_ms(self.closed_before) if self.closed_before else 0
        self._limits: dict[str, float] = {}

    def take(self, path: Path, name: str) -> None:
        """Read one file into the sorter; `name`: what the user knows it by."""
        opened = open_source(path)
        bound = bind(path, opened.names, self.mapping or opened.mapping, self.given)
        stamps = StampReader(bound.mapping.time.formats, self.zone, untimed=Untimed(path, self.given))
        stamps.resolve = (lambda: passes_of(path, bound, stamps)) if bound.time else None
        self.starts.append((self.rows_before, name))
        rows, usable, before = 0, 0, self.rejects.counts.copy()
        times = [c for c in (bound.time, bound.clock) if c and opened.text]
        labels = (*bound.labels.values(), *times)
        for batch in opened.batches(bound.source_columns(), labels):
            converted = convert(batch, bound, stamps)
            numbers = row_numbers(rows, batch.num_rows, opened.wrong_rows)
            self._note(path, converted.notes)
            for fault in converted.faults:
                self.rejects.add(name, int(numbers[fault.row]), fault.reason, fault.column, fault.value)
            table, numbers = self._check(name, numbers[converted.kept], converted.table)
            if table.num_rows:
                self.sorter.add(table, numbers + self.rows_before)
            usable += table.num_rows
            rows += batch.num_rows
            self.progress("read", batch.num_rows)
        self._note(path, opened.notes)
        for number, text in opened.wrong_rows:
            self.rejects.add(name, number, why.WRONG_CELLS, "", text[:80])
        if not usable:
            raise _no_usable_row(path, self.rejects, before)
        self.rows_before += rows + len(opened.wrong_rows)
        self._finish_file(path, stamps, bound.suggestions, rows + len(opened.wrong_rows))
        self._note_local_times(path, before)

    def _finish_file(self, path: Path, stamps: StampReader, suggestions: dict[str, str], rows: int) -> None:
        self.result.files += 1
        self.result.rows_read += rows
        if stamps.zoneless:
            self.result.notes.append(f"{path.name}: times carry no zone; read as {self.zone} (change with --tz)")
        for column, close in suggestions.items():
            self.result.notes.append(f"{path.name}: column {column!r} is not used; did you mean {close!r}?")

    def _note(self, path: Path, notes: Iterable[str]) -> None:
        """Note something about a file once."""
        fresh = (f"{path.name}: {note}" for note in notes)
        self.result.notes += [note for note in dict.fromkeys(fresh) if note not in self.result.notes]

    def _note_local_times(self, path: Path, before: Counter[str]) -> None:
        found = self.rejects.counts - before
        if rows := found[AMBIGUOUS_TIME]:
            self.result.notes.append(
                f"{path.name}: {rows} times occur twice in {self.zone} when clocks are set back; write times in UTC"
            )
        if rows := found[IMPOSSIBLE_TIME]:
            self.result.notes.append(
                f"{path.name}: {rows} times do not exist in {self.zone}: clocks are set forward over them; check --tz"
            )

    def _check(self, source: str, numbers: np.ndarray, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """Leave out rows of closed days and rows whose power no such board can draw."""
        bad = np.zeros(table.num_rows, dtype=bool)
        if self.closed_ms:
            at_ms = table[schema.TIME].to_numpy()
            bad = at_ms < self.closed_ms
            for i in np.flatnonzero(bad).tolist():
                self.rejects.add(
                    source, int(numbers[i]), why.CLOSED_DAY, "time", f"{utc(int(at_ms[i])):%Y-%m-%dT%H:%MZ}"
                )
        if "power_w" in table.column_names and "gpu_model" in table.column_names:
            power = table["power_w"]
            over = (power.to_numpy() > self._power_limits(table["gpu_model"])) & ~bad
            for i in np.flatnonzero(over).tolist():
                self.rejects.add(source, int(numbers[i]), why.OVER_POWER, "power_w", str(power[i].as_py()))
            bad |= over
        return (table.filter(pa.array(~bad)), numbers[~bad]) if bad.any() else (table, numbers)

    def _power_limits(self, models: pa.ChunkedArray) -> np.ndarray:
        coded = as_dictionary(models)
        limits = [self._limit(m) for m in coded.dictionary.to_pylist()]
        table = np.array([*limits, np.inf])
        return table[coded.indices.fill_null(len(limits)).to_numpy(zero_copy_only=False)]

    def _limit(self, model: str | None) -> float:
        if model is None:
            return np.inf
        if model not in self._limits:
            gpu = find_gpu(model)
            self._limits[model] = np.inf if isinstance(gpu, Unknown) else POWER_FACTOR * gpu.board_power_w.value
            if isinstance(gpu, Unknown):
                self.result.unknown_models.append(model)
                self.result.notes.append(
                    f"GPU model {model!r} is not in the catalog: what needs its figures is not known"
                )
        return self._limits[model]

    def finish(self) -> ImportResult:
        """Sort, compare with the lake, write, commit."""
        self.lake.sweep()
        manifest = self.lake.manifest()
        if manifest.closed_before != self.closed_before:
            raise LakeError(
                f"{self.lake.root}: days were closed while this import ran", hint="run the same import again"
            )
        staged: list[tuple[Path, Part]] = []
        for day in self.sorter.days():
            writer = PartWriter(self.folder / f"{day}.parquet", day, self.sorter.never_null())
            parts = manifest.of_day(writer.day)
            for chunk in self.sorter.chunks(day):
                self._settle(writer, chunk, parts)
                self.progress("write", chunk.num_rows)
            part = writer.close()
            if part.rows:
                staged.append((writer.file, part))
        self.result.rows_duplicate += self.sorter.repeats
        self.rejects.flush()
        self.result.rows_rejected = self.rejects.total
        self.result.rejects = dict(sorted(self.rejects.counts.items()))
        self.result.examples = self.rejects.examples
        self.result.days = [part.day for _, part in staged]
        if staged:
            manifest = self.lake.commit(staged)
        self._keep_rejects(manifest.next_id)
        return self.result

    def _settle(self, writer: PartWriter, chunk: pa.Table, parts: tuple[Part, ...]) -> None:
        _, names = device_codes(chunk)
        span = pc.min_max(chunk[schema.TIME])
        near = [p for p in parts if p.first_ms <= span["max"].as_py() and p.last_ms >= span["min"].as_py()]
        settled = settle(chunk, self._existing(near, names))
        if (settled.spread or settled.conflicts.num_rows) and len(near) < len(parts):
            # Whether a clock is coarse is decided from all rows of the device's day.
            settled = settle(chunk, self._existing(parts, names))
        for (source, row), words in explained_conflicts(chunk, settled.conflicts, self._place):
            self.rejects.add(source, row, why.CONFLICT, "device, time", words)
        self.result.rows_added += settled.added
        self.result.rows_duplicate += settled.duplicates
        self.result.rows_spread += settled.spread
        writer.add(settled.table)

    def _place(self, arrival: int) -> tuple[str, int]:
        """The file of a row, and its number there."""
        start, source = self.starts[bisect_left(self.starts, arrival, key=lambda s: s[0]) - 1]
        return source, arrival - start

    def _existing(self, parts: Sequence[Part], names: list[str]) -> pa.Table | None:
        """The rows that parts of the lake hold of some devices, whose names are in order."""
        found, wanted = [], set(names)
        for part in parts:
            for group in read_devices(self.lake.path(part), names[0], names[-1]):
                coded = device_names(group)
                inside = pa.array([t in wanted for t in coded.dictionary.to_pylist()])
                found.append(group.filter(inside.take(coded.indices)))
        return pa.concat_tables(found).unify_dictionaries().combine_chunks() if found else None

    def _keep_rejects(self, number: int) -> None:
        if self.rejects.total:
            target = self.lake.root / "rejects" / f"rejects-{number:08d}.csv"
            while target.exists():
                number += 1
                target = target.with_name(f"rejects-{number:08d}.csv")
            target.parent.mkdir(parents=True, exist_ok=True)
            self.rejects.file.replace(target)
            self.result.rejects_file = str(target)
        if self.result.rows_spread:
            self.result.notes.append(
                f"{self.result.rows_spread} rows shared a stamp of a coarse clock and were spread evenly over its tick"
            )


def row_numbers(first: int, count: int, wrong_rows: list[tuple[int, str]]) -> np.ndarray:
    """The numbers in the file, from 1, of the good rows from the `first` on; wrong rows between them count too."""
    place = np.arange(first + 1, first + count + 1, dtype=np.int64)
    if not wrong_rows:
        return place
    wrong = np.sort(np.array([number for number, _ in wrong_rows], dtype=np.int64))
    return place + np.searchsorted(wrong - np.arange(len(wrong)), place, side="right")


def _no_usable_row(path: Path, rejects: Rejects, before: Counter[str]) -> FileFault:
    found = rejects.counts - before
    if set(found) == {why.CLOSED_DAY}:
        return FileFault(path, "all its rows are of days that are closed", hint="import into another lake: --lake DIR")
    text = ", ".join(f"{n} x {reason}" for reason, n in found.most_common(3)) or "no rows"
    example = next((rejects.examples[reason] for reason in found if reason not in before), "")
    return FileFault(path, f"not one usable row ({text})", hint=f"look at {example}" if example else "check the export")
