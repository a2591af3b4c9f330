"""Are grades monotone, and limits checked?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.errors import FactError
from gpuledger.scaling.grades import LETTERS, grade_of, load_scaling_thresholds, overall
from gpuledger.units import Unknown

LIMITS = load_scaling_thresholds()


@given(st.sampled_from(sorted(LIMITS.grades)), st.floats(0, 2000), st.floats(0, 2000))
def test_a_better_figure_never_gets_a_worse_grade(area, a, b):
    scale = LIMITS.grades[area]
    better, worse = (max(a, b), min(a, b)) if scale.better == "higher" else (min(a, b), max(a, b))
    assert LETTERS.index(scale.grade(better)) <= LETTERS.index(scale.grade(worse))


def test_a_limit_itself_gets_the_better_grade():
    assert LIMITS.grades["success"].grade(99.9) == "A"
    assert LIMITS.grades["success"].grade(94.9) == "F"
    assert LIMITS.grades["tail"].grade(1.25) == "A"


def test_the_overall_grade_is_the_worst_of_the_essential_ones():
    made = tuple(grade_of(a, v, LIMITS) for a, v in (("success", 99.95), ("evidence", 40.0), ("memory", 1.0)))
    assert overall(made)[0] == "D"
    none = (grade_of("success", Unknown("no"), LIMITS),)
    assert isinstance(overall(none)[0], Unknown)


def test_a_file_of_ones_own_replaces_limits(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text("[grades.success]\nlimits = [99.99, 99.9, 99.0, 98.0]\n")
    found = load_scaling_thresholds(own)
    assert found.grades["success"].grade(99.95) == "B"
    assert found.grades["success"].source == "own.toml"
    own.write_text("[grades.success]\nlimits = [90.0, 99.9, 99.0, 98.0]\n")
    with pytest.raises(FactError, match=r"grades\.success\.limits"):
        load_scaling_thresholds(own)
    own.write_text('[grades.success]\nlimits = "high"\n')
    with pytest.raises(FactError, match="limits"):
        load_scaling_thresholds(own)
