"""How does a column of numbers get to the unit, type and bounds of the schema in one pass, if all of it is in order?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from gpuledger.native.library import call
from gpuledger.native.number_types import numpy_type

_FROM = {pa.float64(): "f64", pa.float32(): "f32", pa.int64(): "i64", pa.int32(): "i32"}
_INTO = {pa.float32(): "f32", pa.float64(): "f64", pa.int64(): "i64"}


class Fit(NamedTuple):
    """(number + offset) x multiply / divide, of numbers below `blank_from`; what comes out is from `low` to `high`."""

    offset: float
    multiply: float
    divide: float
    blank_from: float
    low: float
    high: float


def fitted(raw: pa.Array, by: Fit, into: pa.DataType) -> pa.Array | None:
    """The numbers as a column of the schema holds them; None where some need a closer look, or nothing is compiled."""
    if raw.type not in _FROM or not len(raw) or (raw.null_count and raw.offset):
        return None
    validity, numbers = raw.buffers()
    values = np.frombuffer(numbers, numpy_type(raw.type))[raw.offset : raw.offset + len(raw)]
    valid = np.frombuffer(validity, np.uint8) if raw.null_count else None
    room = pa.allocate_buffer(len(raw) * into.bit_width // 8)  # Arrow's memory is given to the next array of its size
    out = np.frombuffer(room, numpy_type(into))
    odd = call(f"fit_{_FROM[raw.type]}_{_INTO[into]}", values, valid, len(raw), *map(float, by), out)
    if odd is None or odd:
        return None
    return pa.Array.from_buffers(into, len(raw), [validity if raw.null_count else None, room], raw.null_count)
