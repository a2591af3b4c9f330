"""Where do the claims of jobs rest, and for which days do they change?

    LAKE/jobs/manifest.json       which file holds the claims, and a fingerprint of those of each day
    LAKE/jobs/claims-N.parquet    all claims, in order; replaced as a whole under the next number
    LAKE/jobs/lists-N.parquet     which lists of pods there were, if any; likewise

The manifest is replaced last, so a lake has either the old claims or the new.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpuledger.errors import LakeError, map_os_error
from gpuledger.lake.jobs.claims import LABELS, Claim, ended
from gpuledger.lake.jobs.lists import PodList
from gpuledger.lake.json_files import encoded, read_json
from gpuledger.lake.layout import Lake
from gpuledger.lake.parquet_files import write_parquet
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day

# Version 2 added lists of pods, and to claims what these show.
VERSION = 2
# Changes when claims are joined by other rules, so that days are posted again.
JOIN_RULES = 2
_EVIDENCE = ("seen_ms", "seen_in", "sure_ms", "gone_ms")
_TEXTS = ("host", "gpu", *LABELS)
SCHEMA = pa.schema(
    [(n, pa.string()) for n in _TEXTS] + [(n, pa.int64()) for n in ("gpus", "start_ms", "end_ms", *_EVIDENCE)],
    metadata={"gpuledger.jobs.version": str(VERSION)},
)
_LISTS = pa.schema(
    [
        ("id", pa.string()),
        ("at_ms", pa.int64()),
        ("by_ms", pa.int64()),
        ("exact", pa.bool_()),
        ("written_ms", pa.int64()),
        ("namespace", pa.string()),
        ("nodes", pa.list_(pa.string())),
    ],
    metadata={"gpuledger.jobs.version": str(VERSION)},
)
_HINT = "delete the jobs folder of the lake and add the job tables again"


class JobsManifest(msgspec.Struct, frozen=True):
    """Which claims there are. `days`: a fingerprint of the claims of each day; `after`: of every later day."""

    version: int = VERSION
    number: int = 0
    claims: int = 0
    lists: int = 0
    days: dict[str, str] = {}
    after: str = ""

    def of_day(self, day: str) -> str:
        """The fingerprint of a day's claims; empty where no job ran."""
        if not self.days or day < min(self.days):
            return ""
        return self.after if day > max(self.days) else self.days.get(day, "")


def folder(lake: Lake) -> Path:
    """Where the claims of a lake rest."""
    return lake.root / "jobs"


def read_manifest(lake: Lake) -> JobsManifest:
    """What there is; nothing where no jobs were ever added."""
    file = folder(lake) / "manifest.json"
    return read_json(file, JobsManifest, VERSION, "the list of jobs", _HINT) if file.exists() else JobsManifest()


def read_claims(lake: Lake, day: str | None = None) -> list[Claim]:
    """All claims, or those of jobs that ran on a day, in order."""
    number = read_manifest(lake).number
    if not number:
        return []
    table = _table(lake, _file(lake, number))
    return _claims(table) if day is None else _claims_of_day(table, day_start_ms(day))


def read_lists(lake: Lake) -> list[PodList]:
    """Which lists of pods were added, in order."""
    manifest = read_manifest(lake)
    if not manifest.lists:
        return []
    rows = _table(lake, _file(lake, manifest.number, "lists")).to_pylist()
    return [PodList(**{**row, "nodes": tuple(row["nodes"])}) for row in rows]


