"""Does the scaling document show what the statement says, in every format, and leave nothing out silently?"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from gpuledger.bench.results import parse_results
from gpuledger.encode import encode
from gpuledger.report.document import Bullets, Table
from gpuledger.report.documents.scaling import faults, scaling_document
from gpuledger.report.render.html import draw_charts, render_html
from gpuledger.report.render.markdown import render_markdown
from gpuledger.report.render.pictures import compose, to_svg
from gpuledger.report.render.terminal import screen
from gpuledger.report.theme import load_theme
from gpuledger.scaling.build import Given, gather, scaling_statement

S2 = Path(__file__).parents[1] / "data" / "s2"


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
    return {name: (d, to_svg(compose(d, theme))) for name, d in draw_charts(scaling_document(statement)).items()}


def tables(document) -> dict[str, Table]:
    return {block.name: block for block in document.blocks() if isinstance(block, Table)}


@pytest.fixture(scope="module")
def published():
    return scaling_statement(gather([S2 / "results.jsonl"], claims=S2 / "claims.json"))


def test_the_published_run_draws_its_losses_and_its_cold_start(published):
    found = drawn(published)
    assert set(found) == {"outcomes", "latency", "gains"}
    assert "5 of 20 planned requests were not answered" in found["outcomes"][0].title
    assert "jw2, jw3 are slower" in found["latency"][0].title
    assert "+137" in found["gains"][1]


def test_sizes_and_batches_are_shown_where_measured(published):
    made = scaling_statement(Given(run_of(3, (1, 2)), others=(run_of(2), run_of(1))))
    found = drawn(made)
    assert {"sizes", "batches"} <= set(found)
    assert "predicted" in found["sizes"][1]
    assert [row[0].text for row in tables(scaling_document(made))["batches"].rows] == ["1", "2"]
    assert "batches" not in {s.id for s in scaling_document(published).sections}


def test_the_figures_of_the_tables_are_the_statement_s(published):
    found, figures = tables(scaling_document(published)), encode("scaling", published)
    node = figures["nodes"][1]
    heads = {head: cell.key for head, cell in zip(found["nodes"].heads, found["nodes"].rows[1], strict=True)}
    assert heads["Answers/s"] == node["throughput_per_s"]
    assert heads["Warm, s"] == node["warm_latency_s"]["mean"]
    assert heads["Success, %"] == node["success_pct"]
    assert [row[2].text for row in found["claims"].rows] == [c["verdict"] for c in figures["claims"]]
    assert [row[2].text for row in found["scorecard"].rows] == [
        g["mark"] or "not graded" for g in figures["grades"].values()
    ]
    assert found["latencies"].rows[0][3].key == figures["latency_s"]["mean"]
    assert found["latencies"].rows[0][5].text == "", "too few samples for a 95th percentile"
    assert "empty cell" in found["latencies"].note


def test_the_short_answer_names_what_is_contradicted(published):
    short = scaling_document(published).screen
    (claims,) = (b for b in short if isinstance(b, Bullets) and b.title.startswith("Claims"))
    wrong = [c for c in published.claims if c.verdict == "contradicted"]
    assert claims.title == f"Claims contradicted: {len(wrong)} of {len(published.claims)}"
    assert claims.items[-1] == f"and {len(wrong) - 5} more"


def test_a_whole_document_on_a_terminal_shows_every_row(published):
    for width in (80, 140):
        console = Console(file=io.StringIO(), width=width)
        console.print(*screen(scaling_document(published), width, full=True), sep="\n")
        text = console.file.getvalue()
        assert "more: --full" not in text
        assert text.count("contradicted") == sum(c.verdict == "contradicted" for c in published.claims)
        assert max(map(len, text.splitlines())) <= width


def test_the_page_without_charts_still_has_every_section(published):
    page = render_html(scaling_document(published), {})
    assert "<svg" not in page
    assert "Bottlenecks by impact" in page


def test_labels_are_escaped():
    rows = json.dumps({"v": 1, "kind": "run", "planned": {"<b>x</b>": 1}, "nodes": {}, "wall_s": 1.0})
    (odd,) = parse_results(rows.encode() + b"\n", "odd.jsonl")
    page = render_html(scaling_document(scaling_statement(Given(odd))), {})
    assert "<b>x</b>" not in page
    assert "&lt;b&gt;x" in page


def test_faults_that_are_not_shown_are_counted():
    header = {"v": 1, "kind": "run", "planned": {"a": 80}, "nodes": {}, "wall_s": 80}
    rows = [
        {"v": 1, "kind": "request", "node": "a", "request": i, "start_s": i, "latency_s": 1, "ttft_s": 2, "ok": True}
        for i in range(80)
    ]
    (run,) = parse_results("\n".join(json.dumps(r) for r in (header, *rows)).encode(), "r.jsonl")
    made = scaling_statement(Given(run=run))
    assert len(encode("scaling", made)["faults"]) == 80
    assert len(faults(made, 12)) == 13
    assert faults(made, 12)[-1] == "and 68 more; the JSON has them all"
    assert len(faults(made, 80)) == 80
    document = scaling_document(made)
    for text in (render_html(document, {}), render_markdown(document)):
        assert "and 30 more; the JSON has them all" in text
