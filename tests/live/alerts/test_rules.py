"""Does each rule see what is wrong, and only that, in samples that went through import and posting?"""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from alert_fleets import MIN, START_MS, readings
from gpuledger.cli.app import run
from gpuledger.live.alerts.journal import Journal
from gpuledger.live.alerts.limits import load_alerts
from gpuledger.live.alerts.watcher import Eyes, Watcher
from gpuledger.units import Unknown

IDLE = {"util": 0, "power": 60, "engine": 0.0, "clock": 210}


def values(lake, rule, **more):
    return {name: r.value for name, r in readings(lake, rule, **more).items()}


def over(found, rule):
    limit = load_alerts().rules[rule].fire
    return {name for name, value in found.items() if not isinstance(value, Unknown) and value >= limit}


def test_a_healthy_fleet_is_beyond_no_limit(lake_of):
    lake = lake_of(lambda _gpu, _minute: {})
    for rule in load_alerts().rules:
        assert over(values(lake, rule), rule) == set(), rule


def test_gpus_held_without_work(lake_of):
    lake = lake_of(lambda gpu, minute: IDLE if gpu == 2 and minute >= 80 else {})
    (found,) = readings(lake, "idle_held").values()
    assert found.value == pytest.approx(39, abs=1)
    assert found.since_ms == START_MS + 80 * MIN
    assert (found.owner.namespace, found.owner.run_id) == ("ml", "job-7")
    assert found.evidence == {"gpus_held": 1, "gpus_of_the_owner": 4, "longest": "node-1/2"}


def test_an_owner_that_gave_its_gpus_back_holds_nothing(lake_of, tmp_path):
    lake = lake_of(lambda _gpu, minute: IDLE if minute >= 60 else {}, gpus=1)
    with closing(Journal(tmp_path / "alerts")) as journal:
        watcher = Watcher(journal, Eyes(lake).look)
        (begun,) = [e for e in watcher.round(START_MS + 120 * MIN).events if e.rule == "idle_held"]
        lake_of(lambda _gpu, _minute: IDLE, gpus=1, first=120, minutes=3, job="job-8")
        (over,) = [e for e in watcher.round(START_MS + 123 * MIN).events if e.rule == "idle_held"]
    after = readings(lake, "idle_held", START_MS + 123 * MIN)
    assert after["ml/job-8"].value == pytest.approx(2, abs=1), "it did not hold the GPU before"
    assert (begun.key, over.key, over.ending) == ("idle_held:ml/job-7", "idle_held:ml/job-7", "gone")


def test_work_ends_the_time_held_and_free_memory_is_not_held(lake_of):
    lake = lake_of(lambda gpu, minute: IDLE if gpu == 2 and 10 <= minute < 100 else {})
    assert values(lake, "idle_held") == {"ml/job-7": 0.0}


def test_memory_that_is_free_is_not_held(lake_of):
    lake = lake_of(lambda gpu, _minute: IDLE | {"used": 0, "free": 40000} if gpu == 2 else {})
    assert values(lake, "idle_held") == {"ml/job-7": 0.0}


def test_time_held_goes_on_over_midnight(lake_of):
    lake = lake_of(lambda _gpu, _minute: IDLE, gpus=1, first=23 * 60, minutes=120)
    assert values(lake, "idle_held")["ml/job-7"] == pytest.approx(119, abs=1)


def test_time_held_longer_than_is_looked_at_says_so(lake_of):
    lake = lake_of(lambda _gpu, _minute: IDLE, gpus=1, minutes=3 * 24 * 60 + 30)
    (found,) = readings(lake, "idle_held", START_MS + (3 * 24 * 60 + 30) * MIN).values()
    assert found.since_ms > START_MS
    assert "may be longer" in str(found.evidence["began"])


def test_a_gpu_that_stopped_reporting(lake_of):
    lake = lake_of(lambda gpu, minute: None if gpu == 1 and minute >= 100 else {})
    found = readings(lake, "gpu_lost")
    assert over({n: r.value for n, r in found.items()}, "gpu_lost") == {"node-1/1"}
    assert found["node-1/1"].value == pytest.approx(19, abs=1)


