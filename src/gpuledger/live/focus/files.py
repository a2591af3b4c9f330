"""How are FOCUS rows written: CSV with plain decimals, Parquet with exact ones?"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpuledger.cost.money import PLACES
from gpuledger.encode import as_text
from gpuledger.errors import InputError, map_os_error
from gpuledger.lake.layout import write_atomically
from gpuledger.live.focus.columns import Specification, Type, specification
from gpuledger.live.focus.rows import Row
from gpuledger.plain_text import csv_text

SUFFIXES = (".csv", ".parquet")
DIGITS = 38


def check_name(file: Path) -> Path:
    """The file to write; an error where its name has no known ending."""
    if file.suffix.casefold() not in SUFFIXES:
        raise InputError(f"{file}: FOCUS files are CSV or Parquet", hint="name it FILE.csv or FILE.parquet")
    return file


def write_rows(rows: Sequence[Row], file: Path, *, older: bool = False) -> Path:
    """Rows as the file its name asks for, whole or not at all."""
    check_name(file)
    made = focus_csv(rows, older=older).encode() if file.suffix.casefold() == ".csv" else _parquet(rows, older=older)
    try:
        write_atomically(file, made)
    except OSError as error:
        raise map_os_error(error, file, "write the rows") from error
    return file


def focus_csv(rows: Iterable[Row], *, older: bool = False) -> str:
    """Rows as CSV text; an empty cell is a null."""
    spec = specification()
    types = spec.types(older=older)
    cells = ([_cell(value) for value in _values(row, types, spec)] for row in rows)
    return csv_text([list(types), *cells])


def _values(row: Row, types: Mapping[str, Type], spec: Specification) -> Iterable[Any]:
    return (row.get(spec.older.same_as.get(name, name)) for name in types)


def _cell(value: object) -> object:
    if isinstance(value, Decimal):
        text = as_text(value)
        return text if "." in text else f"{text}.0"  # a column of whole numbers stays one of decimals
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    return repr(value) if isinstance(value, float) else value


def _parquet(rows: Sequence[Row], *, older: bool) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        "String": pa.string(), "JSON": pa.string(), "Decimal": pa.decimal128(DIGITS, PLACES),
        "DateTime": pa.timestamp("ms", tz="UTC"), "Number": pa.float64(),
    }  # fmt: skip
    spec = specification()
    types = spec.types(older=older)
    found = [tuple(_values(row, types, spec)) for row in rows]
    columns = list(zip(*found, strict=True)) or [()] * len(types)
    arrays = [pa.array(values, kinds[kind]) for values, kind in zip(columns, types.values(), strict=True)]
    table = pa.table(dict(zip(types, arrays, strict=True)))
    table = table.replace_schema_metadata({"focus.version": spec.older.version if older else spec.version})
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd")
    return out.getvalue()
