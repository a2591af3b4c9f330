"""Does what a job's own meter measured become advice with its own evidence and its own saving?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from casebook import START, activity, case, line

from gpuledger.advice.build import audit_statement
from gpuledger.advice.case import Case
from gpuledger.advice.findings import Finding, find_all, with_measured
from gpuledger.advice.limits import load_limits
from gpuledger.advice.statement import to_json
from gpuledger.lake.counted import CountedRun, CountedSpan, MeasuredFinding, write_counted
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope

LIMITS = load_limits()


def measured(rule: str = "num-workers", **given: Any) -> MeasuredFinding:
    plain: dict[str, Any] = {
        "topic": "loader", "rule": rule, "title": "t", "why": "the device waits 35 ms a step", "change": "x = 1\n",
        "low": 0.1, "middle": 0.2, "high": 0.3, "gain_words": "saves 10 % to 30 % of the step", "source": "measured",
    }  # fmt: skip
    return MeasuredFinding(**(plain | given))


def ran(*found: MeasuredFinding, device: str = "a", **labels: str) -> CountedRun:
    span = CountedSpan(start_ms=START, end_ms=START + 1000, steps=1)
    return CountedRun(run_id="r", gpu_uuid=device, spans=(span,), findings=found, labels=labels)


def by_rule(one: Case) -> dict[str, Finding]:
    return {f.rule.id: f for f in find_all([one], LIMITS)}


def test_nothing_measured_changes_nothing() -> None:
    one = case("compute-bound")
    assert with_measured([one], [], Scope()) == (one,)
    assert with_measured([one], [ran(measured(), device="elsewhere")], Scope())[0] is one


def test_a_rule_that_telemetry_does_not_suggest_fires_by_measurement() -> None:
    plain = case("compute-bound")
    assert "num-workers" not in by_rule(plain)
    (one,) = with_measured([plain], [ran(measured())], Scope())
    found = by_rule(one)["num-workers"]
    assert "35 ms" in found.reason.why
    assert found.gain.basis == "measured"
    assert found.change.text == "x = 1\n"
    # All of its bill is active time, so a tenth to three tenths of the step are the same of the bill.
    assert (found.alone.low, found.alone.middle, found.alone.high) == (Decimal("0.1"), Decimal("0.2"), Decimal("0.3"))


def test_the_saving_is_of_the_active_time_and_never_beyond_its_buckets() -> None:
    idle = case("compute-bound", money={"productive": 0.1, "stalled": 0.4, "idle": 0.5})
    (one,) = with_measured([idle], [ran(measured(high=1.0))], Scope())
    found = by_rule(one)["num-workers"]
    assert found.alone.middle == Decimal("0.1")  # 0.2 of the half that is active
    assert found.alone.high == Decimal("0.4")  # half of the bill claimed; stalled holds two fifths of it


def test_a_measurement_replaces_the_guess_of_the_same_rule() -> None:
    starved = case("starved", signals={"engine_ratio": 0.3})
    guess = by_rule(starved)["num-workers"]
    (one,) = with_measured([starved], [ran(measured())], Scope())
    assert guess.gain.basis == "assumed"
    assert by_rule(one)["num-workers"].gain.basis == "measured"


def test_what_saves_nothing_leaves_the_guess_alone() -> None:
    starved = case("starved", signals={"engine_ratio": 0.3})
    (one,) = with_measured([starved], [ran(measured(low=0.0, middle=0.0, high=0.0))], Scope())
    assert by_rule(one)["num-workers"].reason == by_rule(starved)["num-workers"].reason


def test_another_owners_run_on_the_same_device_is_not_this_case() -> None:
    one = replace(case("compute-bound"), workload="mine")
    assert with_measured([one], [ran(measured(), workload="theirs")], Scope())[0] is one
    assert with_measured([one], [ran(measured(), workload="mine")], Scope())[0].measured


def test_the_audit_says_it(books: Callable[..., Lake]) -> None:
    lake = books(line(0, "GPU-a", **activity(engine=0.95, tensor=0.5, fp32=0.0, dram=0.1)))
    before = to_json(audit_statement(lake, price=2))
    write_counted(lake, ran(measured(), device="GPU-a"))
    after = to_json(audit_statement(lake, price=2))
    found = next(r for r in after["recommendations"] if r["id"] == "num-workers")
    assert not any(r["id"] == "num-workers" for r in before["recommendations"])
    assert found["basis"] == "measured"
    assert "35 ms" in found["why"]