@pytest.mark.parametrize(
    ("rule", "name", "value"),
    [("xid", "xid", 79), ("row_remap", "remapped", 2), ("row_remap_failure", "remap_failed", 1)],
)
def test_faults(lake_of, rule, name, value):
    lake = lake_of(lambda gpu, minute: {name: value} if gpu == 3 and minute >= 90 else {})
    found = readings(lake, rule)
    assert over({n: r.value for n, r in found.items()}, rule) == {"node-1/3"}
    assert found["node-1/3"].since_ms == START_MS + 90 * MIN
    assert found["node-1/3"].evidence.get("xid_codes") == ("79" if rule == "xid" else None)


def test_a_fault_before_the_window_is_over(lake_of):
    lake = lake_of(lambda gpu, minute: {"xid": 79} if gpu == 3 and minute == 20 else {})
    assert over(values(lake, "xid"), "xid") == set()


@pytest.mark.parametrize(("rule", "bits"), [("thermal", 0x40), ("power_cap", 0x4)])
def test_clocks_held_down(lake_of, rule, bits):
    lake = lake_of(lambda gpu, minute: {"throttle": bits} if gpu == 0 and minute % 4 else {})
    found = values(lake, rule)
    assert over(found, rule) == {"node-1/0"}
    assert found["node-1/0"] == pytest.approx(75, abs=2)


def test_one_rank_slower_than_the_rest(lake_of):
    lake = lake_of(lambda gpu, _minute: {"clock": 1100} if gpu == 1 else {})
    found = values(lake, "slow_rank")
    assert over(found, "slow_rank") == {"node-1/1"}
    assert found["node-1/1"] == pytest.approx(100 * (1 - 1100 / 1400), abs=0.1)


def test_two_gpus_have_no_middle(lake_of):
    lake = lake_of(lambda gpu, _minute: {"clock": 1100} if gpu == 1 else {}, gpus=2)
    assert values(lake, "slow_rank") == {}


def test_busy_without_power_is_a_gap_and_below_the_target(lake_of):
    lake = lake_of(lambda _gpu, _minute: {"power": 120})
    assert over(values(lake, "gap"), "gap") == {"ml"}
    rated = values(lake, "rfu")
    assert over(rated, "rfu") == set(rated)


def test_data_gets_stale_by_the_clock(lake_of):
    lake = lake_of(lambda _gpu, _minute: {}, minutes=30)
    fresh = values(lake, "stale", now_ms=START_MS + 31 * MIN)
    old = values(lake, "stale", now_ms=START_MS + 60 * MIN)
    assert (over(fresh, "stale"), over(old, "stale")) == (set(), {"lake"})


def test_a_budget_is_the_one_that_ask_budget_shows(lake_of, own_settings, capsys):
    own_settings("[prices]\nA100-SXM4-40GB = 2.0\n[budgets]\nml = 576\n")
    lake = lake_of(lambda _gpu, _minute: {}, minutes=3 * 24 * 60, gpus=1)
    found = readings(lake, "budget")["ml"]
    assert run(["ask", "budget", "--lake", str(lake.root), "--json", "--price", "2", "--budget", "ml=576"]) == 0
    said = json.loads(capsys.readouterr().out)
    (line,) = [one for one in said["lines"] if one["name"] == "ml"]
    assert found.value == pytest.approx(100 * float(line["total_usd"]) / 576)
    assert found.evidence["spent_usd"] == f"{float(line['actual_usd']):,.2f}"
    # $48 per day in all of January; its first 19 days are not known to have cost nothing.
    assert found.value == pytest.approx(100 * 31 / 12, rel=0.01)
    assert "19.0 days" in str(found.evidence["forecast_too"])
    assert found.at_ms == said["as_of_ms"]


def test_budgets_that_are_set(lake_of, own_settings):
    own_settings("[prices]\nA100-SXM4-40GB = 2.0\n[budgets]\nml = 1\nnobody = 5\n")
    lake = lake_of(lambda _gpu, _minute: {}, minutes=3 * 24 * 60, gpus=1)
    found = readings(lake, "budget")
    assert found["ml"].value > 100
    assert found["ml"].owner.namespace == "ml"
    assert isinstance(found["nobody"].value, Unknown)
