"""Are faults and heat counted once a GPU, named, and unknown where nothing is recorded?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuledger.efficiency.health import THERMAL_ABOVE_PCT, health_words
from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.report.documents.efficiency import csv_rows
from gpuledger.units import MS_PER_HOUR, Unknown

State = Callable[..., EfficiencyStatement]
Line = Callable[..., Any]
HOUR = MS_PER_HOUR


def test_faults_add_up_over_hours_owners_and_states(state: State, line: Line) -> None:
    found = state(
        line(0, "GPU-a", util=0.9, pif=0.5, xid_events=2, gpu_temp_max_c=71),
        line(0, "GPU-a", util=0.1, pif=0.2, namespace="n2", rows_remapped=1, gpu_temp_max_c=64),
        line(1, "GPU-a", util=0.9, pif=0.5, xid_events=1, row_remap_failures=1, pcie_replays=4),
        line(0, "GPU-b", util=0.9, pif=0.5, gpu_temp_max_c=83),
    ).health
    (row,) = found.rows
    assert (row.gpu_uuid, row.host, row.xid_events, row.rows_remapped) == ("GPU-a", "h1", 3, 1)
    assert (row.row_remap_failures, row.pcie_replays, row.gpu_temp_max_c) == (1, 4, 71)
    assert (found.gpus, found.xid_events, found.gpu_temp_max_c) == (2, 3, 83)
    assert isinstance(found.mem_temp_max_c, Unknown)
    assert health_words(found).startswith(
        "3 XID errors (code not kept), 1 remapped memory row, 1 failed row remapping, 4 PCIe replays on 1 of 2 GPUs."
    )


def test_throttling_that_is_not_recorded_is_not_a_healthy_gpu(state: State, line: Line) -> None:
    made = state(line(0, util=0.9, pif=0.5))
    found = made.health
    assert found.rows == ()
    assert isinstance(found.thermal_pct, Unknown)
    assert isinstance(found.power_capped_pct, Unknown)
    assert "No faults recorded" in health_words(found)
    assert "Throttling: not known" in health_words(found)
    told = to_json(made)
    assert told["health"]["thermal_pct"] is None
    assert any(n["figure"] == "health.thermal_pct" for n in told["not_known"])


@pytest.mark.parametrize(("share_pct", "named"), [(THERMAL_ABOVE_PCT, 0), (THERMAL_ABOVE_PCT + 0.1, 1)])
def test_heat_counts_over_the_time_it_is_known_for(state: State, line: Line, share_pct: float, named: int) -> None:
    # Half of the hour is known: the share is of that half.
    heat = round(share_pct / 100 * HOUR / 2)
    made = state(line(0, util=0.9, pif=0.5, throttle_ms=HOUR // 2, thermal_ms=heat, power_capped_ms=HOUR // 4))
    assert len(made.health.rows) == named
    assert made.health.thermal_pct == pytest.approx(share_pct)
    assert made.health.power_capped_pct == pytest.approx(50)
    assert made.health.throttle_known_h == 0.5
    assert ("of 1 GPU for more than" in health_words(made.health)) is bool(named)


def test_the_instances_of_a_board_report_one_fault(state: State, line: Line) -> None:
    """Three instances each show the board's two XIDs, a quarter of an hour of heat and its temperature."""
    board = {"xid_events": 2, "throttle_ms": HOUR, "thermal_ms": HOUR // 4, "slice_ppm": 142_857}
    rows = [
        line(0, "GPU-a", util=0.5, pif=0.5, gpu_instance_id=str(i), gpu_temp_max_c=70 + i, **board) for i in range(3)
    ]
    found = state(*rows, line(0, "GPU-b", util=0.5, pif=0.5, xid_events=1)).health
    assert (found.gpus, found.xid_events, found.thermal_pct) == (2, 3, 25)
    assert [(r.gpu_uuid, r.xid_events) for r in found.rows] == [("GPU-a", 2), ("GPU-b", 1)]
    assert found.rows[0].gpu_temp_max_c == 72


def test_a_finding_names_host_and_gpu(state: State, line: Line) -> None:
    sick = line(0, "GPU-sick", util=0.9, pif=0.9, host="node-7", xid_events=2, throttle_ms=HOUR, thermal_ms=HOUR // 2)
    found = state(sick, line(0, "GPU-well", util=0.9, pif=0.9)).findings
    (said,) = (text for text in found if "GPU-sick" in text)
    assert said == "Check node-7 (GPU-sick): 2 XID errors (code not kept), clocks held down by heat 50 % of the time."
    (said,) = (text for text in state(sick | {"gpu_index": "3"}).findings if "GPU-sick" in text)
    assert said.startswith("Check node-7/3 (GPU-sick): 2 XID errors")
    (said,) = (text for text in state(sick | {"host": None, "gpu_index": "3"}).findings if "GPU-sick" in text)
    assert said.startswith("Check GPU-sick: 2 XID errors")
    # Repairs that worked are in the table, not in the findings.
    mended = line(0, "GPU-mended", util=0.9, pif=0.9, rows_remapped=1, pcie_replays=3)
    made = state(mended)
    assert len(made.health.rows) == 1
    assert not any("GPU-mended" in text for text in made.findings)


def test_json_and_csv_hold_every_figure(state: State, line: Line) -> None:
    made = state(line(0, "GPU-a", util=0.9, pif=0.5, xid_events=5, throttle_ms=HOUR, mem_temp_max_c=95))
    (told,) = to_json(made)["health"]["rows"]
    assert (told["gpu_uuid"], told["xid_events"], told["thermal_pct"], told["mem_temp_max_c"]) == ("GPU-a", 5, 0.0, 95)
    head, row = csv_rows("gpu_health.csv", made)
    cells = dict(zip(head, row, strict=True))
    assert cells == {name: told[name] for name in head}
    assert cells["gpu_temp_max_c"] is None
