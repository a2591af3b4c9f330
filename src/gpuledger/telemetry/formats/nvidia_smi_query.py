"""What does `nvidia-smi --query-gpu=... --format=csv` print?

A header with units, then a line per GPU and round; `-l` and `-lms` repeat the lines, a loop in a shell the header too.
Cells carry their unit unless nounits was asked for, and what a GPU does not report is in brackets ([N/A]).
"""

from __future__ import annotations

import codecs
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
from gpuledger.telemetry.formats import FORMATS, Format, Head, Kind, Opened, Seen, sure
from gpuledger.telemetry.formats.csv_file import SHOWN_CHARS
from gpuledger.telemetry.formats.logs import first_of, layout, read, without_asking
from gpuledger.telemetry.mapping import Mapping
from gpuledger.telemetry.mapping.rules import TimeRule
from gpuledger.telemetry.measures import factor_of
from gpuledger.telemetry.nvidia_smi_rows import FREE, POWER, USED, UTIL, columns_of, in_words, is_row
from gpuledger.telemetry.one_gpu import (
    READINGS,
    gpus_in_round,
    why_several,
    why_several_untimed,
    why_turns,
    why_two_logs,
)
from gpuledger.telemetry.unpacking import text_lines, unreadable

# No other tool prints these; any one of them in the header is enough.
_MARKS = re.compile(r"(utilization\.(gpu|memory)|power\.draw|memory\.(used|free|total)|clocks\.[a-z.]+) \[")
_PLAIN_MARKS = frozenset({"pci.bus_id", "temperature.gpu", "temperature.memory", "driver_version", "pstate"})
_IN_MS = re.compile(r'[\s"]*\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}[\s"]*')  # a spreadsheet may cut seconds off
_STAMP = re.compile(r'"?\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}"?[,;\t]')
_WITH_UNIT = re.compile(r"\d ?[^\W\d]|\d ?%")
_NAME = re.compile(r"[A-Za-z_][\w.]*( \[[^\]]+\])?")
_COMMAND = re.compile(r"\bnvidia-smi(\.exe)?\b")
_SEPARATORS = ",;\t"
_AROUND = ' \t"'  # what may stand around a name
_PEEK_LINES, _LINES_ABOVE, _ROWS_LOOKED_AT = 65, 20, 4096
_TOLD = frozenset({UTIL, POWER, USED, FREE})
_UNIT = re.compile(r" \[([^\]]+)\]$")
_HOST = "hostname"
_PLACE = "order in the round"
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


class _Form(msgspec.Struct, frozen=True):
    """How a log is written.

    `above`: lines above its header, such as a message of nohup. `in_ms`: times are in milliseconds. `in_round`: how
    many GPUs that no column names come in each round, told apart by their order there; 0 otherwise.
    """

    path: Path
    names: list[str]
    above: int = 0
    separator: str = ","
    quoted: bool = False
    in_ms: bool = False
    in_round: int = 0
    headed: bool = True


LAYOUT = layout(
    "nvidia-smi --query-gpu",
    {
        "gpu_util_ratio": ("utilization.gpu [%]",),
        "mem_copy_util_ratio": ("utilization.memory [%]",),
        "enc_util_ratio": ("utilization.encoder [%]",),
        "dec_util_ratio": ("utilization.decoder [%]",),
        "power_w": ("power.draw [W]", "power.draw.average [W]", "power.draw.instant [W]"),
        "power_limit_w": ("enforced.power.limit [W]", "power.limit [W]"),
        "sm_clock_mhz": (
            "clocks.current.sm [MHz]", "clocks.sm [MHz]", "clocks.current.graphics [MHz]", "clocks.gr [MHz]",
        ),
        "mem_clock_mhz": ("clocks.current.memory [MHz]", "clocks.mem [MHz]"),
        "gpu_temp_c": ("temperature.gpu",),
        "mem_temp_c": ("temperature.memory",),
        "fb_used_bytes": ("memory.used [MiB]",),
        "fb_free_bytes": ("memory.free [MiB]",),
        "throttle_bits": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
        "remapped_correctable_rows": ("remapped_rows.correctable",),
        "remapped_uncorrectable_rows": ("remapped_rows.uncorrectable",),
    },
    {
        "gpu_uuid": ("uuid", "gpu_uuid", "board"),
        "gpu_index": ("index",),
        "gpu_model": ("name", "gpu_name"),
        "host": ("hostname",),
    },
    time=TimeRule(("timestamp",)),
    required=("time", "gpu_uuid"),
    ignored=("pci.bus_id", "memory.total [MiB]", "memory.reserved [MiB]", "driver_version", "count", "pstate"),
    blank=("",),
)  # fmt: skip


