"""What does `nvidia-smi --query-gpu=... --format=csv` print?

A header with units, then a line per GPU and round; `-l` and `-lms` repeat the lines, a loop in a shell the header too.
Cells carry their unit unless nounits was asked for, and what a GPU does not report is in brackets ([N/A]).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from gpuledger.errors import FileFault
from gpuledger.telemetry.blocks import utf8_blocks
from gpuledger.telemetry.sources import SOURCES, Fit, Head, Opened
from gpuledger.telemetry.sources.csv_file import SHOWN_CHARS
from gpuledger.telemetry.tool_logs import layout, read, without_asking
from gpuledger.telemetry.unpacking import text_lines, unreadable

# No other tool prints these; any one of them in the header is enough.
_MARKS = re.compile(r"(utilization\.(gpu|memory)|power\.draw|memory\.(used|free|total)|clocks\.[a-z.]+) \[")
_PLAIN_MARKS = frozenset({"pci.bus_id", "temperature.gpu", "temperature.memory", "driver_version", "pstate"})
_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3},")
_UNIT = re.compile(r" \[([^\]]+)\]$")
_APART_S = 0.5  # lines of one round follow each other much faster
_NO_GPUS = "No devices were found"
_HEX = re.compile(r"0x[0-9a-fA-F]{1,64}")
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
    hint = "query index or uuid too: --query-gpu=uuid,..."
    if "timestamp" not in names:
        raise FileFault(path, "its columns do not say which GPU a row is of", hint=hint)
    stamps = (cell for batch in _batches(path, names, ["timestamp"], (), []) for cell in batch.column(0).to_pylist())
    least, most, before = float("inf"), 0.0, None
    for at in stamps:
        if not isinstance(at, dt.datetime):
            raise FileFault(path, f"it does not say which GPU a row is of, nor when it was read ({at!r})", hint=hint)
        if before is not None:
            step = (at - before).total_seconds()
            least, most = min(least, step), max(most, step)
        before = at
    if least <= 0 or least < min(_APART_S, most / 2):
        why = "its columns do not say which GPU a row is of, and its times may be those of several"
        raise FileFault(path, why, hint=hint)


def _batches(
    path: Path, names: list[str], columns: list[str], labels: tuple[str, ...], wrong: list[tuple[int, str]]
) -> Iterator[pa.RecordBatch]:
    before = 0

    def on_wrong_row(row: pacsv.InvalidRow) -> str:
        wrong.append((before + row.number, (row.text or "")[:SHOWN_CHARS]))
        return "skip"

    types = dict.fromkeys(names, pa.string())
    try:
        header, lines = b"", 0
        for whole in utf8_blocks(path):
            header = header or whole[: whole.find(b"\n") + 1]
            block = whole.replace(header, b"")  # it comes again where a shell repeats the query
            if any(mark in block for mark in _HEADER_MARKS):
                _refuse_other_header(path, whole, header, lines)
            lines += whole.count(b"\n")
            if not block.strip():
                continue
            known_wrong = len(wrong)
            table = pacsv.read_csv(
                pa.BufferReader(block),
                read_options=pacsv.ReadOptions(
                    block_size=len(block) + 1, column_names=names, use_threads=False
                ),
                parse_options=pacsv.ParseOptions(quote_char=False, invalid_row_handler=on_wrong_row),
                convert_options=pacsv.ConvertOptions(
                    include_columns=columns, column_types=types,
                    strings_can_be_null=False,
                ),
            )  # fmt: skip
            before += table.num_rows + len(wrong) - known_wrong
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
