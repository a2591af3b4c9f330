"""What is in a file: a table (CSV, Parquet, JSON rows), a JSON document, or plain text?

Column names are folded to one spelling, so that lineItem/ResourceId, line_item_resource_id and "Line Item Resource ID"
are the same; nested JSON objects become columns joined with an underscore. Tables are streamed: a bill may be large,
and most of its columns are of no interest here.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from gpuledger.bounds import LINE_BYTES, Unpacked, lines, refuse_claims, whole
from gpuledger.cost.inventories.written import Written
from gpuledger.errors import FileFault, map_os_error
from gpuledger.telemetry.formats.columns import SHEET, leaves, snake
from gpuledger.telemetry.spreadsheet import sheet_rows
from gpuledger.telemetry.unpacking import is_utf16, not_utf8

Row = Mapping[str, str]
PARQUET, GZIP = b"PAR1", b"\x1f\x8b"
HEAD_BYTES = 1 << 16
_LOOKED_AT = 1000


@dataclass(frozen=True)
class Content:
    """A file, as far as it makes sense: `document` is None where it is not JSON, `text` is "" where it is binary."""

    path: str

    @contextmanager
    def _open(self) -> Iterator[io.BufferedReader]:
        """Its bytes, unpacked where it is gzipped."""
        try:
            with Path(self.path).open("rb") as raw:
                packed = raw.read(2) == GZIP
                raw.seek(0)
                yield io.BufferedReader(Unpacked(gzip.GzipFile(fileobj=raw), Path(self.path))) if packed else raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FileFault(self.path, f"cannot be unpacked: {error}", hint="copy or export it again") from error
        except OSError as error:
            raise map_os_error(error, self.path, "read the inventory") from error

    @contextmanager
    def _text(self) -> Iterator[io.TextIOWrapper]:
        with self._open() as file:
            try:
                yield io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            except UnicodeDecodeError as error:
                if is_utf16(self.head):
                    raise not_utf8(Path(self.path)) from error
                hint = "save the inventory as CSV in UTF-8, or as Parquet"
                raise FileFault(self.path, f"not text: {error.reason}", hint=hint) from error

    @cached_property
    def head(self) -> bytes:
        """The first bytes."""
        with self._open() as file:
            return file.read(HEAD_BYTES)

    @cached_property
    def digest(self) -> str:
        """The same for the same content."""
        found = hashlib.sha256()
        with self._open() as file:
            while part := file.read(1 << 20):
                found.update(part)
        return found.hexdigest()

    @property
    def binary(self) -> bool:
        """Whether it is Parquet or a spreadsheet."""
        return self.head.startswith((PARQUET, SHEET))

    @cached_property
    def text(self) -> str:
        """All of it as text."""
        if self.binary:
            return ""
        with self._text() as text:
            return whole(cast("IO[bytes]", text.buffer), self.path).decode("utf-8-sig")

    @cached_property
    def first_lines(self) -> list[str]:
        """The first lines that are not empty."""
        if self.binary:
            return []
        with self._text() as text:
            cut = iter(lambda: text.readline(LINE_BYTES), "")  # a JSON document may be a single line
            return list(islice((line for line in cut if line.strip()), 2))

    @cached_property
    def json_lines(self) -> bool:
        """Whether each line is a JSON object."""
        if len(self.first_lines) < 2 or not all(line.lstrip().startswith("{") for line in self.first_lines):
            return False
        try:
            return isinstance(json.loads(self.first_lines[0]), dict)
        except (ValueError, RecursionError):
            return False

    @cached_property
    def document(self) -> Any:
        """As JSON, one object or list; None where it is not JSON, or has one object per line."""
        if self.json_lines or not self.first_lines or not self.first_lines[0].lstrip().startswith(("{", "[")):
            return None
        return self._json(self.text)

    def _json(self, text: str) -> Any:
        try:
            return json.loads(text, parse_float=str, parse_int=str)
        except RecursionError:
            raise FileFault(self.path, "nested too deeply", hint="export it again") from None
        except ValueError as error:
            hint = "is the export complete? write it again"
            raise FileFault(self.path, f"cannot be read as JSON: {error}", hint=hint) from error

    @property
    def table(self) -> Iterator[tuple[int, Row]]:
        """The rows with their numbers (the header of a CSV file is row 1)."""
        if self.head.startswith(PARQUET):
            yield from enumerate(self._parquet(), start=1)
        elif self.head.startswith(SHEET):
            head, *rows = sheet_rows(self.path)
            index = {snake(name): i for i, name in enumerate(head) if name}
            yield from ((number, _Line(index, row)) for number, row in enumerate(rows, start=2) if any(row))
        elif self.json_lines:
            with self._text() as text:
                for number, line in enumerate(lines(text, self.path), start=1):
                    if line.strip():
                        yield number, self._object(number, self._json(line))
        elif self.document is not None:
            rows = self.document if isinstance(self.document, list) else [self.document]
            yield from ((number, self._object(number, row)) for number, row in enumerate(rows, start=1))
        else:
            yield from self._csv()

    def _object(self, number: int, row: object) -> Row:
        if not isinstance(row, dict):
            hint = "write one object per row, or export it as CSV"
            raise FileFault(self.path, f"row {number} is not an object with columns", hint=hint)
        return dict(flat(row))

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns; of JSON rows those of the first thousand."""
        if not self.binary and not self.json_lines and self.document is None:
            return frozenset(snake(name) for name in self.header)
        return frozenset(name for _, row in islice(self.table, _LOOKED_AT) for name in row)

    @cached_property
    def header(self) -> list[str]:
        """The first line of a CSV file, as it is written."""
        first = self.first_lines[0] if self.first_lines else ""
        return next(csv.reader([first], delimiter=self._delimiter), []) if len(first) < HEAD_BYTES else []

    @cached_property
    def written(self) -> Written:
        """How its columns write numbers and days."""
        typed = self.binary or self.json_lines or self.document is not None
        return Written(self._values, typed=typed, points=typed or self._delimiter == ",")

    def _values(self, names: Collection[str]) -> Iterator[str]:
        for _, row in self.table:
            yield from (value for name in names if (value := row.get(name, "")))

    @property
    def _delimiter(self) -> str:
        return max(",;\t", key=self.first_lines[0].count) if self.first_lines else ","

    def _csv(self) -> Iterator[tuple[int, Row]]:
        with self._text() as text:
            reader = csv.reader(lines(text, self.path), delimiter=self._delimiter)
            try:
                head = next((line for line in reader if any(line)), [])
                index = {snake(name): i for i, name in enumerate(head)}
                for line in reader:
                    if any(line):
                        yield reader.line_num, _Line(index, line)
            except csv.Error as error:
                where = f"line {reader.line_num + 1}: cannot be read as CSV: {error}"
                raise FileFault(self.path, where, hint="shorten the value, or close its quote") from error

    def _parquet(self) -> Iterator[Row]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path) as file:
                refuse_claims(self.path, file.metadata.num_rows)
                for batch in file.iter_batches():
                    found = pa.Table.from_batches([batch])
                    while any(pa.types.is_struct(field.type) for field in found.schema):
                        found = found.flatten()
                    named = {snake(name): found.column(i) for i, name in enumerate(found.column_names)}
                    columns = _Columns(self.path, named)
                    yield from (_Cells(columns, i) for i in range(found.num_rows))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _not_parquet(self.path, error) from error


