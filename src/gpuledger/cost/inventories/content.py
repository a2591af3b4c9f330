"""What is in a file: a table (CSV, Parquet, JSON rows), a JSON document, or plain text?

Column names are folded to one spelling, so that lineItem/ResourceId, line_item_resource_id and "Line Item Resource ID"
are the same; nested JSON objects become columns joined with an underscore.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gpuledger.errors import FileFault, map_os_error

Row = Mapping[str, str]
PARQUET, GZIP, ZIPPED = b"PAR1", b"\x1f\x8b", b"PK\x03\x04"
_DEEPEST = 12
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[^A-Za-z0-9]+")


def snake(name: str) -> str:
    """A column name in the one spelling: line_item_resource_id."""
    return _BETWEEN.sub("_", _WORD.sub("_", name.strip())).strip("_").casefold()


@dataclass(frozen=True)
class Content:
    """A file that was read. Of `document`, `table` and `text` those that make no sense are None, empty or ""."""

    path: str
    data: bytes

    @property
    def digest(self) -> str:
        """The same for the same content."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def text(self) -> str:
        """As text; "" where it is Parquet."""
        if self.data.startswith(PARQUET):
            return ""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileFault(
                self.path, f"not text: {error.reason}", hint="save the inventory as CSV in UTF-8, or as Parquet"
            ) from error

    @cached_property
    def document(self) -> Any:
        """As JSON, one object or list, or one object per line; None where it is not JSON."""
        text = self.text.lstrip()
        if not text.startswith(("{", "[")):
            return None
        try:
            return json.loads(text, parse_float=str, parse_int=str)
        except RecursionError:
            raise FileFault(self.path, "nested too deeply", hint="export it again") from None
        except ValueError as error:
            try:
                return [json.loads(line, parse_float=str, parse_int=str) for line in text.splitlines() if line.strip()]
            except (ValueError, RecursionError):
                hint = "is the export complete? write it again"
                raise FileFault(self.path, f"cannot be read as JSON: {error}", hint=hint) from error

    @cached_property
    def table(self) -> list[tuple[int, Row]]:
        """The rows with their numbers (the header is row 1); empty where it is not a table."""
        if self.data.startswith(PARQUET):
            return list(enumerate(self._parquet(), start=1))
        if self.document is not None:
            rows = self.document if isinstance(self.document, list) else [self.document]
            return [(i, dict(flat(row))) for i, row in enumerate(rows, start=1) if isinstance(row, dict)]
        return list(self._csv())

    @cached_property
    def columns(self) -> frozenset[str]:
        """The names of the columns; of JSON rows those of the first thousand."""
        if self.data.startswith(PARQUET) or self.document is not None:
            return frozenset(name for _, row in self.table[:1000] for name in row)
        return frozenset(snake(name) for name in self.header)

    @cached_property
    def header(self) -> list[str]:
        """The first line of a CSV file, as it is written."""
        first = next((line for line in self.text.splitlines() if line.strip()), "")
        return next(csv.reader([first], delimiter=self._delimiter), [])

    @property
    def _delimiter(self) -> str:
        first = next((line for line in self.text.splitlines() if line.strip()), "")
        return max(",;\t", key=first.count)

    def _csv(self) -> Iterator[tuple[int, Row]]:
        reader = csv.DictReader(io.StringIO(self.text, newline=""), delimiter=self._delimiter)
        try:
            for line in reader:
                if any(value for name, value in line.items() if name is not None):
                    yield reader.line_num, {snake(n): (v or "").strip() for n, v in line.items() if n is not None}
        except csv.Error as error:
            where = f"line {reader.line_num + 1}: cannot be read as CSV: {error}"
            raise FileFault(self.path, where, hint="shorten the value, or close its quote") from error

    def _parquet(self) -> Iterator[Row]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            for group in pq.ParquetFile(pa.BufferReader(self.data)).iter_batches():
                for row in group.to_pylist():
                    yield dict(flat(row))
        except (pa.ArrowException, OSError) as error:
            why = str(error).splitlines()[0]
            raise FileFault(self.path, f"cannot be read as Parquet: {why}", hint="export it again") from error


def flat(value: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Nested objects as columns; lists, and maps given as pairs, as JSON text."""
    for name, inner in value.items():
        key = f"{before}_{snake(str(name))}" if before else snake(str(name))
        if isinstance(inner, dict) and depth < _DEEPEST:
            yield from flat(inner, key, depth + 1)
        elif isinstance(inner, list | tuple | dict):
            yield key, json.dumps(inner, default=str)
        else:
            yield key, "" if inner is None else str(inner).strip()


def open_content(file: str | Path) -> Content:
    """A file, unpacked where it is gzipped."""
    path = Path(file)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise map_os_error(error, path, "read the inventory") from error
    if data.startswith(ZIPPED):
        hint = "save the sheet as CSV in UTF-8; unpack a .zip first"
        raise FileFault(path, "a spreadsheet or a zip archive, which is not read here", hint=hint)
    if data.startswith(GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise FileFault(path, f"cannot be unpacked: {error}", hint="copy or export it again") from error
    return Content(str(path), data)
