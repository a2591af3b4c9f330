"""Does the external sort give days of whole devices in order, with or without spilling?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.lake.sorting import days as sorting
from gpuledger.lake.sorting.days import DaySorter
from gpuledger.lake.sorting.order import ARRIVAL, device_codes
from gpuledger.lake.sorting.runs import Handed

DAY_MS = 86_400_000


@contextmanager
def _in_small(memory: int, run_rows: int, chunk_rows: int) -> Iterator[None]:
    """Runs, slices and chunks of few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MEMORY_BYTES", memory)
        patch.setattr(sorting, "RUN_ROWS", run_rows)
        patch.setattr(sorting, "CHUNK_ROWS", chunk_rows)
        patch.setattr(sorting, "SLICE_ROWS", 3)
        yield


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
    with _in_small(memory, run_rows, chunk_rows):
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


_reading = {
    "fb_used_bytes": st.one_of(st.none(), st.integers(0, 1 << 17).map(lambda mib: mib << 20), st.integers(0, 1 << 40)),
    "xid": st.one_of(st.none(), st.integers(0, 200)),
    "energy_mj": st.integers(0, 1 << 60),
    "gpu_util_ratio": st.one_of(st.none(), st.integers(0, 100).map(lambda pct: pct / 100), st.floats(0, 1)),
    "sm_clock_mhz": st.one_of(st.integers(0, 2000).map(float), st.sampled_from([0.5, 70_000.0])),
}
_kinds = {"fb_used_bytes": pa.int64(), "xid": pa.int64(), "energy_mj": pa.int64()}
_kinds |= {"gpu_util_ratio": pa.float64(), "sm_clock_mhz": pa.float32()}


@st.composite
def _batches(draw: st.DrawFn) -> list[pa.Table]:
    """Rows of two days and four devices, each column there, missing, or the same throughout a batch."""
    out, at = [], 0
    for _ in range(draw(st.integers(1, 5))):
        rows = draw(st.integers(1, 12))
        times = [DAY_MS - 20_000 + 1000 * (at + i) for i in range(rows)]
        columns = {"at_ms": pa.array(times, pa.int64())}
        columns["gpu_uuid"] = pa.array(draw(st.lists(st.sampled_from("abcd"), min_size=rows, max_size=rows)))
        for name, values in _reading.items():
            how = draw(st.sampled_from(["each", "each", "same", "none"]))
            if how != "none":
                some = [draw(values)] * rows if how == "same" else [draw(values) for _ in range(rows)]
                columns[name] = pa.array(some, pa.float64() if name == "sm_clock_mhz" else _kinds[name]).cast(
                    _kinds[name]
                )
        columns["gpu_uuid"] = columns["gpu_uuid"].dictionary_encode()
        out.append(pa.table(columns))
        at += rows
    return out


@pytest.mark.parametrize("memory", [1 << 30, 1])
@given(_batches(), st.integers(1, 20), st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_readings_come_out_as_they_went_in(tmp_path_factory, memory, batches, run_rows, chunk_rows):
    def rows(tables):
        for row in (row for table in tables for row in table.to_pylist()):
            yield tuple(repr(row.get(name)) for name in ("at_ms", "gpu_uuid", *_reading))

    with _in_small(memory, run_rows, chunk_rows):
        sorter = DaySorter(tmp_path_factory.mktemp("spill"))
        for table in batches:
            sorter.add(table)
        out = [chunk for day in sorter.days() for chunk in sorter.chunks(day)]
        other = DaySorter(tmp_path_factory.mktemp("other"))  # and once more from the files of another process
        other.take_over(msgspec.json.decode(msgspec.json.encode(sorter.hand_over()), type=Handed))
        again = [chunk for day in other.days() for chunk in other.chunks(day)]
    assert sorted(rows(out)) == sorted(rows(batches))
    assert list(rows(again)) == list(rows(out))
