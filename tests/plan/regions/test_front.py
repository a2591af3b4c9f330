"""Is the front what no other point beats, also where figures are unknown?"""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.plan.regions.front import beaten_by, dominates

FIGURE = st.one_of(st.none(), st.integers(0, 4))
POINT = st.tuples(st.integers(0, 4), FIGURE, st.integers(0, 4))
POINTS = st.lists(POINT, min_size=1, max_size=9)


def worse(b, a):
    """By the definition, in other words: `b` has no known figure that is better, and one that is worse."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if y is not None]
    return (
        all(x is not None for x, _ in pairs) and max(x - y for x, y in pairs) <= 0 and min(x - y for x, y in pairs) < 0
    )


def test_by_pencil():
    cheap, clean, both, bad, dark = (1, 9, 0), (9, 1, 0), (5, 5, 0), (6, 6, 0), (2, None, 0)
    assert beaten_by([cheap, clean, both, bad, dark]) == [None, None, None, 2, 0]


def test_an_unknown_figure_beats_nothing_that_is_known():
    assert not dominates((1, None, 0), (2, 5, 0))
    assert dominates((1, 5, 0), (2, None, 0))
    assert not dominates((1, None, 0), (1, None, 0))


@given(POINTS)
def test_the_front_is_that_of_brute_force(points):
    found = beaten_by(points)
    for i, b in enumerate(points):
        assert (found[i] is None) == (not any(worse(b, a) for a in points))
        if found[i] is not None:
            assert found[found[i]] is None
            assert worse(b, points[found[i]])


@given(POINTS)
def test_there_is_always_a_front(points):
    assert None in beaten_by(points)


@given(st.lists(POINT, min_size=1, max_size=5, unique=True))
def test_the_order_of_points_does_not_matter(points):
    def front(order):
        return {p for p, by in zip(order, beaten_by(order), strict=True) if by is None}

    assert all(front(list(order)) == front(points) for order in permutations(points))


@given(POINT, POINT, POINT)
def test_it_is_a_strict_order(a, b, c):
    assert not dominates(a, a)
    assert not (dominates(a, b) and dominates(b, a))
    if dominates(a, b) and dominates(b, c):
        assert dominates(a, c)
