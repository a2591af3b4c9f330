"""Do the words of a figure say what it is a share of?"""

from __future__ import annotations

from gpuledger.physics.behavior import load_rules


def test_the_clock_is_held_against_the_rated_one():
    """A board may run above its rated clock, so 110 % of it is possible; of a maximum it would not be."""
    assert load_rules().figures["clock_ratio"].words.format(value="110 %") == "SM clock 110 % of its rated clock"
