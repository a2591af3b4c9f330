"""Do files written by hand, just as the format says and a little worse, get the figures a pencil gives?"""

from __future__ import annotations

import json

import pytest

from gpuledger.encode import encode
from gpuledger.scaling.build import gather, scaling_statement


def made(tmp_path, header, requests, claims=(), more=()):
    file = tmp_path / "r.jsonl"
    rows = [{"v": 1, "kind": "run", **header}] if header is not None else []
    rows += [{"v": 1, "kind": "request", "node": "a", **r} for r in requests]
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    asked = tmp_path / "claims.json"
    asked.write_text(json.dumps([{"claim": c, "value": v} for c, v in claims]))
    found = encode("scaling", scaling_statement(gather([file, *more], claims=asked)))
    return found, {c["claim"]: (c["verdict"], c["why"]) for c in found["claims"]}


CARDS = {n: {"gpu": "NVIDIA A30", "gpus": 1} for n in "ab"}


def test_missing_and_unknown_fields(tmp_path):
    header = {"planned": {"a": 4, "b": 2}, "nodes": CARDS, "baseline": None, "wall_s": 10.0, "colour": "blue"}
    rows = [
        {"request": 0, "latency_s": 1.0, "ok": True, "mood": "good"},
        {"request": 1, "latency_s": 2.0, "ok": True},
        {"request": 2, "ok": False, "error": "timeout"},
        {"request": 0, "latency_s": 3.0, "ok": True, "node": "b"},
    ]
    found, said = made(tmp_path, header, rows, [("success_pct", 50), ("throughput_per_s", 0.3), ("success_pct_", 1)])
    assert found["success_pct"] == 50  # 3 of 6
    assert found["throughput_per_s"] == pytest.approx(0.3)
    assert found["latency_s"]["p50"] == 2.0
    assert found["counts"] | {"success_pct": 0, "survivors_pct": 0} == {
        "planned": 6, "ok": 3, "failed": 1, "lost": 2, "planned_known": True, "success_pct": 0, "survivors_pct": 0,
    }  # fmt: skip
    assert found["config"]["colour"] == "blue"
    assert [v for v, _ in said.values()] == ["supported", "supported", "cannot tell"]


def test_without_a_header_nobody_knows_what_was_lost(tmp_path):
    found, said = made(tmp_path, None, [{"request": 0, "ok": True, "latency_s": 1.0}], [("success_pct", 100)])
    assert not found["counts"]["planned_known"]
    assert said["success_pct"][0] == "cannot tell"


def test_more_lines_than_planned_are_a_fault(tmp_path):
    header = {"planned": {"a": 2}, "nodes": CARDS, "baseline": None, "wall_s": 4.0}
    found, _ = made(tmp_path, header, [{"request": i, "ok": True, "latency_s": 1.0} for i in range(4)])
    assert any("4 requests have a line, 2 were planned" in f for f in found["faults"])
    assert found["success_pct"] == 100


def test_no_answer_is_no_throughput_however_long_it_took(tmp_path):
    header = {"planned": {"a": 1}, "nodes": CARDS, "baseline": None, "wall_s": None}
    found, said = made(
        tmp_path, header, [{"request": 0, "ok": False, "error": "refused"}], [("throughput_per_s", 2.05)]
    )
    assert found["throughput_per_s"] == 0
    assert said["throughput_per_s"][0] == "contradicted"


def test_a_number_for_a_baseline_is_named_as_typed_in(tmp_path):
    header = {"planned": {"a": 1, "b": 1}, "nodes": CARDS, "baseline": 1.0, "wall_s": 1.0}
    rows = [{"request": 0, "ok": True, "latency_s": 1.0, "node": n} for n in "ab"]
    found, said = made(tmp_path, header, rows, [("scaling_efficiency_pct", 102.5)])
    assert "1.0 in the header is typed in" in found["scaling"]["refused"]
    assert said["scaling_efficiency_pct"][0] == "cannot tell"
    assert next(c for c in found["checks"] if c["check"] == "baseline_not_measured")["caught"]


def test_no_cold_start_is_a_finding(tmp_path):
    header = {"planned": {"a": 20}, "nodes": {"a": CARDS["a"]}, "baseline": None, "wall_s": 20.0}
    rows = [{"request": i, "ok": True, "latency_s": 1.0 + 0.01 * (i % 3), "start_s": i} for i in range(20)]
    found, said = made(tmp_path, header, rows, [("cold_start_pct", 87), ("ranking", 5)])
    assert found["nodes"][0]["cold_start"] is None
    assert not [g for g in found["not_known"] if "cold_start" in g["figure"] and "nodes.a" in g["figure"]]
    assert said["cold_start_pct"][0] == "contradicted"
    assert said["ranking"][0] == "cannot tell"


def test_a_sweep_is_not_taken_for_one_distribution(tmp_path):
    header = {"planned": {"a": 24}, "nodes": {"a": {"gpu": "NVIDIA H200", "gpus": 1}}, "baseline": None, "wall_s": 12.0}
    rows = [  # batch 8 three times in 3 s each, then batch 1 twice in 1 s: the first requests are slower, not cold
        {"request": i, "ok": True, "batch": 8, "start_s": 3.0 * (i // 8), "latency_s": 3.0, "output_tokens": 100}
        for i in range(24)
    ] + [
        {"request": 24 + i, "ok": True, "batch": 1, "start_s": 9.0 + i, "latency_s": 1.0, "output_tokens": 100}
        for i in range(2)
    ]  # fmt: skip
    found, _ = made(tmp_path, header, rows)
    assert found["latency_s"]["cold"]["n"] == 0
    assert found["grades"]["consistency"]["grade"] is None
    one, eight = found["batches"]["points"]
    assert (one["tokens_per_s"], eight["tokens_per_s"]) == (100, pytest.approx(2400 / 9))
    dear = float(found["cost"]["usd_per_gpu_h"])
    assert float(one["usd_per_million_tokens"]) == pytest.approx(dear / 3600 * 2 / 200 * 1e6)
    assert float(eight["usd_per_million_tokens"]) == pytest.approx(dear / 3600 * 9 / 2400 * 1e6)


def test_a_share_of_memory_is_held_to_its_own_bytes_and_the_real_card(tmp_path):
    header = {"planned": {"a": 1}, "nodes": {"a": CARDS["a"]}, "baseline": None, "wall_s": 1.0}
    made(tmp_path, header, [{"request": 0, "ok": True, "latency_s": 1.0}])
    claims = [{"claim": "memory_pct", "value": v, "memory_used_gb": 15.83} for v in (49.8, 66)]
    (tmp_path / "c.json").write_text(json.dumps(claims))
    found = encode("scaling", scaling_statement(gather([tmp_path / "r.jsonl"], claims=tmp_path / "c.json")))["claims"]
    assert [c["verdict"] for c in found] == ["contradicted", "cannot tell"]  # nobody measured the 15.83 GB
    assert "66 %" in found[0]["why"]
