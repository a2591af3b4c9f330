"""Is the JSON complete, plain and free of NaN?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.lake.layout import Lake

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]


def test_the_headline_is_at_the_top(small_fleet: tuple[Lake, Path]) -> None:
    statement = efficiency_statement(small_fleet[0])
    made = to_json(statement)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    for name in ("samples", "gpus", "clusters"):
        assert made[name] == getattr(statement, name)
    for name in ("gpu_util_pct", "pif", "rfu_power_pct", "efficiency_gap_pp"):
        assert made[name] == getattr(statement.fleet, name)
    assert made["rfu_counters_pct"] is None  # its samples have no SM activity: a range
    assert made["fleet"]["rfu_counters_pct"]["low"] == statement.fleet.rfu_counters_pct.low  # type: ignore[union-attr]
    assert set(made["rfu_counters"]) == {"low", "middle", "high", "evidence", "note"}
    assert made["bottlenecked_pct_of_active"] == statement.active.bottlenecked_pct_of_active
    assert [set(r) for r in made["roi"]] == [
        {"target_rfu_pct", "equivalent_gpus", "gpu_hours_per_day", "gpu_hours_per_month"}
    ] * len(statement.roi)
    assert made["start_utc"] == "2026-01-20T00:00:00Z"
    assert made["hours"][1]["start_utc"] == "2026-01-20T01:00:00Z"
    assert (made["v"], made["statement"]) == (1, "efficiency")
    assert {f.name for f in fields(statement)} - {"counted", "by", "by_owner"} <= set(made)
    slow = statement.bottlenecked_gpus[0]
    row = next(r for r in made["per_gpu"] if r["gpu_uuid"] == slow.gpu_uuid)
    assert (row["likely_cause"], row["cause_evidence"]) == (slow.likely_cause, slow.cause_evidence)
    assert row["likely_cause"]
    assert "cause" not in row
    assert "counted" not in made, "nothing was counted in this lake"


def test_unknown_is_null_and_named(state: State, line: Line) -> None:
    made = to_json(state(line(0, "GPU-a", util=0.5), line(0, "GPU-b", util=0.5)))
    assert made["pif"] is None
    assert made["rfu_counters_pct"] is None
    assert made["rfu_counters"] is None
    named = {(n["figure"], n["count"]) for n in made["not_known"] if "power" in n["why"]}
    assert ("fleet.pif", 1) in named
    assert ("per_gpu[].means.pif", 2) in named
    assert all(n["why"] for n in made["not_known"])
    json.dumps(made, allow_nan=False)


def test_class_is_called_class(state: State, line: Line) -> None:
    made = to_json(state(line(0, util=0.9, pif=0.9)))
    assert made["per_gpu"][0]["class"] == "efficient"
    assert made["util_power"][0]["class"] == "efficient"
