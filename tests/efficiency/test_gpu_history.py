"""Are the stretches of one GPU without work whole, whatever cut them in the books?"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.efficiency.gpu_history import Spell, whole_spells

KINDS = st.sampled_from(["idle", "idle_held", "gap"])


@st.composite
def cut_spells(draw: st.DrawFn) -> list[Spell]:
    """Spells one after the other, some with work between them, some that touch; in any order."""
    edges = sorted(draw(st.sets(st.integers(0, 500), min_size=2, max_size=20)))
    found = [Spell(draw(KINDS), start, end) for start, end in pairwise(edges) if draw(st.booleans())]
    return draw(st.permutations(found))


@given(cut_spells(), st.integers(0, 300), st.integers(200, 600))
def test_stretches_hold_the_same_time_and_none_touches_another_of_its_kind(
    found: list[Spell], since: int, until: int
) -> None:
    made = whole_spells(found, since, until)
    assert _time(made, 0, 1000) == _time(found, since, until)
    in_order = sorted(made, key=lambda s: s.start_ms)
    assert all((a.kind, a.end_ms) != (b.kind, b.start_ms) for a, b in pairwise(in_order))
    assert [s.hours for s in made] == sorted((s.hours for s in made), reverse=True)


def _time(spells: list[Spell] | tuple[Spell, ...], since: int, until: int) -> set[tuple[str, int]]:
    """Every instant within a window, with its kind."""
    return {(s.kind, at) for s in spells for at in range(max(s.start_ms, since), min(s.end_ms, until))}
