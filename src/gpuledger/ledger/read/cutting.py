"""How are lines cut to a window whose samples are gone?"""

from __future__ import annotations

import numpy as np

from gpuledger.ledger import lines
from gpuledger.ledger.read.columns import Rows, Wanted

# What tells when a line is.
EDGES = ("hour_ms", "grain_ms", "first_ms", "last_ms")


def in_proportion(rows: Rows, wanted: Wanted, since: int | None, until: int | None) -> Rows:
    """Lines cut to the window, each sum in proportion to time; the parts of adjoining windows add up."""
    first, last = rows["first_ms"], rows["last_ms"]
    low = first if since is None else np.maximum(first, since)
    high = last if until is None else np.minimum(last, until)
    span = np.maximum(last - first, 1)
    cut = (low > first) | (high < last)
    out = dict(rows) | {"first_ms": low, "last_ms": high}
    for name in wanted.numbers:
        if name in EDGES or lines.columns()[name].merge != "sum":
            continue
        # In whole numbers: products of sums and milliseconds pass what a float holds.
        each, rest = np.divmod(rows[name], span)
        upto = [each * ms + rest * ms // span for ms in (low - first, high - first)]
        out[name] = np.where(cut, upto[1] - upto[0], rows[name])
    return out
