"""Runs made by hand, for tests of what is said about them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuledger.bench.records import Run
from gpuledger.bench.results import parse_results

CARD = {"gpu": "NVIDIA H100 80GB HBM3", "gpus": 1}


def lines(
    latencies: Mapping[str, Sequence[float]], *, planned: Mapping[str, int] | None = None, wall_s: float | None = None,
    tokens: int = 10, nodes: Mapping[str, Any] | None = None, **header: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """One request after another on each node, all answered."""
    out: list[dict[str, Any]] = []
    last = 0.0
    for node, values in latencies.items():
        at = 0.0
        for i, value in enumerate(values):
            out.append({"v": 1, "kind": "request", "node": node, "request": i, "start_s": at, "latency_s": value,
                        "input_tokens": 5, "output_tokens": tokens, "ok": True, "error": None})  # fmt: skip
            at += value
        last = max(last, at)
    plan = planned if planned is not None else {node: len(v) for node, v in latencies.items()}
    first = {"v": 1, "kind": "run", "planned": plan, "nodes": nodes or dict.fromkeys(plan, CARD), "baseline": None}
    return [{**first, "wall_s": wall_s if wall_s is not None else last, **header}, *out]


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def run_of(rows: Sequence[Mapping[str, Any]], name: str = "made.jsonl") -> Run:
    (run,) = parse_results(text(rows).encode(), name)
    return run


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text(text(rows), encoding="utf-8")
    return path
