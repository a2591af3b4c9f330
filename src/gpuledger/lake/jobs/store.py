"""Where do the claims of jobs rest, and for which days do they change?

    LAKE/jobs/manifest.json       which file holds the claims, and a fingerprint of those of each day
    LAKE/jobs/claims-N.parquet    all claims, in order; replaced as a whole under the next number

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
from gpuledger.lake.json_files import encoded, read_json
from gpuledger.lake.layout import Lake
from gpuledger.lake.parquet_files import write_parquet
from gpuledger.units import MS_PER_DAY, day_start_ms, utc_day

VERSION = 1
# Changes when claims are joined by other rules, so that days are posted again.
JOIN_RULES = 2
_TEXTS = ("host", "gpu", *LABELS)
SCHEMA = pa.schema(
    [(n, pa.string()) for n in _TEXTS] + [("gpus", pa.int64()), ("start_ms", pa.int64()), ("end_ms", pa.int64())],
    metadata={"gpuledger.jobs.version": str(VERSION)},
)
_HINT = "delete the jobs folder of the lake and add the job tables again"


class JobsManifest(msgspec.Struct, frozen=True):
    """Which claims there are. `days`: a fingerprint of the claims of each day; `after`: of every later day."""

    version: int = VERSION
    number: int = 0
    claims: int = 0
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
    file = _file(lake, number)
    try:
        table = pq.read_table(lake.store.local([file])[0], partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise LakeError(f"{file}: the jobs of this lake cannot be read: {error}", hint=_HINT) from error
    return _claims(table) if day is None else _claims_of_day(table, day_start_ms(day))


def _claims(table: pa.Table) -> list[Claim]:
    return [Claim(**row) for row in table.to_pylist()]


def _claims_of_day(table: pa.Table, first_ms: int) -> list[Claim]:
    """Those of jobs that ran on a day; a job that started again, on whatever day, has ended by then."""
    before = pc.fill_null(pc.less_equal(table["end_ms"], first_ms), False)
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


def write_claims(lake: Lake, claims: Sequence[Claim]) -> JobsManifest:
    """Replace all claims. Call inside the lake's lock."""
    before = read_manifest(lake)
    number = lake.store.next_number(before.number)
    rows = [msgspec.structs.asdict(c) for c in claims]
    try:
        folder(lake).mkdir(parents=True, exist_ok=True)
        file = _file(lake, number)
        aside = lake.store.aside(file)
        write_parquet(pa.Table.from_pylist(rows, SCHEMA), aside, compression="zstd")
        lake.store.add([(aside, file)])
    except OSError as error:
        raise map_os_error(error, folder(lake), "write") from error
    days, after = _fingerprints(ended(claims))
    made = JobsManifest(VERSION, number, len(claims), days, after)
    try:
        lake.store.swap(folder(lake) / "manifest.json", encoded(made))
    except OSError as error:
        raise map_os_error(error, folder(lake), "write the list of jobs") from error
    stays = {_file(lake, before.number), file}  # the one just replaced stays for whoever reads it now
    with contextlib.suppress(OSError, LakeError):
        lake.store.delete(old for old in folder(lake).glob("claims-*.parquet") if old not in stays)
    return made


def _file(lake: Lake, number: int) -> Path:
    return folder(lake) / f"claims-{number:06d}.parquet"


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
    return int.from_bytes(hashlib.blake2b(msgspec.json.encode(claim), digest_size=8).digest(), "little")
