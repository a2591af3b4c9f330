"""What does a lake hold, read off its files without gpuledger, and does it add up?"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEY = ("gpu_uuid", "gpu_instance_id", "at_ms", "run_id")
_MADE_UP = re.compile(r"(?<=staging/work-)[^/]+|(?<=json)\.\d+\.\d+$")


class Unreadable(Exception):
    """A manifest, or a file that it names, is missing or broken."""


@dataclass(frozen=True)
class Held:
    """The rows of a lake, in order; None where nothing was ever committed."""

    rows: pa.Table | None

    @property
    def count(self) -> int:
        """How many."""
        return 0 if self.rows is None else self.rows.num_rows

    def same_as(self, other: Held) -> bool:
        """Whether two lakes hold the same rows."""
        if self.rows is None or other.rows is None:
            return self.rows is other.rows
        return bool(self.rows.equals(other.rows))

    def lost(self, before: Held) -> int:
        """How many rows of `before` are missing here."""
        return len(before.keys() - self.keys())

    def keys(self) -> set[tuple[object, ...]]:
        """What tells rows apart."""
        if self.rows is None:
            return set()
        return set(zip(*(self.rows[n].to_pylist() for n in KEY), strict=True))


def parts(lake: Path) -> list[dict[str, object]]:
    """The parts that the manifest names."""
    try:
        found = json.loads((lake / "manifest.json").read_bytes())["parts"]
    except FileNotFoundError:
        return []
    assert isinstance(found, list)
    return found


def part_file(lake: Path, part: dict[str, object]) -> Path:
    """The file of a part."""
    return lake / "samples" / f"day={part['day']}" / str(part["file"])


def held(lake: Path) -> Held:
    """All rows that the manifest names."""
    try:
        return _held(lake)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise Unreadable(f"{lake}: {error}") from error


def _held(lake: Path) -> Held:
    if not (lake / "manifest.json").exists():
        return Held(None)
    tables = [_plain(pq.read_table(part_file(lake, p), partitioning=None)) for p in parts(lake)]
    if not tables:
        return Held(pa.table({name: pa.array([], pa.string()) for name in KEY}))
    whole = pa.concat_tables(tables)
    by = [(n, "ascending") for n in (*KEY, "pod", "power_w", "energy_mj")]
    return Held(whole.sort_by(by).combine_chunks())


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries and notes, which differ between files of equal rows."""
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def keys_of(file: Path) -> set[tuple[object, ...]]:
    """What tells the rows of one part apart."""
    return Held(_plain(pq.read_table(file, columns=list(KEY), partitioning=None))).keys()


def doubled_rows(rows: Held) -> int:
    """Rows that are there more than once, with the same readings.

    Two readings with one stamp are not a row twice: on a busy machine a sampler may take them within a millisecond.
    """
    if rows.rows is None:
        return 0
    return int(rows.count - rows.rows.group_by(rows.rows.column_names).aggregate([]).num_rows)


def lines(lake: Path) -> pa.Table | None:
    """All lines that the ledger's manifest names; None where nothing was posted."""
    days = ledger_days(lake)
    if not days:
        return None
    files = [
        lake / "ledger" / d["day"] / f"{d['generation']:06d}-{piece:03d}.lines.parquet"
        for d in days
        for piece in range(d["pieces"])
    ]
    return pa.concat_tables([pq.read_table(f, partitioning=None) for f in files], promote_options="permissive")


def ledger_days(lake: Path) -> list[dict[str, object]]:
    """What the ledger's manifest has of each day."""
    try:
        found = json.loads((lake / "ledger" / "manifest.json").read_bytes())["days"]
    except FileNotFoundError:
        return []
    assert isinstance(found, list)
    return found


def doubled_lines(found: pa.Table) -> int:
    """Lines that are there more than once: the same labels, hour and kind."""
    names = [f.name for f in found.schema if not pa.types.is_int64(f.type)]
    names += ["hour_ms", "grain_ms", *(n for n in ("limit_mw", "slice_ppm") if n in found.column_names)]
    return int(found.num_rows - found.group_by(names).aggregate([]).num_rows)


def overfull_hours(found: pa.Table) -> int:
    """Device-hours (or days, of folded lines) with more time observed than there is."""
    per = found.group_by(["gpu_uuid", "gpu_instance_id", "hour_ms", "grain_ms"]).aggregate([("observed_ms", "sum")])
    return int(pc.sum(pc.greater(per["observed_ms_sum"], per["grain_ms"])).as_py() or 0)


def unposted_rows(lake: Path) -> int:
    """Rows that no line stands for, or lines without rows: of days whose samples are there, once all is posted."""
    kept = {str(p["day"]) for p in parts(lake)}
    rows = sum(int(str(p["rows"])) for p in parts(lake))
    counted = sum(int(str(d["samples"])) + int(str(d["conflicts"])) for d in ledger_days(lake) if d["day"] in kept)
    return rows - counted


def wrong_counts(lake: Path) -> int:
    """Days whose lines do not stand for as many samples as the manifest has of them."""
    found = lines(lake)
    if found is None:
        return 0
    counted = sum(int(str(d["samples"])) for d in ledger_days(lake))
    return abs(int(pc.sum(found["samples"]).as_py() or 0) - counted)


def left_behind(lake: Path) -> list[str]:
    """Files that killed work left and that no manifest names.

    Not counted is what a later sweep takes: a work folder cut off before it was locked, which is empty (after a day),
    and notes of a recording on their way to their name (after an hour).
    """
    named = {part_file(lake, p) for p in parts(lake)}
    out = [f for f in (lake / "samples").glob("*/*") if f not in named]
    out += [f for f in (lake / "staging").rglob("*") if f.is_file()]
    out += [f for f in lake.rglob(".*") if f.is_file() and f.parent.name != "runs"]
    return sorted({str(f.relative_to(lake)) for f in out if f.name != ".in-use"})


def digest(lake: Path) -> str:
    """All files of a lake as one text: equal for trees that no reader can tell apart.

    Names that are made up anew each time (work folders, files on their way to their name) count by their kind.
    """
    found = hashlib.sha256()
    for file in sorted(f for f in lake.rglob("*") if f.is_file()):
        name = _MADE_UP.sub("", str(file.relative_to(lake)))
        found.update(f"{name} {file.stat().st_size} ".encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()