def _table(lake: Lake, file: Path) -> pa.Table:
    try:
        return pq.read_table(lake.store.local([file])[0], partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise LakeError(f"{file}: the jobs of this lake cannot be read: {error}", hint=_HINT) from error


def _claims(table: pa.Table) -> list[Claim]:
    return [Claim(**row) for row in table.to_pylist()]


def _claims_of_day(table: pa.Table, first_ms: int) -> list[Claim]:
    """Those of jobs that ran on a day; a job that started again, on whatever day, has ended by then."""
    last = table["end_ms"]
    if "gone_ms" in table.column_names:
        last = pc.coalesce(last, table["gone_ms"])
    before = pc.fill_null(pc.less_equal(last, first_ms), False)
    there = _claims(table.filter(pc.and_(pc.less(table["start_ms"], first_ms + MS_PER_DAY), pc.invert(before))))
    if all(claim.end_ms is not None for claim in there):
        return there
    running = table.filter(table["end_ms"].is_null())
    same = [pc.is_in(table[name], running[name].drop_null()) for name in ("run_id", "pod")]
    unnamed = pc.and_(table["run_id"].is_null(), table["pod"].is_null())
    known = _claims(table.filter(pc.or_(pc.or_(*same), unnamed)))
    ends = dict(zip(known, ended(known), strict=True))
    found = (ends.get(claim, claim) for claim in there)
    return [claim for claim in found if claim.end_ms is None or claim.end_ms > first_ms]


def write_claims(lake: Lake, claims: Sequence[Claim], lists: Sequence[PodList] = ()) -> JobsManifest:
    """Replace all claims and lists of pods. Call inside the lake's lock."""
    before = read_manifest(lake)
    number = lake.store.next_number(before.number)
    tables = {_file(lake, number): _rows(claims, SCHEMA)}
    if lists:
        tables[_file(lake, number, "lists")] = _rows(lists, _LISTS)
    try:
        folder(lake).mkdir(parents=True, exist_ok=True)
        aside = {file: lake.store.aside(file) for file in tables}
        for file, table in tables.items():
            write_parquet(table, aside[file], compression="zstd")
        lake.store.add([(aside[file], file) for file in tables])
    except OSError as error:
        raise map_os_error(error, folder(lake), "write") from error
    days, after = _fingerprints(ended(claims))
    made = JobsManifest(VERSION, number, len(claims), len(lists), days, after)
    try:
        lake.store.swap(folder(lake) / "manifest.json", encoded(made))
    except OSError as error:
        raise map_os_error(error, folder(lake), "write the list of jobs") from error
    # Those just replaced stay for whoever reads them now.
    stays = {_file(lake, n, kind) for n in (before.number, number) for kind in ("claims", "lists")}
    with contextlib.suppress(OSError, LakeError):
        lake.store.delete(old for old in folder(lake).glob("*-*.parquet") if old not in stays)
    return made


def _rows(found: Sequence[msgspec.Struct], kind: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([msgspec.structs.asdict(one) for one in found], kind)


def _file(lake: Lake, number: int, kind: str = "claims") -> Path:
    return folder(lake) / f"{kind}-{number:06d}.parquet"


def _fingerprints(claims: Sequence[Claim]) -> tuple[dict[str, str], str]:
    """By day the sum of the hashes of its claims: the same in any order."""
    if not claims:
        return {}, ""
    hashes = np.array([_hash(c) for c in claims], dtype=np.uint64)
    start = np.array([c.start_ms for c in claims]) // MS_PER_DAY
    last = np.array([-1 if c.end_ms is None else (c.end_ms - 1) // MS_PER_DAY for c in claims])
    first, final = int(start.min()), int(max(start.max(), last.max()))
    size = final - first + 2
    total, count = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.int64)
    np.add.at(total, start - first, hashes)
    np.add.at(count, start - first, 1)
    ended = last >= 0
    np.subtract.at(total, last[ended] - first + 1, hashes[ended])
    np.subtract.at(count, last[ended] - first + 1, 1)
    sums, counts = np.cumsum(total, dtype=np.uint64).tolist(), np.cumsum(count).tolist()
    text = [f"{JOIN_RULES}-{n}-{s:016x}" if n else "" for s, n in zip(sums, counts, strict=True)]
    return {utc_day((first + i) * MS_PER_DAY): words for i, words in enumerate(text[:-1])}, text[-1]


def _hash(claim: Claim) -> int:
    known = msgspec.structs.asdict(claim)
    sure_ms = [known.pop(name) for name in _EVIDENCE][2]
    text = msgspec.json.encode(known if sure_ms is None else known | {"sure_ms": sure_ms})
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
