"""What becomes of rows that claim the same device, owner and instant?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.rows import row_hashes, settle, spread_coarse_clock, without_conflicts
from gpuledger.lake.sorting.order import ARRIVAL, in_order
from gpuledger.ledger.engine import post_lake

DAY = 1_768_867_200_000


def table(rows: list[tuple]) -> pa.Table:
    """(device, minute offset s, util, namespace) rows in order, with arrival numbers."""
    device, second, util, namespace = zip(*rows, strict=True)
    made = pa.table(
        {
            "at_ms": pa.array([DAY + int(s * 1000) for s in second]),
            "gpu_uuid": pa.array(device).dictionary_encode(),
            "gpu_util_ratio": pa.array(util, pa.float64()),
            "namespace": pa.array(namespace, pa.string()).dictionary_encode(),
            ARRIVAL: pa.array(np.arange(len(rows))),
        }
    )
    return in_order(made)


def test_exact_repeats_are_dropped():
    settled = settle(table([("A", 0, 0.5, "n"), ("A", 0, 0.5, "n"), ("A", 60, 0.5, "n")]), None)
    assert (settled.added, settled.duplicates, settled.conflicts.num_rows) == (2, 1, 0)


def test_contradictions_are_all_rejected_and_left_out_when_read():
    settled = settle(table([("A", 0, 0.5, "n"), ("A", 0, 0.6, "n"), ("A", 60, 0.5, "n"), ("A", 120, 0.5, "n")]), None)
    assert (settled.added, settled.duplicates, settled.conflicts.num_rows) == (2, 0, 2)
    kept, conflicts, _ = without_conflicts(settled.table)
    assert conflicts == 2
    assert kept["at_ms"].to_pylist() == [DAY + 60_000, DAY + 120_000]


def test_two_owners_at_one_instant_are_no_conflict():
    settled = settle(table([("A", 0, 0.5, "n"), ("A", 0, 0.5, "m")]), None)
    assert (settled.added, settled.conflicts.num_rows) == (2, 0)


def one_metric(name: str, values: list[float], *, step_s: int = 60, **more: list) -> pa.Table:
    """A file of one metric of one GPU."""
    made = {"at_ms": [DAY + 1000 * step_s * i for i in range(len(values))], "gpu_uuid": ["A"] * len(values)}
    found = pa.table(made | {name: values} | more)
    texts = {i: pa.dictionary(pa.int32(), pa.string()) for i, t in enumerate(found.schema.types) if t == pa.string()}
    return found.cast(pa.schema([field.with_type(texts.get(i, field.type)) for i, field in enumerate(found.schema)]))


@pytest.mark.parametrize("step_s", [60, 15])
def test_files_of_one_metric_each_are_one_row_together(tmp_path, step_s):
    """By the minute, too, where two rows of a stamp may also be those of a coarse clock."""
    values = {"gpu_util_ratio": [0.5, 0.6, 0.7, 0.8], "power_w": [300.0, 310.0, 320.0, 330.0]}
    for name, found in values.items():
        pq.write_table(one_metric(name, found, step_s=step_s, slice_ratio=[0.5] * 4), tmp_path / f"{name}.parquet")
    files = [tmp_path / f"{name}.parquet" for name in values]
    whole = {"gpu_uuid": ["A"] * 4, "slice_ratio": [0.5] * 4, **values}
    for at_once in ([files], [files[:1], files[1:]], [files[1:], files[:1], files]):
        lake = Lake(tmp_path / f"lake-{len(at_once)}-{at_once[0][0].stem}")
        assert sum(import_files(lake, some).rows_rejected for some in at_once) == 0
        posted = post_lake(lake, load_thresholds())
        assert (posted.conflicts, posted.samples) == (0, 4)
        (part,) = lake.manifest().parts
        kept, left_out, _ = without_conflicts(pq.read_table(lake.path(part)))
        assert {name: kept[name].to_pylist() for name in whole} == whole
        assert left_out == 0


@pytest.mark.parametrize("other", [{"power_w": [300.0]}, {"gpu_model": ["NVIDIA H100"]}])
def test_rows_that_differ_in_what_both_say_are_not_put_together(other):
    ours = one_metric("gpu_util_ratio", [0.5], power_w=[301.0], gpu_model=["NVIDIA H200"])
    both = pa.concat_tables([ours, one_metric("dram_ratio", [0.1], **other)], promote_options="default")
    settled = settle(in_order(both.append_column(ARRIVAL, pa.array([0, 1]))), None)
    assert (settled.added, settled.conflicts.num_rows) == (0, 2)
    assert without_conflicts(settled.table)[1] == 2


def test_a_minute_clock_read_every_fifteen_seconds_is_spread():
    rows = [("A", 60 * m, (4 * m + i) / 100, "n") for m in range(3) for i in range(4)]
    spread, moved = spread_coarse_clock(table(rows))
    assert moved == 9
    assert spread["at_ms"].to_pylist() == [DAY + 15_000 * i for i in range(12)]
    assert spread["gpu_util_ratio"].to_pylist() == [i / 100 for i in range(12)]


def test_one_clash_in_a_minute_series_is_not_a_coarse_clock():
    settled = settle(table([("A", 60 * m, 0.5, "n") for m in range(5)] + [("A", 120, 0.7, "n")]), None)
    assert (settled.spread, settled.added, settled.conflicts.num_rows) == (0, 4, 2)


_row = st.tuples(st.sampled_from("AB"), st.integers(0, 3), st.sampled_from([0.1, 0.2]), st.sampled_from(["n", None]))


@given(st.lists(_row, min_size=1, max_size=12), st.randoms())
@settings(max_examples=80, deadline=None)
def test_what_is_left_depends_on_which_rows_exist_not_on_their_order(rows, random):
    """Against the rule itself: a key counts if exactly one content was ever seen for it. Where a row with an owner and
    one without share an instant, the owner holds it and the reading is that of the other, which is the device's own.
    """
    seen: dict[tuple, set] = {}
    for device, second, util, namespace in rows:
        seen.setdefault((device, DAY + (2 * second + 1) * 500, namespace), set()).add(util)
    clear = {k: util for k, (util, *more) in seen.items() if not more}
    expected = [
        (device, at, n, clear.get((device, at, None), util))
        for (device, at, n), util in clear.items()
        if n or (device, at, "n") not in clear
    ]
    shifted = [(d, (2 * s + 1) / 2, u, n) for d, s, u, n in rows]  # half seconds: not a coarse clock
    random.shuffle(shifted)
    half = len(shifted) // 2
    lake = None
    for part in (shifted[:half], shifted[half:]):
        if part:
            fresh = settle(table(part), lake).table
            lake = (
                fresh
                if lake is None
                else in_order(pa.concat_tables([lake, fresh]).unify_dictionaries().combine_chunks())
            )
    kept, *_ = without_conflicts(lake)
    got = [(r["gpu_uuid"], r["at_ms"], r["namespace"], r["gpu_util_ratio"]) for r in kept.to_pylist()]
    assert sorted(got, key=str) == sorted(expected, key=str)


def test_hashes_do_not_depend_on_dictionaries():
    a = table([("A", 0, 0.5, "n"), ("B", 0, 0.5, None)])
    b = pa.concat_tables([table([("C", 9, 0.5, "x")]), a]).unify_dictionaries().combine_chunks().slice(1)
    assert (row_hashes(a.drop_columns([ARRIVAL])) == row_hashes(b.drop_columns([ARRIVAL]))).all()


@pytest.mark.parametrize("overlap", [0, 5, 10])
def test_overlapping_files_add_only_what_is_new(tmp_path, overlap):
    def write(name: str, first: int) -> str:
        at = [DAY + 60_000 * i for i in range(first, first + 10)]
        pq.write_table(
            pa.table(
                {"at_ms": at, "gpu_uuid": ["A"] * 10, "gpu_util_ratio": [i / 100 for i in range(first, first + 10)]}
            ),
            tmp_path / name,
        )
        return str(tmp_path / name)

    lake = Lake(tmp_path / "lake")
    import_files(lake, [write("a.parquet", 0)])
    result = import_files(lake, [write("b.parquet", 10 - overlap)])
    assert (result.rows_added, result.rows_duplicate, result.rows_rejected) == (10 - overlap, overlap, 0)
    again = import_files(lake, [tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert (again.rows_added, again.rows_duplicate) == (0, 20)