def _score(head: Head) -> Seen:
    """By a header cell that only nvidia-smi prints, or by its stamps where the header was left out."""
    lines = head.lines
    if lines and lines[0].startswith(_NO_GPUS):
        return sure(_NO_GPUS)
    at = _begins_at(lines)
    return sure(None if at is None else f"line {at + 1}: {lines[at][:60]}")


def _read(path: Path) -> Opened:
    """The header is read here; units are taken off the cells as they are read."""
    first = first_of(path, _PEEK_LINES)
    if first[0].startswith(_NO_GPUS):
        raise FileFault(path, "nvidia-smi found no GPU there", hint="run it on a host with a GPU: nvidia-smi -L")
    above = _begins_at(first) or 0
    header = first[above]
    separator = max(_SEPARATORS, key=header.count)
    if _STAMP.match(header) or is_row(_cells(header, separator)):
        return _without_header(path, above, separator)
    if above + 1 == len(first):
        raise FileFault(path, "it has a header but not one row", hint="let nvidia-smi run longer")
    names = _cells(header, separator)
    names = [n if names.index(n) == place else f"{n} again {place}" for place, n in enumerate(names)]
    rows = [_cells(line, separator) for line in first[above + 1 :] if line != header]
    in_ms = any(_IN_MS.fullmatch(cell) for row in rows[:1] for cell in row)
    return _opened(_Form(path, names, above, separator, '"' in header + first[above + 1], in_ms), rows)


def _without_header(path: Path, above: int, separator: str) -> Opened:
    """Rows whose columns their units and values tell."""
    lines = [line for _, line in zip(range(above + _ROWS_LOOKED_AT), text_lines(path), strict=False)][above:]
    cut = [_cells(line, separator) for line in lines]
    rows = [row for row in cut if len(row) == len(cut[0])]
    rows = rows[:-1] if len(rows) > 1 and rows[-1] is cut[-1] else rows  # the last may be cut in a cell
    told = columns_of(rows)
    note = in_words(told, rows)
    if not set(told) & _TOLD:
        problem = f"nvidia-smi wrote it without a header, and no column can be told to be a reading ({note})"
        raise FileFault(path, problem, hint="print it with --format=csv, without noheader")
    names = [name or f"column {place}" for place, name in enumerate(told, 1)]
    opened = _opened(_Form(path, names, above, separator, '"' in lines[0], "timestamp" in names, headed=False), rows)
    opened.notes.insert(0, note)
    return opened


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip(_AROUND) for cell in line.split(separator)]


def _begins_at(lines: list[str]) -> int | None:
    """Which of the first lines is the header or, without one, the first row; None where the text is of another kind.

    The lines above may be blank, the command, what a shell says; not a table, whose header theirs would not be.
    """
    sizes = set[int]()
    for place, line in enumerate(lines[:_LINES_ABOVE]):
        cells = _cells(line, max(_SEPARATORS, key=line.count))
        if _COMMAND.search(line) or not line.strip():
            continue
        row = _STAMP.match(line) or is_row(cells)
        if _MARKS.search(line) or (", " in line and _PLAIN_MARKS & set(cells)) or row:
            mine = row or all(_NAME.fullmatch(cell) for cell in cells)
            return place if not place or (mine and len(cells) not in sizes - {1}) else None
        sizes.add(len(cells))
    return None


