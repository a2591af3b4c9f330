"""Laws of alerts: no flapping within the band, begin and end alternate, a restart at any point changes nothing."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.live.alerts.limits import Limits
from gpuledger.live.alerts.machine import QUIET, Held, Phase, step, turned_off, unseen
from gpuledger.live.alerts.rule import Reading, Subject
from gpuledger.units import Unknown

SUBJECT = Subject("gpu", "GPU-1", "node-01/0")
MIN = 60_000
values = st.one_of(st.floats(0, 100), st.just(Unknown("not recorded")))
lengths = st.sampled_from(["0s", "5m", "30m"])


@st.composite
def limits(draw):
    fire = draw(st.floats(1, 99))
    clear = draw(st.floats(0, fire))
    return Limits(on=True, severity="warning", fire=fire, clear=clear, hold=draw(lengths), clear_for=draw(lengths))


@st.composite
def histories(draw):
    """Values at rising instants."""
    steps = draw(st.lists(st.tuples(values, st.integers(0, 20)), max_size=40))
    at, out = 1_000_000_000_000, []
    for value, minutes in steps:
        at += minutes * MIN
        out.append(Reading(SUBJECT, value, at))
    return out


def lived(history, given, held=QUIET):
    changes = []
    for reading in history:
        held, change = step(held, reading, given)
        changes.append(change)
    return held, changes


@given(histories(), limits())
def test_begin_and_end_alternate_and_the_incident_counts_beginnings(history, given):
    held, changes = lived(history, given)
    seen = [c for c in changes if c]
    assert seen == ["firing" if i % 2 == 0 else "resolved" for i in range(len(seen))]
    assert held.incident == seen.count("firing")
    assert (held.phase is Phase.FIRING) == (len(seen) % 2 == 1)


@given(histories(), limits(), st.data())
def test_a_restart_at_any_point_changes_nothing(history, given, data):
    cut = data.draw(st.integers(0, len(history)))
    before, first = lived(history[:cut], given)
    kept = msgspec.json.decode(msgspec.json.encode(before), type=Held)
    # What was looked at last may be looked at again: it was seen, but the note of it is there.
    again = history[max(0, cut - 1) : cut]
    kept, repeated = lived(again, given, kept)
    after, rest = lived(history[cut:], given, kept)
    whole, changes = lived(history, given)
    assert not any(repeated)
    assert (after, [*first, *rest]) == (whole, changes)


@given(limits(), st.lists(st.floats(0, 1), max_size=30), st.booleans())
def test_within_the_band_nothing_changes(given, places, firing):
    held = Held(Phase.FIRING, 3, 5, 5) if firing else Held(incident=3)
    between = [given.clear + (given.fire - given.clear) * p for p in places]
    inside = [v for v in between if given.clear < v < given.fire]
    history = [Reading(SUBJECT, v, 1000 + i * 60 * MIN) for i, v in enumerate(inside)]
    after, changes = lived(history, given, held)
    assert not any(changes)
    assert (after.phase, after.incident) == (held.phase, 3)


@given(histories(), limits())
def test_an_unknown_value_is_as_if_nobody_had_looked(history, given):
    known = [r for r in history if not isinstance(r.value, Unknown)]
    (held, changes), (same, fewer) = lived(history, given), lived(known, given)
    assert held == same
    assert [c for c in changes if c] == [c for c in fewer if c]


@given(histories(), limits())
def test_nothing_fires_before_it_was_bad_for_long_enough(history, given):
    held = QUIET
    bad_since = None
    for reading in history:
        if not isinstance(reading.value, Unknown):
            bad = reading.value >= given.fire
            bad_since = (reading.at_ms if bad_since is None else bad_since) if bad else None
        held, change = step(held, reading, given)
        if change == "firing":
            assert bad_since is not None
            assert reading.at_ms - bad_since >= given.for_ms


def test_an_older_measurement_changes_nothing():
    given = Limits(on=True, severity="info", fire=10, clear=5)
    held, _ = step(QUIET, Reading(SUBJECT, 20.0, 2000), given)
    assert step(held, Reading(SUBJECT, 0.0, 1999), given) == (held, None)


def test_the_data_may_show_that_it_was_bad_before_anybody_looked():
    given = Limits(on=True, severity="info", fire=10, clear=5, hold="30m")
    held, change = step(QUIET, Reading(SUBJECT, 20.0, 60 * MIN, since_ms=10 * MIN), given)
    assert (change, held.since_ms) == ("firing", 10 * MIN)


def test_what_is_not_reported_any_more_is_over_as_if_it_had_recovered():
    given = Limits(on=True, severity="info", fire=10, clear=5, clear_for="10m")
    firing, pending = Held(Phase.FIRING, 1, 0, 1000), Held(Phase.PENDING, 0, 0, 1000)
    held, change = unseen(firing, 1000 + MIN, given)
    assert (held.phase, change) == (Phase.FIRING, None)
    assert unseen(held, 1000 + 10 * MIN, given)[1] is None
    assert unseen(held, 1000 + 11 * MIN, given) == (Held(incident=1), "resolved")
    back, _ = step(held, Reading(SUBJECT, 20.0, 1000 + 5 * MIN), given)
    assert unseen(back, 1000 + 11 * MIN, given)[1] is None, "the wait starts over"
    assert unseen(pending, 1001, given) == (QUIET, None)
    assert turned_off(firing) == (Held(incident=1), "resolved")
    assert turned_off(pending) == (QUIET, None)
