"""How is a text file of telemetry streamed?"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Set
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.csv as pacsv

from gpuledger.errors import FileFault
from gpuledger.native import csv_block
from gpuledger.native.csv_block import look, read
from gpuledger.telemetry.blocks import Block, Span, check_utf8, line_blocks
from gpuledger.telemetry.formats import FORMATS, NOT_SEEN, Fit, Format, Head, Kind, Opened, Seen
from gpuledger.telemetry.unpacking import is_plain, not_utf8, open_plain, open_text, unreadable

LOOK_BYTES = 1 << 20
HEADER_CHARS = 1 << 17
MOST_WRONG_ROWS = 1_000_000
SHOWN_CHARS = 80
_TYPES = {
    csv_block.Kind.NUMBERS: pa.float64(),
    csv_block.Kind.LABELS: pa.dictionary(pa.int32(), pa.string()),
    csv_block.Kind.TEXTS: pa.string(),
}
_SEPARATORS = ",;\t|"
_IN_TEXT = bytes([*b"\t\r\n", *range(32, 256)])


def _score(head: Head) -> Seen:
    """Text has no control characters but those between cells and lines; opening it judges its encoding."""
    text = Seen(Fit.POSSIBLE, "text; nothing but its columns shows what wrote it")
    if found := _known(head):
        return found
    if head.broken:
        return text  # opening it says what is wrong
    if not head.first or not head.text:
        return NOT_SEEN
    try:
        head.first.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_in_two = error.start > len(head.first) - 4  # a letter, by the end of the look
        return text if cut_in_two or not head.first.translate(None, _IN_TEXT) else NOT_SEEN
    return text


def _known(head: Head) -> Seen | None:
    """By the columns of a layout that is known."""
    from gpuledger.telemetry.mapping import recognized

    header = next((line for line in head.lines if line.strip() and not line.startswith("#")), "")
    names = [cell.strip(' "') for cell in header.split(max(_SEPARATORS, key=header.count))]
    found = recognized(names)
    whole = found and {*found.time.sources} & {*names} and {*found.labels.get("gpu_uuid", ())} & {*names}
    return Seen(Fit.SURE, f"the columns {', '.join(found.detect)} ({found.title})") if found and whole else None


def open_csv(path: Path) -> Opened:
    """The header is read here; the rows when asked."""
    comments, header = _header(path)
    separator = max(_SEPARATORS, key=header.count)
    names = _names(path, header, separator)
    repeated = sorted(n for n, times in Counter(names).items() if times > 1)
    if repeated:
        raise FileFault(path, f"two columns are called {repeated[0]!r}", hint="rename one of them")
    return open_table(Form(path, names, separator, comments + 1))


class Form(msgspec.Struct, frozen=True):
    """How a table of text is written. `above`: lines above its first row, the header among them.

    `header`: the line of names as it stands, where it may come again among the rows; a line that holds one of `marks`
    and is another one names other columns.
    """

    path: Path
    names: list[str]
    separator: str = ","
    above: int = 1
    header: bytes = b""
    marks: tuple[bytes, ...] = ()


def open_table(form: Form, span: Span | None = None) -> Opened:
    """A table of text, or a part of it that starts and ends with a line."""
    reader = _Reader(form, span or Span(0, form.path.stat().st_size))
    opened = Opened(form.names, reader.batches, None, reader.wrong, text=True)
    reader.opened = opened

    def cut(parts: int) -> list[Opened]:
        return [open_table(form, piece) for piece in _spans(form.path, parts, form.above)]

    if reader.span.start == 0 and is_plain(form.path):
        opened.cut = cut
    return opened


def _spans(path: Path, parts: int, above: int) -> list[Span]:
    """Bytes of whole lines, in a number of parts, the header in the first; in one where a cell may hold a line end."""
    size = path.stat().st_size
    if _quoted(path, size, path.stat().st_mtime_ns):
        return [Span(0, size), *[Span(size, size)] * (parts - 1)]
    ends = []
    with path.open("rb") as file:
        first = sum(len(file.readline()) for _ in range(above))
        for part in range(1, parts):
            file.seek(max(size * part // parts, first - 1))
            file.readline()
            ends.append(file.tell())
    return [Span(start, end) for start, end in pairwise([0, *ends, size])]


@lru_cache(maxsize=64)
def _quoted(path: Path, _size: int, _changed_ns: int) -> bool:
    """Whether there is a quotation mark in a file: within two of them a line end does not end a row."""
    room = bytearray(LOOK_BYTES)
    with path.open("rb", buffering=0) as file:
        while found := file.readinto(room):
            if room.find(b'"', 0, found) >= 0:
                return True
    return False


class _Reader:
    """Reads the rows of a span. Readings are read as numbers as long as all of them are, else as text: then a fault in
    a number costs its row only.
    """

    def __init__(self, form: Form, span: Span) -> None:
        self.form, self.path, self.names, self.separator = form, form.path, form.names, form.separator
        self.span, self.above = span, form.above
        self.wrong: list[tuple[int, str]] = []
        self._lines = 0  # before a block, where headers are looked for
        self.opened: Opened | None = None

    def batches(self, columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """The rows, a block at a time."""
        numbers = self.opened.numbers.difference(labels) if self.opened is not None else frozenset[str]()
        before, above = 0, self.above if self.span.start == 0 else 0
        self.wrong.clear()
        try:
            for whole in line_blocks(self.path, self.span):
                block, skip = self._rows_of(whole, above) if self.form.header else (whole, above)
                above, known_wrong = 0, len(self.wrong)
                if not len(block.lines):
                    continue
                try:
                    table = self._table(block, _kinds(columns, labels, numbers), before, skip)
                except pa.ArrowInvalid:
                    if not numbers:
                        raise
                    del self.wrong[known_wrong:]
                    numbers = frozenset()
                    table = self._table(block, _kinds(columns, labels, numbers), before, skip)
                before += table.num_rows + len(self.wrong) - known_wrong
                yield from (batch for batch in table.combine_chunks().to_batches() if batch.num_rows)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise _unreadable(self.path, error, len(self.wrong)) from error
        except OSError as error:
            raise unreadable(self.path, error) from error

    def _rows_of(self, block: Block, above: int) -> tuple[Block, int]:
        """A block without the headers that come again among its rows, and how many lines stand above the rows."""
        check_utf8(self.path, block)  # before the number of a line is lost
        header, text = self.form.header, bytes(block.lines)
        if above and not self._lines:
            self._lines = above
            text = text.split(b"\n", above)[-1] if text.count(b"\n") >= above else b""
        rows = text.replace(header, b"")
        if any(mark in rows for mark in self.form.marks):
            self._refuse_other_header(rows, text)
        self._lines += text.count(b"\n")
        return Block(memoryview(rows), block.start), 0

    def _refuse_other_header(self, rows: bytes, text: bytes) -> None:
        """A fault where other columns follow than those of the first header: their cells would be taken for these."""
        other = (line for line in rows.splitlines() if any(mark in line for mark in self.form.marks))
        cut = (line for line in other if not self.form.header.startswith(line.strip()))  # the tool was stopped there
        if found := next(cut, b""):
            line = self._lines + text[: max(text.find(found), 0)].count(b"\n") + 1
            raise FileFault(self.path, f"its columns change at line {line}", hint="split the file there")

    def _table(self, block: Block, kinds: dict[str, csv_block.Kind], before: int, skip: int) -> pa.Table:
        """The rows of a block, by compiled code where all of them are in order, else by pyarrow."""
        seen = look(block.lines)
        if seen is None or not seen.ascii:
            check_utf8(self.path, block)
        if seen is not None:
            table = read(block.lines, seen, self.separator, self.names, kinds, skip)
            if table is not None:
                return table

        def on_wrong_row(row: pacsv.InvalidRow) -> str:
            self.wrong.append((before + row.number - skip, (row.text or "")[:SHOWN_CHARS]))
            return "skip" if len(self.wrong) <= MOST_WRONG_ROWS else "error"

        return with_arrow(block.lines, self.separator, self.names, kinds, skip, on_wrong_row)


def with_arrow(
    block: memoryview,
    separator: str,
    names: list[str],
    kinds: dict[str, csv_block.Kind],
    skip: int,
    on_wrong_row: Callable[[pacsv.InvalidRow], str],
) -> pa.Table:
    """The rows of a block as pyarrow reads them; a fault where a column of numbers holds something else."""
    return pacsv.read_csv(
        pa.BufferReader(block),
        # Read in one thread the parser knows the number of a wrong row; two threads were no faster.
        read_options=pacsv.ReadOptions(
            block_size=len(block) + 1, column_names=names, skip_rows=skip, use_threads=False
        ),
        parse_options=pacsv.ParseOptions(delimiter=separator, invalid_row_handler=on_wrong_row),
        convert_options=pacsv.ConvertOptions(
            include_columns=list(kinds),
            column_types={name: _TYPES[kind] for name, kind in kinds.items()},
            strings_can_be_null=False,
            null_values=[""],
        ),
    )


def _kinds(columns: list[str], labels: tuple[str, ...], numbers: Set[str]) -> dict[str, csv_block.Kind]:
    kind = csv_block.Kind
    return {c: kind.LABELS if c in labels else kind.NUMBERS if c in numbers else kind.TEXTS for c in columns}


def _names(path: Path, header: str, separator: str) -> list[str]:
    try:
        return [n.strip().lstrip("\ufeff") for n in next(csv.reader([header], delimiter=separator))]
    except csv.Error as error:
        raise FileFault(path, f"its first line has no column names: {error}", hint="check the export") from error


def _unreadable(path: Path, error: Exception, wrong_rows: int) -> FileFault:
    """What stands in the way of reading a text file, and what to do about it."""
    if isinstance(error, UnicodeDecodeError):
        return not_utf8(path)
    if wrong_rows > MOST_WRONG_ROWS:
        return FileFault(
            path,
            f"more than {MOST_WRONG_ROWS:,} rows have another number of cells than the header",
            hint="check the separator of the export",
        )
    return FileFault(path, f"cannot be read as CSV: {error}", hint="open the file at that row")


def _header(path: Path) -> tuple[int, str]:
    """The number of comment lines that a file starts with, and the line below them as text."""
    try:
        with open_plain(path) as stream, open_text(stream, newline="") as file:
            comments, header, second = 0, file.readline(HEADER_CHARS), file.readline(HEADER_CHARS)
            while _is_comment(header, second):
                comments, header, second = comments + 1, second, file.readline(HEADER_CHARS)
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    except OSError as error:
        raise unreadable(path, error) from error
    if len(header) >= HEADER_CHARS:
        raise FileFault(
            path,
            f"its first line is longer than {HEADER_CHARS:,} characters: not a line of column names",
            hint="check the export for a missing line end",
        )
    header = header.rstrip("\r\n")
    if not header.strip():
        raise FileFault(
            path, "the first line is blank: it has no header", hint="put the column names on the first line"
        )
    if not second.strip():
        raise FileFault(path, "it has a header but not one row", hint="check the time range of the export")
    return comments, header


def _is_comment(line: str, below: str) -> bool:
    """Whether a line is a comment; one with as many cells as the numbers below it is a header."""
    if not line.lstrip("\ufeff").startswith("#") or len(line) >= HEADER_CHARS:
        return False
    separator = max(_SEPARATORS, key=line.count)
    with_numbers = any(cell.strip()[:1].isdigit() for cell in below.split(separator))
    return not (separator in line and line.count(separator) == below.count(separator) and with_numbers)


FORMATS.register("csv")(Format("table of text", Kind.TELEMETRY, _score, open_csv))
