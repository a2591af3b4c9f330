"""Are live rows in the lake in order, whole, and in few parts?"""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.devices.device import Facts
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import merge_day, open_part
from gpuledger.ledger.engine import post_lake
from gpuledger.recording.live_parts import FAN_IN, Batch, LiveParts, labels, live_table, numbers, spread
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY

START = 1_768_867_200_000  # 2026-01-20 00:00 UTC
A, B = Facts(0, "GPU-a", "NVIDIA H200"), Facts(1, "GPU-b", "NVIDIA H200", "2", 3 / 7)
COLUMNS = ("at_ms", "power_w", "energy_mj")


def batch(facts: Facts, *at_ms: int, **labels: str) -> Batch:
    return Batch(facts, {"host": "h1", **labels}, COLUMNS, [(t, 100.0 + t % 7, t) for t in at_ms])


def rows(lake: Lake) -> list[dict[str, object]]:
    found = []
    for part in lake.manifest().parts:
        with open_part(lake.path(part)) as file:
            found += file.read().to_pylist()
            assert file.metadata.num_rows == part.rows
    return found


def test_a_table_has_all_columns_labels_and_blanks() -> None:
    table = live_table(
        [batch(A, START, START + 100, workload="w"), Batch(B, {}, ("at_ms", "sm_ratio"), [(START, None)])]
    )
    assert table.schema.equals(schema.arrow_schema(), check_metadata=True)
    first, _, last = table.to_pylist()
    assert (first["gpu_uuid"], first["workload"], first["host"], first["gpu_model"]) == (
        "GPU-a",
        "w",
        "h1",
        "NVIDIA H200",
    )
    assert (last["gpu_instance_id"], last["power_w"], last["sm_ratio"], last["workload"]) == ("2", None, None, None)
    assert (first["gpu_index"], last["gpu_index"]) == ("0", "1")
    assert last["slice_ratio"] == pytest.approx(3 / 7)
    assert first["slice_ratio"] is None


def test_rows_that_cross_midnight_go_to_their_days(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    parts = LiveParts(lake)
    parts.append([batch(A, START - 100, START, START + 100), batch(B, START + 50)])
    parts.close()
    days = {p.day: (p.rows, p.first_device, p.last_device) for p in lake.manifest().parts}
    assert days == {"2026-01-19": (1, "GPU-a", "GPU-a"), "2026-01-20": (3, "GPU-a", "GPU-b/2")}
    assert parts.rows == 4


def test_small_parts_are_merged_and_their_files_go(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    parts = LiveParts(lake)
    for k in range(FAN_IN + 3):
        parts.append([batch(A, START + 1000 * k), batch(B, START + 1000 * k + 1)])
        parts.tidy()
    assert len(lake.manifest().parts) == 4
    parts.close()
    after = lake.manifest()
    assert len(after.parts) == 2
    assert after.parts[0].made_of == tuple(range(1, FAN_IN + 1))
    assert sorted(lake.root.glob("samples/*/*.parquet")) == sorted(lake.path(p) for p in after.parts)
    assert not list(lake.root.glob("staging/*"))
    assert len(rows(lake)) == 2 * (FAN_IN + 3)


def test_merged_parts_are_merged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuledger.recording.live_parts.FAN_IN", 3)
    lake = Lake(tmp_path)
    parts = LiveParts(lake)
    for k in range(27):
        parts.append([batch(B, START + 1000 * k), batch(A, START + 1000 * k)])
        parts.tidy()
    parts.close()
    (part,) = lake.manifest().parts
    assert part.made_of == tuple(sorted(part.made_of))
    assert part.rows == 54
    found = rows(lake)
    assert all((a["gpu_uuid"], a["at_ms"]) < (b["gpu_uuid"], b["at_ms"]) for a, b in pairwise(found))


def test_posting_in_between_does_not_double_anything(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    parts = LiveParts(lake)
    for k in range(10):
        parts.append([batch(A, START + 1000 * k)])
    with lake.locked():
        merge_day(lake, "2026-01-20")
    for k in range(10, 20):
        parts.append([batch(A, START + 1000 * k)])
    parts.close()
    at = sorted(r["at_ms"] for r in rows(lake))
    assert at == [START + 1000 * k for k in range(20)]
    assert post_lake(lake, load_thresholds()).samples == 20


def test_owners_that_take_turns_or_share_keep_the_order(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    parts = LiveParts(lake)
    for k in range(6):
        at = START + 1000 * k
        parts.append([batch(A, at, at + 100, workload="x"), batch(A, at, at + 100, workload="y")])
        parts.append([batch(A, at + 500, workload="x" if k % 2 else "z")])
    parts.close()
    (part,) = lake.manifest().parts
    with open_part(lake.path(part)) as file:
        found = file.read().to_pylist()
    keys = [(r["at_ms"], r["workload"]) for r in found]
    assert keys == sorted(keys)
    assert len(keys) == 30


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3 * MS_PER_DAY), st.sampled_from(["x", "y"])),
        min_size=1, max_size=25, unique_by=lambda t: (t[0], t[1]),
    ),
    st.integers(1, 6),
)  # fmt: skip
def test_whatever_comes_in_is_in_the_lake_once_and_sorted(tmp_path_factory, points, size: int) -> None:
    lake = Lake(tmp_path_factory.mktemp("lake"))
    parts = LiveParts(lake)
    for k in range(0, len(points), size):
        some = points[k : k + size]
        parts.append([batch(A if d == "a" else B, START + t, workload=w) for d, t, w in some])
        parts.tidy()
    parts.close()
    for part in lake.manifest().parts:
        with open_part(lake.path(part)) as file:
            table: pa.Table = file.read()
        keys = [(u, t) for u, t in zip(table["gpu_uuid"].to_pylist(), table["at_ms"].to_pylist(), strict=True)]
        assert keys == sorted(keys)
        assert (part.first_ms, part.last_ms) == (min(t for _, t in keys), max(t for _, t in keys))
    assert sorted((r["gpu_uuid"][-1], r["at_ms"] - START, r["workload"]) for r in rows(lake)) == sorted(points)


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
