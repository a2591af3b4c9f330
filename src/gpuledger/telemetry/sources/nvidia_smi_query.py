"""What does `nvidia-smi --query-gpu=... --format=csv` print?

A header with units, then a line per GPU and round; `-l` and `-lms` repeat the lines, a loop in a shell the header too.
Cells carry their unit unless nounits was asked for, and what a GPU does not report is in brackets ([N/A]).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from gpuledger.errors import FileFault
from gpuledger.telemetry.blocks import utf8_blocks
from gpuledger.telemetry.one_gpu import READINGS, why_several, why_turns, why_two_logs
from gpuledger.telemetry.sources import SOURCES, Fit, Head, Opened
from gpuledger.telemetry.sources.csv_file import SHOWN_CHARS
from gpuledger.telemetry.tool_logs import layout, read, without_asking
from gpuledger.telemetry.unpacking import text_lines, unreadable

# No other tool prints these; any one of them in the header is enough.
_MARKS = re.compile(r"(utilization\.(gpu|memory)|power\.draw|memory\.(used|free|total)|clocks\.[a-z.]+) \[")
_PLAIN_MARKS = frozenset({"pci.bus_id", "temperature.gpu", "temperature.memory", "driver_version", "pstate"})
_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3},")
_UNIT = re.compile(r" \[([^\]]+)\]$")
_HOST = "hostname"
_VENDOR = "NVIDIA "  # drivers from 470 on print it before a model
_NEARLY = 0.1  # of the total memory: a driver may keep a little more of it to itself than the one before
# What a GPU keeps; two values are two GPUs, or a board that was replaced.
_NEVER_CHANGING = frozenset({
    "name", "gpu_name", "memory.total", "serial", "gpu_serial", "pci.bus_id", "gpu_bus_id", "pci.device_id",
    "pci.sub_device_id",
})  # fmt: skip
_NAME_GPUS = (
    "query index or uuid too: --query-gpu=uuid,...; for this file, add a column 'index' with the GPU of each row"
)
_HOSTS_APART = "import the log of each host by itself, with its --host; or query uuid too: --query-gpu=uuid,..."
_NO_GPUS = "No devices were found"
_HEX = re.compile(r"0x[0-9a-fA-F]{1,64}")
_MEMORY = re.compile(r"(\d+) MiB")
_SILENT = r"^(\[.*\]|N/A|ERR!)$"
# Only headers have these.
_HEADER_MARKS = (b"timestamp", b"[%]", b"[W]", b"[MiB]", b"[MHz]")


class NvidiaSmiQuery:
    """The CSV of nvidia-smi's queries, with any columns."""

    def fits(self, head: Head) -> Fit:
        """By a header cell that only nvidia-smi prints, or by its stamps where the header was left out."""
        first = next(iter(head.lines()), "")
        cells = [c.strip() for c in first.split(",")]
        known = _MARKS.search(first) or (", " in first and _PLAIN_MARKS & set(cells))
        return Fit.SURE if known or _STAMP.match(first) or first.startswith(_NO_GPUS) else Fit.NO

    def open(self, path: Path) -> Opened:
        """The header is read here; units are taken off the cells as they are read."""
        lines = text_lines(path)
        header, rows = next(lines), [line.split(",") for _, line in zip(range(64), lines, strict=False)]
        if header.startswith(_NO_GPUS):
            raise FileFault(path, "nvidia-smi found no GPU there", hint="run it on a host with a GPU: nvidia-smi -L")
        if _STAMP.match(header):
            raise FileFault(
                path, "nvidia-smi wrote it without a header", hint="print it with --format=csv, without noheader"
            )
        if not rows:
            raise FileFault(path, "it has a header but not one row", hint="let nvidia-smi run longer")
        names = [n.strip() for n in header.split(",")]
        names = [n if names.index(n) == place else f"{n} again {place}" for place, n in enumerate(names)]
        mapping, notes = layout("nvidia_smi_query"), list[str]()
        key = next((names.index(n) for n in ("uuid", "gpu_uuid", "index", "pci.bus_id") if n in names), None)
        if key is None:
            _only_gpu(path, names)
            mapping = msgspec.structs.replace(mapping, constants={"gpu_index": "0"})
            notes.append("no column says which GPU a row is of; its times are those of a single GPU, read as GPU 0")
        elif names[key] == "pci.bus_id":  # names the board on its host just as well
            labels = {n: s for n, s in mapping.labels.items() if n != "gpu_index"} | {"gpu_uuid": ("pci.bus_id",)}
            mapping = msgspec.structs.replace(mapping, labels=labels)
        devices = (
            [row[key] for row in rows if len(row) == len(names) and row != header.split(",")] if key is not None else []
        )
        known = ["host"] if {"uuid", "gpu_uuid"} & set(names) else []
        known += ["every"] if key is None or len(set(devices)) == len(devices) else []
        wrong: list[tuple[int, str]] = []

        def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
            wrong.clear()
            yield from _batches(path, names, columns, labels, wrong)

        return Opened(names, batches, None, wrong, True, without_asking(mapping, *known), notes=notes)


