"""Does posting see the same rows of a coarse clock however the files were cut, ordered and repeated?"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.lake.parts import PartWriter, merge_day, open_part
from gpuledger.lake.rows import without_conflicts
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.store import Ledger

DAY = 1_768_867_200_000
DAY_NAME = "2026-01-20"
MINUTE = 60_000

Row = tuple[int, str, str, str | None, float]  # time, device, namespace, pod, utilization


def write(file: Path, rows: list[Row]) -> Path:
    at, device, namespace, pod, util = zip(*rows, strict=True)
    columns = {
        "at_ms": pa.array(at, pa.int64()),
        "gpu_uuid": pa.array(device),
        "namespace": pa.array(namespace),
        "pod": pa.array(pod, pa.string()),
        "gpu_util_ratio": pa.array(util, pa.float64()),
    }
    pq.write_table(pa.table(columns), file)
    return file


def imported(folder: Path, files: list[list[Row]]) -> Lake:
    lake = Lake(folder / "lake")
    for i, rows in enumerate(files):
        import_files(lake, [write(folder / f"{i}.parquet", rows)])
    return lake


def seen(lake: Lake) -> list[dict[str, object]]:
    """The rows of the day as posting sees them."""
    with lake.locked():
        part = merge_day(lake, DAY_NAME)
    out = []
    with open_part(lake.path(part)) as file:
        for i in range(file.num_row_groups):
            names = ["at_ms", "gpu_uuid", "namespace", "pod", "gpu_util_ratio"]
            out += without_conflicts(file.read_row_group(i))[0].select(names).to_pylist()
    return out


def hours(lake: Lake) -> dict[tuple[str, str], float]:
    """Observed hours by device and namespace."""
    post_lake(lake, load_thresholds())
    lines = Ledger(lake).read("lines", DAY_NAME).to_pylist()
    out: dict[tuple[str, str], float] = {}
    for line in lines:
        key = (line["gpu_uuid"], line["namespace"])
        out[key] = out.get(key, 0.0) + line["observed_ms"] / 3_600_000
    return out


def scraped(period_s: int, minutes: int, device: str = "GPU-0", namespace: str = "n", pod: str | None = None):
    """A device read every `period_s` by a clock that shows minutes only; every reading is different."""
    count = minutes * 60 // period_s
    return [(DAY + i * period_s // 60 * MINUTE, device, namespace, pod, i / 4096) for i in range(count)]


def test_two_owners_on_a_minute_clock_are_written_in_order_of_time(tmp_path):
    """Both owners have four rows a minute: each gets half of the time, whole or cut into two files."""
    rows = scraped(15, 120, namespace="a") + scraped(15, 120, namespace="b")
    whole = imported(tmp_path, [rows])
    stamps = [r["at_ms"] for r in seen(whole)]
    assert stamps == sorted(stamps)
    (tmp_path / "cut").mkdir()
    cut = imported(tmp_path / "cut", [rows[:300], rows[300:]])
    assert hours(whole) == hours(cut) == {("GPU-0", "a"): 1.0, ("GPU-0", "b"): 1.0}


@pytest.mark.parametrize("period_s", [15, 20, 30, 45, 50])
def test_a_minute_clock_keeps_every_row_of_a_faster_scrape(tmp_path, period_s):
    rows = scraped(period_s, 120)
    lake = imported(tmp_path, [rows])
    found = seen(lake)
    assert len(found) == len(rows)
    assert len({r["at_ms"] for r in found}) == len(rows)
    assert all(r["at_ms"] // MINUTE == at // MINUTE for r, (at, *_) in zip(found, rows, strict=True))
    assert hours(lake)["GPU-0", "n"] == pytest.approx(2.0, abs=0.02)


def test_contradictions_on_a_slow_scrape_are_not_spread(tmp_path):
    """One row every five minutes, each twice with other readings: no clock that shows minutes explains that."""
    rows = [(DAY + 5 * i * MINUTE, "GPU-0", "n", None, (2 * i + k) / 100) for i in range(20) for k in range(2)]
    lake = Lake(tmp_path / "lake")
    result = import_files(lake, [write(tmp_path / "a.parquet", rows)])
    assert (result.rows_added, result.rows_spread, result.rows_rejected) == (0, 0, 40)
    assert seen(lake) == []


_series = st.tuples(
    st.sampled_from(["GPU-0", "GPU-1"]), st.sampled_from(["a", "b"]), st.sampled_from([None, "p", "q"]),
    st.sampled_from([10, 15, 30, 45, 50, 60]), st.integers(3, 12),
)  # fmt: skip


@given(st.lists(_series, min_size=1, max_size=4), st.randoms(use_true_random=False), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_what_posting_sees_depends_only_on_the_set_of_rows(tmp_path_factory, series, random, cuts):
    """Random series on a minute clock; random cut, random order, files repeated: the same rows in the same order."""
    rows = []
    for device, namespace, pod, period_s, minutes in series:
        some = scraped(period_s, minutes, device, namespace, pod)
        rows += [(*row[:4], random.choice([row[4], 0.5])) for row in some]
    once = seen(imported(tmp_path_factory.mktemp("once"), [rows]))
    mixed = rows.copy()
    random.shuffle(mixed)
    files = [part for i in range(cuts) if (part := mixed[i::cuts])]
    files += random.sample(files, random.randint(0, len(files)))
    assert seen(imported(tmp_path_factory.mktemp("cut"), files)) == once


@pytest.mark.parametrize("readings", ["equal", "different"])
def test_pods_of_one_namespace_share_a_time_sliced_gpu(tmp_path, readings):
    """Both pods report the GPU at the same instants: nothing contradicts, and its time is counted once."""
    step = 0 if readings == "equal" else 1
    rows = [
        (DAY + i * MINUTE + 7_123, "GPU-0", "team", pod, 0.5 + place * step / 100)
        for i in range(120)
        for place, pod in enumerate(("pod-a", "pod-b"))
    ]
    lake = Lake(tmp_path / "lake")
    result = import_files(lake, [write(tmp_path / "a.parquet", rows)])
    assert (result.rows_added, result.rows_rejected) == (240, 0)
    assert hours(lake) == {("GPU-0", "team"): 2.0}
    pods = Ledger(lake).read("pods", DAY_NAME).to_pylist()
    assert {p["pod"]: p["observed_ms"] for p in pods} == {"pod-a": 3_600_000, "pod-b": 3_600_000}


def test_a_part_out_of_order_is_never_written(tmp_path):
    def table(*rows: tuple[int, str]) -> pa.Table:
        at, device = zip(*rows, strict=True)
        return pa.table({"at_ms": pa.array(at, pa.int64()), "gpu_uuid": pa.array(device).dictionary_encode()})

    day = DAY // 86_400_000
    with pytest.raises(RuntimeError, match="not in order"):
        PartWriter(tmp_path / "a.parquet", day).add(table((DAY + 1, "A"), (DAY, "A")))
    with pytest.raises(RuntimeError, match="not in order"):
        PartWriter(tmp_path / "b.parquet", day).add(table((DAY, "B"), (DAY, "A")))
    writer = PartWriter(tmp_path / "c.parquet", day)
    writer.add(table((DAY, "A"), (DAY, "A"), (DAY + 1, "A")))
    with pytest.raises(RuntimeError, match="not in order"):
        writer.add(table((DAY + 2, "A")))
