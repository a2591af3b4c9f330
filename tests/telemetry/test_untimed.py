"""Do rows of files without full times get the times the user's words mean?"""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpuledger
from gpuledger.errors import NotSaid
from gpuledger.telemetry.mapping import given
from gpuledger.telemetry.stamps import Untimed

DAY_MS = 86_400_000

AT_MS = 1_700_000_000_000


def labels(*words: str) -> list[pa.Array]:
    return [pa.array(words).dictionary_encode()]


def test_rounds_go_on_over_batches(tmp_path):
    untimed = Untimed(tmp_path, given(at=AT_MS, every="2s"))
    assert untimed.rounds(labels("a", "b", "a")).tolist() == [AT_MS, AT_MS, AT_MS + 2_000]
    assert untimed.rounds(labels("b", "a")).tolist() == [AT_MS + 2_000, AT_MS + 4_000]


def test_several_rows_of_a_gpu_need_the_interval(tmp_path):
    untimed = Untimed(tmp_path, given(at=AT_MS))
    assert untimed.rounds(labels("a", "b")).tolist() == [AT_MS] * 2
    with pytest.raises(NotSaid) as caught:
        untimed.rounds(labels("a"))
    assert "--every" in caught.value.hint


def test_the_day_changes_where_the_clock_goes_back_past_midnight(tmp_path):
    untimed = Untimed(tmp_path, given(at="2026-12-31"))
    first = untimed.dated(pa.array(["23:59:58", "23:59:58", "x", "00:00:01"]))
    assert first.to_pylist() == ["2026-12-31 23:59:58", "2026-12-31 23:59:58", "2026-12-31 x", "2027-01-01 00:00:01"]
    assert untimed.dated(pa.array(["12:00:00", "11:59:59.5"])).to_pylist() == [
        "2027-01-01 12:00:00",
        "2027-01-01 11:59:59.5",
    ]
    assert untimed.dated(pa.array(["23:00:00", "01:00:00"])).to_pylist()[-1] == "2027-01-02 01:00:00"


def test_a_plain_table_without_times(tmp_path):
    header = "UUID,modelName,DCGM_FI_DEV_GPU_UTIL\n"
    (tmp_path / "f.csv").write_text(header + "GPU-1,NVIDIA H200,50\nGPU-2,NVIDIA H200,60\nGPU-1,NVIDIA H200,70\n")
    lake = gpuledger.open(tmp_path / "lake")
    means = gpuledger.open(tmp_path / "means")
    assert means.ingest(tmp_path / "f.csv", at="2026-01-20").rows_added == 2
    assert sorted(means.samples().df()["gpu_util_ratio"].round(6)) == [0.6, 0.6]
    assert lake.ingest(tmp_path / "f.csv", at="2026-01-20", every="1m").rows_added == 3
    found = lake.samples().df()
    assert sorted(found["at_ms"] - found["at_ms"].min()) == [0, 0, 60_000]
