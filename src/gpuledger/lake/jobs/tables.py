"""Which rows does a file of jobs have, by our names of its columns?

telemetry/formats/jobs.py knows which kind of file it is, and the names that its columns may have.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec

from gpuledger.bounds import DOCUMENT_MIB, whole
from gpuledger.errors import FileFault, InputError, nearest
from gpuledger.lake.jobs.claims import LABELS, Claim
from gpuledger.lake.jobs.lists import PodList
from gpuledger.lake.jobs.pods import TAKEN, common_labels, list_of, newest_ms, pod_row
from gpuledger.lake.jobs.slurm_json import slurm_jobs, slurm_row
from gpuledger.telemetry import formats
from gpuledger.telemetry.formats.jobs import NAMES, places_of, plain
from gpuledger.telemetry.mapping import recognized
from gpuledger.telemetry.unpacking import not_utf8, open_plain, unreadable

Kind = StrEnum("Kind", {"SACCT": "sacct", "PODS": "Kubernetes pods", "TABLE": "table of jobs"})
Why = StrEnum("Why", [
    "wrong_time", "ambiguous_local_time", "impossible_local_time", "ends_before_it_starts", "no_host", "wrong_cell",
    "wrong_number_of_cells", "no_owner",
])  # fmt: skip
Skipped = StrEnum("Skipped", ["never_started", "no_gpus", "no_time", "mig_slices", "gpu_shares"])
_KINDS = {"sacct": Kind.SACCT, "slurm_json": Kind.SACCT, "pods": Kind.PODS, "job_table": Kind.TABLE}
_COMPARED = 500
_DELIMITERS = "|\t;,"
_COMMENTS = re.compile(r"\A(?:\s*#.*\n)+")
# Cells that say nothing, and ends that are not there yet.
_BLANK = frozenset(("", "none", "null", "n/a", "nan", "unknown", "-", "(null)", "noneassigned", "none assigned"))
# What a job needs so that a GPU and time can be its own; a host or a GPU, and whatever names an owner.
CLAIMED = ("start", "end", "host", "job")
Row = Mapping[str, str]
Rows = list[tuple[int, Row]]
SACCT_AGAIN = (
    "write it with sacct --parsable2 -o JobID,JobIDRaw,JobName,User,Account,State,Start,End,Elapsed,NodeList,AllocTRES"
)


@dataclass
class Found:
    """What one file holds: claims, and what of it cannot be used: (row, reason, column, value).

    `seen_ms`: when pods were seen at least; `listed`: what a list of pods shows about those it lacks; `taken`: when it
    was taken, as the file says it; `common`: labels that all pods of the list have. `zoneless`: times have no zone.
    """

    kind: Kind
    rows: int = 0
    jobs: int = 0
    claims: list[Claim] = field(default_factory=list)
    rejected: list[tuple[int, Why, str, str]] = field(default_factory=list)
    skipped: dict[Skipped, int] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    seen_ms: int | None = None
    listed: PodList | None = None
    taken: str = ""
    common: list[str] = field(default_factory=list)
    zoneless: bool = False

    def skip(self, why: Skipped) -> None:
        """Count a job that held no GPU."""
        self.skipped[why] = self.skipped.get(why, 0) + 1


def read_rows(path: Path, needed: Sequence[str] = CLAIMED) -> tuple[Found, Rows]:
    """The file's kind and its rows by our column names, numbered from 1; a fault where it has none of some `needed`."""
    data = _bytes(path)
    kind = _kind_of(path, data)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    if text.lstrip()[:1] in ("{", "["):
        return _json_rows(path, kind, text, needed)
    found, (header, rows) = Found(kind), _cells(path, text)
    columns = _columns(path, header, needed)
    found.unused = tuple(h for i, h in enumerate(header) if i not in columns.values())
    out: Rows = []
    for number, cells in rows:
        found.rows += 1
        if len(cells) != len(header):
            found.rejected.append((number, Why.wrong_number_of_cells, "", " ".join(cells)[:80]))
            continue
        out.append((number, {name: "" if _blank(cells[i]) else cells[i].strip() for name, i in columns.items()}))
    return found, _folded(out) if found.kind is Kind.SACCT else out


def _bytes(path: Path) -> bytes:
    """The file, unpacked; it may be a pipe, which is read once."""
    try:
        with open_plain(path) if path.is_file() else path.open("rb") as stream:
            return whole(stream, path, DOCUMENT_MIB)
    except OSError as error:
        raise unreadable(path, error) from error


def _kind_of(path: Path, data: bytes) -> Kind:
    """Which kind of jobs a file holds; a fault where it holds something else.

    What no format is sure to know is read as a table, so that the fault names the columns that it lacks.
    """
    head = formats.Head(path, data[: formats.HEAD_BYTES], further=data[: formats.PAGE_BYTES])
    found = formats.recognize(path, formats.Kind.JOBS, head if data else None)
    sure = found.seen.fit is formats.Fit.SURE
    if found.format.kind is not formats.Kind.JOBS and (sure or _is_telemetry(path)):
        raise formats.other_kind(path, found.format, "a table of jobs")
    return _KINDS.get(found.key, Kind.TABLE)


