"""Can another package bring a rule, with limits a user changes, and can it do no harm to the others?"""

from __future__ import annotations

import pytest

from alert_fleets import MIN, START_MS
from gpuledger.errors import FactError
from gpuledger.live.alerts.deciding import Instant, decide
from gpuledger.live.alerts.journal import Journal
from gpuledger.live.alerts.limits import Limits, load_alerts
from gpuledger.live.alerts.rule import ALERTS, Reading, Rule, Subject
from gpuledger.live.alerts.watcher import Eyes

LIMITS = Limits(on=True, severity="info", fire=10.0, clear=5.0)


@pytest.fixture
def outside(monkeypatch):
    """Adds a rule for the test alone."""
    ALERTS.names()

    def add(look, limits=LIMITS):
        monkeypatch.setitem(ALERTS._things, "heat", Rule("heat", "Hot", "points", "cool {subject}", look, limits))

    return add


def looked(lake):
    look = Eyes(lake).look(load_alerts(), START_MS + 30 * MIN)
    return {one.rule.name: one for one in look.looked}, look.problems


def test_its_limits_are_its_own_until_the_user_changes_them(outside, lake_of, own_settings):
    outside(lambda seen: [Reading(Subject("lake", "a", "a b"), 7.0, seen.newest_ms)])
    lake = lake_of(lambda _gpu, _minute: {}, minutes=30, gpus=1)
    assert looked(lake)[0]["heat"].limits == LIMITS
    own_settings("[alerts.outside.heat]\nfire = 6.0\n")
    found, _ = looked(lake)
    assert (found["heat"].limits.fire, found["heat"].limits.severity) == (6.0, "info")
    journal = Journal(lake.root / "alerts")
    made = decide(journal, load_alerts(), [found["heat"]], Instant(START_MS, START_MS))
    journal.close()
    assert [e.next_step for e in made.events] == ["cool 'a b'"]
    own_settings("[alerts.outside.heat]\nfir = 6.0\n")
    with pytest.raises(FactError, match="fir"):
        looked(lake)


def test_one_that_fails_is_a_problem_and_the_others_are_looked_at(outside, lake_of):
    outside(lambda _seen: 1 / 0)
    found, problems = looked(lake_of(lambda _gpu, _minute: {}, minutes=30, gpus=1))
    assert problems == {"heat": "ZeroDivisionError: division by zero"}
    assert "heat" not in found
    assert "xid" in found


def test_of_several_readings_of_one_thing_the_worst_counts(outside, lake_of, tmp_path):
    about = Subject("gpu", "1", "1")
    outside(lambda seen: [Reading(about, value, seen.newest_ms) for value in (3.0, 30.0, 4.0)])
    found, _ = looked(lake_of(lambda _gpu, _minute: {}, minutes=30, gpus=1))
    journal = Journal(tmp_path / "alerts")
    made = decide(journal, load_alerts(), [found["heat"]], Instant(START_MS, START_MS))
    journal.close()
    assert [e.value for e in made.events] == [30.0]
