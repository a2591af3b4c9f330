"""Does every number come back bit by bit, from fewer bytes, compiled and plain alike?"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.native import moving, packing
from gpuledger.native.moving import Blocks
from gpuledger.native.number_types import numpy_type
from gpuledger.native.packing import AS_IS, Packing, gathered, packed, unpacked

KINDS = [pa.int64(), pa.float32(), pa.float64()]
WHOLE = [
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 300),
    st.integers(0, 1 << 17).map(lambda mib: mib << 20),
    st.integers(0, 1 << 34).map(lambda ms: 1_770_000_000_000 + ms),
]
SHARES = [
    st.integers(0, 70_000).map(float),
    st.integers(0, 100).map(lambda percent: percent / 100),
    st.sampled_from([-0.0, 0.0, -1.0, 255.0, 256.0, 65_535.0, 65_536.0, 655.35, 655.36, 1e300, 5e-324]),
    st.floats(allow_nan=True, allow_infinity=True),
]


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways; where nothing was compiled, the first is the second."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "plain":
            for module in (moving, packing):
                patch.setattr(module, "call", lambda *_given: None)
        yield


def column(data: st.DataObject, kind: pa.DataType) -> pa.Array:
    """Numbers of one sort, or of several; the column begins within another."""
    sorts = WHOLE if kind == pa.int64() else SHARES
    values = data.draw(st.lists(data.draw(st.sampled_from([*sorts, st.one_of(sorts)])), min_size=2, max_size=40))
    with np.errstate(over="ignore", under="ignore"):
        return pa.array(np.array(values).astype(numpy_type(kind)), kind).slice(1)


def bits(values: pa.Array) -> list[bytes]:
    """What the numbers are in memory: 0 and -0 differ, and what is not a number equals itself."""
    form = {pa.int64(): "<q", pa.float32(): "<f", pa.float64(): "<d"}[values.type]
    return [struct.pack(form, value) for value in values.to_numpy().tolist()]


@given(st.data(), st.sampled_from(KINDS))
def test_numbers_come_back_bit_by_bit(data: st.DataObject, kind: pa.DataType) -> None:
    values = column(data, kind)
    kept, how = packed(values)
    assert kept.type.bit_width <= values.type.bit_width
    assert bits(unpacked(kept, how, kind)) == bits(values)
    assert bits(unpacked(kept.slice(1), how, kind)) == bits(values.slice(1))


@given(st.data(), st.sampled_from(KINDS))
def test_compiled_and_plain_keep_the_same(data: st.DataObject, kind: pa.DataType) -> None:
    values = column(data, kind)
    kept, how = packed(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "call", lambda *_given: None)
        again, same = packed(values)
    assert (kept.type, how) == (again.type, same)
    assert kept.to_numpy().tobytes() == again.to_numpy().tobytes()


@given(st.data(), st.sampled_from(KINDS))
def test_blocks_of_columns_that_are_kept_differently(data: st.DataObject, kind: pa.DataType) -> None:
    columns = [column(data, kind) for _ in range(data.draw(st.integers(1, 4)))]
    kept = [packed(values) if data.draw(st.booleans()) else (values, AS_IS) for values in columns]
    blocks = []
    for _ in range(data.draw(st.integers(1, 6))):
        piece = data.draw(st.integers(0, len(columns) - 1))
        start = data.draw(st.integers(0, len(columns[piece]) - 1))
        blocks.append((piece, start, data.draw(st.integers(0, len(columns[piece]) - start))))
    named = Blocks(*(np.array(numbers) for numbers in zip(*blocks, strict=True)))
    found = gathered(named, [k for k, _ in kept], [how for _, how in kept], kind)
    assert bits(found) == [b for piece, start, rows in blocks for b in bits(columns[piece].slice(start, rows))]


@pytest.mark.parametrize(
    ("values", "kind", "width", "how"),
    [
        ([1_770_000_000_000 + 60_000 * i for i in range(9)], pa.int64(), 16, Packing(1_770_000_000_000, 5)),
        ([mib << 20 for mib in (80_000, 79_000, 3)], pa.int64(), 32, Packing(3 << 20, 20)),
        ([0, 0, 43, 0], pa.int64(), 8, Packing()),
        ([-3, 4, -3], pa.int64(), 8, Packing(-3)),
        ([-(2**63), 2**63 - 1], pa.int64(), 64, AS_IS),
        ([0.0, 0.37, 1.0], pa.float64(), 8, Packing(divide=100)),
        ([0.0, 0.37, 1.0], pa.float32(), 8, Packing(divide=100)),
        ([1980.0, 345.0], pa.float32(), 16, Packing()),
        ([61.0, 44.0], pa.float32(), 8, Packing()),
        ([0.123456, 0.5], pa.float32(), 32, AS_IS),
        ([-0.0, 1.0], pa.float64(), 64, AS_IS),
        ([float("nan"), 1.0], pa.float64(), 64, AS_IS),
        ([0, None, 3], pa.int64(), 64, AS_IS),
    ],
)
def test_in_how_few_bytes(values: list[float | None], kind: pa.DataType, width: int, how: Packing) -> None:
    kept, found = packed(pa.array(values, kind))
    assert (kept.type.bit_width, found) == (width, how)


@pytest.mark.parametrize("usual", [0.25, 7.0, 300.0])
@pytest.mark.parametrize("odd", [0.2512, 300.0, 70_000.0, -1.0, -0.0, float("nan"), float("-inf")])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_one_odd_number_among_many_is_not_lost(kind: type[np.floating], odd: float, usual: float) -> None:
    values = np.full(100_000, usual, kind)
    values[77_777] = odd  # not among the rows that are looked at first
    kept, how = packed(pa.array(values))
    assert unpacked(kept, how, pa.from_numpy_dtype(kind)).to_numpy().tobytes() == values.tobytes()
