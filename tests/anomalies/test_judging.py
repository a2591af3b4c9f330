"""Which GPUs are named, and which are not?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.anomalies.build import judged
from gpuledger.anomalies.signals import rules
from gpuledger.units import MS_PER_HOUR
from small_fleets import START_MS, fleet, no_price, noise


def found(hours):
    return judged(hours, rules(), no_price)


def named(statement):
    return [(f.gpu_uuid, f.kind) for f in statement.findings]


def clocks(seed, gpus=8, hours=48):
    """The logarithm of clocks: all follow the job, each has its own, small, ups and downs."""
    job = np.random.default_rng(seed + 99).normal(0, 0.2, hours)
    return np.log(1500) + job + noise(seed, gpus, hours)


def test_a_sound_fleet_has_no_findings():
    for seed in range(5):
        made = found(fleet({"clock": clocks(seed), "work": clocks(seed + 50)}))
        assert made.findings == ()
        assert made.by_peers == 8


def test_a_step_is_named_with_its_hour_and_size():
    values = clocks(1)
    values[3, 30:] += np.log(0.9)
    made = found(fleet({"clock": values}))
    assert named(made) == [("GPU-003", "clock")]
    (finding,) = made.findings
    assert abs(finding.since_ms - (START_MS + 30 * MS_PER_HOUR)) <= MS_PER_HOUR
    assert finding.slowdown.low_pct < 10 < finding.slowdown.high_pct
    assert finding.slowdown.middle_pct == pytest.approx(10, abs=1.5)
    assert not finding.from_start
    assert finding.peers == 7
    (evidence,) = finding.evidence
    assert evidence.now == pytest.approx(0.9 * evidence.expected, rel=0.02)


def test_a_drift_is_named_as_growing():
    values = clocks(2)
    values[5, 20:] += np.log(np.linspace(1, 0.8, 28))
    (finding,) = found(fleet({"clock": values})).findings
    assert (finding.gpu_uuid, finding.drifting) == ("GPU-005", True)
    assert abs(finding.since_ms - (START_MS + 20 * MS_PER_HOUR)) <= 5 * MS_PER_HOUR


@pytest.mark.parametrize("seed", range(4))
def test_seven_peers_are_enough_for_a_gpu_that_was_slow_before_the_window(seed):
    values = {name: clocks(seed + 10 * i, hours=168) for i, name in enumerate(("clock", "work", "power", "memory"))}
    values |= {name: 60 + 100 * noise(seed, hours=168) for name in ("util", "working", "heat", "capped")}
    values["clock"][3] += np.log(0.94)
    made = found(fleet(values))
    assert named(made) == [("GPU-003", "clock")]
    assert made.findings[0].from_start


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 50), st.sampled_from([0.7, 1.4]))
def test_what_is_larger_than_the_smallest_difference_is_named_and_what_is_smaller_is_not(seed, part):
    sound = clocks(seed, hours=96)
    (smallest,) = [s for s in found(fleet({"clock": sound})).smallest if s.signal == "clock"]
    sound[3] += part * np.log1p(smallest.change / 100) - (np.median(sound[3] - np.median(sound, axis=0)))
    assert bool(named(found(fleet({"clock": sound})))) == (part > 1)


def test_a_gpu_that_is_always_slow_is_named_from_the_start():
    values = clocks(3, gpus=16)
    values[7] += np.log(0.8)
    (finding,) = found(fleet({"clock": values})).findings
    assert (finding.gpu_uuid, finding.from_start, finding.evidence[0].basis) == ("GPU-007", True, "peers")


def test_a_fault_that_is_over_is_not_named():
    values = clocks(4)
    values[3, 15:30] += np.log(0.8)
    assert found(fleet({"clock": values})).findings == ()


def test_what_is_too_small_to_matter_is_not_named():
    values = clocks(5)
    values[3, 24:] += np.log(0.98)
    assert found(fleet({"clock": values})).findings == ()


def test_what_all_peers_do_is_not_the_gpu():
    values = clocks(6)
    values[:, 24:] += np.log(0.7)
    assert found(fleet({"clock": values})).findings == ()


def test_without_peers_a_gpu_cannot_be_judged():
    made = found(fleet({"clock": clocks(7, gpus=4)}))
    assert {n.reason for n in made.not_judged} == {"no peers"}
    made = found(fleet({"clock": clocks(7, hours=8)}))
    assert {n.reason for n in made.not_judged} == {"too short"}
    made = found(fleet({"clock": np.full((6, 48), np.nan)}))
    assert {n.reason for n in made.not_judged} == {"no readings"}


def test_without_peers_but_with_days_a_gpu_is_compared_with_its_own_past():
    values = np.log(1500) + noise(8, gpus=1, hours=24 * 16, size=0.02)
    values[0, 24 * 10 :] += np.log(0.85)
    made = found(fleet({"clock": values}))
    assert (made.by_peers, made.by_own_past) == (0, 1)
    (finding,) = made.findings
    assert finding.evidence[0].basis == "own past"
    assert abs(finding.since_ms - (START_MS + 240 * MS_PER_HOUR)) <= 24 * MS_PER_HOUR


def test_a_namespace_alone_does_not_make_the_same_work():
    """Work done is not compared where different jobs may be meant; clocks are."""
    values = clocks(9)
    values[3, 24:] += np.log(0.8)
    assert found(fleet({"work": values}, same_work=False)).findings == ()
    assert named(found(fleet({"clock": values}, same_work=False))) == [("GPU-003", "clock")]


def test_time_without_an_owner_has_no_peers():
    values = clocks(10)
    values[3, 24:] += np.log(0.8)
    made = found(fleet({"clock": values}, work="", same_work=False))
    assert made.by_peers == 0


def test_errors_beyond_those_of_the_others_are_named():
    counts = np.zeros((8, 48))
    counts[2, 40:] = 3
    counts[5, 7] = 1
    made = found(fleet({"clock": clocks(11)}, counts={"xid_events": counts}))
    assert named(made) == [("GPU-002", "driver errors")]
    (finding,) = made.findings
    assert finding.since_ms == START_MS + 40 * MS_PER_HOUR


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(8)), seed=st.integers(0, 1000), factor=st.floats(0.2, 5.0))
def test_names_order_and_units_do_not_matter(order, seed, factor):
    values = clocks(seed)
    values[3, 24:] += np.log(0.85)
    names = [f"GPU-{i:03d}" for i in range(8)]
    first = found(fleet({"clock": values}, names=names))
    again = found(fleet({"clock": values[list(order)] + np.log(factor)}, names=[names[i] for i in order]))
    key = [(f.gpu_uuid, f.kind, f.since_ms, f.drifting) for f in first.findings]
    assert [(f.gpu_uuid, f.kind, f.since_ms, f.drifting) for f in again.findings] == key
    renamed = found(fleet({"clock": values}, names=[f"x{n}" for n in names]))
    assert [(f.gpu_uuid.removeprefix("x"), f.kind, f.since_ms, f.drifting) for f in renamed.findings] == key


@pytest.mark.parametrize("seed", range(4))
def test_a_gpu_that_was_badly_cooled_before_the_window_is_named_by_seven_peers(seed):
    """Sound GPUs differ by up to 12 °C, as slots do; one is 26 °C above the middle of them."""
    slots = np.random.default_rng(seed).permutation(np.linspace(-6, 6, 8))
    slots[3] = 26
    heat = 60 + slots[:, None] + 100 * noise(seed, hours=168)
    assert named(found(fleet({"heat": heat, "clock": clocks(seed, hours=168)}))) == [("GPU-003", "heat")]


def test_readings_that_only_explain_name_no_gpu_and_are_shown_where_one_is_named():
    values = {name: clocks(5 + 10 * i, hours=96) for i, name in enumerate(("clock", "work", "memory"))}
    values["memory"][2] += np.log(1.5)
    assert named(found(fleet(values))) == []
    values["work"][2] += np.log(0.7)
    (finding,) = found(fleet(values)).findings
    assert finding.kind == "memory"
    assert {e.signal for e in finding.evidence} == {"work", "memory"}