def _opened(form: _Form, rows: list[list[str]]) -> Opened:
    """The log of this form; `rows`: the cells of the first ones."""
    (mapping, notes), names = _in_own_units(LAYOUT, form.names, rows), form.names
    key = next((names.index(n) for n in ("uuid", "gpu_uuid", "index", "pci.bus_id") if n in names), None)
    if key is None and (several := _gpus(form)):
        form = msgspec.structs.replace(form, in_round=several)
        mapping = msgspec.structs.replace(mapping, labels=mapping.labels | {"gpu_index": (_PLACE,)})
        names = [*names, _PLACE]
        notes.append(f"no column says which GPU a row is of: {several} GPUs told apart by their order in each round")
    elif key is None:
        mapping = msgspec.structs.replace(mapping, constants={"gpu_index": "0"})
        shown = (
            "its times are those of a single GPU" if "timestamp" in names else "nothing shows that there are several"
        )
        notes.append(f"no column says which GPU a row is of; {shown}, read as GPU 0")
    elif names[key] == "pci.bus_id":  # names the board on its host just as well
        labels = {n: s for n, s in mapping.labels.items() if n != "gpu_index"} | {"gpu_uuid": ("pci.bus_id",)}
        mapping = msgspec.structs.replace(mapping, labels=labels)
    devices = [row[key] for row in rows if len(row) == len(names)] if key is not None else []
    known = ["host"] if {"uuid", "gpu_uuid"} & set(names) else []
    known += ["every"] if (key is None and "timestamp" in names) or 0 < len(set(devices)) == len(devices) else []
    wrong: list[tuple[int, str]] = []

    def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        wrong.clear()
        yield from _batches(form, columns, labels, wrong)

    return Opened(names, batches, None, wrong, True, without_asking(mapping, *known), notes=notes)


def _in_own_units(mapping: Mapping, names: list[str], rows: list[list[str]]) -> tuple[Mapping, list[str]]:
    """The layout where the file says another unit than nvidia-smi does, and notes about readings that have none."""
    rules, notes = list(mapping.values), list[str]()
    for place, name in enumerate(names):
        base, unit = _UNIT.sub("", name), _UNIT.search(name)
        at = next((k for k, r in enumerate(rules) if base in {_UNIT.sub("", source) for source in r.sources}), None)
        if at is None or set(rules[at].sources) & set(names):
            continue
        rule, cells = rules[at], [row[place] for row in rows if len(row) == len(names)]
        if unit and factor_of(unit[1], rule.column):
            rules[at] = msgspec.structs.replace(rule, sources=(*rule.sources, name), unit=unit[1])
        elif not unit and all(_WITH_UNIT.search(cell) or re.match(_SILENT, cell) for cell in cells):
            rules[at] = msgspec.structs.replace(rule, sources=(*rule.sources, name))
        else:
            why = f"{unit[1]} is not a unit of it" if unit else "neither its name nor its cells have a unit"
            notes.append(f"{name!r} is not read: {why} (nvidia-smi writes {rule.sources[0]!r})")
    return msgspec.structs.replace(mapping, values=tuple(rules)), notes


def _gpus(form: _Form) -> int:
    """How many GPUs without a name a file holds in each round, 0 where its lines follow each other as those of one GPU
    do; a fault where they may be of several that their order does not tell apart.
    """
    path, names = form.path, form.names
    if "timestamp" not in names:
        if why := why_several_untimed(_readings(form)):
            raise FileFault(path, f"its columns do not say which GPU a row is of, and {why}", hint=_NAME_GPUS)
        return 0
    shown = _shown(names)
    wanted = ["timestamp", *shown, *(name for name in (_HOST,) if name in names)]
    before: dict[str, np.ndarray] = {}
    for batch in _batches(form, wanted, (_HOST,), [], steady=False):
        at = batch.column(0)
        if not pa.types.is_timestamp(at.type):
            cell = at[0].as_py()
            raise FileFault(
                path, f"it does not say which GPU a row is of, nor when it was read ({cell!r})", hint=_NAME_GPUS
            )
        at_us = at.cast(pa.int64()).to_numpy()
        readings = {column: _numbers(batch.column(name)) * by for name, (column, by) in shown.items()}
        for host, rows in _by_host(batch):
            mine = np.concatenate((before.get(host, at_us[:0]), at_us[rows]))
            before[host] = mine[-1:]
            if len(mine) > 1 and (why := why_several(mine, {n: v[rows] for n, v in readings.items()})):
                if several := _in_rounds(form):
                    return several
                raise FileFault(path, f"its columns do not say which GPU a row is of, and {why}", hint=_NAME_GPUS)
    return 0


