"""The lines in scope as one Arrow table, for people who want to look for themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope


def lines_table(lake: Lake, scope: Scope, limits: Thresholds | None = None) -> pa.Table:
    """Every line of the window with all its columns; an hour the window cuts is cut as in a statement."""
    columns = lines.columns()
    labels = [name for name, c in columns.items() if c.type == "string"]
    maybe = [name for name in ("slice_ppm", "limit_mw") if name in columns]
    numbers = [name for name in columns if name not in labels and name not in maybe]
    books = Books(lake, scope, limits)
    tables = []
    for _, rows in books.blocks(labels, numbers, maybe, hourly=True):
        made = {name: pa.array(books.names[name].text(rows[name]), pa.string()) for name in labels}
        made |= {name: _maybe(rows[name]) for name in maybe}
        made |= {name: pa.array(rows[name]) for name in numbers}
        tables.append(pa.table({name: made[name] for name in columns}))
    if not tables:
        raise books.nothing_found()
    return pa.concat_tables(tables)


def _maybe(values: np.ndarray) -> pa.Array:
    """Whole numbers that may be NULL."""
    missing = np.isnan(values)
    return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
