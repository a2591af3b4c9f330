"""Are utilization and power taken from the ledger as it has them? Samples go the way a user's do."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

import gpuledger
from gpuledger import plan
from gpuledger.catalog.gpus import get_gpu
from gpuledger.errors import GpuledgerError, InputError
from gpuledger.plan.tco.inputs import Basis
from gpuledger.plan.tco.usage import Usage, busy_pct, usage_of
from gpuledger.units import Unknown

WORK = {"util": 60, "watts": 90, "used": 6000, "engine": 0.6}
IDLE = {"util": 0, "watts": 30, "used": 0, "engine": 0.0}
HELD = {**IDLE, "used": 6000}


@pytest.fixture
def lake(tmp_path):
    """Writes hours of one A10G, a sample per minute, and imports them."""

    def make(*hours: dict[str, float]) -> Path:
        head = "timestamp,UUID,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_FB_USED,"
        start, rows = dt.datetime(2026, 1, 20, tzinfo=dt.UTC), [f"{head}DCGM_FI_PROF_GR_ENGINE_ACTIVE"]
        for minute in range(60 * len(hours)):
            h = hours[minute // 60]
            when = (start + dt.timedelta(minutes=minute)).isoformat()
            rows.append(f"{when},GPU-a,NVIDIA A10G,{h['util']},{h['watts']},{h['used']},{h['engine']}")
        (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
        gpuledger.open(tmp_path / "lake").ingest(tmp_path / "a.csv")
        return tmp_path / "lake"

    return make


def test_used_hours_and_power(lake):
    found = usage_of(lake(WORK, WORK, WORK, IDLE), get_gpu("a10g"))
    assert float(found.used_pct) == pytest.approx(75, abs=0.5)
    assert float(found.power_w) == pytest.approx(75, abs=0.5)
    assert found.same_gpu
    assert "1 GPU (A10G), 4 observed GPU-hours" in found.words


def test_memory_that_is_held_is_not_use(lake):
    assert float(usage_of(lake(WORK, HELD), get_gpu("a10g")).used_pct) == pytest.approx(50, abs=1)


def test_a_plan_takes_them(lake):
    made = plan.tco(gpu="a10g", purchase_usd=3000, lake=str(lake(WORK, WORK, WORK, IDLE)))
    used = {one.name: one for one in made.inputs}
    assert (used["utilization_pct"].basis, used["busy_pct"].basis) == (Basis.LEDGER, Basis.LEDGER)
    assert float(made.used_pct) == pytest.approx(75, abs=0.5)
    assert any("4 observed GPU-hours" in words for words in made.assumptions)


def test_power_of_other_gpus_is_not_taken(lake):
    made = plan.tco(gpu="h100-sxm", lake=str(lake(WORK, IDLE)))
    used = {one.name: one for one in made.inputs}
    assert (used["utilization_pct"].basis, used["busy_pct"].basis) == (Basis.LEDGER, Basis.ASSUMED)
    assert any("other GPUs" in words for words in made.assumptions)


def test_the_draw_in_use_gives_back_the_measured_average():
    usage = Usage(Decimal(50), Decimal(385), "", same_gpu=True)
    assert busy_pct(usage, Decimal(700), Decimal(70)) == 100  # 0.5 x 700 + 0.5 x 70
    low = Usage(Decimal(50), Decimal(30), "", same_gpu=True)
    assert isinstance(busy_pct(low, Decimal(700), Decimal(70)), Unknown)


def test_a_fleet_that_was_never_used_is_an_error(lake):
    with pytest.raises(InputError, match="no GPU in the lake was in use"):
        usage_of(lake(IDLE, IDLE), get_gpu("a10g"))


def test_a_folder_that_is_not_a_lake_is_an_error(tmp_path):
    with pytest.raises(GpuledgerError):
        usage_of(tmp_path / "nowhere", get_gpu("a10g"))
