"""How do plain values become Arrow arrays without Arrow loading pandas?

`pa.array` imports pandas wherever it is installed, to see whether it was given one of its things: half a second of CPU,
more than a minute of sampling costs. Arrays made from buffers do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import TypeVar

import numpy as np
import pyarrow as pa

T = TypeVar("T")


def numbers(values: Sequence[float | int | None], kind: pa.DataType) -> pa.Array:
    """Numbers of a fixed width, NULL where None."""
    width = _width(kind)
    if None not in values:
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.array(values, dtype=width))])
    known = np.array([v is not None for v in values])
    filled: np.ndarray = np.array([0 if v is None else v for v in values], dtype=width)
    bits = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(filled)])


def positions(order: np.ndarray) -> pa.Array:
    """Row numbers, for taking rows in another order."""
    whole = np.ascontiguousarray(order, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(whole), [None, pa.py_buffer(whole)])


@cache
def _width(kind: pa.DataType) -> type:
    # Not `to_pandas_dtype`: that asks for pandas.
    found: type = {"float": np.float32, "double": np.float64}.get(str(kind)) or getattr(np, str(kind))
    return found


@lru_cache(maxsize=256)
def labels(values: tuple[str | None, ...], counts: tuple[int, ...]) -> pa.Array:
    """Each text as often as said, coded by a dictionary; NULL where None. Owners change seldom: worth remembering."""
    words = sorted({v for v in values if v is not None})
    if not words:
        return pa.nulls(sum(counts), pa.dictionary(pa.int32(), pa.string()))
    codes = [None if v is None else words.index(v) for v in values]
    coded = [w.encode() for w in words]
    ends = np.array([0, *accumulate(len(c) for c in coded)], dtype=np.int32)
    texts = pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(coded))])
    return pa.DictionaryArray.from_arrays(numbers(spread(codes, counts), pa.int32()), texts)


@lru_cache(maxsize=64)
def blanks(count: int, kind: pa.DataType) -> pa.Array:
    """Nothing but NULL."""
    return pa.nulls(count, kind)


def spread(values: Sequence[T], counts: Sequence[int]) -> list[T]:
    """Each value as often as said."""
    return [v for v, n in zip(values, counts, strict=True) for _ in range(n)]