def _only_gpu(path: Path, names: list[str]) -> None:
    """Refuse a file that may hold several GPUs: its lines do not follow each other as those of one GPU do."""
    if "timestamp" not in names:
        raise FileFault(path, "its columns do not say which GPU a row is of", hint=_NAME_GPUS)
    wanted = ["timestamp", *(name for name in (*READINGS, _HOST) if name in names)]
    before: dict[str, np.ndarray] = {}
    for batch in _batches(path, names, wanted, (_HOST,), []):
        at = batch.column(0)
        if not pa.types.is_timestamp(at.type):
            cell = at[0].as_py()
            raise FileFault(
                path, f"it does not say which GPU a row is of, nor when it was read ({cell!r})", hint=_NAME_GPUS
            )
        at_us = at.cast(pa.int64()).to_numpy()
        readings = {name: _numbers(batch.column(name)) for name in wanted if name in READINGS}
        for host, rows in _by_host(batch):
            mine = np.concatenate((before.get(host, at_us[:0]), at_us[rows]))
            before[host] = mine[-1:]
            if len(mine) > 1 and (why := why_several(mine, {n: v[rows] for n, v in readings.items()})):
                raise FileFault(path, f"its columns do not say which GPU a row is of, and {why}", hint=_NAME_GPUS)


def _by_host(batch: pa.RecordBatch) -> Iterator[tuple[str, np.ndarray | slice]]:
    """The rows of each host that they name; GPU 0 of another host is another GPU."""
    if _HOST not in batch.schema.names:
        yield "", slice(None)
        return
    coded = batch.column(_HOST)
    codes = coded.indices.to_numpy(zero_copy_only=False)
    for code in np.unique(codes).tolist():
        yield coded.dictionary[code].as_py(), np.flatnonzero(codes == code)


def _numbers(cells: pa.Array) -> np.ndarray:
    """Readings as numbers, NaN where a cell holds none."""
    values = pc.if_else(pc.match_substring_regex(cells, r"^-?\d+(\.\d+)?$"), cells, None).cast(pa.float64())
    found: np.ndarray = values.to_numpy(zero_copy_only=False)
    return found


class _Steady:
    """What a GPU without a UUID never changes along a log: its model, its memory, its serial number.

    `key`: the columns that name the GPU as far as they go.
    """

    def __init__(self, path: Path, names: list[str]) -> None:
        named = bool({"uuid", "gpu_uuid"} & set(names))
        key = next((name for name in ("index", "pci.bus_id") if name in names), None)
        self.columns = [] if named else [n for n in names if _UNIT.sub("", n) in _NEVER_CHANGING]
        self.key = [name for name in (_HOST, key) if name in names]
        self._path, self._known = path, dict[tuple[str, ...], str]()

    def look(self, table: pa.Table) -> None:
        """A fault where a GPU has two values of one of these."""
        if not self.columns or not table.num_rows:
            return
        first = {name: table[name][0].as_py() for name in self.columns}
        alike = {name: word for name, word in first.items() if pc.all(pc.equal(table[name], word)).as_py()}
        names = [*self.key, *(name for name in self.columns if name not in {*alike, *self.key})]
        rows = table.select(names).group_by(names, use_threads=False).aggregate([]).to_pylist() if names else [{}]
        for row in rows:
            cells = {name: word.strip() for name, word in (alike | row).items()}
            gpu = [cells[name] for name in self.key]
            for name in self.columns:
                word = cells[name]
                known = word if re.match(_SILENT, word) or not word else self._known.setdefault((name, *gpu), word)
                if not _same(word, known):
                    self._refuse(name, gpu, known, word)

    def _refuse(self, name: str, gpu: list[str], known: str, word: str) -> None:
        which = f"its GPU {' of '.join(reversed(gpu))}".rstrip()
        raise FileFault(
            self._path,
            f"{which} has two values of {name!r}, {known!r} and {word!r}, and no UUID: two GPUs or the logs of two"
            " hosts, or one GPU that was replaced by another",
            hint="one file for each host, imported by itself with its --host; or query uuid too: --query-gpu=uuid,..."
            if gpu
            else _NAME_GPUS,
        )


