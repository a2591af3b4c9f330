"""Does what the samples do not tell stay unknown, all the way to dollars and advice?"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fleets import (
    B300,
    BITS,
    CLOCK,
    DRAM,
    ENGINE,
    FP32,
    H100,
    LIMIT,
    MEMORY,
    POWER,
    TENSOR,
    UTIL,
    Row,
    analyze,
    audit,
    lake_of,
    samples,
)  # fmt: skip

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.cost.build import cost_report
from gpuledger.units import Unknown

HOURS = 24
DAY_LONG = range(0, HOURS * 60, 2)
FREE = "DCGM_FI_DEV_FB_FREE"
SHARING = {"consolidation", "mig", "mps", "time-slicing", "smaller-sku"}


def day(model: str, gpu: str = "GPU-a", **values: Any) -> list[Row]:
    return samples(DAY_LONG, gpu, model, namespace="a", **values)


def hours(found: Row) -> Row:
    """The buckets that hold anything, in hours."""
    return {name: h for name, h in found["bucket_h"].items() if h}


def advised(found: Row) -> set[str]:
    return {r["id"] for r in found["recommendations"]}


def catalog(name: str) -> Gpu:
    gpu = find_gpu(name)
    assert not isinstance(gpu, Unknown)
    return gpu


def test_power_without_a_known_idle_power_rates_nothing(tmp_path: Path) -> None:
    assert catalog(B300).idle_power_w is None
    found = audit(lake_of(tmp_path, day(B300, **{UTIL: 95, POWER: 900})))
    assert hours(found) == pytest.approx({"unrated": HOURS * 0.95, "underused": HOURS * 0.05})
    assert found["evidence_pct"] == {"counters": 0, "power": 0, "none": 100}
    assert any("unrated" in words for words in found["assumptions"])


def test_counters_of_a_gpu_that_is_not_in_the_catalog_rate_nothing(tmp_path: Path) -> None:
    work = {UTIL: 95, ENGINE: 0.95, TENSOR: 0.8, CLOCK: 1400}
    found = audit(lake_of(tmp_path, day("Banana 9000", **work)))
    assert hours(found) == pytest.approx({"unrated": HOURS * 0.95, "underused": HOURS * 0.05})
    assert found["evidence_pct"] == {"counters": 0, "power": 0, "none": 100}
    # The same readings of a GPU the catalog knows are rated.
    known = audit(lake_of(tmp_path / "known", day(H100, **work, **{FP32: 0.0})))
    assert known["evidence_pct"]["counters"] == 100
    assert known["bucket_h"]["productive"] > HOURS / 2


def test_idle_time_without_memory_recorded_is_idle_with_a_note(tmp_path: Path) -> None:
    found = audit(lake_of(tmp_path, day(H100, **{UTIL: 0, ENGINE: 0, POWER: 70})))
    assert hours(found) == {"idle": HOURS}
    assert any("no memory use recorded" in words for words in found["assumptions"])
    free = audit(lake_of(tmp_path / "free", day(H100, **{UTIL: 0, ENGINE: 0, POWER: 70, MEMORY: 0})))
    assert not any("no memory use recorded" in words for words in free["assumptions"])


def test_gpus_are_not_put_together_where_memory_is_not_recorded(tmp_path: Path) -> None:
    light = {UTIL: 10, ENGINE: 0.1, POWER: 150, TENSOR: 0.03, FP32: 0.01, DRAM: 0.05, CLOCK: 1700}
    replicas = ({"namespace": "serving", "pod": f"rep-{i}"} for i in range(4))
    rows = [row | of for i, of in enumerate(replicas) for row in day(H100, f"GPU-{i}", **light)]
    blind = audit(lake_of(tmp_path / "blind", rows))
    assert not advised(blind) & SHARING
    assert "would do" not in json.dumps(blind)
    seen = audit(lake_of(tmp_path / "seen", [row | {MEMORY: 9000, FREE: 70000} for row in rows]))
    assert "consolidation" in advised(seen)


def test_throttling_that_is_not_recorded_is_unknown(tmp_path: Path) -> None:
    work = {UTIL: 95, ENGINE: 0.95, POWER: 500, MEMORY: 9000}
    blind = analyze(lake_of(tmp_path / "blind", day(H100, **work)))
    assert blind["health"]["power_capped_pct"] is None
    assert blind["health"]["thermal_pct"] is None
    figures = {n["figure"] for n in blind["not_known"]}
    assert {"health.power_capped_pct", "health.thermal_pct"} <= figures
    seen = analyze(lake_of(tmp_path / "seen", day(H100, **work, **{BITS: 0})))
    assert (seen["health"]["power_capped_pct"], seen["health"]["thermal_pct"]) == (0, 0)


def test_a_gpu_at_its_enforced_power_limit_is_productive(tmp_path: Path) -> None:
    assert catalog(B300).board_power_w.value == 1100
    work = {UTIL: 100, ENGINE: 1.0, TENSOR: 0.3, FP32: 0.05, DRAM: 0.2, CLOCK: 900, POWER: 448, MEMORY: 20000}
    for model in (B300, H100):
        rows = day(model, **work, **{LIMIT: 450, BITS: 4})
        found = audit(lake_of(tmp_path / model, rows))
        assert hours(found) == {"productive": HOURS}
        assert any("power limit" in words for words in found["assumptions"])
    # At the board's own limit the same readings are not at a limit: most of the time is not put to use.
    free = audit(lake_of(tmp_path / "free", day(H100, **work, **{LIMIT: 700, BITS: 0})))
    assert free["bucket_h"]["stalled"] > HOURS / 2


def test_without_a_clock_the_rated_one_stands_in_and_is_noted(tmp_path: Path) -> None:
    work = {UTIL: 95, ENGINE: 0.95, TENSOR: 0.5, FP32: 0.05, DRAM: 0.2, POWER: 500, MEMORY: 20000}
    rated = catalog(H100).tensor_rated_mhz
    assert rated is not None
    blind, clocked = (
        lake_of(tmp_path / name, day(H100, **work, **more))
        for name, more in (("blind", {}), ("clocked", {CLOCK: round(rated.value)}))
    )
    first, second = audit(blind), audit(clocked)
    assert first["bucket_h"]["productive"] == pytest.approx(second["bucket_h"]["productive"], rel=1e-3)
    assert first["bucket_h"]["productive"] > HOURS / 3
    for lake, noted in ((blind, True), (clocked, False)):
        for told in (audit(lake), analyze(lake)):
            assert any("rated clock is assumed" in words for words in told["assumptions"]) is noted


def tensor_only(gpus: int = 5, **values: Any) -> list[Row]:
    """The 36-column export: of the pipes it has the tensor pipe alone."""
    work = {UTIL: 100, POWER: 637, ENGINE: 1.0, TENSOR: 0.0, DRAM: 0.0, CLOCK: 1700, MEMORY: 40000, FREE: 40000}
    names = {"timestamp": "SCRAPETIME", "modelName": "MODELNAME", "namespace": "NAMESPACE"}
    rows = [row | {"namespace": "train"} for i in range(gpus) for row in day(H100, f"GPU-{i}", **work | values)]
    return [{names.get(name, name): value for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("dram", [0.0, 0.3])
def test_work_that_the_tensor_pipe_does_not_show_is_not_waste(tmp_path: Path, dram: float) -> None:
    # 637 of 700 W is 91 %: something works, and the export does not say what.
    found = audit(lake_of(tmp_path, tensor_only(**{DRAM: dram})))
    busy = 5 * HOURS
    assert hours(found) == pytest.approx(
        {"productive": busy * dram, "unrated": busy * (1 - dram)} if dram else {"unrated": busy}
    )
    # Where all of it is unrated, nothing shows how much was wasted.
    assert found["waste_pct"] == (0 if dram else None)
    assert not advised(found) & SHARING
    text = json.dumps(found)
    assert not re.search(r"\b0(\.0)? of [\d,.]+ TFLOPS", text)
    assert found["first"] in {"amp", "bf16", "tensor-cores"}
    # What cannot be rated may be saved at best, and is not expected to be.
    month = found["savings"]["combined_month"]
    assert Decimal(month["middle_usd"]) == 0
    assert Decimal(month["high_usd"]) <= Decimal(found["monthly_usd"]) * Decimal(str(1 - dram))


def test_savings_never_hold_unrated_dollars_in_the_middle(tmp_path: Path) -> None:
    # Half of the day a pause, half of it unrated: neither is expected to be saved, and more than the pause may be.
    idle = {UTIL: 0, POWER: 70, ENGINE: 0.0}
    rows = tensor_only(**{DRAM: 0.0})
    rows = [row | (idle if i % len(DAY_LONG) < len(DAY_LONG) // 2 else {}) for i, row in enumerate(rows)]
    found = audit(lake_of(tmp_path, rows))
    assert hours(found) == pytest.approx({"unrated": 60, "idle_held": 60}, rel=1e-2)
    assert found["savings"]["combined_pct"] == 0
    assert found["waste_pct"] == pytest.approx(50, rel=1e-2)
    assert found["savings"]["combined"]["high_pct"] > 30


def test_a_month_has_no_productive_dollars_where_nothing_is_rated(tmp_path: Path) -> None:
    found = cost_report(lake_of(tmp_path, day(B300, **{UTIL: 100, POWER: 900})), price=1)
    assert not isinstance(found, Unknown)
    unknown = {bucket for bucket, usd in found.buckets_monthly_usd.items() if isinstance(usd, Unknown)}
    assert unknown == {"productive", "stalled"}
    assert isinstance(found.waste_monthly_usd, Unknown)
    assert found.buckets_monthly_usd["unrated"] == found.monthly_usd
