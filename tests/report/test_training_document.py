"""Does the document of a training meter show the stored figures, and refuse shares that cannot be?"""

from __future__ import annotations

from typing import Any

import pytest

from gpuledger.catalog.gpus import get_gpu
from gpuledger.lake.counted import CountedRun
from gpuledger.report.document import Figures
from gpuledger.report.documents.training import training_document, unknown
from gpuledger.report.render.markdown import render_markdown
from gpuledger.training.findings import find_all
from gpuledger.training.meter.observed import Identity, LoaderFacts, Observed, Place, StepSeconds, Work
from gpuledger.training.meter.report import make_report, price_of, to_json


def report(**seen: Any) -> dict[str, Any]:
    """50 steps of 0.1 s: 0.4 of each waiting for data."""
    gpu = get_gpu("h100-sxm5-80gb")
    phases = {"data_wait": 0.04, "h2d": 0.0, "forward": 0.02, "backward": 0.04, "optimizer": 0.0, "sync": 0.0}
    total = sum(phases.values())
    facts: dict[str, Any] = {
        "who": Identity("run-7", 0, 1, "node0"), "place": Place("cuda", "NVIDIA H100 80GB HBM3", gpu, "GPU-a"),
        "state": "done", "steps": 50, "timed_steps": 40, "updates": 50, "start_ms": 0, "end_ms": 5000,
        "phases_s": phases, "host_s": phases, "step": StepSeconds(total, total, total, total), "precision": "bf16",
        "work": Work(4e13, 4e13, 1e13, "counted"), "tokens_per_step": 8192.0, "samples_per_step": 8.0,
        "loader": LoaderFacts("DataLoader", 0, False), "cpus": 8,
    }  # fmt: skip
    made = Observed(**facts | seen)
    return to_json(make_report(made, price_of(gpu, 2.0), (), find_all(made)))


def document(stored: dict[str, Any]):
    return training_document([CountedRun(run_id="run-7", rank=0, report=stored)])


def figures(stored: dict[str, Any]) -> dict[str, str]:
    return {f.label: f.value for b in document(stored).blocks() if isinstance(b, Figures) for f in b.items}


def test_figures_and_findings_are_the_report_s():
    stored = report()
    shown = figures(stored)
    # 8,192 tokens in each 0.1 s; 4e13 FLOP in 0.1 s over the dense bf16 peak of 989.5 TFLOPS.
    assert shown["Tokens per second"] == "81,920"
    assert shown["MFU"] == f"{100 * 4e14 / 989.5e12:.1f} %"
    text = render_markdown(document(stored))
    assert "| data wait | 40.00 | 40.0 % |" in text
    assert stored["findings"][0]["title"] in text
    assert stored["findings"][0]["change"].splitlines()[0] in text


def test_a_share_above_all_is_refused_with_its_reason():
    stored = report() | {"mfu_of_precision_pct": 116.6}
    assert "MFU in use" not in figures(stored)
    assert any("mfu_of_precision_pct: 116.6 % is impossible" in line for line in unknown(stored))


def test_the_precision_and_its_shares_are_shown():
    stored = report(precision_ratios={"bf16": 0.9, "fp32": 0.1})
    (block,) = (b for b in document(stored).blocks() if isinstance(b, Figures))
    assert "bf16 90.0 %, fp32 10.0 % of the FLOPs" in block.items[0].note


@pytest.mark.parametrize("chosen", [None, "run-8"])
def test_one_run_can_be_chosen(chosen):
    runs = [CountedRun(run_id=name, rank=0, report=report()) for name in ("run-7", "run-8")]
    data = training_document(runs, chosen).data()["runs"]
    assert [r["run_id"] for r in data] == ([chosen] if chosen else ["run-7", "run-8"])
