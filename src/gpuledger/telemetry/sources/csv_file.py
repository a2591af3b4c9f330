"""How is a text file of telemetry streamed?"""

from __future__ import annotations

import csv
import gzip
import shlex
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from gpuledger.errors import FileFault, map_os_error
from gpuledger.telemetry.sources import SOURCES, Opened

BLOCK_BYTES = 16 << 20
_GZIP = b"\x1f\x8b"
_SEPARATORS = ",;\t|"
_IN_TEXT = bytes([*b"\t\r\n", *range(32, 256)])


class CsvSource:
    """Text with a header line, plain or gzipped. Every cell is read as text: a fault in a number costs its row only."""

    def fits(self, path: Path, head: bytes) -> bool:
        """Text has no control characters but those between cells and lines; opening it judges its encoding."""
        if head.startswith(b"PAR1") or path.suffix.lower() == ".parquet":
            return False
        if head.startswith(_GZIP):
            head = _unzipped_head(path)
        if not head or b"\x00" in head:
            return False
        try:
            head.decode("utf-8")
        except UnicodeDecodeError as error:
            cut_in_two = error.start > len(head) - 4  # a letter, by the end of the look
            return cut_in_two or not head.translate(None, _IN_TEXT)
        return True

    def open(self, path: Path) -> Opened:
        """The header is read here; the rows when asked."""
        header = _header(path)
        separator = max(_SEPARATORS, key=header.count)
        names = [n.strip().lstrip("\ufeff") for n in next(csv.reader([header], delimiter=separator))]
        repeated = sorted({n for n in names if names.count(n) > 1})
        if repeated:
            raise FileFault(path, f"two columns are called {repeated[0]!r}", hint="rename one of them")
        wrong: list[tuple[int, str]] = []

        def on_wrong_row(row: pacsv.InvalidRow) -> str:
            wrong.append((row.number - 1, row.text or ""))
            return "skip"

        def batches(columns: list[str], labels: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
            label_type = pa.dictionary(pa.int32(), pa.string())
            types = {c: label_type if c in labels else pa.string() for c in columns}
            try:
                reader = pacsv.open_csv(
                    pa.input_stream(str(path), compression="gzip" if _zipped(path) else None),
                    # Read in one thread the parser knows the number of a wrong row; two threads were no faster.
                    read_options=pacsv.ReadOptions(
                        block_size=BLOCK_BYTES, column_names=names, skip_rows=1, use_threads=False
                    ),
                    parse_options=pacsv.ParseOptions(delimiter=separator, invalid_row_handler=on_wrong_row),
                    convert_options=pacsv.ConvertOptions(
                        include_columns=columns, column_types=types, strings_can_be_null=False
                    ),
                )
                with reader:
                    for batch in reader:
                        if batch.num_rows:
                            yield batch
            except pa.ArrowException as error:
                hint = f"{_recode(path)}, or mend that row" if "UTF8" in str(error) else "open the file at that row"
                raise FileFault(path, f"cannot be read as CSV: {error}", hint=hint) from error
            except OSError as error:
                raise map_os_error(error, path, "read") from error

        return Opened(names, batches, None, wrong)


def _recode(path: Path) -> str:
    if _zipped(path):
        return "unpack it and save it as UTF-8"
    return f"save it as UTF-8: iconv -f LATIN1 -t UTF-8 {shlex.quote(str(path))} > utf8.csv"


def _zipped(path: Path) -> bool:
    with path.open("rb") as probe:
        return probe.read(2) == _GZIP


def _unzipped_head(path: Path) -> bytes:
    try:
        with gzip.open(path, "rb") as file:
            return file.read(4096)
    except (OSError, EOFError):
        return b""


def _header(path: Path) -> str:
    """The first line as text."""
    opener = gzip.open if _zipped(path) else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            header, second = file.readline().rstrip("\r\n"), file.readline()
    except UnicodeDecodeError as error:
        raise FileFault(path, "it is not UTF-8 text", hint=f"{_recode(path)}, or export it as Parquet") from error
    except (OSError, EOFError) as error:
        raise FileFault(path, f"cannot be unpacked: {error}", hint="copy or export the file again") from error
    if not header.strip():
        raise FileFault(
            path, "the first line is blank: there is no header", hint="put the column names on the first line"
        )
    if not second.strip():
        raise FileFault(path, "it has a header but not one row", hint="check the time range of the export")
    return header


SOURCES.register("csv")(CsvSource())
