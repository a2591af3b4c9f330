"""Are the likely causes the ones the counters show, and unknown where they do not?"""

from __future__ import annotations

from gpuledger.physics.causes import Condition, Rule, likely_cause

STARVED = {
    "engine_of_util_ratio": 0.43,
    "tensor_of_engine_ratio": 0.38,
    "dram_while_active_ratio": 0.11,
    "pcie_while_active_bytes_per_s": 0.3e9,
    "nvlink_of_link_ratio": 0.03,
}
WAITING = STARVED | {
    "engine_of_util_ratio": 0.9,
    "tensor_of_engine_ratio": 0.15,
    "pcie_while_active_bytes_per_s": 16e9,
    "nvlink_of_link_ratio": 0.45,
}


def test_each_cause() -> None:
    assert likely_cause(STARVED).cause == "storage"
    assert likely_cause(WAITING).cause == "network"
    assert likely_cause(WAITING | {"dram_while_active_ratio": 0.8}).cause == "memory"


def test_evidence_names_its_figures() -> None:
    words = likely_cause(STARVED).evidence
    assert "43 %" in words
    assert "0.3 GB/s" in words
    assert "NVLink at 3 %" in words


def test_one_link_is_enough() -> None:
    for link in ("pcie_while_active_bytes_per_s", "nvlink_of_link_ratio"):
        assert likely_cause({k: v for k, v in WAITING.items() if k != link}).cause == "network"
        assert likely_cause({k: v for k, v in STARVED.items() if k != link}).cause == "storage"


def test_without_counters_the_cause_is_not_known() -> None:
    found = likely_cause({})
    assert found.cause is None
    assert found.words.startswith("not known: ")
    assert "engine activity" in found.words
    assert found.evidence == "no counters"
    quiet = {k: v for k, v in STARVED.items() if "link" not in k and "pcie" not in k}
    assert likely_cause(quiet).words.startswith("not known: no rule fits without PCIe traffic")


def test_counters_that_fit_nothing() -> None:
    found = likely_cause(WAITING | {"tensor_of_engine_ratio": 0.6})
    assert (found.cause, found.words) == (None, "not known: no rule fits these counters")
    assert "60 %" in found.evidence


def test_a_condition_is_from_and_below() -> None:
    assert Condition("a", at_least=1.0).holds({"a": 1.0}) is True
    assert Condition("a", below=1.0).holds({"a": 1.0}) is False
    assert Condition("a", below=1.0).holds({}) is None
    assert not Rule("memory", "y", never=(Condition("a", at_least=1.0),)).fits({})
