"""How does a server's telemetry get into the lake, window by window, so that a killed import goes on where it was?

Each window is one import. After it DIR/servers/NAME.json notes how far the server was read; a window that was imported
but not noted is imported again, and the lake drops what it has.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import msgspec
import pyarrow as pa

from gpuledger.errors import FileFault, InputError, ServerFault
from gpuledger.lake.importing import ImportResult, import_files
from gpuledger.lake.json_files import file_name, read_json, write_json
from gpuledger.lake.layout import Lake
from gpuledger.lake.parquet_files import write_parquet
from gpuledger.telemetry.mapping import NOTHING_GIVEN, Given, bind
from gpuledger.telemetry.not_read import metrics_note
from gpuledger.telemetry.series import Points
from gpuledger.telemetry.series.exporters import exporters
from gpuledger.telemetry.series.pivot import pivot
from gpuledger.telemetry.servers.prometheus import SHORTEST_MS, Prometheus
from gpuledger.telemetry.servers.web import TooMuch
from gpuledger.telemetry.shares import note as shares_unknown
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, day_start_ms, utc

FILE_VERSION = 1
FOLDER = "servers"
FIRST_WINDOW_MS = 2 * MS_PER_HOUR
LONGEST_WINDOW_MS = MS_PER_DAY
# Windows are as long as brings about this many points, within the limits above.
WANTED_POINTS = 1_000_000
# How far back an import goes without a start and without an earlier import to continue.
FIRST_SPAN_MS = 7 * MS_PER_DAY
# The newest samples may still arrive: storages that are written to from elsewhere get them piece by piece.
DELAY_MS = 120_000
SKEW_MS = 60_000

Progress = Callable[[int, int], None]


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """How far a server was read: everything from `since_ms` to before `until_ms`."""

    version: int = FILE_VERSION
    url: str
    tenant: str = ""
    since_ms: int
    until_ms: int


def pull(
    lake: Lake,
    server: Prometheus,
    *,
    since_ms: int | None = None,
    until_ms: int | None = None,
    delay_ms: int = DELAY_MS,
    given: Given = NOTHING_GIVEN,
    progress: Progress = lambda _done_ms, _points: None,
) -> ImportResult:
    """Import what the server holds of GPUs, from where the last import of it stopped or from `since_ms`."""
    tenant = server.web.tenant
    file = lake.root / FOLDER / f"{file_name(server.web.root.partition('://')[2] + tenant)}.json"
    before = read_json(file, Pulled, FILE_VERSION, "how far a server was read") if file.exists() else None
    server.greet()
    now_ms = server.web.now_ms()
    until_ms = now_ms - delay_ms if until_ms is None else min(until_ms, now_ms)
    result = ImportResult()
    if abs(server.web.skew_s) * 1000 > SKEW_MS:
        result.notes.append(f"the clock of {server.web.where} is {server.web.skew_s:+.0f} s from this machine's")
    found = False
    for first, last in _stretches(before, since_ms, until_ms, closed_ms=_closed_ms(lake)):
        for start, end, points in _windows(server, first, last):
            if len(points):
                found = True
                add_results(result, _imported(lake, server, points, given))
            before = _joined(before, Pulled(url=server.web.root, tenant=tenant, since_ms=start, until_ms=end))
            if lake.exists():
                write_json(file, before, "how far a server was read")
            progress(end - start, len(points))
    if not found and not lake.exists():
        raise _nothing(server, until_ms)
    result.files = 0
    result.notes += metrics_note(sorted(server.not_read), listed=False)
    result.notes += [f"{server.web.where} warns: {words}" for words in sorted(server.warned)]
    return result


def _closed_ms(lake: Lake) -> int:
    closed = lake.manifest().closed_before
    return day_start_ms(closed) if closed else 0


def _stretches(
    before: Pulled | None, since_ms: int | None, until_ms: int, *, closed_ms: int
) -> Iterator[tuple[int, int]]:
    """What is still to be read: without what was read before."""
    if since_ms is not None and since_ms >= until_ms:
        raise InputError("the start is not before the end", hint="give an earlier start or a later end")
    if before is None:
        start = until_ms - FIRST_SPAN_MS if since_ms is None else since_ms
        yield max(start, closed_ms), until_ms
        return
    if since_ms is not None and since_ms < before.since_ms:
        yield max(since_ms, closed_ms), min(before.since_ms, until_ms)
    if until_ms > before.until_ms:
        late = since_ms if since_ms is not None and since_ms > before.until_ms else before.until_ms
        yield max(late, closed_ms), until_ms


def _windows(server: Prometheus, first: int, last: int) -> Iterator[tuple[int, int, Points]]:
    """The stretch in windows as long as the server can answer, none of them over midnight."""
    length, most, start = FIRST_WINDOW_MS, LONGEST_WINDOW_MS, first
    while start < last:
        end = min(start + length, (start // MS_PER_DAY + 1) * MS_PER_DAY, last)
        try:
            points = server.read(server.metrics(start, end), start, end)
        except TooMuch as error:
            if end - start <= SHORTEST_MS:
                raise ServerFault(
                    server.web.where,
                    f"cannot answer for {(end - start) / 1000:.0f} s: {error}",
                    hint="try when it is less busy; the same command goes on where it stopped",
                ) from error
            length = most = max((end - start) // 2, SHORTEST_MS)
            continue
        yield start, end, points
        start = end
        # A limit once met may have been a busy moment: grow back slowly. After a gap nothing is known of what comes.
        most = min(most + most // 4, LONGEST_WINDOW_MS)
        growth = min(WANTED_POINTS / len(points), 2.0) if len(points) else FIRST_WINDOW_MS / length
        length = min(max(int(length * growth), SHORTEST_MS), most)


def _imported(lake: Lake, server: Prometheus, points: Points, given: Given) -> ImportResult:
    made = pivot(points)
    if not made.columns:
        return ImportResult(notes=["its metrics name no GPU: they have neither a UUID nor an index"])
    mapping = made.mapping()
    bind(server.web.where, made.names, mapping, given)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{file_name(server.web.where)}.parquet"
        write_parquet(pa.Table.from_batches(made.batches()), file)
        try:
            result = import_files(lake, [file], mapping=mapping, given=given)
        except FileFault as fault:  # not one usable row in this window; the next ones may have some
            return ImportResult(notes=[fault.message.removeprefix(f"{file}: ")])
    result.notes = [note.removeprefix(f"{file.name}: ") for note in result.notes]
    result.notes += [*made.notes, *(shares_unknown(name) for name in sorted(made.unclear))]
    if made.contradictions:
        result.notes.append("readings that came twice with different values at one instant are left out")
    return result


def add_results(total: ImportResult, one: ImportResult) -> None:
    """Add what one window did to what all did."""
    for name in (f.name for f in fields(ImportResult)):
        mine, more = getattr(total, name), getattr(one, name)
        if isinstance(mine, int):
            setattr(total, name, mine + more)
        elif isinstance(mine, list):
            mine += [item for item in more if item not in mine]
        elif name == "rejects":
            total.rejects = {k: mine.get(k, 0) + more.get(k, 0) for k in sorted({*mine, *more})}
        elif name == "examples":
            total.examples = {**more, **mine}
        else:
            setattr(total, name, more or mine)


def _joined(before: Pulled | None, now: Pulled) -> Pulled:
    """What was read, as one stretch; a stretch apart from the earlier one takes its place."""
    if before is None or now.since_ms > before.until_ms or now.until_ms < before.since_ms:
        return now
    start, end = min(before.since_ms, now.since_ms), max(before.until_ms, now.until_ms)
    return msgspec.structs.replace(now, since_ms=start, until_ms=end)


def _nothing(server: Prometheus, until_ms: int) -> ServerFault:
    return ServerFault(
        server.web.where,
        f"holds no metrics of GPUs up to {utc(until_ms):%Y-%m-%dT%H:%MZ} in the time asked for",
        hint=f"check that it scrapes one of {', '.join(exporters())}, or go further back with --since",
    )
