"""Does `gpuledger scaling` judge as written, and does `import-loadgen` lead to it?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

S2 = Path(__file__).parents[1] / "data" / "s2"
RESULTS, CLAIMS = S2 / "results.jsonl", S2 / "claims.json"


def one_node(path: Path, latency: float = 0.5, count: int = 40, **header) -> Path:
    rows = [{"v": 1, "kind": "run", "planned": {"a": count}, "nodes": {"a": {"gpu": "NVIDIA A30", "gpus": 1}},
             "baseline": None, "wall_s": latency * count, **header}]  # fmt: skip
    common = {"v": 1, "kind": "request", "node": "a", "input_tokens": 66, "output_tokens": 31, "ok": True}
    rows += [{**common, "request": i, "start_s": i * latency, "latency_s": latency} for i in range(count)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def test_the_json_has_what_was_asked_for(cli):
    done = cli("scaling", RESULTS, "--claims", CLAIMS, "--json")
    assert done.code == 0
    found = done.json()
    assert found["success_pct"] == 75
    assert round(found["throughput_per_s"], 2) == 0.68
    assert found["scaling"]["refused"]
    assert {c["verdict"] for c in found["claims"]} == {"supported", "contradicted", "cannot tell"}
    assert all({"claim", "verdict", "why"} <= set(c) for c in found["claims"])
    assert found["latency_s"]["warm"]["n"] == 13


def test_the_screen_and_the_documents(cli, tmp_path):
    done = cli("scaling", RESULTS, "--claims", CLAIMS, "--out", tmp_path / "report")
    assert done.code == 0
    assert "15 of 20 requests answered" in done.out
    assert "contradicted" in done.out
    assert max(map(len, done.out.splitlines())) <= 100 + len(str(tmp_path))
    full = cli("scaling", RESULTS, "--claims", CLAIMS, "--full").out
    assert "Cold start by node" in full
    assert "Cold start by node" not in done.out
    page = (tmp_path / "report" / "scaling.html").read_text()
    text = (tmp_path / "report" / "scaling.md").read_text()
    for title in (
        "Scorecard", "Configuration", "Scaling", "Latency", "Tokens", "Node by node", "Memory",
        "Distribution of latency", "Cold start", "Root causes", "Bottlenecks by impact", "Performance factors",
        "Optimizations and what they would bring", "Compared with public figures", "Readiness", "Recommendations",
        "Provenance",
    ):  # fmt: skip
        assert f">{title}</h2>" in page
        assert f"## {title}" in text
    for horizon in ("Immediate", "1-3 months", "Later"):
        assert f"<h3>{horizon}</h3>" in page
    figures = json.loads((tmp_path / "report" / "scaling.json").read_text())
    assert figures["overall_grade"] == "F"
    assert (tmp_path / "report" / "charts" / "latency.png").stat().st_size > 5000


def test_a_measured_baseline_gives_an_efficiency_with_its_interval(cli, tmp_path):
    found = cli("scaling", RESULTS, "--baseline", one_node(tmp_path / "one.jsonl"), "--json").json()["scaling"]
    assert found["efficiency_pct"] == pytest.approx(100 * (15 / 22.16) / 2 / 2)
    assert found["low_pct"] <= found["efficiency_pct"] <= found["high_pct"]


def test_compare_and_trend(cli, tmp_path):
    old, new = one_node(tmp_path / "old.jsonl", 0.5), one_node(tmp_path / "new.jsonl", 0.4)
    changes = cli("scaling", new, "--compare", old, "--json").json()["comparison"]["changes"]
    assert next(c for c in changes if c["figure"] == "throughput_per_s")["change_pct"]["value"] == pytest.approx(25)
    assert "before, after" not in cli("scaling", new, "--compare", old).out
    done = cli("scaling", old, new, "--trend")
    assert "2.000 answers per second in the first, 2.500 in the last" in done.out
    assert "throughput_per_s +25.0 %" in " ".join(done.out.split())
    assert len(cli("scaling", old, new, "--trend", "--json").json()["points"]) == 2


def test_the_audit_is_not_loaded():
    code = f"from gpuledger.cli.app import run; assert run(['scaling', {str(RESULTS)!r}, '-q']) == 0; import sys; "
    code += "print('gpuledger.cli.commands.audit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_fail_on_sets_the_exit_code(cli):
    assert cli("scaling", RESULTS, "--claims", CLAIMS, "--fail-on", "claims", "-q").code == 1
    assert cli("scaling", RESULTS, "--fail-on", "readiness", "-q").code == 1
    assert cli("scaling", RESULTS, "--fail-on", "claims", "-q").code == 0


def test_the_price_and_the_limits_can_be_given(cli, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text("[grades.success]\nlimits = [70.0, 60.0, 50.0, 40.0]\n")
    found = cli("scaling", RESULTS, "--price", "1.00", "--thresholds", own, "--json").json()
    assert found["grades"]["success"]["grade"] == "A"
    assert float(found["cost"]["usd_per_gpu_h"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nowhere.jsonl",), "no such file"),
        ((RESULTS, "--baseline", "nowhere.jsonl"), "no such file"),
        ((RESULTS, "--claims", "nowhere.json"), "no such file"),
        ((RESULTS, "--trend"), "a trend needs at least two runs"),
        ((RESULTS, RESULTS, "--trend", "--claims", CLAIMS), "judges none"),
        ((RESULTS, "--price", "cheap"), "not a price"),
    ],
)
def test_bad_input_is_exit_2_with_a_next_step(cli, args, words):
    done = cli("scaling", *args)
    assert done.code == 2
    assert words in done.err
    assert "next:" in done.err


def test_an_empty_or_foreign_file_is_exit_2(cli, tmp_path):
    for text in ("", "hello\n", '{"v": 7}\n'):
        (tmp_path / "x.jsonl").write_text(text)
        assert cli("scaling", tmp_path / "x.jsonl").code == 2


def test_loadgen_logs_lead_to_a_report(cli, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "mlperf_log_summary.txt").write_text("SUT name : sut\nScenario : SingleStream\n")
    events = ['{"traceEvents":[']
    for i in range(30):
        for phase, at in (("b", 1000.0 * i), ("e", 1000.0 * i + 900)):
            events.append(f'{{"name":"Sample","ph":"{phase}","id":{i},"pid":1,"tid":2,"ts":{at}}},')
    (folder / "mlperf_log_trace.json").write_text("\n".join(events))
    done = cli("import-loadgen", folder, "--out", tmp_path / "r.jsonl", "--gpu", "NVIDIA A30", "--json")
    assert done.json()["requests"] == 30
    again = cli("import-loadgen", folder, "--out", tmp_path / "again.jsonl")
    assert "30 samples in 0.030 s, 0 lost" in again.out
    assert "next: gpuledger scaling" in again.out
    found = cli("scaling", tmp_path / "r.jsonl", "--json").json()
    assert found["success_pct"] == 100
    assert found["latency_s"]["p50"] == pytest.approx(0.0009)
    assert cli("import-loadgen", folder, "--out", tmp_path / "r.jsonl").code == 2
    (folder / "mlperf_log_trace.json").unlink()
    assert "enable_trace" in cli("import-loadgen", folder, "--out", tmp_path / "q.jsonl").err
