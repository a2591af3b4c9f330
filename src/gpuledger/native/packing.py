"""In how few bytes can the numbers of a column be kept without losing one bit of them?

Counters and clocks take eight bytes and say little: most differ from the least by a number of one or two bytes. Shares
and temperatures are hundredths or whole numbers. The compiled functions of `packs.c` and numpy give the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpuledger.native.library import call
from gpuledger.native.moving import Blocks
from gpuledger.native.number_types import numpy_type

_KEPT: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}
_NAMES = {pa.int64(): "i64", pa.float32(): "f32", pa.float64(): "f64"}
# What readings are counted in: units, or percent as a share. Some rows show which.
_DIVIDE, _WIDTHS, _LOOKED_AT = (1, 100), (1, 2), 64


class Packing(NamedTuple):
    """A number is (what is kept x 2**shift + low) / divide."""

    low: int = 0
    shift: int = 0
    divide: int = 1


AS_IS = Packing()


def packed(values: pa.Array) -> tuple[pa.Array, Packing]:
    """Numbers in as few bytes as they can be kept in, and how to get them back; as they are where that is not fewer."""
    if values.null_count or not len(values) or values.type not in _NAMES:
        return values, AS_IS
    return _whole(values) if values.type == pa.int64() else _divided(values)


def unpacked(kept: pa.Array, how: Packing, kind: pa.DataType) -> pa.Array:
    """The numbers again, as what they were."""
    if kept.type == kind:
        return kept
    blocks = Blocks(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([len(kept)]))
    return gathered(blocks, [kept], [how], kind)


def gathered(blocks: Blocks, arrays: Sequence[pa.Array], hows: Sequence[Packing], kind: pa.DataType) -> pa.Array:
    """The blocks of arrays that are kept one way or another, none of them NULL, as numbers of a kind."""
    if all(array.type == kind for array in arrays):
        return blocks.gathered(arrays)
    width = [array.type.bit_width // 8 for array in arrays]
    room = pa.allocate_buffer(blocks.total * kind.bit_width // 8)
    out = np.frombuffer(room, numpy_type(kind))
    base = np.array([a.buffers()[1].address + a.offset * w for a, w in zip(arrays, width, strict=True)], np.uint64)
    if kind == pa.int64():
        rule = [np.array([how.low for how in hows]), np.array([how.shift for how in hows])]
    else:
        rule = [np.array([how.divide for how in hows], np.float64)]
    where = (blocks.piece, blocks.start, blocks.rows, len(blocks.rows))
    if call(f"unpack_{_NAMES[kind]}", base, np.array(width), *rule, *where, out) is None:
        parts = zip(blocks.piece.tolist(), blocks.start.tolist(), blocks.rows.tolist(), strict=True)
        np.concatenate([_numbers(arrays[p].slice(s, r), hows[p], kind) for p, s, r in parts], out=out)
    return pa.Array.from_buffers(kind, blocks.total, [None, room], 0)


def _numbers(kept: pa.Array, how: Packing, kind: pa.DataType) -> np.ndarray:
    values = _cells(kept, numpy_type(kept.type))
    if kept.type == kind:
        return values
    if kind == pa.int64():
        return ((values.astype(np.uint64) << np.uint64(how.shift)) + np.array(how.low).astype(np.uint64)).view(np.int64)
    return (values.astype(np.float64) / how.divide).astype(numpy_type(kind))


def _cells(values: pa.Array, kind: np.dtype) -> np.ndarray:
    return np.frombuffer(values.buffers()[1], kind, len(values), values.offset * kind.itemsize)


def _array(made: np.ndarray, room: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(pa.from_numpy_dtype(made.dtype), len(made), [None, room], 0)


def _room(rows: int, width: int) -> tuple[np.ndarray, pa.Buffer]:
    room = pa.allocate_buffer(rows * width)  # Arrow's memory is given to the next array of its size
    return np.frombuffer(room, _KEPT[width]), room


def _whole(values: pa.Array) -> tuple[pa.Array, Packing]:
    """Whole numbers by their distance from the least, without the lowest bits that all share."""
    cells, ends = _cells(values, np.dtype(np.int64)), np.empty(3, np.int64)
    if call("range_i64", cells, len(cells), ends) is None:
        ends[:] = cells.min(), cells.max(), np.bitwise_or.reduce(cells ^ cells[0])
    low, high, bits = (int(end) for end in ends)
    shift = (bits & -bits).bit_length() - 1 if bits else 0
    width = next((w for w in _KEPT if (high - low) >> shift < 1 << 8 * w), None)
    if width is None:
        return values, AS_IS
    out, room = _room(len(cells), width)
    if call(f"pack_i64_{width}", cells, len(cells), low, shift, out) is None:
        apart = cells.view(np.uint64) - np.array(low).astype(np.uint64)
        np.copyto(out, apart >> np.uint64(shift), casting="unsafe")
    return _array(out, room), Packing(low=low, shift=shift)


def _divided(values: pa.Array) -> tuple[pa.Array, Packing]:
    """Numbers that are small whole numbers, or hundredths, by these."""
    kind, name = numpy_type(values.type), _NAMES[values.type]
    cells = _cells(values, kind)
    some = cells[:: len(cells) // _LOOKED_AT + 1]
    for divide in _DIVIDE:
        kept = _kept(some, divide, _WIDTHS[-1])
        for width in () if kept is None else (w for w in _WIDTHS if int(kept.max()) < 1 << 8 * w):
            out, room = _room(len(cells), width)
            odd = call(f"pack_{name}_{width}", cells, len(cells), float(divide), out)
            if odd is None and (found := _kept(cells, divide, width)) is not None:
                np.copyto(out, found)
                odd = 0
            if odd == 0:
                return _array(out, room), Packing(divide=divide)
    return values, AS_IS


def _kept(cells: np.ndarray, divide: int, width: int) -> np.ndarray | None:
    """What is kept of numbers; None where one cannot be kept so."""
    with np.errstate(over="ignore", invalid="ignore"):
        times = cells.astype(np.float64) * divide
    if not ((times >= 0) & (times < 1 << 8 * width)).all():
        return None
    kept, bits = np.rint(times).astype(np.int32), np.dtype(f"u{cells.dtype.itemsize}")
    back = (kept.astype(np.float64) / divide).astype(cells.dtype)  # 0 for -0, which is then not the same
    same = (back.view(bits) == np.ascontiguousarray(cells).view(bits)).all()
    return kept.astype(_KEPT[width]) if same and kept.max(initial=0) < 1 << 8 * width else None
