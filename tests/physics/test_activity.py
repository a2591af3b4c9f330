"""Is a line's pipe activity counted as the kind of work it is?"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.physics.activity import COLUMNS, CONDITIONS, PIPES, pipe_sums, recorded

LINE = st.fixed_dictionaries({c: st.sampled_from([0, 0, 1, 5, 10**15]) for c in COLUMNS})


def one_line(line: dict[str, int]) -> dict[str, int]:
    """The slow and obvious way."""
    apart = line["hmma_ms"] > 0 and min(line[f"{p}_ms"] for p in ("hmma", "imma", "dfma")) >= line["tensor_ms"]
    out = {f"{p}": line[f"{p}_ppm_mhz_ms"] for p in ("fp32", "fp16", "fp64")}
    out["matrix"] = line["hmma_ppm_mhz_ms"] if apart else line["tensor_ppm_mhz_ms"]
    out |= {p: line[f"{p}_ppm_mhz_ms"] if apart else 0 for p in ("imma", "dfma")}
    out["matrix_ms"], out["vector_ms"] = line["hmma_ms"] if apart else line["tensor_ms"], line["fp32_ms"]
    out["counters_ms"] = out["matrix_ms"] or max(line["fp32_ms"], line["fp16_ms"], line["fp64_ms"])
    return out


@given(st.lists(LINE, min_size=1, max_size=8))
@settings(deadline=None, max_examples=60)
def test_arrays_and_a_plain_loop_agree_line_by_line(lines: list[dict[str, int]]) -> None:
    found = pipe_sums({c: np.array([line[c] for line in lines]) for c in COLUMNS})
    assert set(found) == {*PIPES, "matrix_ms", "vector_ms", "counters_ms"}
    for i, line in enumerate(lines):
        assert {name: int(values[i]) for name, values in found.items()} == one_line(line)


@given(st.lists(LINE, min_size=1, max_size=8))
@settings(deadline=None)
def test_columns_without_anything_need_not_be_read(lines: list[dict[str, int]]) -> None:
    rows = {c: np.array([line[c] for line in lines]) for c in COLUMNS}
    blank = {c: np.zeros(len(lines), np.int64) for c in CONDITIONS if c not in rows}
    few = {c: rows[c] for c in COLUMNS if c in recorded(rows | blank)} | {"other": np.zeros(len(lines), np.int64)}
    assert all((found == pipe_sums(few)[name]).all() for name, found in pipe_sums(rows).items())


def test_the_time_counters_stand_on_is_the_best_there_is() -> None:
    lines = {"tensor_ms": [0, 9, 9, 9], "hmma_ms": [0, 0, 9, 5], "fp32_ms": [3, 3, 3, 3], "fp64_ms": [4, 0, 0, 0]}
    rows = {c: np.array(lines.get(c, [0, 0, 0, 0])) for c in COLUMNS}
    found = pipe_sums(rows)
    assert found["counters_ms"].tolist() == [4, 9, 9, 9]
    assert found["matrix_ms"].tolist() == [0, 9, 9, 9]
    assert found["vector_ms"].tolist() == [3, 3, 3, 3]
