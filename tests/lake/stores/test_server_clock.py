"""Does a bucket's own clock keep out samples of a machine whose clock is ahead?"""

from __future__ import annotations

import time

import pytest

from gpuledger.errors import LakeError
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.units import MS_PER_DAY, MS_PER_S
from s3_lakes import DAY, sample_rows, write

AHEAD_S = 5 * 365 * 86_400


def test_samples_ahead_of_the_server_are_not_imported(place, tmp_path, monkeypatch):
    import_files(Lake(place), [write(tmp_path / "a.parquet", n=3)])
    before = sorted(sample_rows(Lake(place)))
    now, now_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: now() + AHEAD_S)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + AHEAD_S * 1_000_000_000)
    late = (time.time_ns() // 1_000_000 - MS_PER_DAY - DAY) // MS_PER_S
    with pytest.raises(LakeError, match="1,825 days ahead of the clock of the lake's storage"):
        import_files(Lake(place), [write(tmp_path / "b.parquet", n=3, offset=late, days=1)])
    assert sorted(sample_rows(Lake(place))) == before
