"""Are arrays made from buffers what pa.array would have made?"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.recording.live_parts import labels, numbers, positions, spread

WHOLE = st.lists(st.none() | st.integers(-(2**53), 2**53), max_size=70)
REAL = st.lists(st.none() | st.floats(allow_nan=False, width=32), max_size=70)


@settings(deadline=None)
@given(WHOLE)
def test_whole_numbers(values: list[int | None]) -> None:
    made = numbers(values, pa.int64())
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.int64()))


@settings(deadline=None)
@given(REAL, st.sampled_from([pa.float32(), pa.float64()]))
def test_real_numbers(values: list[float | None], kind: pa.DataType) -> None:
    made = numbers(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


@settings(deadline=None)
@given(st.lists(st.tuples(st.none() | st.text(max_size=5), st.integers(0, 5)), max_size=8))
def test_labels(pairs: list[tuple[str | None, int]]) -> None:
    values, counts = tuple(v for v, _ in pairs), tuple(n for _, n in pairs)
    made = labels(values, counts)
    made.validate(full=True)
    assert made.type == pa.dictionary(pa.int32(), pa.string())
    assert made.to_pylist() == spread(values, counts)


def test_positions() -> None:
    assert positions(np.array([2, 0, 1], dtype=np.int32)).to_pylist() == [2, 0, 1]


def test_recording_does_not_load_pandas() -> None:
    pytest.importorskip("pandas")
    code = """
import sys, tempfile
from gpuledger.lake.layout import Lake
from gpuledger.recording.writer import Recorder
from gpuledger.devices.device import Facts
recorder = Recorder(Lake(tempfile.mkdtemp()), lambda facts: [{"host": "h"}])
for k in range(3):
    recorder.take(Facts(0, "GPU-a", "m"), ("at_ms", "power_w"), [(1768867200000 + 100 * k, 99.5)])
    recorder.flush()
recorder.close()
assert recorder.rows == 3
assert "pandas" not in sys.modules, "pandas was loaded"
assert "duckdb" not in sys.modules, "duckdb was loaded"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
