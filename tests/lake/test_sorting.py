"""Does the external sort give days of whole devices in order, with or without spilling?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.lake.sorting import days as sorting
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.order import ARRIVAL, device_codes

DAY_MS = 86_400_000


def batch(rows: list[tuple[int, str, str | None]]) -> pa.Table:
    at, uuid, instance = zip(*rows, strict=True)
    return pa.table(
        {
            "at_ms": pa.array(at, pa.int64()),
            "gpu_uuid": pa.array(uuid).dictionary_encode(),
            "gpu_instance_id": pa.array(instance, pa.string()).dictionary_encode(),
            "power_w": pa.array(np.arange(len(at), dtype=float)),
        }
    )


_row = st.tuples(st.integers(0, 3 * DAY_MS - 1), st.sampled_from("abcd"), st.sampled_from([None, "1"]))


@pytest.mark.parametrize("memory", [1 << 30, 1])
@given(st.lists(_row, min_size=1, max_size=60), st.integers(1, 20), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_any_order_in_days_and_devices_in_order_out(tmp_path_factory, memory, rows, run_rows, chunk_rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MEMORY_BYTES", memory)
        patch.setattr(sorting, "RUN_ROWS", run_rows)
        patch.setattr(sorting, "CHUNK_ROWS", chunk_rows)
        patch.setattr(sorting, "SLICE_ROWS", 3)
        sorter = DaySorter(tmp_path_factory.mktemp("spill"))
        for i in range(0, len(rows), 7):
            sorter.add(batch(rows[i : i + 7]))
        out = []
        for day in sorter.days():
            seen: set[str] = set()
            for chunk in sorter.chunks(day):
                assert {a // DAY_MS for a in chunk["at_ms"].to_pylist()} == {day}
                _, names = device_codes(chunk)
                assert not seen.intersection(names), "a device was split over chunks"
                assert not seen or max(seen) < min(names)
                seen.update(names)
                out += [
                    (
                        r["at_ms"] // DAY_MS,
                        r["gpu_uuid"],
                        r["gpu_instance_id"] or "",
                        r["at_ms"],
                        r["power_w"],
                        r[ARRIVAL],
                    )
                    for r in chunk.to_pylist()
                ]
    # Rows of one device and instant stand in the order of what they hold, not of their arrival.
    assert out == sorted(out, key=lambda r: (r[0], f"{r[1]}/{r[2]}".rstrip("/"), *r[3:]))
    assert sorted((r[3], r[1], r[2]) for r in out) == sorted((a, u, i or "") for a, u, i in rows)


def test_repeated_rows_of_a_busy_device_are_dropped_as_they_come(tmp_path, monkeypatch):
    """A thousand times the same ten rows: each run keeps ten, and so does the day; other devices are left alone."""
    monkeypatch.setattr(sorting, "RUN_ROWS", 500)
    monkeypatch.setattr(sorting, "MANY_ROWS", 100)
    sorter = DaySorter(tmp_path)
    once = batch([(1000 * i, "a", None) for i in range(10)])
    for _ in range(1000):
        sorter.add(once)
    sorter.add(batch([(0, "b", None)] * 3))
    days = sorter.days()
    assert sum(sorter.rows_of_days().values()) < 500
    rows = sum(chunk.num_rows for day in days for chunk in sorter.chunks(day))
    assert rows + sorter.repeats == 10_003
    assert rows < 500


def test_repeated_rows_of_many_runs_are_dropped_while_they_are_gathered(tmp_path, monkeypatch):
    monkeypatch.setattr(sorting, "RUN_ROWS", 10)
    monkeypatch.setattr(sorting, "MANY_ROWS", 10)
    sorter = DaySorter(tmp_path)
    for _ in range(1000):
        sorter.add(batch([(1000 * i, "a", None) for i in range(10)]))
    (day,) = sorter.days()
    (chunk,) = sorter.chunks(day)
    assert chunk.num_rows < 10 * 10 * 10
    assert chunk.num_rows + sorter.repeats == 10_000


@given(st.lists(_row, min_size=1, max_size=60), st.integers(1, 4), st.integers(1, 12), st.booleans())
@settings(max_examples=40, deadline=None)
def test_what_several_sorters_hand_over_is_what_one_would_give(tmp_path_factory, rows, sorters, chunk_rows, by_day):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "RUN_ROWS", 5)
        patch.setattr(sorting, "CHUNK_ROWS", chunk_rows)
        alone, together = (DaySorter(tmp_path_factory.mktemp("spill")) for _ in range(2))
        arrival = np.arange(len(rows))
        alone.add(batch(rows), arrival)
        for i in range(sorters):
            if mine := rows[i::sorters]:
                one = DaySorter(tmp_path_factory.mktemp("spill"), by_day=by_day)
                one.add(
                    batch(mine).set_column(3, "power_w", pa.array(arrival[i::sorters].astype(float))),
                    arrival[i::sorters],
                )
                handed = one.hand_over()
                assert not by_day or all(len({s.day for s in run.slices}) == 1 for run in handed.runs)
                together.take_over(handed)
        assert alone.days() == together.days()
        for day in alone.days():
            kept = DaySorter(tmp_path_factory.mktemp("spill"))
            kept.take_over(together.of_days([day]))
            ours = [chunk.to_pylist() for chunk in kept.chunks(day)]
            assert ours == [chunk.to_pylist() for chunk in alone.chunks(day)]
