"""Does the outline name what exists, and do the cards hold the statement's figures?"""

from __future__ import annotations

import dataclasses

from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.charts import chart_names
from gpuledger.report.outline import cards, compared, evidence, facts, headline, load_outline, next_target
from gpuledger.report.tables import table_kinds
from gpuledger.report.written import NARROW
from gpuledger.units import Unknown


def test_every_chart_and_table_has_its_place_once() -> None:
    outline = load_outline()
    charts = [name for section in outline.sections for name in section.charts]
    tables = [name for section in outline.sections for name in section.tables]
    assert sorted(charts) == sorted(chart_names())
    assert sorted(tables) == sorted(table_kinds())
    assert len({section.id for section in outline.sections}) == len(outline.sections)


def test_cards_are_the_statement_s(statement: EfficiencyStatement) -> None:
    shown = {card.label: card for card in cards(statement)}
    assert shown["GPU utilization"].value == f"70.9{NARROW}%"
    assert "watts" in shown["RFU by power"].note
    assert shown["RFU by counters"].value == f"24.3{NARROW}%"
    assert shown["RFU by counters"].range == f"12.2{NARROW}% to 48.6{NARROW}%"
    assert shown["Bottlenecked"].value == f"31.4{NARROW}%"
    assert shown[f"Worth at 70{NARROW}% RFU"].value == "3.9 GPUs"


def test_cards_say_what_is_not_known(unknown_statement: EfficiencyStatement) -> None:
    assert all(card.unknown and card.value.startswith("not known: ") for card in cards(unknown_statement))


def test_no_target_left_is_said(statement: EfficiencyStatement) -> None:
    last = cards(dataclasses.replace(statement, roi=()))[-1]
    assert (last.value, last.unknown) == ("None left", False)


def test_the_next_target_is_the_lowest_worth_something(statement: EfficiencyStatement) -> None:
    found = next_target(dataclasses.replace(statement, roi=statement.roi[::-1]))
    assert found is not None
    assert found.target_rfu_pct == 70.0
    assert next_target(dataclasses.replace(statement, roi=())) is None


def test_headline_is_the_top_finding_or_says_why_not(
    statement: EfficiencyStatement, unknown_statement: EfficiencyStatement
) -> None:
    assert headline(statement) == statement.findings[0]
    assert headline(unknown_statement) == "What this fleet did is not known: the source was silent."
    assert headline(dataclasses.replace(statement, findings=())).startswith(f"31.4{NARROW}% of active")


def test_facts_count_in_words(one_gpu: EfficiencyStatement) -> None:
    assert facts(one_gpu) == [
        "2026-01-20 00:00 to 2026-01-20 03:00 UTC",
        "1 GPU",
        "1 cluster",
        "0 namespaces",
        "180 samples",
    ]


def test_evidence_names_its_source(statement: EfficiencyStatement, unknown_statement: EfficiencyStatement) -> None:
    said = " ".join(evidence(statement))
    assert "rests on counters (tensor pipe only, lower bound)" in said
    assert "come from: s0" in said
    assert "RFU by counters: not known: the source was silent" in " ".join(evidence(unknown_statement))


def test_compared_figures() -> None:
    assert compared(70.41234) == "70.41"
    assert compared("26.8 %") == "26.8 %"
    assert compared(Unknown("no power")) == "not known: no power"
