"""What do the lines of a day add up to, hour by hour, over all devices?

The hours of a fleet need the kinds of work, not the devices: a table of some hundred rows a day stands for all lines.
What is rated line by line (`physics.activity.pipe_sums`) is rated before it is added up, so the sums are those of the
lines.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gpuledger.lake.names import label_codes
from gpuledger.ledger import lines
from gpuledger.ledger.read.adding import runs
from gpuledger.ledger.read.columns import as_numbers
from gpuledger.native.run_sums import added_up
from gpuledger.physics.activity import COLUMNS, CONDITIONS, PIPES, pipe_sums

TIMES = ("hour_ms", "grain_ms")
LABELS = ("cluster", "namespace", "gpu_model", "tensor_precision", "state")
SUMS = (
    "samples", "util_ppm_ms", "util_ms", "pif_ms", "power_ms", "counters_ms", "matrix_ms", "vector_ms", *PIPES,
    *CONDITIONS,
)  # fmt: skip
_READ = tuple(dict.fromkeys((*COLUMNS, *CONDITIONS, *(c for c in SUMS if c in lines.columns()))))
_MOST = 1 << 62


def of_lines(table: pa.Table) -> pa.Table:
    """Coded lines, added up."""
    table = table.select([*TIMES, *LABELS, *(n for n in _READ if n not in TIMES)]).unify_dictionaries().combine_chunks()
    rows = {name: as_numbers(table[name].chunk(0)) for name in _READ} if table.num_rows else {}
    rated = rows | pipe_sums(rows) if rows else {name: np.zeros(0, np.int64) for name in SUMS}
    keys = [table[name] for name in (*TIMES, *LABELS)]
    return together(pa.table([*keys, *(pa.array(rated[n]) for n in SUMS)], names=[*TIMES, *LABELS, *SUMS]))


def together(table: pa.Table) -> pa.Table:
    """Rows of one hour and kind made one, unless their sum might pass 2**63."""
    if table.num_rows < 2:
        return table
    table = table.unify_dictionaries().combine_chunks()
    codes = [as_numbers(table[name].chunk(0)) for name in TIMES] + [
        label_codes(table[name].chunk(0)) for name in LABELS
    ]
    order, starts = runs([code - int(code.min()) for code in codes])
    longest = int(np.diff(starts, append=table.num_rows).max())
    sums = {name: as_numbers(table[name].chunk(0)) for name in SUMS}
    if longest > 1 and max(int(values.max()) for values in sums.values()) > _MOST // longest:
        half = table.num_rows // 2
        return pa.concat_tables([together(table.slice(0, half)), together(table.slice(half))]).unify_dictionaries()
    heads = pa.array(starts if order is None else order[starts])
    added = added_up(list(sums.values()), starts, order)
    return pa.table(
        [*(table[name].take(heads) for name in (*TIMES, *LABELS)), *(pa.array(v) for v in added)],
        names=table.column_names,
    )


def as_written(table: pa.Table) -> pa.Table:
    """The rows as a file holds them: without sums that are zero throughout, which readers take as zero."""
    empty = [name for name in SUMS if not np.any(table[name].to_numpy())]
    return table.drop_columns(empty)
