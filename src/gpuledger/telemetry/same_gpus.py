"""May rows of one GPU, as a file names it, be of two? Checked once, for every format, when rows have been read."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.errors import FileFault
from gpuledger.telemetry import schema
from gpuledger.telemetry.formats import Cells
from gpuledger.telemetry.mapping import Bound
from gpuledger.telemetry.one_gpu import READINGS, why_turns

# How far the clock of one host may be set back while it writes.
TOLERANCE_MS = 100
NAME_GPUS = (
    "query index or uuid too: --query-gpu=uuid,...; for this file, add a column 'index' with the GPU of each row"
)
HOSTS_APART = "import the log of each host by itself, with its --host; or query uuid too: --query-gpu=uuid,..."
_VENDOR = "NVIDIA "  # drivers from 470 on print it before a model
_NEARLY = 0.1  # of the total memory: a driver may keep a little more of it to itself than the one before
_SILENT = re.compile(r"\[.*\]|N/A|ERR!|")
_MEMORY = re.compile(r"\d+(?= MiB$|$)")
_FACTOR = np.uint64(1_000_003)


def numbers_of(table: pa.Table, column: str) -> np.ndarray:
    """Readings as numbers, NaN where there is none."""
    found: np.ndarray = table[column].cast(pa.float64()).fill_null(np.nan).to_numpy()
    return found


def row_keys(table: pa.Table) -> np.ndarray:
    """A number for each row, the same for the same GPU, time and readings."""
    keys = table[schema.TIME].to_numpy().astype(np.uint64)
    for column in (c for c in table.column_names if c in schema.readings()):
        keys = keys * _FACTOR ^ numbers_of(table, column).view(np.uint64)
    if "gpu_index" in table.column_names:
        coded = table["gpu_index"].cast(pa.string()).combine_chunks().dictionary_encode()
        words = np.array([zlib.crc32((word or "").encode()) for word in coded.dictionary.to_pylist()], np.uint64)
        keys = keys * _FACTOR ^ words[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    return keys


class _Seen(msgspec.Struct):
    """Rows of one GPU so far: 1 where they are in the order of time, -1 the other way round, 0 where that is open."""

    way: int = 0
    latest: int = -(1 << 62)
    keys: list[np.ndarray] = []


class SameGpus:
    """Whether rows that name a GPU by less than a UUID may be of two: a fault where what a GPU keeps changes, or its
    readings take turns.
    """

    def __init__(self, path: Path, bound: Bound, text: bool) -> None:
        named = text and "gpu_uuid" in bound.labels and bound.labels.get("gpu_index") != bound.labels["gpu_uuid"]
        self.active = text and not named
        self._path, self._host = path, bound.labels.get("host", ())
        self._key = [*self._host, *bound.labels.get("gpu_index", ())]
        self._kept, self._known = bound.kept, dict[tuple[str, ...], str]()
        self._timed, self._seen = bool(bound.time or bound.clock), dict[str, _Seen]()

    def look(self, batch: Cells, table: pa.Table) -> None:
        """Look at rows as they are written, and as they are read."""
        if self.active and table.num_rows:
            if self._kept:
                self._same(batch)
            if not self._host:
                self._turns(table)

    def _same(self, batch: Cells) -> None:
        names = list(dict.fromkeys([*self._key, *self._kept]))
        cells = pa.table({name: batch.column(name).cast(pa.string()) for name in names})
        for row in cells.group_by(names, use_threads=False).aggregate([]).to_pylist():
            words = {name: (word or "").strip() for name, word in row.items()}
            gpu = [words[name] for name in self._key]
            for name in self._kept:
                word = words[name]
                known = word if _SILENT.fullmatch(word) else self._known.setdefault((name, *gpu), word)
                if not _alike(word, known):
                    self._refuse(name, gpu, known, word)

    def _refuse(self, name: str, gpu: list[str], known: str, word: str) -> None:
        which = f"its GPU {' of '.join(reversed(gpu))}".rstrip()
        raise FileFault(
            self._path,
            f"{which} has two values of {name!r}, {known!r} and {word!r}, and no UUID: two GPUs or the logs of two"
            " hosts, or one GPU that was replaced by another",
            hint="one file for each host, imported by itself with its --host; or query uuid too: --query-gpu=uuid,..."
            if gpu
            else NAME_GPUS,
        )

    def _turns(self, table: pa.Table) -> None:
        """A fault where a reading of one GPU jumps from row to row, or its time goes back."""
        readings, keys = [column for column in READINGS if column in table.column_names], row_keys(table)
        devices, at_ms = table["gpu_uuid"].cast(pa.string()), table[schema.TIME].to_numpy()
        for device in pc.unique(devices).to_pylist():
            rows = np.flatnonzero(pc.equal(devices, device).to_numpy())
            mine = table.take(pa.array(rows))
            why = why_turns({column: numbers_of(mine, column) for column in readings})
            if not why and self._timed and self._goes_back(device, at_ms[rows], keys[rows]):
                why = "its times go back: the logs of two hosts or GPUs, or of one whose clock was set back"
            if why:
                index = device.rpartition("gpu")[2]
                hint = f"{HOSTS_APART}; of one host, in the order of time, with --tz ZONE where clocks change"
                raise FileFault(self._path, f"the rows of index {index} may be of several hosts: {why}", hint=hint)

    def _goes_back(self, device: str, at_ms: np.ndarray, keys: np.ndarray) -> bool:
        """Whether rows are earlier than those before them, and do not repeat any; a log may be written newest first."""
        before = self._seen.setdefault(device, _Seen())
        if not before.way and len(at_ms) > 1:
            before.way = -1 if at_ms[-1] < at_ms[0] and (np.diff(at_ms) <= 0).all() else 1
        time = at_ms * (before.way or 1)
        latest = np.maximum.accumulate(np.concatenate(([before.latest], time)))[:-1]
        late = time < latest - TOLERANCE_MS
        back = bool(late.any()) and not np.isin(keys[late], np.concatenate([*before.keys, keys[~late]])).all()
        before.latest = max(before.latest, int(time.max()))
        before.keys.append(keys)
        return back


def _alike(word: str, known: str) -> bool:
    """Whether two cells name one thing, as drivers of several versions write it; an unknown one names anything."""
    if word.removeprefix(_VENDOR) == known.removeprefix(_VENDOR) or _SILENT.fullmatch(word):
        return True
    one, other = _MEMORY.match(word), _MEMORY.match(known)
    return bool(one and other and abs(float(one[0]) - float(other[0])) <= _NEARLY * float(one[0]))