def _same(word: str, known: str) -> bool:
    """Whether two cells name one thing, as drivers of several versions write it."""
    if word.removeprefix(_VENDOR) == known.removeprefix(_VENDOR):
        return True
    one, other = _MEMORY.fullmatch(word), _MEMORY.fullmatch(known)
    return bool(one and other and abs(float(one[1]) - float(other[1])) <= _NEARLY * float(one[1]))


class _Logs:
    """Whether a log is several, one after the other, whose times go back: then index 0 may be of two hosts."""

    def __init__(self, path: Path, names: list[str]) -> None:
        known = {"uuid", "gpu_uuid", _HOST} & set(names)
        self.columns = ["timestamp"] if "timestamp" in names and not known else []
        self._path, self._place = path, names.index("timestamp") if self.columns else 0
        self._last = ""

    def look(self, table: pa.Table, block: bytes, header: bytes, before: int) -> None:
        """A fault where the header comes again and time goes back there. `before`: the lines before the block."""
        if not self.columns or not table.num_rows:
            return
        if not before and block.startswith(2 * header):
            raise FileFault(
                self._path,
                "its header comes twice before the first row: two programs wrote into it at once, on two hosts, whose"
                " GPUs of one index would count as one, or on one",
                hint=_HOSTS_APART,
            )
        last, times = self._last, table["timestamp"]
        self._last = times[-1].as_py().strip()
        if block.count(header) <= (not before):
            return
        times = pc.utf8_trim_whitespace(times)
        if times[0].as_py() >= last and not pc.any(pc.less(times[1:], times[:-1])).as_py():
            return
        again = False
        for number, line in enumerate(block.splitlines(keepends=True), before + 1):
            if line == header:
                again = number > 1
            elif at := self._time(line):
                if again and at < last:
                    self._refuse(number - 1, last, at)
                again, last = False, at

    def _time(self, line: bytes) -> str:
        cells = line.split(b",")
        return cells[self._place].strip().decode(errors="replace") if len(cells) > self._place else ""

    def _refuse(self, line: int, last: str, at: str) -> None:
        raise FileFault(
            self._path,
            f"its header comes again at line {line}, and time goes back there from {last} to {at}: the logs of two"
            " hosts, whose GPUs of one index would count as one, or logs of one host out of order or over a change of"
            " the clock",
            hint="import the log of each host by itself, with its --host; those of one host in the order of time",
        )


class _Turns:
    """Whether the rows of one index are of two hosts: they take turns, or time goes back and memory is another."""

    def __init__(self, path: Path, names: list[str]) -> None:
        alone = "index" in names and not {"uuid", "gpu_uuid", _HOST} & set(names)
        self._readings = [name for name in READINGS if name in names] if alone else []
        self._times = ["timestamp"] if self._readings and "timestamp" in names else []
        self.columns = ["index", *self._readings, *self._times] if self._readings else []
        self._path = path

    def look(self, table: pa.Table) -> None:
        """A fault where a reading of one index jumps from row to row, or from one log to the other."""
        if not self.columns or not table.num_rows:
            return
        known = ["index", *self._readings]
        batch = _clean(table.combine_chunks().to_batches()[0], known, tuple(known))
        at = _places(table["timestamp"]) if self._times else None
        coded = batch.column(0)
        codes = coded.indices.to_numpy(zero_copy_only=False)
        readings = {name: _coded_numbers(batch.column(name)) for name in self._readings}
        for code, index in enumerate(coded.dictionary.to_pylist()):
            rows = np.flatnonzero(codes == code)
            mine = {name: values[rows] for name, values in readings.items()}
            if why := why_turns(mine) or (why_two_logs(at[rows], mine) if at is not None else ""):
                raise FileFault(
                    self._path, f"the rows of index {index} may be of several hosts: {why}", hint=_HOSTS_APART
                )


