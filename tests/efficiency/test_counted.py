"""Does counted work enter the statement, for the time it covers, and change nothing where there is none?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.counted import with_counted
from gpuledger.efficiency.statement import CountedAnalysis, to_json
from gpuledger.lake.counted import CountedRun, CountedSpan, write_counted
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import MS_PER_HOUR, Range, Unknown, day_start_ms

START = day_start_ms("2026-01-20")
HALF = MS_PER_HOUR // 2


def counted(gpu: str, hour: int = 0, tflop: float | None = 1.0, ms: int = HALF, **given: Any) -> CountedRun:
    start = START + hour * MS_PER_HOUR
    span = CountedSpan(start_ms=start, end_ms=start + ms, steps=10, tflop=tflop, model_tflop=tflop, tokens=1000)
    return CountedRun(**({"run_id": f"run-{gpu}-{hour}", "gpu_uuid": gpu, "spans": (span,)} | given))


@pytest.fixture
def lake(tmp_path: Path, books: Callable[..., Lake], line: Callable[..., Any]) -> Lake:
    return books(line(0, "GPU-a", util=0.9, pif=0.8), line(1, "GPU-a", util=0.9), line(0, "GPU-b", util=0.5))


def analysed(lake: Lake, scope: Scope | None = None, **window: Any) -> CountedAnalysis:
    found = with_counted(efficiency_statement(lake, **window), lake, scope or Scope()).counted
    assert found is not None
    return found


def test_without_counts_the_statement_is_the_very_same(lake: Lake) -> None:
    statement = efficiency_statement(lake)
    assert with_counted(statement, lake, Scope()) is statement
    assert "counted" not in to_json(statement)


def test_realized_tflops_are_flop_over_the_time_covered(lake: Lake) -> None:
    # An H100 does 989.5 TFLOPS dense: 1,800 s at half of it.
    write_counted(lake, counted("GPU-a", tflop=1800 * 494.75))
    found = analysed(lake)
    assert found.gpus == 1
    assert found.covered_h == 0.5
    assert found.covered_pct_of_observed == pytest.approx(100 * 0.5 / 3)
    (device,) = found.devices
    assert device.realized_tflops == Range(494.75, 494.75, 494.75, "counted")
    assert device.rfu_counted_pct == pytest.approx(50.0)
    assert found.rfu_counted_pct == pytest.approx(50.0)
    assert (device.steps, device.tokens, device.runs) == (10, 1000, ("run-GPU-a-0",))


def test_two_jobs_at_once_add_work_but_not_time(lake: Lake) -> None:
    write_counted(lake, counted("GPU-a", tflop=1800 * 100.0))
    write_counted(lake, counted("GPU-a", tflop=1800 * 50.0, run_id="other"))
    (device,) = analysed(lake).devices
    assert device.covered_h == 0.5
    assert isinstance(device.realized_tflops, Range)
    assert device.realized_tflops.middle == pytest.approx(150.0)


def test_window_and_owner_choose_as_for_lines(lake: Lake) -> None:
    write_counted(lake, counted("GPU-a", 0, labels={"namespace": "n1", "workload": "w"}))
    write_counted(lake, counted("GPU-a", 1))
    late = Scope(since_ms=START + MS_PER_HOUR)
    assert analysed(lake, late).devices[0].runs == ("run-GPU-a-1",)
    assert analysed(lake, Scope(owners=("n1/w",))).devices[0].runs == ("run-GPU-a-0",)
    assert analysed(lake, Scope(namespaces=("unallocated",))).devices[0].runs == ("run-GPU-a-1",)
    statement = efficiency_statement(lake)
    assert with_counted(statement, lake, Scope(owners=("nobody",))) is statement


def test_a_span_over_the_edge_of_a_window_counts_its_part(lake: Lake) -> None:
    """Half an hour from midnight, cut after ten minutes: a third of the work, in a third of the time."""
    write_counted(lake, counted("GPU-a", tflop=1800 * 300.0))
    edge = START + HALF // 3
    before, after = (analysed(lake, Scope(**w)).devices[0] for w in ({"until_ms": edge}, {"since_ms": edge}))
    assert (before.covered_h, after.covered_h) == (pytest.approx(1 / 6), pytest.approx(1 / 3))
    for device in (before, after):
        assert isinstance(device.realized_tflops, Range)
        assert device.realized_tflops.middle == pytest.approx(300)
    assert (before.steps + after.steps, before.tokens + after.tokens) == (10, 1000)  # type: ignore[operator]
    assert (before.steps, before.tokens) == (3, 333)


def test_steps_without_flops_are_said_not_zero(lake: Lake) -> None:
    write_counted(lake, counted("GPU-b", tflop=None))
    found = analysed(lake)
    assert isinstance(found.devices[0].realized_tflops, Unknown)
    assert isinstance(found.realized_tflops, Unknown)
    made = with_counted(efficiency_statement(lake), lake, Scope())
    assert any("GPU-b" in n.figure and "no FLOPs" in n.why for n in made.not_known)


def test_a_device_without_samples_is_named(lake: Lake) -> None:
    write_counted(lake, counted("GPU-z", run_id="far"))
    found = analysed(lake)
    assert found.devices == ()
    assert "far" in found.note


def test_it_is_json_and_a_sentence(lake: Lake) -> None:
    write_counted(lake, counted("GPU-a", tflop=1800 * 494.75))
    statement = with_counted(efficiency_statement(lake), lake, Scope())
    made = to_json(statement)
    assert (
        json.loads(json.dumps(made, allow_nan=False))["counted"]["devices"][0]["realized_tflops"]["evidence"]
        == "counted"
    )
    assert "counted their own FLOPs for 17 % of the observed time: 50 % of the dense peak" in statement.findings[1]


def test_the_document_shows_it(lake: Lake) -> None:
    from gpuledger.report.documents.efficiency import efficiency_document
    from gpuledger.report.render.markdown import render_markdown

    write_counted(lake, counted("GPU-a", tflop=1800 * 494.75))
    shown = render_markdown(efficiency_document(with_counted(efficiency_statement(lake), lake, Scope())))
    shown = shown.replace("\u202f", " ")
    assert "Counted by the jobs themselves" in shown
    assert "494.8" in shown
    assert "50.0 %" in shown
