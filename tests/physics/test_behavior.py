"""Is each kind of work called what it is, with the figures that show it?"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.errors import FactError
from gpuledger.physics.behavior import (
    NOT_KNOWN,
    Behaviour,
    Class,
    check_rules,
    classify,
    classify_rows,
    figure_rows,
    load_rules,
)
from gpuledger.physics.signals import Signals

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "h200_windows.json").read_text(encoding="utf-8"))
ROWS = {f"{part}/{name}": row for part in ("h200_truth", "own") for name, row in RECORDED[part].items()}
CLASSES = set(get_args(Class))
COUNTERS = (
    "engine_ratio", "sm_ratio", "occupancy_ratio", "tensor_ratio", "fp64_ratio", "fp32_ratio", "fp16_ratio",
    "integer_ratio", "dram_ratio", "nvlink_ratio", "pcie_bytes_per_s",
)  # fmt: skip


def signals_of(row: dict[str, Any]) -> Signals:
    given_ = dict(row["signals"])
    if "util_bins" in given_:
        given_["util_bins"] = tuple(given_["util_bins"])
    return Signals(**given_)


def bins(**at: float) -> tuple[float, ...]:
    """A histogram of utilization: bins(h00=0.5, h19=0.5)."""
    return tuple(at.get(f"h{i:02d}", 0.0) for i in range(20))


@pytest.mark.parametrize("name", ROWS)
def test_recorded_workloads(name: str) -> None:
    found = classify(signals_of(ROWS[name]))
    assert found.klass in ROWS[name]["accepted_classes"], found.evidence
    assert found.confidence == "counters"


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("name", ROWS)
def test_a_tenth_more_or_less_of_any_figure_changes_no_class(name: str, factor: float) -> None:
    signals = signals_of(ROWS[name])
    for field in signals.known() - {"util_bins"}:
        value = getattr(signals, field) * factor
        value = min(value, 1.0) if field.endswith("_ratio") and field != "held_ratio" else value
        found = classify(dataclasses.replace(signals, **{field: value}))
        assert found.klass in ROWS[name]["accepted_classes"], field


def test_without_counters_what_can_be_told_is_told() -> None:
    """By utilization and power alone: no class is wrong without saying what it cannot be told from."""
    blind = dict.fromkeys(COUNTERS)
    right = 0
    shipped = RECORDED["h200_truth"]
    for row in shipped.values():
        found = classify(dataclasses.replace(signals_of(row), **blind))
        assert found.confidence == "utilization"
        if found.klass in row["accepted_classes"]:
            right += 1
        else:
            assert any("cannot be resolved at this sampling" in line for line in found.evidence)
    # Tiny kernels, and a training loop that waits: these means do not hold its waits.
    assert right == len(shipped) - 2


@pytest.mark.parametrize(
    ("klass", "signals"),
    [
        ("idle", {"engine_ratio": 0.0}),
        ("idle-held", {"engine_ratio": 0.0, "held_ratio": 2.0}),
        ("starved", {"engine_ratio": 0.0, "pcie_bytes_per_s": 50e9, "util_ratio": 1.0}),
        (
            "sync-bound",
            {"engine_ratio": 1.0, "sm_ratio": 0.3, "tensor_ratio": 0.1, "dram_ratio": 0.1, "nvlink_ratio": 0.4},
        ),
        ("spinning", {"engine_ratio": 1.0, "tensor_ratio": 0.0, "fp32_ratio": 0.0, "dram_ratio": 0.0}),
        # Vector pipes not recorded: fp32 work may hide there, unless the power says there is none.
        (
            "steady-partial",
            {"engine_ratio": 1.0, "tensor_ratio": 0.0, "dram_ratio": 0.0, "power_above_idle_ratio": 0.5},
        ),
        ("spinning", {"engine_ratio": 1.0, "tensor_ratio": 0.0, "dram_ratio": 0.0, "power_above_idle_ratio": 0.07}),
        ("compute-bound", {"engine_ratio": 1.0, "tensor_ratio": 0.8, "dram_ratio": 0.2}),
        ("starved", {"engine_ratio": 0.3, "tensor_ratio": 0.2, "dram_ratio": 0.05}),
        # No engine counter: utilization stands in for it.
        ("memory-bound", {"util_ratio": 1.0, "sm_ratio": 0.9, "dram_ratio": 0.8}),
        # Utilization and power only.
        ("starved", {"util_ratio": 0.5, "util_bins": bins(h00=0.5, h19=0.5)}),
        ("steady-partial", {"util_ratio": 0.5, "util_bins": bins(h10=1.0), "power_above_idle_ratio": 0.5}),
        ("starved", {"util_ratio": 0.2, "power_above_idle_ratio": 0.4}),
        ("compute-bound", {"util_ratio": 1.0, "power_above_idle_ratio": 0.9}),
        ("memory-bound", {"util_ratio": 1.0, "power_above_idle_ratio": 0.9, "mem_copy_ratio": 1.0}),
        ("spinning", {"util_ratio": 1.0, "power_above_idle_ratio": 0.07}),
        ("steady-partial", {"util_ratio": 1.0}),
        ("idle", {"util_ratio": 0.005}),
        ("idle-held", {"util_ratio": 0.005, "held_ratio": 1.5}),
        # A replica that answers: a little utilization is some work.
        ("steady-partial", {"util_ratio": 0.02, "held_ratio": 1.5}),
        # An engine that says it runs is utilization again: it does not say what it does.
        ("steady-partial", {"engine_ratio": 0.95, "util_ratio": 0.95}),
        ("steady-partial", {"engine_ratio": 0.95}),
    ],
)
def test_by_hand(klass: str, signals: dict[str, Any]) -> None:
    assert classify(Signals(**signals)).klass == klass


@pytest.mark.parametrize(
    ("basis", "signals"),
    [
        ("counters", {"engine_ratio": 0.95, "sm_ratio": 0.8, "tensor_ratio": 0.3, "dram_ratio": 0.2}),
        ("utilization", {"util_ratio": 0.95, "power_above_idle_ratio": 0.5}),
        ("utilization", {"engine_ratio": 0.95}),
    ],
)
def test_a_lowered_power_limit_is_a_limit(basis: str, signals: dict[str, Any]) -> None:
    """Pipes and memory fall short of their limits because the clocks are held down, not for want of work."""
    found = classify(Signals(**signals, capped_ratio=0.5))
    assert (found.klass, found.confidence) == ("compute-bound", basis)
    assert found.evidence[0] == "held at a power limit that was set below the board's own"
    assert "at a power limit below the board's own for 50 % of the time" in found.evidence
    for ratio in (0.49, 0.0, None):
        assert classify(Signals(**signals, capped_ratio=ratio)).klass == "steady-partial"


def test_nothing_known_is_not_known() -> None:
    assert classify(Signals()) == Behaviour(NOT_KNOWN, ("neither activity nor utilization is recorded",), "none")
    assert classify(Signals(power_ratio=0.9)).klass == NOT_KNOWN


def test_a_mean_of_a_tenth_is_three_different_things() -> None:
    """The same 10 % utilization: starved, launch-bound, idle."""
    mean = {"util_ratio": 0.1, "engine_ratio": 0.1}
    assert classify(Signals(**mean, sm_ratio=0.08, tensor_ratio=0.07, dram_ratio=0.02)).klass == "starved"
    assert classify(Signals(**mean, sm_ratio=0.03, tensor_ratio=0.001, dram_ratio=0.0)).klass == "launch-bound"
    assert classify(Signals(util_ratio=0.1, engine_ratio=0.001, sm_ratio=0.0)).klass == "idle"


def test_evidence_names_its_figures() -> None:
    found = classify(signals_of(ROWS["h200_truth/data_starved_gemm"]))
    text = "; ".join(found.evidence)
    # 7.6 % tensor activity on 9.7 % engine activity is 78 % while a kernel runs.
    assert "a kernel runs 9.7 % of the time" in text
    assert "tensor pipe active 78 % of the engine's time" in text
    spinning = classify(signals_of(ROWS["h200_truth/spin_one_block"]))
    assert any("NVLink traffic is not recorded" in line for line in spinning.evidence)
    rested = classify(Signals(engine_ratio=0.9, sm_ratio=0.8, tensor_ratio=0.7, dram_ratio=0.1, idle_ratio=0.4))
    assert any("idle in long stretches for 40 %" in line for line in rested.evidence)


shares = st.none() | st.floats(0, 1)
anything = st.builds(
    Signals,
    **{
        f.name: st.none() | st.floats(0, 1e12)
        if f.name in ("held_ratio", "pcie_bytes_per_s", "bounces_per_min")
        else shares
        for f in dataclasses.fields(Signals)
        if f.name != "util_bins"
    },
    util_bins=st.none() | st.lists(st.floats(0, 1), min_size=20, max_size=20).map(tuple),
)


@given(anything)
def test_one_class_always_and_evidence_with_numbers(signals: Signals) -> None:
    known = signals.known() & {"engine_ratio", "util_ratio", "sm_ratio"}
    if not known:  # what is a wait follows from them
        signals = dataclasses.replace(signals, wait_ratio=None)
    found = classify(signals)
    assert found.klass in CLASSES if known else found.klass == NOT_KNOWN
    assert found.confidence in ("counters", "utilization", "none")
    if known:
        assert any(c.isdigit() for line in found.evidence for c in line)


def figures_of(signals: list[Signals]) -> dict[str, np.ndarray]:
    """The figures of several stretches at once."""
    names = [f.name for f in dataclasses.fields(Signals) if f.name != "util_bins"]
    rows = {n: np.array([np.nan if getattr(s, n) is None else getattr(s, n) for s in signals]) for n in names}
    bins = np.array([[np.nan] * 20 if s.util_bins is None else s.util_bins for s in signals])
    return figure_rows(rows, bins)


def first_that_fits(figures: dict[str, float]) -> int:
    """The slow and obvious way: rule by rule, those by counters first."""
    rules = load_rules().rules
    for basis in ("counters", "utilization"):
        for number, rule in enumerate(rules):
            wanted = [c.holds(figures) is True for c in rule.all]
            some = [c.holds(figures) is True for c in rule.any]
            if rule.by == basis and all(wanted) and (any(some) or not rule.any):
                return number
    return -1


@given(st.lists(anything, min_size=1, max_size=8))
def test_many_at_once_are_judged_as_each_by_itself(signals: list[Signals]) -> None:
    figures, rules = figures_of(signals), load_rules().rules
    found = classify_rows(figures).tolist()
    for i, (number, one) in enumerate(zip(found, signals, strict=True)):
        known = {name: float(v[i]) for name, v in figures.items() if not np.isnan(v[i])}
        assert number == first_that_fits(known)
        alone = classify(one)
        assert alone.klass == (rules[number].klass if number >= 0 else NOT_KNOWN)
        if number >= 0:
            assert (alone.confidence, alone.evidence[0]) == (rules[number].by, rules[number].says)


@given(anything)
def test_no_activity_at_all_is_idle(signals: Signals) -> None:
    """Whatever else is said: no kernel, no traffic is idle, and held where memory is held."""
    quiet = dataclasses.replace(signals, engine_ratio=0.0, pcie_bytes_per_s=0.0)
    held = signals.held_ratio is not None and signals.held_ratio >= 1
    assert classify(quiet).klass == ("idle-held" if held else "idle")


@given(anything, st.floats(0, 1))
def test_idle_needs_an_idle_engine(signals: Signals, engine: float) -> None:
    found = classify(dataclasses.replace(signals, engine_ratio=engine, sm_ratio=engine))
    if engine >= 0.01:
        assert found.klass not in ("idle", "idle-held")


def test_every_figure_is_used_and_every_class_has_a_rule() -> None:
    rules = load_rules()
    assert {r.klass for r in rules.rules} == CLASSES
    used = {name for rule in rules.rules for name in rule.named()} | {"idle_ratio"}
    assert used == set(rules.figures)
    made = figures_of([Signals()])
    assert used <= set(made)
    assert set(made) <= set(rules.figures)


def test_a_rule_with_a_figure_nobody_makes_is_refused() -> None:
    rules = load_rules()
    broken = msgspec.structs.replace(
        rules, figures={k: v for k, v in rules.figures.items() if k != "dram_of_engine_ratio"}
    )
    with pytest.raises(FactError, match="dram_of_engine_ratio"):
        check_rules(broken, "behaviours.toml")
