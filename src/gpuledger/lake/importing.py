"""How do files of telemetry get into the lake, all of a file or nothing?

Large imports run in as many processes as there are cores, twice: pieces of files are read, checked and put in order of
day and device; then days are gathered, compared with the lake and written. Small ones run here, by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.arguments import takes
from gpuledger.catalog.gpus.names import not_one_board
from gpuledger.errors import InputError, LakeError, NotSaid, let_go
from gpuledger.lake.by_day import MEMORY_BYTES, ByDay, F, Group, grouped
from gpuledger.lake.clocks import SKEW_MS, ahead_note, check_store_clock, latest_ms
from gpuledger.lake.engines.choosing import in_use
from gpuledger.lake.engines.copies import may_copy
from gpuledger.lake.engines.engine import Runner, everywhere
from gpuledger.lake.handing import own_desk
from gpuledger.lake.host_names import refuse_two
from gpuledger.lake.layout import AnyLake, Lake, Manifest, Part, lake_of
from gpuledger.lake.parts import samples_table
from gpuledger.lake.pieces import pieces_of
from gpuledger.lake.processes import D, Progress, T
from gpuledger.lake.rejects import Rejects, logged, no_usable_row
from gpuledger.lake.sharing import note as apart_note
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.runs import moved
from gpuledger.lake.stores.path import place_of
from gpuledger.lake.taking import (
    Piece,
    Reading,
    Taken,
    Taker,
    TakeTask,
    is_by_index,
    one_host_notes,
    refuse_two_models,
    take_piece,
)
from gpuledger.lake.writing import DayTask, DayWritten, GroupTask, Place, write_day, write_from, write_group
from gpuledger.telemetry.convert import device_prefix
from gpuledger.telemetry.date_order import joined
from gpuledger.telemetry.finding import Found, Strangers, as_the_user_names_them, find_files
from gpuledger.telemetry.labels import Used, label_notes
from gpuledger.telemetry.mapping import NOTHING_GIVEN, Given, Mapping
from gpuledger.telemetry.stated import Stated, completed
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, day_start_ms, utc_day

# Below this many rows, starting processes costs more than they save; copies of this process cost little.
ROWS_WORTH_PROCESSES = 3_000_000
ROWS_WORTH_COPIES = 200_000
# Zones by their hours east of UTC, as their database calls them, and the farthest there is.
UTC, EAST, FARTHEST_EAST = "UTC", "Etc/GMT-", 14


@dataclass
class ImportResult:
    """What one import did. `stated`: what was assumed of a file; `notes` are things the user should hear."""

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
    stated: list[Stated] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@takes()
def import_files(
    lake: AnyLake,
    paths: Iterable[str | Path],
    *,
    zone: str = "UTC",
    mapping: Mapping | None = None,
    given: Given = NOTHING_GIVEN,
    progress: Progress = lambda _stage, _rows: None,
    processes: int | None = None,
) -> ImportResult:
    """Add the samples of all files, folders, patterns and addresses. A fault in any leaves the lake as it was.

    `processes`: how many at once (default: one a core if worth it).
    """
    lake, wanted = lake_of(lake), list(paths)
    if not wanted:
        raise InputError("no file was named", hint="gpuledger import FILE... --lake DIR")
    fresh = lake.store.is_new()

    try:
        reading = Reading(zone, mapping, given)
        for by_day in (True, False):
            with lake.staging() as folder, Import(lake, folder, reading, progress, processes) as job:
                early = job.take(wanted, ByDay(job.group_task, write_group) if by_day else None)
                with lake.locked():
                    if done := job.finish([day for group in early for day in group.days]):
                        return done
        raise RuntimeError("an import that looks at the lake under its lock cannot be overtaken")
    except BaseException:
        if fresh and not lake.exists():
            lake.store.undo_new()
        raise


def _zone_words(zone: str) -> str:
    hours = zone.removeprefix(EAST)
    return zone if hours == zone else f"UTC+{hours} or further east, as in UTC its times are later than now"


class _EastOfUtc(Exception):
    """A file's times carry no zone and are later than now, if they are of UTC: they are of the zone named here."""

    def __init__(self, zone: str) -> None:
        self.zone = zone


def in_its_zone(run: Callable[[Reading], ImportResult], reading: Reading) -> ImportResult:
    """Read files for a statement; again where the times of a file show that it was written east of UTC, and no zone was
    named. It depends on when that is: samples that are to stay in a lake need the name of their zone.
    """
    try:
        return run(reading)
    except _EastOfUtc as found:
        return run(msgspec.structs.replace(reading, zone=found.zone))


