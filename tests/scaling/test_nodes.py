"""Is a node called apart where it is, and only there?"""

from __future__ import annotations

import numpy as np

from gpuledger.scaling.analysis.nodes import compare_nodes
from gpuledger.units import Unknown

RNG = np.random.default_rng(2)


def nodes(**means: float) -> dict[str, list[float]]:
    return {name: list(mean * (1 + 0.02 * RNG.standard_normal(60))) for name, mean in means.items()}


def test_a_slow_node_is_found():
    warm = nodes(a=1.0, b=1.0, c=1.2)
    found = compare_nodes(warm, dict.fromkeys(warm, (60, 60)), 5.0, 1)
    assert [found[n].outlier for n in "abc"] == [False, False, True]
    assert found["c"].slower_pct.low > 15
    assert found["c"].loses_more is False


def test_a_difference_too_small_to_matter_is_none():
    warm = nodes(a=1.0, b=1.02)
    assert compare_nodes(warm, dict.fromkeys(warm, (60, 60)), 5.0, 1)["b"].outlier is False


def test_losing_more_is_told_from_chance():
    warm = nodes(a=1.0, b=1.0)
    assert compare_nodes(warm, {"a": (5, 10), "b": (10, 10)}, 5.0, 1)["a"].loses_more is True
    assert compare_nodes(warm, {"a": (9, 10), "b": (10, 10)}, 5.0, 1)["a"].loses_more is False


def test_one_node_has_nobody_to_be_compared_with():
    found = compare_nodes({"a": [1.0]}, {"a": (1, 1)}, 5.0, 1)["a"]
    assert isinstance(found.slower_pct, Unknown)
    assert isinstance(found.outlier, Unknown)
