"""A small lake for the tests."""

import pytest

HEAD = "timestamp,UUID,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_PROF_GR_ENGINE_ACTIVE"


@pytest.fixture
def busy_lake(tmp_path):
    """Six hours of one H100 that is busy all the time."""
    import gpuledger

    rows = [f"2026-01-20T{m // 60:02d}:{m % 60:02d}:00Z,GPU-1,NVIDIA H100 80GB HBM3,95,400,0.95" for m in range(360)]
    (tmp_path / "fleet.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    lake = gpuledger.open(tmp_path / "books")
    lake.ingest(tmp_path / "fleet.csv")
    return tmp_path / "books"
