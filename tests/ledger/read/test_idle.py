"""Is the longest idle stretch the one a plain loop finds?"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.ledger.read.idle import longest_idle_ms
from gpuledger.ledger.read.scope import Scope

DAY = 100
# For each device and each part of the time, whether it was quiet; a spell ends where a file or a cut does.
FLEET = st.lists(
    st.lists(st.sampled_from([None, 0, 1]), min_size=3 * DAY // 10, max_size=3 * DAY // 10), min_size=1, max_size=4
)


def spells(fleet: list[list[int | None]], day: int) -> dict[str, np.ndarray]:
    """Runs of one kind within a day, in order of device."""
    found = []
    for device, states in enumerate(fleet):
        for i, state in enumerate(states):
            if i * 10 // DAY != day or state is None:
                continue
            if found and found[-1][:2] == [device, state] and found[-1][3] == i * 10:
                found[-1][3] += 10
            else:
                found.append([device, state, i * 10, i * 10 + 10])
    columns = np.array(found, dtype=np.int64).reshape(-1, 4).T
    return {"device": columns[0], "start_ms": columns[2], "end_ms": columns[3]}


@given(FLEET, st.none() | st.integers(0, 150), st.none() | st.integers(160, 300), st.booleans())
@settings(deadline=None)
def test_the_longest_is_found_over_days_and_kinds(
    fleet: list[list[int | None]], since: int | None, until: int | None, backwards: bool
) -> None:
    pieces = [spells(fleet, day) for day in range(3)]
    if backwards:  # a file whose devices do not come in order
        pieces = [{c: v[::-1] for c, v in piece.items()} for piece in pieces]
    longest = []
    for states in fleet:
        quiet = [
            states[t // 10] is not None and (since is None or t >= since) and (until is None or t < until)
            for t in range(3 * DAY)
        ]
        lengths, run = [0], 0
        for q in quiet:
            run = run + 1 if q else 0
            lengths.append(run)
        longest.append(max(lengths))
    assert longest_idle_ms(pieces, Scope(since, until), len(fleet)) == longest


def test_a_device_without_spells_was_never_idle() -> None:
    assert longest_idle_ms([], Scope(), 2) == [0, 0]