def _places(stamps: pa.ChunkedArray) -> np.ndarray | None:
    """The place of each row in the order of time; None where time never goes back."""
    times = pc.utf8_trim_whitespace(stamps)
    if not pc.any(pc.less(times[1:], times[:-1])).as_py():
        return None
    found: np.ndarray = pc.rank(times, tiebreaker="dense").to_numpy().astype(np.int64)
    return found


def _coded_numbers(cells: pa.DictionaryArray) -> np.ndarray:
    """Readings as numbers, of cells that name each different one once."""
    found: np.ndarray = _numbers(cells.dictionary)[cells.indices.to_numpy(zero_copy_only=False)]
    return found


def _batches(
    path: Path, names: list[str], columns: list[str], labels: tuple[str, ...], wrong: list[tuple[int, str]]
) -> Iterator[pa.RecordBatch]:
    before = 0

    def on_wrong_row(row: pacsv.InvalidRow) -> str:
        wrong.append((before + row.number, (row.text or "")[:SHOWN_CHARS]))
        return "skip"

    types, steady, logs = dict.fromkeys(names, pa.string()), _Steady(path, names), _Logs(path, names)
    turns = _Turns(path, names)
    read_too = [*logs.columns, *turns.columns, *(steady.key if steady.columns else []), *steady.columns]
    try:
        header, lines = b"", 0
        for whole in utf8_blocks(path):
            header = header or whole[: whole.find(b"\n") + 1]
            block = whole.replace(header, b"")  # it comes again where a shell repeats the query
            if any(mark in block for mark in _HEADER_MARKS):
                _refuse_other_header(path, whole, header, lines)
            if not block.strip():
                lines += whole.count(b"\n")
                continue
            known_wrong = len(wrong)
            table = pacsv.read_csv(
                pa.BufferReader(block),
                read_options=pacsv.ReadOptions(
                    block_size=len(block) + 1, column_names=names, use_threads=False
                ),
                parse_options=pacsv.ParseOptions(quote_char=False, invalid_row_handler=on_wrong_row),
                convert_options=pacsv.ConvertOptions(
                    include_columns=list(dict.fromkeys([*columns, *read_too])), column_types=types,
                    strings_can_be_null=False,
                ),
            )  # fmt: skip
            before += table.num_rows + len(wrong) - known_wrong
            steady.look(table)
            logs.look(table, whole, header, lines)
            turns.look(table)
            lines += whole.count(b"\n")
            yield from (_clean(batch, columns, labels) for batch in table.combine_chunks().to_batches())
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise FileFault(path, f"cannot be read: {error}", hint="open the file at that row") from error
    except OSError as error:
        raise unreadable(path, error) from error


def _refuse_other_header(path: Path, block: bytes, header: bytes, before: int) -> None:
    """A fault where other columns follow than those of the first header: their cells would be taken for these."""
    for number, line in enumerate(block.splitlines(), before + 1):
        cut = header.startswith(line.strip())  # the tool was stopped while it wrote its header again
        if any(mark in line for mark in _HEADER_MARKS) and not cut:
            raise FileFault(path, f"its columns change at line {number}", hint="split the file there")


def _clean(batch: pa.RecordBatch, columns: list[str], labels: tuple[str, ...]) -> pa.RecordBatch:
    """The cells without padding, units and bracketed words."""
    arrays = []
    for name in columns:
        if name == "timestamp":
            stamps = pc.replace_substring(pc.utf8_trim_whitespace(batch.column(name)), "/", "-")
            arrays.append(read(name, stamps, labels))
            continue
        coded = pc.utf8_trim_whitespace(batch.column(name)).dictionary_encode()  # few different cells, many rows
        words = pc.replace_substring_regex(coded.dictionary, _SILENT, "")
        if unit := _UNIT.search(name):
            words = pc.replace_substring_regex(words, rf"\s+{re.escape(unit[1])}$", "")
        elif pc.any(pc.starts_with(words, "0x")).as_py() and name not in labels:
            words = pa.array([str(int(w, 16)) if _HEX.fullmatch(w) else w for w in words.to_pylist()])
        cells = pa.DictionaryArray.from_arrays(coded.indices, words)
        arrays.append(cells if name in labels else cells.dictionary_decode())
    return pa.record_batch(arrays, columns)


SOURCES.register("nvidia_smi_query")(NvidiaSmiQuery())
