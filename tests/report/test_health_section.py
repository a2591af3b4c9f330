"""Is the health of the fleet one sentence where all is well, and a table where it is not?"""

from __future__ import annotations

import dataclasses

from gpuledger.efficiency.health import HealthAnalysis, HealthRow, health_words
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.report.documents.efficiency import efficiency_document
from gpuledger.report.outline import load_outline
from gpuledger.report.render.html import render_html
from gpuledger.report.render.markdown import render_markdown
from gpuledger.units import Unknown

NO_REASONS = Unknown("the reasons for held-down clocks are not recorded")


def row(uuid: str, **given: object) -> HealthRow:
    plain = {
        "gpu_model": "NVIDIA H100 80GB HBM3", "host": "node-1", "gpu_index": "3", "xid_events": 0, "rows_remapped": 0,
        "row_remap_failures": 0, "pcie_replays": 0, "thermal_pct": NO_REASONS, "power_capped_pct": NO_REASONS,
        "gpu_temp_max_c": 71.0, "mem_temp_max_c": NO_REASONS,
    }  # fmt: skip
    return HealthRow(gpu_uuid=uuid, **(plain | given))  # type: ignore[arg-type]


def test_a_well_fleet_has_a_sentence_and_no_table(statement: EfficiencyStatement) -> None:
    well = dataclasses.replace(statement, health=HealthAnalysis(gpus=50, thermal_pct=0.0, throttle_known_h=10.0))
    for text in (render_html(efficiency_document(well), {}), render_markdown(efficiency_document(well))):
        assert "No faults recorded" in text
        assert "Heat held down the clocks of no GPU" in text
        assert "GPUs with faults or held down by heat" not in text


def test_faults_are_a_table_without_columns_nobody_recorded(statement: EfficiencyStatement) -> None:
    rows = (row("GPU-a", xid_events=2), row("GPU-b", pcie_replays=7))
    health = HealthAnalysis(gpus=50, xid_events=2, pcie_replays=7, thermal_pct=NO_REASONS, rows=rows)
    sick = dataclasses.replace(statement, health=health)
    table = load_outline("efficiency").table("health", sick)
    assert table.heads == (
        "GPU", "Model", "XID errors", "Rows remapped", "Failed remappings", "PCIe replays", "Hottest die, °C",
    )  # fmt: skip
    assert [cell.text for cell in table.rows[0]] == ["node-1/3", "H100 80GB HBM3", "2", "0", "0", "0", "71"]
    assert table.rows[0][0].full == "GPU-a"
    said = health_words(health)
    assert said == f"2 XID errors, 7 PCIe replays on 2 of 50 GPUs. Throttling: {NO_REASONS}."
    page, twin = render_html(efficiency_document(sick), {}), render_markdown(efficiency_document(sick))
    assert said in page
    for text in (page, twin):
        assert "GPUs with faults or held down by heat" in text
    hot = dataclasses.replace(health, rows=(row("GPU-c", thermal_pct=40.0, power_capped_pct=2.0),))
    heads = load_outline("efficiency").table("health", dataclasses.replace(statement, health=hot)).heads
    assert "Held down by heat" in heads
    assert "by a power limit" in heads
