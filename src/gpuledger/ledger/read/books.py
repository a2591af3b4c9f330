"""Which lines are in a window, for which owners, and what do they hold?

Every statement reads lines here, so one window means the same everywhere: time from `since` up to `until`. A line that
reaches over an edge is posted again from its samples, within the window only; where the samples are gone it is cut in
proportion to time, and `cut_by_share` says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.errors import LakeError, NothingFound
from gpuledger.lake.layout import Lake
from gpuledger.lake.names import Names
from gpuledger.ledger.day_writer import DAYS, GPU_HOURS, HOURS
from gpuledger.ledger.read.columns import Rows, Wanted, joined, kept, read_files, read_groups, table_rows
from gpuledger.ledger.read.cutting import EDGES, in_proportion
from gpuledger.ledger.read.owners import labelled
from gpuledger.ledger.read.scope import NO_NAMESPACE, UNALLOCATED, Scope, namespace_name, nothing_found, nothing_posted
from gpuledger.ledger.spans import Clip
from gpuledger.ledger.spells import GAP
from gpuledger.ledger.store import Ledger, PostedDay
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, day_start_ms

# With more columns than this, hours are read in pieces: there may be many of them.
_WIDE = 24
_SPELL = ("start_ms", "end_ms")
# Which of these time without a namespace is, its other labels decide.
_NAMELESS = {NO_NAMESPACE, UNALLOCATED}


class Rated(msgspec.Struct, frozen=True):
    """The columns of lines that are rated line by line, and how."""

    numbers: tuple[str, ...]
    rated: Callable[[Rows], Rows]


class Books:
    """The lines in scope, as one posting left them: what is posted meanwhile is not seen."""

    def __init__(
        self, lake: Lake, scope: Scope, limits: Thresholds | None = None, posted: Sequence[PostedDay] | None = None
    ) -> None:
        """`posted`: some days as another reader of the same scope found them, instead of those of now."""
        lake.require()
        self.lake, self.scope, self.limits = lake, scope, limits
        self._ledger = Ledger(lake)
        days = self._ledger.manifest().days if posted is None else posted
        if not days:
            raise nothing_posted(lake)
        first, last = scope.days() or ("", "9999")
        self._posted = [d for d in days if first <= d.day <= last]
        if not self._posted:
            raise nothing_found(lake, scope)
        self.names: dict[str, Names] = defaultdict(Names)
        self.cut_by_share = False

    @property
    def days(self) -> list[PostedDay]:
        """The posted days that can hold lines of the window."""
        return self._posted

    def _named(self, *labels: str) -> dict[str, Names]:
        return {name: self.names[name] for name in labels}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            why = str(error).splitlines()[0]
            where = self.lake.ledger_dir
            raise LakeError(f"{where}: the ledger cannot be read: {why}", hint=self._ledger.way_out()) from error

    def blocks(
        self,
        labels: Sequence[str],
        numbers: Sequence[str],
        maybe: Sequence[str] = (),
        *,
        hourly: Collection[int] | bool = False,
        owners: bool = True,
        days: Collection[str] | None = None,
    ) -> Iterator[tuple[int, Rows]]:
        """Rows of lines within the window, with the start of the day they were posted on.

        `maybe`: numbers that may be NULL. `hourly`: read hours on these days (by their start) or on all; else lines
        added up by day where no edge of the window falls within it. `owners`: leave out lines of owners not in scope;
        without it they stay, and "wanted" tells them apart. `days`: only lines posted on these.
        """
        texts = dict.fromkeys((*labels, *schema.DEVICE, *((*schema.OWNER, "pod") if self.scope.names_owners else ())))
        wanted = Wanted(self._named(*texts), tuple(dict.fromkeys((*self._edges(), *numbers))), tuple(maybe))
        with self._reading():
            for posted, rows, whole in self._rows(wanted, hourly, days):
                found = self._owned(self._cut(posted, rows, wanted, whole), owners)
                if len(found["hour_ms"]):
                    yield day_start_ms(posted.day), found

    def fleet_hours(self, labels: Sequence[str], numbers: Sequence[str], of_line: Rated) -> Iterator[Rows]:
        """Lines within the window added up over devices where they rest so, else line by line as `of_line` rates them.

        What rests so does not tell owners below a namespace apart.
        """
        # What a day's last samples stand for may reach into the next day.
        apart = self.scope.owners or _NAMELESS & set(self.scope.namespaces)
        rests = [d for d in self._posted if d.hourly and not apart and not self._cuts(d, days=2)]
        wanted = Wanted(self._named(*labels, "cluster", "namespace"), ("hour_ms", "grain_ms", *numbers))
        with self._reading():
            self._ledger.gather((d, HOURS) for d in rests)
            for _, rows in read_files((str(f) for d in rests for f in self._ledger.files_of(d, HOURS)), wanted):
                yield self._owned(self._in_hours(rows), only=True)
        if days := {d.day for d in self._posted if d not in rests}:
            for _, rows in self.blocks((*labels, "namespace"), of_line.numbers, hourly=True, days=days):
                yield of_line.rated(rows)

    def gpu_hours(self, numbers: Sequence[str], maybe: Sequence[str]) -> Iterator[tuple[int, Rows]]:
        """Rows of devices hour by hour, in order of day: added up over owners and states where they rest so."""
        wanted = Wanted(self._named(*schema.DEVICE), ("hour_ms", "grain_ms", *numbers), tuple(maybe))
        apart = self.scope.names_owners
        for rests, days in groupby(self._posted, lambda d: d.by_gpu and not apart and not self._cuts(d, days=2)):
            if not rests:
                yield from self.blocks((), numbers, maybe, hourly=True, days={d.day for d in days})
                continue
            whole = list(days)
            with self._reading():
                self._ledger.gather((d, GPU_HOURS) for d in whole)
                of_file = {str(f): day_start_ms(d.day) for d in whole for f in self._ledger.files_of(d, GPU_HOURS)}
                for file, rows in read_files(of_file, wanted):
                    yield of_file[file], self._in_hours(rows)

    def _in_hours(self, rows: Rows) -> Rows:
        """Rows of hours that the window does not cut, within it."""
        since, until = self.scope.since_ms or 0, self.scope.until_ms or 1 << 62
        return kept(rows, (rows["hour_ms"] >= since) & (rows["hour_ms"] < until))

    def _edges(self) -> tuple[str, ...]:
        """What tells when a line is; its first and last instant matter where the window may cut it."""
        cut = self.scope.since_ms is not None or self.scope.until_ms is not None
        return EDGES if cut else ("hour_ms", "grain_ms")

    def _rows(
        self, wanted: Wanted, hourly: Collection[int] | bool, days: Collection[str] | None
    ) -> Iterator[tuple[PostedDay, Rows, bool]]:
        """The rows of days, each with its day and whether they are added up by day; read ahead over days."""
        of_file: dict[str, tuple[PostedDay, bool]] = {}
        wholes = [(d, self._by_day(d, hourly)) for d in self._posted if days is None or d.day in days]
        tables = [(posted, DAYS if whole else "lines") for posted, whole in wholes]
        self._ledger.gather(tables)
        for (posted, whole), (_, table) in zip(wholes, tables, strict=True):
            of_file |= {str(f): (posted, whole) for f in self._ledger.files_of(posted, table)}
        wide = len(wanted.columns) > _WIDE
        for in_pieces, files in groupby(of_file, key=lambda f: wide and not of_file[f][1]):
            read = read_groups if in_pieces else read_files
            for file, rows in read(files, wanted):
                posted, whole = of_file[file]
                yield posted, rows, whole

    def _by_day(self, posted: PostedDay, hourly: Collection[int] | bool) -> bool:
        """Whether the lines of a day may be read added up: its hours are not asked for, and no edge falls within it."""
        start = day_start_ms(posted.day)
        if not posted.daily or (hourly if isinstance(hourly, bool) else start in hourly):
            return False
        return not self._cuts(posted)

    def _cuts(self, posted: PostedDay, days: int = 1) -> bool:
        """Whether an edge of the window falls within a day, or within a number of days from it on."""
        start, edges = day_start_ms(posted.day), (self.scope.since_ms, self.scope.until_ms)
        return any(e is not None and start < e < start + days * MS_PER_DAY and e % MS_PER_DAY for e in edges)

    def _cut(self, posted: PostedDay, rows: Rows, wanted: Wanted, whole: bool) -> Rows:
        """The rows within the window."""
        since, until = self.scope.since_ms, self.scope.until_ms
        if since is None and until is None:
            return rows
        first, last = rows["first_ms"], rows["last_ms"]
        inside = np.ones(len(first), dtype=bool)
        crossing = np.zeros(len(first), dtype=bool)
        if since is not None:
            inside &= (last > since) | (first >= since)
            crossing |= (first < since) & (last > since)
        if until is not None:
            inside &= first < until
            crossing |= (first < until) & (last > until)
        crossing &= inside
        if not crossing.any():
            return kept(rows, inside)
        starts = np.unique(rows["hour_ms"][crossing])
        if not whole and (rows["grain_ms"] != MS_PER_HOUR).any():
            # Days among hours, as after a late import: all of the day is posted again.
            starts, clips = np.unique(rows["hour_ms"]), [Clip(since, until)]
        else:
            length = MS_PER_DAY if whole else MS_PER_HOUR
            clips = [Clip(int(t), int(t) + length).within(since, until) for t in starts]
        again = self._posted_again(posted, clips) if posted.samples_kept else None
        if again is None:
            self.cut_by_share = True
            return in_proportion(kept(rows, inside), wanted, since, until)
        rest = kept(rows, inside & ~np.isin(rows["hour_ms"], starts))
        # The devices of this piece only: other pieces of the day bring their own.
        mine = table_rows(again, wanted)
        keys = [(r[schema.DEVICE[0]] + 1) * (1 << 31) + r[schema.DEVICE[1]] + 1 for r in (rows, mine)]
        return joined([rest, kept(mine, np.isin(keys[1], keys[0]))])

    def _posted_again(self, posted: PostedDay, clips: Sequence[Clip]) -> pa.Table | None:
        """The lines of some periods posted from their samples; None where that cannot be done."""
        found = _posted_again(str(self.lake.root), posted, self.limits or load_thresholds(), tuple(clips))
        if found is None:
            _posted_again.cache_clear()  # the next to ask may find the samples again
        return found

    def _owned(self, rows: Rows, only: bool) -> Rows:
        if not self.scope.names_owners:
            return rows if only else rows | {"wanted": np.ones(len(rows["hour_ms"]), dtype=bool)}
        wanted = self._wanted(rows)
        return kept(rows, wanted) if only else rows | {"wanted": wanted}

    def _wanted(self, rows: Rows) -> np.ndarray:
        """Which lines are of the owners asked for."""
        scope, wanted = self.scope, np.ones(len(rows["hour_ms"]), dtype=bool)

        def among(label: str, texts: Iterable[str]) -> np.ndarray:
            return self.names[label].among(frozenset(texts))[rows[label]]

        if scope.clusters:
            wanted &= among("cluster", scope.clusters)
        if scope.namespaces:
            called = self.names["namespace"].texts
            fit = [namespace_name(text) in scope.namespaces for text in (*called, None)]
            named = np.array(fit, dtype=bool)[rows["namespace"]]
            if _NAMELESS & set(scope.namespaces):
                nameless = (rows["namespace"] < 0) & labelled(rows)
                named = np.where(nameless, NO_NAMESPACE in scope.namespaces, named)
            wanted &= named
        if scope.owners:
            own = among("workload", scope.owners) | among("run_id", scope.owners)
            for owner in scope.owners:
                for cut in (i for i, letter in enumerate(owner) if letter == "/"):
                    own |= among("namespace", [owner[:cut]]) & among("workload", [owner[cut + 1 :]])
            wanted &= own
        return wanted

    def quiet_spells(self) -> Iterator[Rows]:
        """Idle spells of all devices a file at a time: labels of the device, start and end."""
        for rows in self._spells(self._posted):
            yield kept(rows, ~self.names["kind"].among((GAP,))[rows["kind"]])

    def spells(self) -> Iterator[Rows]:
        """All spells, gaps too, a file at a time: device, kind, start and end."""
        return self._spells(self._posted)

    def spells_of(self, day_ms: int) -> Rows:
        """All spells, gaps too, posted on the day that starts at this instant: device, kind, start and end."""
        found = list(self._spells([d for d in self._posted if day_start_ms(d.day) == day_ms]))
        none = np.zeros(0, dtype=np.int64)
        return joined(found) or dict.fromkeys((*schema.DEVICE, "kind", *_SPELL), none)

    def pods(self, labels: Sequence[str]) -> Iterator[Rows]:
        """Labels of the pods and containers that held devices, a file at a time; all of them on days of the window."""
        wanted = Wanted(self._named(*labels), ("first_ms", "last_ms"))
        with self._reading():
            self._ledger.gather((d, "pods") for d in self._posted)
            files = [str(f) for d in self._posted for f in self._ledger.files_of(d, "pods")]
            for _, rows in read_files(files, wanted):
                yield rows

    def _spells(self, posted: Iterable[PostedDay]) -> Iterator[Rows]:
        wanted = Wanted(self._named(*schema.DEVICE, "kind"), _SPELL)
        wanted_days = list(posted)
        with self._reading():
            self._ledger.gather((d, "spells") for d in wanted_days)
            files = [str(f) for d in wanted_days for f in self._ledger.files_of(d, "spells")]
            for _, rows in read_files(files, wanted):
                yield rows

    def nothing_found(self) -> NothingFound:
        """The error for a scope without a line."""
        return nothing_found(self.lake, self.scope)


@lru_cache(maxsize=8)
def _posted_again(root: str, posted: PostedDay, limits: Thresholds, clips: tuple[Clip, ...]) -> pa.Table | None:
    """Each part of a day is posted again once, however many statements and pieces of the day ask for it.

    What was posted names the parts of the lake it rests on, so an answer never outlives them.
    """
    from gpuledger.ledger.day import post_clipped  # seldom needed, and it loads all of posting

    return post_clipped(Lake(root), posted, limits, clips)
