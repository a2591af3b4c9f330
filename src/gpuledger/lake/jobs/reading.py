"""Which jobs does a file list, whichever scheduler wrote it?

The file is known by what it holds: JSON of pods as kubectl writes it, a table with sacct's columns, or any table (CSV,
tab- or bar-separated, or a JSON list of objects) that says who held which GPU from when to when.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FileFault, map_os_error, nearest
from gpuledger.lake.jobs import pods, sacct
from gpuledger.lake.jobs.cells import WrongCell, gpu_count, gpus_by_host, gpus_of, hosts_of
from gpuledger.lake.jobs.claims import LABELS, Claim, is_index
from gpuledger.telemetry import schema
from gpuledger.telemetry.stamps import Fault, StampReader

Kind = StrEnum("Kind", {"SACCT": "sacct", "PODS": "Kubernetes pods", "TABLE": "table of jobs"})
Why = StrEnum(
    "Why",
    [
        "wrong_time",
        "ambiguous_local_time",
        "impossible_local_time",
        "ends_before_it_starts",
        "no_host",
        "wrong_cell",
        "wrong_number_of_cells",
        "no_owner",
    ],
)
Skipped = StrEnum("Skipped", ["never_started", "no_gpus", "no_time", "mig_slices"])
_DELIMITERS = "|\t;,"
_FAULTS = {
    Fault.WRONG: Why.wrong_time,
    Fault.AMBIGUOUS: Why.ambiguous_local_time,
    Fault.IMPOSSIBLE: Why.impossible_local_time,
}
Row = Mapping[str, str]


class _Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    names: dict[str, tuple[str, ...]]
    words: dict[str, tuple[str, ...]]


@dataclass
class Found:
    """What one file holds: claims, and what of it cannot be used: (row, reason, column, value)."""

    kind: Kind
    rows: int = 0
    jobs: int = 0
    claims: list[Claim] = field(default_factory=list)
    rejected: list[tuple[int, Why, str, str]] = field(default_factory=list)
    skipped: dict[Skipped, int] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def skip(self, why: Skipped) -> None:
        """Count a job that held no GPU."""
        self.skipped[why] = self.skipped.get(why, 0) + 1


@cache
def _names() -> _Names:
    return load_toml(data_dir(__package__, "columns.toml"), _Names)


def read_jobs(path: Path, zone: str | None = None) -> Found:
    """The claims of a file. `zone`: of times without one; a fault asks for it where it is needed and not given."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise map_os_error(error, path, "read") from error
    except UnicodeDecodeError as error:
        raise FileFault(path, "not UTF-8 text", hint="save the table as UTF-8") from error
    stamps = StampReader((), zone or "UTC")
    found, rows = _rows(path, text)
    _take(found, rows, stamps)
    if stamps.zoneless and zone is None:
        hint = (
            "name their zone: --tz Europe/Berlin, or --tz UTC (sacct writes the local time of the machine it runs on;"
            " TZ=UTC sacct ... writes UTC)"
        )
        raise FileFault(path, "its times have no time zone, and none was named", hint=hint)
    if not found.claims and not found.rejected:
        raise FileFault(path, f"no job in this {found.kind.value} held a GPU ({_reasons(found)})", hint=_no_gpus(found))
    return found


def _reasons(found: Found) -> str:
    return ", ".join(f"{n} x {why.value.replace('_', ' ')}" for why, n in found.skipped.items()) or "no rows"


def _no_gpus(found: Found) -> str:
    if found.kind is Kind.SACCT and Skipped.no_gpus in found.skipped:
        return "let Slurm account GPUs: AccountingStorageTRES=gres/gpu in slurm.conf; export AllocTRES"
    return "check which jobs the table was made for"