def _readings(form: _Form) -> dict[str, np.ndarray]:
    """What shows GPUs that take turns, of all rows: what is slow to change on one GPU."""
    wanted = [name for name, (column, _) in _shown(form.names).items() if column != UTIL]
    found = [{n: _numbers(batch.column(n)) for n in wanted} for batch in _batches(form, wanted, (), [], steady=False)]
    return {name: np.concatenate([part[name] for part in found]) for name in wanted if found}


def _shown(names: list[str]) -> dict[str, tuple[str, float]]:
    """The columns that show GPUs that take turns, each with the one it is, and how often its unit holds that one's."""
    out = dict[str, tuple[str, float]]()
    for name in names:
        column = next((c for c in READINGS if _UNIT.sub("", c) == _UNIT.sub("", name)), "")
        own, usual = _UNIT.search(name), _UNIT.search(column)
        known = (factor_of(unit[1], "fb_used_bytes") if unit else None for unit in (own, usual))
        one, other = known
        if column:
            out[name] = column, one.of(1) / other.of(1) if one and other else 1.0
    return out


def _in_rounds(form: _Form) -> int:
    """How many GPUs each round of the file has, if all its rows are of one host and their times as it wrote them."""
    if _HOST in form.names or not form.in_ms:
        return 0
    times = [batch.column(0) for batch in _batches(form, ["timestamp"], (), [], steady=False)]
    if not all(pa.types.is_timestamp(at.type) for at in times):
        return 0
    return gpus_in_round(np.concatenate([at.cast(pa.int64()).to_numpy() for at in times]))


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

    def __init__(self, form: _Form, asked: bool) -> None:
        names = [*form.names, _PLACE] if form.in_round else form.names
        named = bool({"uuid", "gpu_uuid"} & set(names))
        key = next((name for name in ("index", "pci.bus_id", _PLACE) if name in names), None)
        self.columns = [] if named or not asked else [n for n in names if _UNIT.sub("", n) in _NEVER_CHANGING]
        self.key = [name for name in (_HOST, key) if name in names]
        self._path, self._known = form.path, dict[tuple[str, ...], str]()

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

    def __init__(self, form: _Form) -> None:
        known = {"uuid", "gpu_uuid", _HOST} & set(form.names)
        self.columns = ["timestamp"] if "timestamp" in form.names and form.headed and not known else []
        self._form, self._place = form, form.names.index("timestamp") if self.columns else 0
        self._last = ""

    def look(self, table: pa.Table, block: bytes, header: bytes, before: int) -> None:
        """A fault where the header comes again and time goes back there. `before`: the lines before the block."""
        if not self.columns or not table.num_rows:
            return
        if before == self._form.above and block.startswith(2 * header):
            raise FileFault(
                self._form.path,
                "its header comes twice before the first row: two programs wrote into it at once, on two hosts, whose"
                " GPUs of one index would count as one, or on one",
                hint=_HOSTS_APART,
            )
        last, times = self._last, table["timestamp"]
        self._last = times[-1].as_py().strip()
        if block.count(header) <= (before == self._form.above):
            return
        times = pc.utf8_trim_whitespace(times)
        if times[0].as_py() >= last and not pc.any(pc.less(times[1:], times[:-1])).as_py():
            return
        again = False
        for number, line in enumerate(block.splitlines(keepends=True), before + 1):
            if line == header:
                again = number > self._form.above + 1
            elif at := self._time(line):
                if again and at < last:
                    self._refuse(number - 1, last, at)
                again, last = False, at

    def _time(self, line: bytes) -> str:
        cells = line.decode(errors="replace").split(self._form.separator)
        return cells[self._place].strip(_AROUND) if len(cells) > self._place else ""

    def _refuse(self, line: int, last: str, at: str) -> None:
        raise FileFault(
            self._form.path,
            f"its header comes again at line {line}, and time goes back there from {last} to {at}: the logs of two"
            " hosts, whose GPUs of one index would count as one, or logs of one host out of order or over a change of"
            " the clock",
            hint="import the log of each host by itself, with its --host; those of one host in the order of time",
        )


