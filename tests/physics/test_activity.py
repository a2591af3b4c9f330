"""Do the arrays and the SQL of the pipes say the same?"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.physics.activity import COLUMNS, PIPES, columns_of, pipe_sums, recorded

LINE = st.fixed_dictionaries({c: st.sampled_from([0, 0, 1, 5, 10**15]) for c in COLUMNS})


@given(st.lists(LINE, min_size=1, max_size=8))
@settings(deadline=None, max_examples=60)
def test_arrays_and_sql_agree_line_by_line(lines: list[dict[str, int]]) -> None:
    given_lines = pa.Table.from_pylist(lines, pa.schema([(c, pa.int64()) for c in COLUMNS]))  # noqa: F841
    with duckdb.connect() as db:
        said = db.sql(f"SELECT {', '.join(f'{e} AS {n}' for n, e in PIPES.items())} FROM given_lines").to_arrow_table()
    found = pipe_sums({c: np.array([line[c] for line in lines]) for c in COLUMNS})
    assert {n: found[n].tolist() for n in PIPES} == said.to_pydict()


@given(st.lists(LINE, min_size=1, max_size=8))
@settings(deadline=None)
def test_pipes_nobody_recorded_need_not_be_read(lines: list[dict[str, int]]) -> None:
    # A pipe without time has no activity.
    rows = {c: np.array([line[c] if line[f"{c.split('_')[0]}_ms"] else 0 for line in lines]) for c in COLUMNS}
    rows["imma_ppm_mhz_ms"] *= rows["hmma_ms"] > 0  # the kinds of tensor work are told apart together
    rows["dfma_ppm_mhz_ms"] *= rows["hmma_ms"] > 0
    few = {c: rows[c] for c in columns_of(recorded(rows))}
    assert all((found == pipe_sums(few)[name]).all() for name, found in pipe_sums(rows).items())


def test_the_time_counters_stand_on_is_the_best_there_is() -> None:
    lines = {"tensor_ms": [0, 9, 9, 9], "hmma_ms": [0, 0, 9, 5], "fp32_ms": [3, 3, 3, 3], "fp64_ms": [4, 0, 0, 0]}
    rows = {c: np.array(lines.get(c, [0, 0, 0, 0])) for c in COLUMNS}
    found = pipe_sums(rows)
    assert found["counters_ms"].tolist() == [4, 9, 9, 9]
    assert found["matrix_ms"].tolist() == [0, 9, 9, 9]
    assert found["vector_ms"].tolist() == [3, 3, 3, 3]
