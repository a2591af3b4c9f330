"""Which jobs does a file list, and on which hosts and GPUs did they run from when to when?"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.errors import FileFault
from gpuledger.lake.jobs.claims import LABELS, Claim, is_index
from gpuledger.lake.jobs.pods import timed
from gpuledger.lake.jobs.tables import Found, Kind, Row, Rows, Skipped, Why, read_rows
from gpuledger.telemetry import schema
from gpuledger.telemetry.stamps import Fault, StampReader

_Instant = int | None
_FAULTS = {
    Fault.WRONG: Why.wrong_time,
    Fault.AMBIGUOUS: Why.ambiguous_local_time,
    Fault.IMPOSSIBLE: Why.impossible_local_time,
}


def read_jobs(path: Path, zone: str | None = None, taken_ms: int | None = None) -> Found:
    """The claims of a file. `zone`: of times without one; a fault asks for it where it is needed and not given.

    `taken_ms`: when a list of pods was taken.
    """
    stamps = StampReader((), zone or "UTC")
    found, rows = read_rows(path)
    take_rows(found, rows, stamps, lambda row, start, end: _claim(found, row, start, end))
    found.zoneless = stamps.zoneless
    if found.zoneless and zone is None:
        hint = (
            "name their zone: --tz Europe/Berlin, or --tz UTC (sacct writes the local time of the machine it runs on;"
            " TZ=UTC sacct ... writes UTC)"
        )
        raise FileFault(path, "its times have no time zone, and none was named", hint=hint)
    if found.listed is not None:
        found.listed = timed(path, found.listed, found.taken if taken_ms is None else taken_ms)
    if not found.claims and not found.rejected and not _shows_ends(found):
        raise FileFault(path, f"no job in this {found.kind.value} held a GPU ({_reasons(found)})", hint=_no_gpus(found))
    return found


def _shows_ends(found: Found) -> bool:
    """Whether a list without a pod on a GPU is one all the same, so that pods of earlier lists have ended."""
    return found.listed is not None and set(found.skipped) <= {Skipped.never_started, Skipped.no_gpus}


def _reasons(found: Found) -> str:
    return ", ".join(f"{n} x {why.value.replace('_', ' ')}" for why, n in found.skipped.items()) or "no rows"


def _no_gpus(found: Found) -> str:
    if found.kind is Kind.SACCT and Skipped.no_gpus in found.skipped:
        return "let Slurm account GPUs: AccountingStorageTRES=gres/gpu in slurm.conf; export AllocTRES"
    return "check which jobs the table was made for"


def take_rows(found: Found, rows: Rows, stamps: StampReader, take: Callable[[Row, _Instant, _Instant], None]) -> None:
    """Give each row to `take` with its start and end; a row that cannot be used is kept with the reason why not."""
    found.jobs = len(rows)
    starts, ends = (_instants([row.get(name, "") for _, row in rows], stamps) for name in ("start", "end"))
    for (number, row), start, end in zip(rows, starts, ends, strict=True):
        try:
            take(row, _checked(start, "start", row), _checked(end, "end", row))
        except Refused as error:
            found.rejected.append((number, error.why, error.column, error.value))
        except WrongCell as error:
            found.rejected.append((number, Why.wrong_cell, "", str(error)))


class Refused(Exception):
    """A row that cannot be used: why, and its cell."""

    def __init__(self, why: Why, column: str, value: str) -> None:
        self.why, self.column, self.value = why, column, value[:80]


def _checked(at: int | Why | None, column: str, row: Row) -> int | None:
    """An instant, which may be open; a row is refused where it is none."""
    if isinstance(at, Why):
        raise Refused(at, column, row.get(column, ""))
    return at


def _instants(texts: list[str], stamps: StampReader) -> list[int | Why | None]:
    at, fault = stamps.read(pa.array(texts, pa.string()))
    limits = schema.columns()[schema.TIME]
    fault = np.where((fault == 0) & ((at < limits.min) | (at > limits.max)), Fault.WRONG, fault)
    return [
        None if not text else _FAULTS[Fault(f)] if f else ms
        for text, ms, f in zip(texts, at.tolist(), fault.tolist(), strict=True)
    ]


def _claim(found: Found, row: Row, start: int | None, end: int | None) -> None:
    """Turn a row into claims, or count why it makes none."""
    count = count_in(row)
    if start is None:
        if found.kind is Kind.TABLE:
            raise Refused(Why.wrong_time, "start", "")
        return found.skip(Skipped.never_started)
    if count == 0:
        return found.skip(Skipped.no_gpus)
    if end is not None and end <= start:
        if end < start:
            raise Refused(Why.ends_before_it_starts, "end", row.get("end", ""))
        return found.skip(Skipped.no_time)
    labels = {name: row.get(name) or None for name in LABELS}
    if not any(v for k, v in labels.items() if k != "cluster"):
        raise Refused(Why.no_owner, "job", "")
    found.claims += [
        msgspec.convert(labels | {"host": host, "gpu": gpu, "gpus": gpus, "start_ms": start, "end_ms": end}, Claim)
        for host, gpu, gpus in places(row, count)
    ]
    return None


def count_in(row: Row) -> int | None:
    """How many GPUs a job holds; None where its row does not say it."""
    text = row.get("gpus", "")
    if text.removesuffix(".0").isdecimal():
        if len(text) > DIGITS:
            raise WrongCell(f"{text[:60]!r} is not a number of GPUs")
        return int(text.removesuffix(".0"))
    if _is_list(text):
        return None
    return gpu_count(text or (row.get("gpu", "") if "gpu:" in row.get("gpu", "") else ""))


def _is_list(text: str) -> bool:
    """Whether a cell under the name of a number lists GPUs instead."""
    return bool(text) and "=" not in text and "gpu:" not in text and not text.removesuffix(".0").isdecimal()


def places(row: Row, count: int | None) -> list[tuple[str | None, str | None, int | None]]:
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
        raise Refused(Why.no_host, "host", row.get("host", ""))
    each = None if count is None else count // len(hosts)  # at least: which host has more is not said
    out: list[tuple[str | None, str | None, int | None]] = []
    for host in hosts:
        mine = named.get(host, []) if named else gpus
        out += [(host, gpu, None) for gpu in mine] or [(host, None, each)]
    return out


MOST_HOSTS = 100_000
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
DIGITS = 9  # a longer number counts nothing
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
# gres/gpu=4, gres/gpu:h100=4 (AllocTRES); gpu:4, gpu:h100:4 (GRES)
_TRES = re.compile(r"gres/gpu=(\d+)")
_TYPED = re.compile(r"gres/gpu:[^=,]+=(\d+)")
_GRES = re.compile(r"(?:^|[,\s=])(?:gres/)?gpu(?::[A-Za-z][^:,()\s]*)?:(\d+)")
_IDX = re.compile(r"IDX:([\d,\-]+)")
_NODES = re.compile(r"Nodes=(\S+)")
_INDEX = re.compile(r"(?:gpu|nvidia|card)?[ :]?(\d{1,3})", re.IGNORECASE)
_UUID = re.compile(
    r"(?:GPU|MIG)-[0-9A-Za-z/-]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}|[0-9A-Za-z._-]*[A-Za-z][0-9A-Za-z._:-]*"
)


class WrongCell(Exception):
    """A cell that cannot be read; the text says why."""


def hosts_of(text: str) -> list[str]:
    """'node[01-03,07],login1' as its hosts, each once, in order."""
    found: dict[str, None] = {}
    for part in _split_outside(text.strip()):
        pieces = _BRACKETS.split(part)
        if any(c in "[]" for piece in pieces[::2] for c in piece):
            raise WrongCell(f"{text[:60]!r} is not a list of hosts")
        choices = [[p] if i % 2 == 0 else _numbers(p, text) for i, p in enumerate(pieces)]
        size = 1
        for choice in choices:
            size *= len(choice)
        if size + len(found) > MOST_HOSTS:
            raise WrongCell(f"{text[:60]!r} names more than {MOST_HOSTS:,} hosts")
        found |= dict.fromkeys("".join(parts) for parts in product(*choices))
    return [host for host in found if host]


def gpu_count(text: str) -> int | None:
    """The GPUs of an AllocTRES or GRES cell; 0 where it lists other things only, None where it is empty."""
    if not text.strip():
        return None
    for pattern in (_TRES, _TYPED, _GRES):
        if counts := pattern.findall(text):
            if any(len(n) > DIGITS for n in counts):
                raise WrongCell(f"{text[:60]!r} is not a number of GPUs")
            return sum(int(n) for n in counts)
    return 0


def gpus_of(text: str) -> list[str]:
    """The indices or UUIDs of a cell: '0', '0-3', '0,2', 'gpu0;gpu1', 'IDX:0-3', 'gpu:h100:4(IDX:0-3)', 'GPU-...'."""
    if indices := _IDX.findall(text):
        return [str(i) for part in indices for i in indices_of(part)]
    if "gpu:" in text or "gres/" in text:
        return []  # a kind and a number, without indices
    out: dict[str, None] = {}
    for word in re.split(r"[;,|\s]+", text.strip().strip("[]")):
        if not word:
            continue
        if _RANGE.fullmatch(word):
            out |= dict.fromkeys(str(i) for i in indices_of(word))
        elif index := _INDEX.fullmatch(word):
            out[str(int(index[1]))] = None
        elif _UUID.fullmatch(word):
            out[word] = None
        else:
            raise WrongCell(f"{word[:60]!r} is neither the index nor the UUID of a GPU")
    return list(out)


def gpus_by_host(text: str) -> dict[str, list[str]]:
    """'Nodes=n[1-2] ... GRES=gpu:4(IDX:0-3)' by host; {} where the cell does not name hosts."""
    places = [*_NODES.finditer(text)]
    out: dict[str, list[str]] = {}
    for place, after in zip(places, [*(p.start() for p in places[1:]), len(text)], strict=False):
        found = gpus_of(text[place.end() : after]) if _IDX.search(text, place.end(), after) else []
        out |= dict.fromkeys(hosts_of(place[1]), found)
    return out


def indices_of(text: str) -> list[int]:
    """'0,2-4' as numbers."""
    out: list[int] = []
    for part in filter(None, text.split(",")):
        found = _RANGE.fullmatch(part)
        if found is None and not (part.isdecimal() and len(part) <= DIGITS):
            raise WrongCell(f"{text[:60]!r} is not a list of GPU indices")
        first, last = (int(part), int(part)) if found is None else (int(found[1]), int(found[2]))
        if last - first > 1_000 or last < first:
            raise WrongCell(f"{text[:60]!r} is not a list of GPU indices")
        out += range(first, last + 1)
    return out


def _split_outside(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def _numbers(text: str, whole: str) -> list[str]:
    """'01-03,07' as texts of the width they are written in."""
    out: list[str] = []
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None and not part.isalnum():
            raise WrongCell(f"{whole[:60]!r} is not a list of hosts")
        if found is None:
            out.append(part)
            continue
        first, last = int(found[1]), int(found[2])
        if last < first or last - first > MOST_HOSTS:
            raise WrongCell(f"{whole[:60]!r} is not a list of hosts")
        out += [str(i).zfill(len(found[1])) for i in range(first, last + 1)]
    return out