class Import:
    """One import under way."""

    def __init__(
        self, lake: Lake, folder: Path, reading: Reading, progress: Progress, processes: int | None = None
    ) -> None:
        self.lake, self.folder, self.progress, self.engine = lake, folder, progress, in_use(processes)
        self.result = ImportResult()
        self.desk = own_desk(lake, folder, self.engine)
        self.sorter = DaySorter(folder, by_day=self.desk.apart)
        self.rejects = Rejects(folder / "rejects.csv")
        self.places: list[Place] = []
        self.names: dict[str, str] = {}
        self.manifest = lake.manifest()
        closed_ms = day_start_ms(self.manifest.closed_before) if self.manifest.closed_before else 0
        self.reading = msgspec.structs.replace(reading, closed_ms=closed_ms, latest_ms=latest_ms())
        self.newest_ms = 0
        self.may_look_east, self.stated_host, self.span_ms = False, "", (0, 0)
        self.by_index: list[tuple[str, tuple[int, int]]] = []
        self._runner: Runner | None = None

    def __enter__(self) -> Import:
        return self

    def __exit__(self, _kind: object, fault: BaseException | None, _trace: object) -> None:
        let_go(fault)  # before the work folder goes, which a network file system would keep for an open file
        if self._runner is not None:
            self._runner.__exit__()
            self.desk.clear()

    def at_once(self, rows: int) -> int:
        """How many tasks are worth running at once for this many rows."""
        quick = self._runner is not None or may_copy()
        return self.engine.at_once(rows, ROWS_WORTH_COPIES if quick else ROWS_WORTH_PROCESSES)

    def share_out(self, work: Callable[[T, Progress], D], tasks: Sequence[T]) -> list[D]:
        """Do tasks in processes of their own, which stay for what comes next; what they return, in order."""
        if self._runner is None:
            several = self.engine.at_once(ROWS_WORTH_PROCESSES, ROWS_WORTH_PROCESSES)
            # One file of each folder shows whether it is shared; through a bucket they are sent.
            files = {Path(name).parent: name for name in self.names} if not self.desk.apart else {}
            self._runner = self.engine.runner(several, (self.desk.seen_by_all(), *files.values()))
        done = dict(self._runner.run(work, tasks, self.progress))
        return [done[number] for number in sorted(done)]

    def group_task(self, group: Group, groups: Sequence[Group]) -> GroupTask:
        """The task of taking some pieces and writing their days; days the lake has already are left to `finish`."""
        known = (p for some in groups for p in some.pieces)  # a day may get rows of others
        places = [Place(p.number, self.names.get(p.path, p.path), p.before) for p in known]
        days = [d for d in (*group.whole, *group.gets) if not self.manifest.of_day(utc_day(d * MS_PER_DAY))]
        where, memory = (everywhere(self.lake.root), everywhere(self.folder)), MEMORY_BYTES // len(groups)
        return GroupTask(*where, group.pieces, days, group.handing(where[1]), places, self.reading, memory)

    def take(self, wanted: Iterable[str | Path], by_day: ByDay[T, F] | None = None) -> list[F]:
        """Read all files, folders, patterns and addresses into the sorter; what was done with days that were finished
        on the way, where `by_day` says how.
        """
        strangers = Strangers(self.reading.mapping, self.reading.given)
        found = [f for f in find_files(wanted, self.folder / "fetched") if not strangers.is_one(f)]
        self.result.notes += strangers.notes()
        self.names = {str(f.path): f.name for f in found}
        with as_the_user_names_them(found):
            if len(found) == 1:
                self._state(found[0])
            try:
                return self._take([f.path for f in found], by_day)
            except NotSaid as error:
                if len(found) > 1 and "--host" in error.hint:
                    error.hint += "; files of several hosts: import each by itself, with its own --host"
                raise

    def _state(self, file: Found) -> None:
        """State what a file does not say."""
        given, self.result.stated = completed(file.path, file.name, self.reading.mapping, self.reading.given)
        if "host" not in self.reading.given.labels:
            self.stated_host = given.labels.get("host", "")
        self.reading = msgspec.structs.replace(self.reading, given=given)

    def _take(self, files: Sequence[Path], by_day: ByDay[T, F] | None) -> list[F]:
        pieces = pieces_of(files, self.reading)
        several, early = self.at_once(sum(piece.rows for piece in pieces)), list[F]()
        groups = grouped(pieces, several) if by_day is not None and not self.engine.elsewhere else None
        if by_day is not None and groups is not None:
            early = self._by_day(groups, by_day)
            taken = {number: found for done in early for number, found in done.taken.items()}
        elif min(several, len(pieces)) == 1:
            taken = self._here(pieces)
        else:
            taken = self._in_processes(pieces)
        for path in dict.fromkeys(piece.path for piece in pieces):
            self._finish_file(path, [(p, taken[p.number]) for p in pieces if p.path == path])
        self.result.notes += one_host_notes(self.by_index)
        if self.by_index:
            refuse_two_models(self.reading.given, self.sorter.labels_met("gpu_uuid", "gpu_model"))
        return early

    def _by_day(self, groups: Sequence[Group], by_day: ByDay[T, F]) -> list[F]:
        """Take groups of pieces, each by falling time, and finish the days that are complete."""
        tasks = [by_day.task(group, groups) for group in groups]
        done = [by_day.work(tasks[0], self.progress)] if len(tasks) == 1 else self.share_out(by_day.work, tasks)
        for found in done:
            self.sorter.take_over(found.handed)
        self.sorter.drop(*(day for found in done for day in found.finished))  # of rows handed on, both have told
        return done

    def _here(self, pieces: Sequence[Piece]) -> dict[int, Taken]:
        taker = Taker(self.sorter, self.reading, self.progress)
        return {p.number: taker.take(p, self.folder / f"{p.number}.log") for p in pieces}

    def _in_processes(self, pieces: Sequence[Piece]) -> dict[int, Taken]:
        own = list(dict.fromkeys(p.path for p in pieces))
        sent = dict(zip(own, self.desk.hand_over(own), strict=True))
        tasks = [TakeTask(msgspec.structs.replace(p, path=sent[p.path]), self.reading, self.desk.name) for p in pieces]
        with as_the_user_names_them([Found(place_of(name), path) for path, name in sent.items()]):
            done = self.share_out(take_piece, tasks)
        for taken in done:
            if taken.handed:
                self.sorter.take_over(taken.handed)
        logs = self.desk.fetched([taken.rejects for taken in done])
        found = (msgspec.structs.replace(taken, rejects=log) for taken, log in zip(done, logs, strict=True))
        return {piece.number: taken for piece, taken in zip(pieces, found, strict=True)}

    def _finish_file(self, path: str, pieces: Sequence[tuple[Piece, Taken]]) -> None:
        """Number the rows of a file through, and say what was found in it."""
        before, rows, name = self.rejects.counts.copy(), 0, self.names.get(path, path)
        for piece, taken in pieces:
            self.places.append(Place(piece.number, name, rows))
            for _, row, *rest in logged(taken.rejects):
                self.rejects.add(name, row + rows, *rest)
            self.rejects.counts.update(taken.unlisted)
            rows += taken.rows
            self.result.notes += [note for note in taken.notes if note not in self.result.notes]
            for model in (m for m in taken.unknown_models if m not in self.result.unknown_models):
                self.result.unknown_models.append(model)
                missing = f"{model!r} is not in the catalog: what needs its figures is not known"
                self.result.notes.append(f"GPU model {not_one_board(model) or missing}")
        span = min(taken.span_ms[0] for _, taken in pieces), max(taken.span_ms[1] for _, taken in pieces)
        self.newest_ms, self.span_ms = max(self.newest_ms, span[1]), span
        if "host" in self.reading.given.labels and is_by_index(pieces[0][1].labels):
            self.by_index.append((name, span))
        ahead = [found for _, taken in pieces for found in taken.ahead]
        zoneless = any(taken.zoneless for _, taken in pieces)
        if ahead:
            if self.may_look_east and zoneless and self.reading.zone == UTC and len(self.names) == 1:
                self._look_east(max(found.last_ms for found in ahead))
            self._note(name, [ahead_note(ahead, self.reading.latest_ms)])
        zone = Stated(f"zone {_zone_words(self.reading.zone)}", "--tz NAME")
        if zoneless and zone not in self.result.stated:
            self.result.stated.append(zone)
        used = Used()
        for label, source, count in (found for _, taken in pieces for found in taken.label_rows):
            used[label, source] += count
        self._note(name, label_notes(pieces[0][1].labels, used))
        self._note(name, joined([taken.dates for _, taken in pieces]).notes(path))
        if not any(taken.usable for _, taken in pieces):
            raise no_usable_row(path, self.rejects, before, ahead)
        self.result.files += 1
        self.result.rows_read += rows

    def _look_east(self, last_ms: int) -> None:
        """Start again in the nearest zone in which times are not later than now, if there is one so far east."""
        hours = -(-(last_ms - self.reading.latest_ms + SKEW_MS) // MS_PER_HOUR)
        if hours <= FARTHEST_EAST:
            raise _EastOfUtc(f"{EAST}{hours}")

    def _note(self, name: str, notes: Iterable[str]) -> None:
        fresh = (f"{Path(name).name}: {note}" for note in notes)
        self.result.notes += [note for note in fresh if note not in self.result.notes]

    def finish(self, early: Sequence[DayWritten] = ()) -> ImportResult | None:
        """Sort, compare with the lake, write, commit; None where the lake meanwhile got a day written `early`."""
        self.lake.sweep()
        manifest = self.lake.manifest()
        if manifest.closed_before != self.manifest.closed_before:
            raise LakeError(
                f"{self.lake.root}: days were closed while this import ran", hint="run the same import again"
            )
        check_store_clock(self.lake, self.folder, self.newest_ms)
        if any(manifest.of_day(done.part.day) for done in early):
            return None
        staged: list[tuple[Path, Part]] = []
        apart = 0
        written = sorted([*early, *self._written(manifest)], key=lambda written: written.part.day)
        refuse_two(done.neighbors for done in written)
        for done in written:
            self.result.rows_added += done.added
            self.result.rows_duplicate += done.duplicates
            self.result.rows_spread += done.spread
            apart += done.apart
            for row in logged(done.rejects):
                self.rejects.add(*row)
            if done.part.rows:
                staged.append((place_of(done.file), done.part))
        if not any(done.duplicates for done in written):
            self._refuse_host_of_others()
        self.result.rows_duplicate += self.sorter.repeats
        self.result.notes += apart_note(apart)
        self.rejects.flush()
        self.result.rows_rejected = self.rejects.total
        self.result.rejects = dict(sorted(self.rejects.counts.items()))
        self.result.examples = self.rejects.examples
        self.result.days = [part.day for _, part in staged]
        if staged:
            manifest = self.lake.commit(staged)
        self._keep_rejects(manifest.next_id)
        return self.result

    def _refuse_host_of_others(self) -> None:
        """A fault where rows are put on a host that was only stated, and the lake has others of its GPUs and time."""
        if not self.stated_host:
            return
        known = samples_table(self.lake, self.span_ms[0], self.span_ms[1] + 1)
        start = f"{device_prefix(self.stated_host)}:"
        if known.num_rows and pc.any(pc.starts_with(known["gpu_uuid"].cast(pa.string()), start)).as_py():
            (name,) = self.names.values()
            raise NotSaid(
                name,
                f"the lake has other samples of a host called {self.stated_host!r} and of this time, and the file does"
                " not name its host",
                hint=f"add --host NAME: another one, or --host {self.stated_host} if both are of one host",
            )

    def _written(self, manifest: Manifest) -> Iterator[DayWritten]:
        """All days, written to the work folder, in order."""
        rows, where = sum(self.sorter.rows_of_days().values()), (everywhere(self.lake.root), everywhere(self.folder))
        tasks = [
            DayTask(*where, day, manifest.of_day(utc_day(day * MS_PER_DAY)), self.places, number=manifest.next_id + n)
            for n, day in enumerate(self.sorter.days())
        ]
        several = min(self.at_once(rows), len(tasks))
        if several <= 1:
            for task in tasks:
                yield write_from(self.sorter, task, self.progress)
            return
        self.sorter.hand_over()
        if self.desk.apart:
            self.lake.begin()  # nodes put parts there themselves
        tasks = [
            msgspec.structs.replace(
                t, folder=self.desk.name, handed=moved(self.sorter.of_days([t.day]), self.desk.hand_over)
            )
            for t in tasks
        ]
        done = self.share_out(write_day, tasks)
        self.result.rows_duplicate += sum(d.repeats for d in done)
        for day, log in zip(done, self.desk.fetched([d.rejects for d in done]), strict=True):
            yield msgspec.structs.replace(day, rejects=log)

    def _keep_rejects(self, number: int) -> None:
        self.result.rejects_file = self.rejects.keep(self.lake, number)
        if self.rejects.total > self.rejects.listed:
            self.result.notes.append(
                f"{self.rejects.total:,} rows were rejected; the file of rejected rows lists {self.rejects.listed:,}"
            )
        if self.result.rows_spread:
            self.result.notes.append(
                f"{self.result.rows_spread} rows shared a stamp of a coarse clock and were spread evenly over its tick"
            )
