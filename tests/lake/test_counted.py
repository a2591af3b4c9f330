"""Is what a job counted kept whole, once a rank, and read back as it was?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.errors import LakeError
from gpuledger.lake.counted import CountedRun, CountedSpan, MeasuredFinding, covered_ms, read_counted, write_counted
from gpuledger.lake.layout import Lake


def span(start: int, end: int, **given) -> CountedSpan:
    return CountedSpan(start_ms=start, end_ms=end, steps=1, **given)


def run(run_id: str = "r1", rank: int = 0, **given) -> CountedRun:
    return CountedRun(run_id=run_id, rank=rank, spans=(span(10, 20, tflop=5.0),), **given)


def test_a_lake_without_counts_has_none(tmp_path):
    assert read_counted(Lake(tmp_path)) == []


def test_writing_again_replaces_one_rank(tmp_path):
    lake = Lake(tmp_path)
    found = MeasuredFinding(
        topic="loader", rule="num-workers", title="t", why="w", change="c\n", low=0.1, middle=0.2, high=0.3,
        gain_words="saves", figures={"data_wait_ms": 3.0},
    )  # fmt: skip
    for state in ("running", "done"):
        for rank in (0, 1):
            write_counted(lake, run(rank=rank, state=state, findings=(found,), report={"mfu_pct": 41.0}))
    read = read_counted(lake)
    assert [(r.rank, r.state) for r in read] == [(0, "done"), (1, "done")]
    assert read[0].findings == (found,)
    assert len(list((tmp_path / "counted").iterdir())) == 2


def test_a_run_id_cannot_leave_the_folder(tmp_path):
    file = write_counted(Lake(tmp_path), run("../../etc/passwd"))
    assert file.parent == tmp_path / "counted"


@pytest.mark.parametrize(("text", "said"), [("{}", "run_id"), ("nothing", "not the counts"), ('{"run_id":1}', "str")])
def test_a_damaged_file_is_named(tmp_path, text, said):
    (tmp_path / "counted").mkdir()
    (tmp_path / "counted" / "x-r0.json").write_text(text)
    with pytest.raises(LakeError, match=said) as error:
        read_counted(Lake(tmp_path))
    assert "x-r0.json" in str(error.value)
    assert "delete" in error.value.hint


def test_a_newer_version_is_refused(tmp_path):
    write_counted(Lake(tmp_path), run(version=2))
    with pytest.raises(LakeError, match="newer"):
        read_counted(Lake(tmp_path))


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50)), max_size=20))
def test_time_that_two_share_counts_once(pairs):
    spans = [span(start, start + length) for start, length in pairs]
    assert covered_ms(spans) == len({ms for start, length in pairs for ms in range(start, start + length)})