class _Turns:
    """Whether the rows of one index are of two hosts: they take turns, or time goes back and memory is another."""

    def __init__(self, form: _Form, asked: bool) -> None:
        names = form.names
        alone = asked and "index" in names and not {"uuid", "gpu_uuid", _HOST} & set(names)
        self._readings = [name for name in READINGS if name in names] if alone else []
        self._times = ["timestamp"] if self._readings and "timestamp" in names else []
        self.columns = ["index", *self._readings, *self._times] if self._readings else []
        self._path = form.path

    def look(self, table: pa.Table) -> None:
        """A fault where a reading of one index jumps from row to row, or from one log to the other."""
        if not self.columns or not table.num_rows:
            return
        known = ["index", *self._readings]
        batch = _clean(table.combine_chunks().to_batches()[0], known, tuple(known))
        at = _order_of_time(table["timestamp"]) if self._times else None
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


def _order_of_time(stamps: pa.ChunkedArray) -> np.ndarray | None:
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
    form: _Form, columns: list[str], labels: tuple[str, ...], wrong: list[tuple[int, str]], *, steady: bool = True
) -> Iterator[pa.RecordBatch]:
    """The cells of the file; `steady`: a fault where what a GPU keeps changes."""
    path, names, before, good = form.path, form.names, 0, 0

    def on_wrong_row(row: pacsv.InvalidRow) -> str:
        wrong.append((before + row.number, (row.text or "")[:SHOWN_CHARS]))
        return "skip"

    types, keeps, logs = dict.fromkeys(names, pa.string()), _Steady(form, steady), _Logs(form)
    turns = _Turns(form, steady)
    read_too = [*logs.columns, *turns.columns, *(keeps.key if keeps.columns else []), *keeps.columns]
    wanted = [name for name in dict.fromkeys([*columns, *read_too]) if name != _PLACE] or names[:1]
    try:
        header, lines = b"", form.above
        for whole in _blocks(form):
            header = header or (whole[: whole.find(b"\n") + 1] if form.headed else b"")
            block = whole.replace(header, b"") if header else whole  # it comes again where a shell repeats the query
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
                parse_options=pacsv.ParseOptions(
                    delimiter=form.separator, quote_char='"' if form.quoted else False, invalid_row_handler=on_wrong_row
                ),
                convert_options=pacsv.ConvertOptions(
                    include_columns=wanted, column_types=types, strings_can_be_null=False
                ),
            )  # fmt: skip
            if form.in_round:
                table = table.append_column(_PLACE, _places(good, table.num_rows, form.in_round))
            good += table.num_rows
            before += table.num_rows + len(wrong) - known_wrong
            keeps.look(table)
            logs.look(table, whole, header, lines)
            turns.look(table)
            lines += whole.count(b"\n")
            yield from (_clean(batch, columns, labels) for batch in table.combine_chunks().to_batches())
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise FileFault(path, f"cannot be read: {error}", hint="open the file at that row") from error
    except OSError as error:
        raise unreadable(path, error) from error


def _places(first: int, count: int, size: int) -> pa.Array:
    """Which of its round each row is, the first of them being the one of this number."""
    return pa.array([str(place) for place in range(size)]).take(pa.array(np.arange(first, first + count) % size))


def _blocks(form: _Form) -> Iterator[bytes]:
    """The file in blocks of whole lines, from its header on, without a mark of its encoding."""
    above, mark = form.above, codecs.BOM_UTF8
    for block in utf8_blocks(form.path):
        start, mark = len(mark) if mark and block.startswith(mark) else 0, b""
        while above and start < len(block):
            start, above = (block.find(b"\n", start) + 1) or len(block), above - 1
        if start < len(block):
            yield block[start:] if start else block


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


FORMATS.register("nvidia_smi_query")(Format("nvidia-smi --query-gpu", Kind.TELEMETRY, _score, _read))
