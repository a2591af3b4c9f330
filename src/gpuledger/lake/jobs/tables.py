"""Which rows does a file of jobs have, by our names of its columns?

The file is known by what it holds: JSON of pods as kubectl writes it, a table with sacct's columns or its JSON, or any
table (CSV, tab- or bar-separated, or a JSON list of objects).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FileFault, nearest
from gpuledger.lake.jobs.claims import LABELS, Claim
from gpuledger.lake.jobs.lists import PodList
from gpuledger.lake.jobs.pods import TAKEN, common_labels, list_of, newest_ms, pod_row
from gpuledger.lake.jobs.sacct_json import sacct_jobs, sacct_row

Kind = StrEnum("Kind", {"SACCT": "sacct", "PODS": "Kubernetes pods", "TABLE": "table of jobs"})
Why = StrEnum("Why", [
    "wrong_time", "ambiguous_local_time", "impossible_local_time", "ends_before_it_starts", "no_host", "wrong_cell",
    "wrong_number_of_cells", "no_owner",
])  # fmt: skip
Skipped = StrEnum("Skipped", ["never_started", "no_gpus", "no_time", "mig_slices", "gpu_shares"])
_COMPARED = 500
_DELIMITERS = "|\t;,"
_COMMENTS = re.compile(r"\A(?:\s*#.*\n)+")
Row = Mapping[str, str]


class _Names(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    names: dict[str, tuple[str, ...]]
    words: dict[str, tuple[str, ...]]


@dataclass
class Found:
    """What one file holds: claims, and what of it cannot be used: (row, reason, column, value).

    `seen_ms`: when pods were seen at least; `listed`: what a list of pods shows about those it lacks; `taken`: when it
    was taken, as the file says it; `common`: labels that all pods of the list have.
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

    def skip(self, why: Skipped) -> None:
        """Count a job that held no GPU."""
        self.skipped[why] = self.skipped.get(why, 0) + 1


@cache
def _names() -> _Names:
    return load_toml(data_dir(__package__, "columns.toml"), _Names)


def read_rows(path: Path, text: str) -> tuple[Found, list[tuple[int, Row]]]:
    """The file's kind and its rows by our column names, numbered from 1."""
    if text.lstrip()[:1] in ("{", "["):
        return _json_rows(path, text)
    found, header, rows = Found(Kind.TABLE), *_cells(path, text)
    columns = _columns(path, header)
    found.unused = tuple(h for i, h in enumerate(header) if i not in columns.values())
    known = {h.casefold() for h in header}
    if "nodelist" in known and known & {"jobid", "jobidraw"}:
        found.kind = Kind.SACCT
    out: list[tuple[int, Row]] = []
    for number, cells in rows:
        found.rows += 1
        if len(cells) != len(header):
            found.rejected.append((number, Why.wrong_number_of_cells, "", " ".join(cells)[:80]))
            continue
        out.append((number, {name: "" if _blank(cells[i]) else cells[i].strip() for name, i in columns.items()}))
    return found, _folded(out) if found.kind is Kind.SACCT else out


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
            close = [h for h, p in zip(header[:_COMPARED], plain, strict=False) for _ in nearest(p, spelled, 1)][:1]
            parts.append(f"{name!r}" + (f" (nearest in the file: {close[0]!r})" if close else ""))
        raise FileFault(
            path,
            f"as a table of jobs it lacks the column{'s' * (len(parts) > 1)} {', '.join(parts)}",
            hint=_other_form(header)
            or "name the columns job, user, team, account, namespace, host, gpu, start, end, as far as you have them",
        )
    return found


def _other_form(header: Sequence[str]) -> str:
    """How to print the jobs instead, where the file is what a scheduler prints for people or other programs."""
    words = {word.casefold() for name in header for word in name.split()}
    if {"jobid", "jobidraw", "jobs"} & words:
        return (
            "write it with sacct --parsable2 -o JobID,JobIDRaw,JobName,User,Account,State,Start,End,NodeList,AllocTRES"
        )
    return "write it with kubectl get pods -A -o json" if {"name", "ready", "restarts"} <= words else ""


def _json_rows(path: Path, text: str) -> tuple[Found, list[tuple[int, Row]]]:
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FileFault(path, f"not JSON: {error}", hint="write the table again, or as CSV") from error
    if (jobs := sacct_jobs(raw)) is not None:
        return Found(Kind.SACCT, rows=len(jobs)), [(n, sacct_row(job)) for n, job in enumerate(jobs, start=1)]
    items = raw.get("items", [raw]) if isinstance(raw, dict) else raw
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FileFault(path, "not a list of jobs or pods", hint="kubectl get pods -A -o json, or a list of objects")
    if isinstance(raw, dict) and raw.get("kind") in ("List", "PodList") and not items:
        words = "an empty list of pods, which does not show of which namespace it is"
        raise FileFault(path, words, hint="list the pods of all namespaces: kubectl get pods -A -o json")
    if any(item.get("kind") == "Pod" or {"metadata", "spec"} <= item.keys() for item in items):
        found = Found(Kind.PODS, rows=len(items), seen_ms=newest_ms(items), listed=list_of(raw, items))
        found.taken = str(raw.get(TAKEN) or "") if isinstance(raw, dict) else ""
        found.common = common_labels(items)
        made = [(n, pod_row(item)) for n, item in enumerate(items, start=1)]
        for _, row in made:
            if row["part"]:
                found.skip(Skipped(row["part"]))
        return found, [(n, row) for n, row in made if not row["part"]]
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


def _plain(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


def _blank(text: str) -> bool:
    return text.strip().casefold() in _names().words["blank"]


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
            for column in ("host", "gpus", "user", "account"):
                job[column] = job.get(column) or row.get(column, "")
    return [(n, job) for n, job in jobs]
