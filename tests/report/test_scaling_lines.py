"""Do the sentences of a scaling report leave nothing out in silence?"""

from __future__ import annotations

import json

from gpuledger.bench.results import parse_results
from gpuledger.encode import encode
from gpuledger.report.scaling_html import render_scaling_html
from gpuledger.report.scaling_lines import faults_of
from gpuledger.report.scaling_markdown import render_scaling_markdown
from gpuledger.scaling.build import Given, scaling_statement


def test_faults_that_are_not_shown_are_counted():
    header = {"v": 1, "kind": "run", "planned": {"a": 80}, "nodes": {}, "wall_s": 80}
    rows = [
        {"v": 1, "kind": "request", "node": "a", "request": i, "start_s": i, "latency_s": 1, "ttft_s": 2, "ok": True}
        for i in range(80)
    ]
    (run,) = parse_results("\n".join(json.dumps(r) for r in (header, *rows)).encode(), "r.jsonl")
    made = scaling_statement(Given(run=run))
    assert len(encode("scaling", made)["faults"]) == 80
    assert len(faults_of(made, 12)) == 13
    assert faults_of(made, 12)[-1] == "and 68 more; the JSON has them all"
    assert len(faults_of(made, 80)) == 80
    for text in (render_scaling_html(made, charts=False), render_scaling_markdown(made)):
        assert "and 30 more; the JSON has them all" in text
