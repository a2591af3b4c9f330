"""Is time without an owner kept apart from a namespace that is called as it is?"""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import ENGINE, H100, MEMORY, POWER, UTIL, audit, bill, lake_of, owed, samples

from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import CALLED_UNALLOCATED, UNALLOCATED, Scope, namespace_name, owner_name

WORK = {UTIL: 90, POWER: 300, ENGINE: 0.9, MEMORY: 9000}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One hour of nobody's, two hours of a namespace that is called "unallocated", three of another."""
    rows = samples(range(60), model=H100, **WORK)
    rows += samples(range(60, 180), model=H100, namespace=UNALLOCATED, **WORK)
    return lake_of(tmp_path, rows + samples(range(180, 360), model=H100, namespace="train", **WORK))


def test_a_namespace_called_unallocated_is_not_time_without_an_owner(lake: Lake) -> None:
    assert owed(bill(lake)) == {UNALLOCATED: 1, CALLED_UNALLOCATED: 2, "train": 3}
    assert {row.name for row in bill(lake).by_owner} == {UNALLOCATED, CALLED_UNALLOCATED, "train"}


def test_each_of_them_can_be_asked_for(lake: Lake) -> None:
    for name, dollars in ((UNALLOCATED, 1), (CALLED_UNALLOCATED, 2), ("train", 3)):
        assert owed(bill(lake, Scope(namespaces=(name,)))) == {name: dollars}
    assert owed(bill(lake, Scope(namespaces=(UNALLOCATED, "train")))) == {UNALLOCATED: 1, "train": 3}


def test_the_audit_tells_them_apart_too(lake: Lake) -> None:
    found = audit(lake)
    assert {row["name"] for row in found["by_namespace"]} == {UNALLOCATED, CALLED_UNALLOCATED, "train"}
    assert {(row["namespace"], row["workload"]) for row in found["behaviours"]} == {
        (None, None), (UNALLOCATED, None), ("train", None),
    }  # fmt: skip


def test_one_gpu_spelled_in_two_ways_is_one_case(tmp_path: Path) -> None:
    rows = samples(range(120), model=H100, namespace="a", **WORK)
    rows += samples(range(120), "GPU-b", "H100-SXM5-80GB", namespace="a", **WORK)
    found = audit(lake_of(tmp_path, rows))
    assert [(row["namespace"], row["gpus"]) for row in found["behaviours"]] == [("a", 2)]


def test_names_as_filters_take_them() -> None:
    assert namespace_name(None) == UNALLOCATED
    assert namespace_name(UNALLOCATED) == CALLED_UNALLOCATED
    assert namespace_name("a") == owner_name("a", None) == "a"
    assert (owner_name(None, None), owner_name(None, "w"), owner_name("a", "w")) == (UNALLOCATED, "w", "a/w")
    assert owner_name(UNALLOCATED, None) == CALLED_UNALLOCATED