def _is_telemetry(path: Path) -> bool:
    """Whether the columns of a table are those of a known layout of samples."""
    try:
        opened = formats.open_source(path)
    except InputError:
        return False
    return (opened.mapping or recognized(opened.names)) is not None


def _cells(path: Path, text: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    text = _COMMENTS.sub("", text, count=1)
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(_DELIMITERS, key=first.count)
    # sacct does not quote: a quote is part of a job's name, and must not run on into the next lines.
    plain = delimiter == "|" and '"' not in first
    try:
        cut = csv.reader(io.StringIO(text), delimiter=delimiter, quoting=csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL)
        rows = [r for r in cut if r and any(c.strip() for c in r)]
    except csv.Error as error:
        raise FileFault(path, f"not a table: {error}", hint="write it again as CSV") from error
    if len(rows) < 2:
        raise FileFault(path, "no rows below a header", hint="a table of jobs has a header and one row for each job")
    header = [h.strip() for h in rows[0]]
    if not header[-1]:  # sacct -p ends every line with a bar
        header, rows = header[:-1], [r[:-1] if r and not r[-1].strip() else r for r in rows]
    return header, ((i, r) for i, r in enumerate(rows[1:], start=1))


def _columns(path: Path, header: Sequence[str], needed: Sequence[str]) -> dict[str, int]:
    """By our name of a column its place in the file."""
    found = places_of(header)
    one_of = {"host": ("host", "gpu"), "job": LABELS}
    missing = [name for name in needed if not found.keys() & set(one_of.get(name, (name,)))]
    if missing:
        parts = []
        for name in missing:
            spelled = NAMES.get("run_id" if name == "job" else name, ())
            close = [h for h in header[:_COMPARED] if nearest(plain(h), spelled, 1)][:1]
            parts.append(f"{name!r}" + (f" (nearest in the file: {close[0]!r})" if close else ""))
        of_slurm = {"jobid", "jobidraw", "jobs"} & {plain(h) for h in header}
        raise FileFault(
            path,
            f"as a table of jobs it lacks the column{'s' * (len(parts) > 1)} {', '.join(parts)}",
            hint=SACCT_AGAIN
            if of_slurm
            else "name the columns job, user, team, account, namespace, host, gpu, start, end, as far as you have them",
        )
    return found


def _json_rows(path: Path, kind: Kind, text: str, needed: Sequence[str]) -> tuple[Found, Rows]:
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FileFault(path, f"not JSON: {error}", hint="write the table again, or as CSV") from error
    if kind is Kind.SACCT and (jobs := slurm_jobs(raw, timed=bool(needed))) is not None:
        return Found(kind, rows=len(jobs)), [(n, slurm_row(job)) for n, job in enumerate(jobs, start=1)]
    items = raw.get("items", [raw]) if isinstance(raw, dict) else raw
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FileFault(path, "not a list of jobs or pods", hint="kubectl get pods -A -o json, or a list of objects")
    if isinstance(raw, dict) and raw.get("kind") in ("List", "PodList") and not items:
        words = "an empty list of pods, which does not show of which namespace it is"
        raise FileFault(path, words, hint="list the pods of all namespaces: kubectl get pods -A -o json")
    if kind is Kind.PODS:
        found = Found(kind, rows=len(items), seen_ms=newest_ms(items), listed=list_of(raw, items))
        found.taken = str(raw.get(TAKEN) or "") if isinstance(raw, dict) else ""
        found.common = common_labels(items)
        made = [(n, pod_row(item)) for n, item in enumerate(items, start=1)]
        for _, row in made:
            if row["part"]:
                found.skip(Skipped(row["part"]))
        return found, [(n, row) for n, row in made if not row["part"]]
    found = Found(Kind.TABLE, rows=len(items))
    header = list(dict.fromkeys(key for item in items for key in item))
    columns = {name: header[i] for name, i in _columns(path, header, needed).items()}
    found.unused = tuple(h for h in header if h not in columns.values())
    return found, [
        (n, {name: _json_cell(item.get(key)) for name, key in columns.items()}) for n, item in enumerate(items, 1)
    ]


def _json_cell(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(v) for v in value)
    text = "" if value is None else str(value).strip()
    return "" if _blank(text) else text


def _blank(text: str) -> bool:
    return text.strip().casefold() in _BLANK


def _folded(rows: Sequence[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """One row for each job: its steps (.batch, .extern, .0) only fill in what the row of the job leaves open.

    A job that was requeued has a row for each time it started; its steps belong to the one that started last before
    them.
    """
    jobs: list[tuple[int, dict[str, str]]] = []
    of: dict[str, dict[str, str]] = {}
    for number, row in rows:
        name, dot, _step = row.get("run_id", "").partition(".")
        if not dot:
            of[name] = dict(row)
            jobs.append((number, of[name]))
        elif name not in of:  # a table of steps alone
            of[name] = {**row, "run_id": name, "workload": ""}
            jobs.append((number, of[name]))
        else:
            job = of[name]
            for column in ("host", "gpus", "user", "account", "usage"):
                job[column] = job.get(column) or row.get(column, "")
    return [(n, job) for n, job in jobs]