def _not_parquet(path: str, error: Exception) -> FileFault:
    why = (str(error).splitlines() or [type(error).__name__])[0]
    return FileFault(path, f"cannot be read as Parquet: {why}", hint="export it again")


class _Line(Mapping[str, str]):
    """A line of a table, by column name."""

    __slots__ = ("_cells", "_index")

    def __init__(self, index: Mapping[str, int], cells: list[str]) -> None:
        self._index, self._cells = index, cells

    def __getitem__(self, name: str) -> str:
        place = self._index[name]
        return self._cells[place].strip() if place < len(self._cells) else ""

    def get(self, name: str, default: Any = None) -> Any:  # called for every field of every row: no exceptions here
        place = self._index.get(name)
        if place is None or place >= len(self._cells):
            return default
        return self._cells[place].strip()

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)


class _Columns:
    """The columns of a batch; only those that are asked for become Python values."""

    def __init__(self, path: str, arrays: Mapping[str, Any]) -> None:
        self.path, self.arrays = path, arrays
        self._values: dict[str, list[Any]] = {}

    def cell(self, name: str, row: int) -> str:
        if name not in self._values:
            try:
                self._values[name] = self.arrays[name].to_pylist()
            except (ValueError, OverflowError) as error:
                raise _not_parquet(self.path, error) from error
        return _written(self._values[name][row])


class _Cells(Mapping[str, str]):
    """A row of a batch, by column name."""

    __slots__ = ("_columns", "_row")

    def __init__(self, columns: _Columns, row: int) -> None:
        self._columns, self._row = columns, row

    def __getitem__(self, name: str) -> str:
        return self._columns.cell(name, self._row)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns.arrays)

    def __len__(self) -> int:
        return len(self._columns.arrays)


def flat(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Nested objects as columns; lists, and what is nested too deeply, as JSON text."""
    return ((name, _written(inner)) for name, inner in leaves(value))


def _written(value: object) -> str:
    if value is None:
        return ""
    return json.dumps(value, default=str) if isinstance(value, list | tuple | dict) else str(value).strip()
