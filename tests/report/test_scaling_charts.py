"""Do the charts of a scaling report draw what the statement says, and nothing where there is nothing?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuledger.bench.results import parse_results
from gpuledger.report.render import compose, to_svg
from gpuledger.report.scaling_charts import scaling_drawings
from gpuledger.report.scaling_html import render_scaling_html
from gpuledger.report.theme import load_theme
from gpuledger.scaling.build import Given, gather, scaling_statement

S2 = Path(__file__).parents[1] / "data" / "s2" / "results.jsonl"


def run_of(nodes: int, batches: tuple[int, ...] = (), latency: float = 0.1):
    rows = [
        {"v": 1, "kind": "run", "planned": {f"n{i}": 20 for i in range(nodes)}, "nodes": {}, "wall_s": 20 * latency}
    ]
    for i in range(nodes):
        for k in range(20):
            row = {"v": 1, "kind": "request", "node": f"n{i}", "request": k, "output_tokens": 4, "ok": True}
            row |= {"start_s": k * latency, "latency_s": latency}
            rows.append(row | ({"batch": batches[k * len(batches) // 20]} if batches else {}))
    return parse_results("".join(json.dumps(r) + "\n" for r in rows).encode(), f"{nodes}.jsonl")[0]


def drawn(statement):
    theme = load_theme("light")
    return {name: (d, to_svg(compose(d, theme))) for name, d in scaling_drawings(statement, theme).items()}


@pytest.fixture(scope="module")
def published():
    return scaling_statement(gather([S2]))


def test_the_published_run_draws_its_losses_and_its_cold_start(published):
    found = drawn(published)
    assert set(found) == {"outcomes", "latency", "gains"}
    assert "5 of 20 planned requests were not answered" in found["outcomes"][0].title
    assert "jw2, jw3 are slower" in found["latency"][0].title
    assert "+137" in found["gains"][1]


def test_sizes_and_batches_are_drawn_where_measured():
    made = scaling_statement(Given(run_of(3, (1, 2)), others=(run_of(2), run_of(1))))
    found = drawn(made)
    assert {"sizes", "batches"} <= set(found)
    assert "predicted" in found["sizes"][1]


def test_the_page_without_charts_still_has_every_section(published):
    page = render_scaling_html(published, charts=False)
    assert "<svg" not in page
    assert "Bottlenecks by impact" in page


def test_labels_are_escaped():
    run = run_of(1)
    rows = json.dumps({"v": 1, "kind": "run", "planned": {"<b>x</b>": 1}, "nodes": {}, "wall_s": 1.0})
    (odd,) = parse_results(rows.encode() + b"\n", "odd.jsonl")
    assert run is not odd
    page = render_scaling_html(scaling_statement(Given(odd)), charts=False)
    assert "<b>x</b>" not in page
    assert "&lt;b&gt;x" in page
