"""How do columns that lie in pieces become one column in another order, each value moved once?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from gpuledger.native.library import call, library

_WIDTHS = {4: np.uint32, 8: np.uint64}


def placed(pieces: Sequence[pa.Array], to: np.ndarray) -> pa.Array | None:
    """The values of all pieces, each at its place in `to`; None where some are not known, or nothing is compiled."""
    kind = pieces[0].type
    if library() is None or any(piece.null_count for piece in pieces) or not pa.types.is_primitive(kind):
        return None
    if kind.bit_width not in (32, 64):
        return None
    cells = _WIDTHS[kind.bit_width // 8]
    out, first = np.empty(len(to), cells), 0
    for piece in pieces:
        values = np.frombuffer(piece.buffers()[1], cells, len(piece), piece.offset * kind.bit_width // 8)
        call(f"place_{kind.bit_width}", values, to[first : first + len(piece)], len(piece), out)
        first += len(piece)
    return pa.Array.from_buffers(kind, len(to), [None, pa.py_buffer(out)], 0)
