"""What do the lines of a day add up to, GPU by GPU and hour by hour, whoever they are for?

An hour of a GPU has a line for each owner and state. What is drawn by the hour needs neither: it reads half the rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpuledger.lake.names import label_codes
from gpuledger.ledger.read.adding import runs
from gpuledger.ledger.read.columns import as_numbers
from gpuledger.native.run_sums import added_up
from gpuledger.telemetry import schema

KEYS = (*schema.DEVICE, "hour_ms", "grain_ms")
LIMIT = "limit_mw"
SUMS = ("observed_ms", "util_ppm_ms", "util_ms", "pif_uj", "pif_ms", "power_uj", "power_ms")


def of_lines(table: pa.Table) -> pa.Table:
    """Coded lines, added up; of several power limits the highest. Whole numbers below 2**63: an hour of one GPU."""
    table = table.select([*KEYS, LIMIT, *SUMS]).unify_dictionaries().combine_chunks()
    if not table.num_rows:
        return table
    codes = [label_codes(table[n].chunk(0).indices) for n in schema.DEVICE]
    codes += [as_numbers(table[n].chunk(0)) for n in KEYS[len(schema.DEVICE) :]]
    order, starts = runs([code.astype(np.int64) - int(code.min()) for code in codes])
    if order is None and len(starts) == table.num_rows:
        return table
    heads = pa.array(starts if order is None else order[starts])
    limit = as_numbers(table[LIMIT].chunk(0)).astype(np.float64)
    highest = np.fmax.reduceat(limit if order is None else limit[order], starts)
    none = np.isnan(highest)
    arrays = [table[name].take(heads) for name in KEYS]
    arrays.append(pa.chunked_array([pa.array(np.where(none, 0, highest).astype(np.int64), mask=none)]))
    added = added_up([as_numbers(table[name].chunk(0)) for name in SUMS], starts, order)
    return pa.table([*arrays, *map(pa.array, added)], schema=table.schema)