def _rows(path: Path, text: str) -> tuple[Found, list[tuple[int, Row]]]:
    """The file's kind and its rows by our column names, numbered from 1."""
    if text.lstrip()[:1] in ("{", "["):
        return _json_rows(path, text)
    found, header, rows = Found(Kind.TABLE), *_cells(path, text)
    columns = _columns(path, header)
    found.unused = tuple(h for i, h in enumerate(header) if i not in columns.values())
    if sacct.is_sacct(header):
        found.kind = Kind.SACCT
    out: list[tuple[int, Row]] = []
    for number, cells in rows:
        found.rows += 1
        if len(cells) != len(header):
            found.rejected.append((number, Why.wrong_number_of_cells, "", " ".join(cells)[:80]))
            continue
        out.append((number, {name: "" if _blank(cells[i]) else cells[i].strip() for name, i in columns.items()}))
    return found, sacct.folded(out) if found.kind is Kind.SACCT else out


def _cells(path: Path, text: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(_DELIMITERS, key=first.count)
    try:
        rows = [r for r in csv.reader(io.StringIO(text), delimiter=delimiter) if r and any(c.strip() for c in r)]
    except csv.Error as error:
        raise FileFault(path, f"not a table: {error}", hint="write it again as CSV") from error
    if len(rows) < 2:
        raise FileFault(path, "no rows below a header", hint="a table of jobs has a header and one row for each job")
    header = [h.strip() for h in rows[0]]
    if not header[-1]:  # sacct -p ends every line with a bar
        header, rows = header[:-1], [r[:-1] if r and not r[-1].strip() else r for r in rows]
    return header, ((i, r) for i, r in enumerate(rows[1:], start=1))


def _columns(path: Path, header: Sequence[str]) -> dict[str, int]:
    """By our name of a column its place in the file."""
    plain = [_plain(h) for h in header]
    found: dict[str, int] = {}
    for name, spellings in _names().names.items():
        place = next((plain.index(s) for s in spellings if s in plain), None)
        if place is not None and place not in found.values():
            found[name] = place
    missing = [name for name in ("start", "end") if name not in found]
    if "host" not in found and "gpu" not in found:
        missing.append("host")
    if not any(name in found for name in LABELS):
        missing.append("job")
    if missing:
        parts = []
        for name in missing:
            spelled = _names().names.get("run_id" if name == "job" else name, ())
            close = [h for h, p in zip(header, plain, strict=True) for _ in nearest(p, spelled, 1)][:1]
            parts.append(f"{name!r}" + (f" (nearest in the file: {close[0]!r})" if close else ""))
        raise FileFault(
            path,
            f"as a table of jobs it lacks the column{'s' * (len(parts) > 1)} {', '.join(parts)}",
            hint="name the columns job, user, team, account, namespace, host, gpu, start, end, as far as you have them",
        )
    return found


def _json_rows(path: Path, text: str) -> tuple[Found, list[tuple[int, Row]]]:
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FileFault(path, f"not JSON: {error}", hint="write the table again, or as CSV") from error
    items = raw.get("items", [raw]) if isinstance(raw, dict) else raw
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FileFault(path, "not a list of jobs or pods", hint="kubectl get pods -A -o json, or a list of objects")
    if any("metadata" in item for item in items):
        found = Found(Kind.PODS, rows=len(items))
        made = [(n, pods.row_of(item)) for n, item in enumerate(items, start=1)]
        if sliced := sum(bool(row["mig"]) for _, row in made):
            found.skipped[Skipped.mig_slices] = sliced
        return found, [(n, row) for n, row in made if not row["mig"]]
    found = Found(Kind.TABLE, rows=len(items))
    header = list(dict.fromkeys(key for item in items for key in item))
    columns = {name: header[i] for name, i in _columns(path, header).items()}
    found.unused = tuple(h for h in header if h not in columns.values())
    return found, [
        (n, {name: _json_cell(item.get(key)) for name, key in columns.items()}) for n, item in enumerate(items, 1)
    ]


def _json_cell(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(v) for v in value)
    text = "" if value is None else str(value).strip()
    return "" if _blank(text) else text


def _take(found: Found, rows: Sequence[tuple[int, Row]], stamps: StampReader) -> None:
    """Turn rows into claims, or into a reason why not."""
    found.jobs = len(rows)
    starts, ends = (_instants([row.get(name, "") for _, row in rows], stamps) for name in ("start", "end"))
    for (number, row), start, end in zip(rows, starts, ends, strict=True):
        try:
            _take_row(found, row, start, end)
        except _Refused as error:
            found.rejected.append((number, error.why, error.column, error.value))
        except WrongCell as error:
            found.rejected.append((number, Why.wrong_cell, "", str(error)))


class _Refused(Exception):
    def __init__(self, why: Why, column: str, value: str) -> None:
        self.why, self.column, self.value = why, column, value[:80]


Instant = int | Why | None


def _instants(texts: list[str], stamps: StampReader) -> list[Instant]:
    at, fault = stamps.read(pa.array(texts, pa.string()))
    limits = schema.columns()[schema.TIME]
    fault = np.where((fault == 0) & ((at < limits.min) | (at > limits.max)), Fault.WRONG, fault)
    return [
        None if not text else _FAULTS[Fault(f)] if f else ms
        for text, ms, f in zip(texts, at.tolist(), fault.tolist(), strict=True)
    ]


def _take_row(found: Found, row: Row, start: Instant, end: Instant) -> None:
    for name, instant in (("start", start), ("end", end)):
        if isinstance(instant, Why):
            raise _Refused(instant, name, row.get(name, ""))
    count = _count(row)
    if start is None:
        if found.kind is Kind.TABLE:
            raise _Refused(Why.wrong_time, "start", "")
        return found.skip(Skipped.never_started)
    if count == 0:
        return found.skip(Skipped.no_gpus)
    assert not isinstance(start, Why)
    assert not isinstance(end, Why)
    if end is not None and end <= start:
        if end < start:
            raise _Refused(Why.ends_before_it_starts, "end", row.get("end", ""))
        return found.skip(Skipped.no_time)
    labels = {name: row.get(name) or None for name in LABELS}
    if not any(v for k, v in labels.items() if k != "cluster"):
        raise _Refused(Why.no_owner, "job", "")
    found.claims += [
        Claim(host=host, gpu=gpu, gpus=gpus, start_ms=start, end_ms=end, **labels)
        for host, gpu, gpus in _places(row, count)
    ]
    return None


def _count(row: Row) -> int | None:
    text = row.get("gpus", "")
    if text.removesuffix(".0").isdecimal():
        return int(text.removesuffix(".0"))
    if _is_list(text):
        return None
    return gpu_count(text or (row.get("gpu", "") if "gpu:" in row.get("gpu", "") else ""))


def _is_list(text: str) -> bool:
    """Whether a cell under the name of a number lists GPUs instead."""
    return bool(text) and "=" not in text and "gpu:" not in text and not text.removesuffix(".0").isdecimal()


def _places(row: Row, count: int | None) -> list[tuple[str | None, str | None, int | None]]:
    """Host, GPU and number of GPUs of a job; several where it has several."""
    cell = row.get("gpu", "") or (row.get("gpus", "") if _is_list(row.get("gpus", "")) else "")
    named = gpus_by_host(cell)
    hosts: list[str] = [*named] if named else hosts_of(row.get("host", ""))
    gpus = [] if named else gpus_of(cell)
    uuids = [g for g in gpus if not is_index(g)]
    if uuids:
        host = hosts[0] if len(hosts) == 1 else None
        return [(host, gpu, None) for gpu in uuids]
    if not hosts:
        raise _Refused(Why.no_host, "host", row.get("host", ""))
    each = None if count is None or count % len(hosts) else count // len(hosts)
    out: list[tuple[str | None, str | None, int | None]] = []
    for host in hosts:
        mine = named.get(host, []) if named else gpus
        out += [(host, gpu, None) for gpu in mine] or [(host, None, each)]
    return out


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


def _blank(text: str) -> bool:
    return text.strip().casefold() in _names().words["blank"]
