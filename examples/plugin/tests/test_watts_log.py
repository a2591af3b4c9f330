"""Does a file of the new kind import like any other, with its faults reported?"""

import gpuledger


def test_a_log_imports(tmp_path):
    lines = [f"2026-01-20T00:{minute:02d}:00Z GPU-1 {400 + minute}" for minute in range(30)]
    (tmp_path / "rack.watts").write_text("\n".join([*lines, "half a line"]) + "\n")
    lake = gpuledger.open(tmp_path / "books")
    taken = lake.ingest(tmp_path / "rack.watts")
    assert (taken.rows_added, taken.rows_rejected) == (30, 1)
    assert lake.samples().df()["power_w"].max() == 429
