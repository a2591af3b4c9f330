"""Does the whole statement agree with the same analyses done another way, and with itself?"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.catalog.files import data_dir
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import EfficiencyStatement, to_json
from gpuledger.errors import InputError, LakeError, UnknownName
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.units import MS_PER_HOUR, Range, Unknown, day_start_ms

START = day_start_ms("2026-01-20")
MAX_W = {"NVIDIA A100-SXM4-40GB": 400.0, "NVIDIA H100 80GB HBM3": 700.0, "NVIDIA A10G": 300.0}
TFLOPS = {"NVIDIA A100-SXM4-40GB": 102.0, "NVIDIA H100 80GB HBM3": 646.0, "NVIDIA A10G": 35.0}
State = Callable[..., EfficiencyStatement]


@pytest.fixture(scope="module")
def frame(small_fleet: tuple[Lake, Path]) -> pd.DataFrame:
    """The samples as a person would load them."""
    wanted = {
        "UUID": "uuid", "MODELNAME": "model", "NAMESPACE": "namespace", "CLUSTERNAME": "cluster", "SCRAPETIME": "at",
        "DCGM_FI_DEV_GPU_UTIL": "util", "DCGM_FI_DEV_POWER_USAGE": "power",
    }  # fmt: skip
    f = pd.read_parquet(small_fleet[1], columns=list(wanted)).rename(columns=wanted)
    f["pif"] = (f["power"] / f["model"].map(MAX_W).astype("float64")).clip(0, 1)
    f["tflops"] = f["pif"] * f["model"].map(TFLOPS).astype("float64")
    f["rfu"] = 100 * f["pif"]
    f["gap"] = f["util"] - f["rfu"]
    return f


@pytest.fixture(scope="module")
def statement(small_fleet: tuple[Lake, Path]) -> EfficiencyStatement:
    return efficiency_statement(small_fleet[0])


def test_fleet_means_equal_pandas(frame: pd.DataFrame, statement: EfficiencyStatement) -> None:
    assert (statement.samples, statement.gpus) == (len(frame), frame["uuid"].nunique())
    assert (statement.clusters, statement.namespaces) == (frame["cluster"].nunique(), frame["namespace"].nunique())
    assert statement.fleet.gpu_util_pct == pytest.approx(frame["util"].mean(), abs=1e-6)
    assert statement.fleet.pif == pytest.approx(frame["pif"].mean(), abs=1e-6)
    assert statement.fleet.rfu_power_pct == pytest.approx(frame["rfu"].mean(), abs=1e-6)
    assert statement.fleet.efficiency_gap_pp == pytest.approx(frame["gap"].mean(), abs=1e-6)


def test_active_time_equals_pandas(frame: pd.DataFrame, statement: EfficiencyStatement) -> None:
    active = frame["util"] > 1
    slow = active & (frame["util"] > 70) & (frame["pif"] < 0.60)
    found = statement.active
    assert found.bottlenecked_pct_of_active == pytest.approx(100 * slow.sum() / active.sum(), abs=1e-6)
    for ours, theirs in (
        (found.gpu_util_pct, "util"),
        (found.pif, "pif"),
        (found.rfu_power_pct, "rfu"),
        (found.efficiency_gap_pp, "gap"),
    ):
        assert ours == pytest.approx(frame.loc[active, theirs].mean(), abs=1e-6)
    phases = pd.cut(frame["util"], [-1, 9.999, 69.999, 89.999, 101], labels=list(found.phases_pct)).value_counts()
    for name, share in found.phases_pct.items():
        assert share == pytest.approx(100 * phases[name] / len(frame), abs=1e-6)


def test_groups_equal_pandas(frame: pd.DataFrame, statement: EfficiencyStatement) -> None:
    columns = {"util": "gpu_util_pct", "pif": "pif", "rfu": "rfu_power_pct", "gap": "efficiency_gap_pp"}
    for rows, key in ((statement.by_model, "model"), (statement.by_namespace, "namespace")):
        means = frame.groupby(key, observed=True)[list(columns)].mean()
        assert [r.name for r in rows] == sorted(means.index)
        for row in rows:
            for theirs, ours in columns.items():
                assert getattr(row.means, ours) == pytest.approx(means.loc[row.name, theirs], abs=1e-6)
    per_gpu = frame.groupby("uuid", observed=True)[["util", "pif"]].mean()
    for gpu in statement.per_gpu:
        assert gpu.means.gpu_util_pct == pytest.approx(per_gpu.loc[gpu.gpu_uuid, "util"], abs=1e-6)
        assert gpu.means.pif == pytest.approx(per_gpu.loc[gpu.gpu_uuid, "pif"], abs=1e-6)
    slow = ((per_gpu["util"] > 70) & (per_gpu["pif"] < 0.60)).sum()
    assert slow == sum(g.means.gpu_util_pct > 70 and g.means.pif < 0.60 for g in statement.per_gpu)  # type: ignore[operator]


def test_hours_equal_pandas(frame: pd.DataFrame, statement: EfficiencyStatement) -> None:
    hour = frame["at"].dt.floor("h")
    tflops = frame.groupby([hour, "uuid"], observed=True)["tflops"].mean().groupby(level=0).sum()
    kilowatts = frame.groupby([hour, "uuid"], observed=True)["power"].mean().groupby(level=0).sum() / 1000
    util = frame.groupby(hour)["util"].mean()
    assert [h.start_ms for h in statement.hours] == [int(at.timestamp() * 1000) for at in tflops.index]
    for i, row in enumerate(statement.hours):
        assert row.realized_power_tflops == pytest.approx(tflops.iloc[i], abs=1e-5)
        assert row.power_kw == pytest.approx(kilowatts.iloc[i], abs=1e-6)
        assert row.gpu_util_pct == pytest.approx(util.iloc[i], abs=1e-6)
    mean = sum(h.realized_power_tflops for h in statement.hours) / len(statement.hours)  # type: ignore[misc]
    assert mean == pytest.approx(tflops.mean(), abs=1e-5)


def test_quantiles_are_within_a_bin_of_pandas(frame: pd.DataFrame, statement: EfficiencyStatement) -> None:
    assert statement.fleet.util_p50_pct == pytest.approx(frame["util"].quantile(0.50), abs=5)
    assert statement.fleet.util_p95_pct == pytest.approx(frame["util"].quantile(0.95), abs=5)


def test_the_plane_holds_all_time(statement: EfficiencyStatement) -> None:
    assert sum(c.hours for c in statement.util_power) == pytest.approx(statement.fleet.observed_h)


def test_two_runs_say_the_same_to_the_last_digit(
    small_fleet: tuple[Lake, Path], statement: EfficiencyStatement
) -> None:
    again = efficiency_statement(small_fleet[0])
    assert json.dumps(to_json(again)) == json.dumps(to_json(statement))


def test_causes_on_the_demo_fleet(demo_fleet: tuple[Lake, Path]) -> None:
    text = data_dir("gpuledger.telemetry", "data", "demo_fleet.csv").read_text(encoding="utf-8")
    scenario = {row["uuid"]: row["scenario"] for row in csv.DictReader(text.splitlines())}
    expected = {"data_starved": "storage", "network_bottleneck": "network"}
    found = {g.gpu_uuid: g.likely_cause for g in efficiency_statement(demo_fleet[0]).bottlenecked_gpus}
    slow = {uuid: expected[name] for uuid, name in scenario.items() if name in expected}
    assert len(slow) >= 15
    right = sum(found.get(uuid) == cause for uuid, cause in slow.items())
    assert right >= 0.9 * len(slow)
    assert sum(uuid not in slow for uuid in found) <= 0.1 * len(slow)


def test_filters_leave_the_rest_out(small_fleet: tuple[Lake, Path], frame: pd.DataFrame) -> None:
    lake = small_fleet[0]
    namespace = min(set(frame["namespace"]))
    cluster = min(set(frame["cluster"]))
    one = efficiency_statement(lake, Scope(namespaces=(namespace,)))
    assert one.samples == (frame["namespace"] == namespace).sum()
    assert [r.name for r in one.by_namespace] == [namespace]
    one = efficiency_statement(lake, Scope(clusters=(cluster,)))
    assert (one.samples, one.clusters) == ((frame["cluster"] == cluster).sum(), 1)
    until = START + 3 * MS_PER_HOUR
    some = efficiency_statement(lake, Scope(START + MS_PER_HOUR, until))
    inside = frame[(frame["at"].dt.hour >= 1) & (frame["at"].dt.hour < 3) & (frame["at"].dt.day == 20)]
    assert some.samples == len(inside)
    assert (some.start_ms, some.end_ms) == (START + MS_PER_HOUR, until)
    assert some.fleet.gpu_util_pct == pytest.approx(inside["util"].mean(), abs=1e-6)


def test_owners_are_workloads_runs_or_both_names(state: State, line: Callable[..., Any]) -> None:
    rows = [
        line(0, "GPU-a", util=0.5, workload="train", run_id="r1"),
        line(1, "GPU-a", util=0.7, workload="serve"),
        line(2, "GPU-a", util=0.9),
    ]
    assert state(*rows, scope=Scope(owners=("train",))).fleet.gpu_util_pct == pytest.approx(50)
    assert state(*rows, scope=Scope(owners=("r1",))).fleet.gpu_util_pct == pytest.approx(50)
    assert state(*rows, scope=Scope(owners=("n1/serve",))).fleet.gpu_util_pct == pytest.approx(70)


def test_time_without_an_owner_is_unallocated(state: State, line: Callable[..., Any]) -> None:
    rows = [line(0, util=0.5), line(1, util=0.0, namespace=None)]
    found = state(*rows)
    assert [r.name for r in found.by_namespace] == ["n1", "unallocated"]
    assert found.by_namespace[1].target_rfu_pct is None
    assert found.namespaces == 1
    assert state(*rows, scope=Scope(namespaces=("unallocated",))).fleet.gpu_util_pct == 0


def test_a_namespace_called_unallocated_is_not_time_without_an_owner(state: State, line: Callable[..., Any]) -> None:
    rows = [line(0, util=0.5, pif=0.6, namespace="unallocated"), line(1, util=0.0, pif=0.1, namespace=None)]
    real, nobody = state(*rows).by_namespace[::-1]
    assert (real.name, nobody.name) == ("unallocated (namespace)", "unallocated")
    assert (real.means.gpu_util_pct, nobody.means.gpu_util_pct) == (pytest.approx(50), 0)
    assert real.target_rfu_pct is not None
    assert nobody.target_rfu_pct is None
    for row in (real, nobody):
        found = state(*rows, scope=Scope(namespaces=(row.name,)))
        assert [r.name for r in found.by_namespace] == [row.name]
        assert found.samples == 60


def test_lines_cut_at_midnight_add_up(books: Callable[..., Lake], line: Callable[..., Any]) -> None:
    """The same device and hour twice, once in the file of the day before."""
    half = MS_PER_HOUR // 2
    rows = [
        line(24, util=0.2, pif=0.2, ms=half, samples=30),
        line(24, util=0.8, pif=0.6, ms=half, samples=30, first_ms=START + 24 * MS_PER_HOUR + half),
    ]
    found = efficiency_statement(books(*rows, days=["2026-01-20", "2026-01-21"]), Scope(START + 24 * MS_PER_HOUR))
    (hour,) = found.hours
    assert (found.samples, hour.samples, hour.gpus) == (60, 60, 1)
    assert (hour.gpu_util_pct, hour.pif) == (pytest.approx(50), pytest.approx(0.4))
    assert hour.realized_power_tflops == pytest.approx(0.4 * 646)
    (cell,) = found.util_power
    assert (cell.util_low_pct, cell.pif_low, cell.hours) == (50, 0.4, 1)


def test_owners_that_share_a_device_are_one_gpu_hour(state: State, line: Callable[..., Any]) -> None:
    half = MS_PER_HOUR // 2
    rows = [
        line(0, util=0.4, pif=0.4, ms=half, namespace="a"),
        line(0, util=0.8, pif=0.8, ms=half, namespace="b"),
    ]
    found = state(*rows)
    assert (found.gpus, len(found.per_gpu), found.hours[0].gpus) == (1, 1, 1)
    assert found.hours[0].realized_power_tflops == pytest.approx(0.6 * 646)
    assert [r.means.gpus for r in found.by_namespace] == [1, 1]


def test_mig_instances_share_their_board(state: State, line: Callable[..., Any]) -> None:
    rows = [
        line(0, "GPU-a", util=0.5, pif=0.5, gpu_instance_id="1", slice_ppm=500_000),
        line(0, "GPU-a", util=0.5, pif=0.5, gpu_instance_id="2", slice_ppm=250_000),
        line(0, "GPU-b", util=0.5, pif=0.5),
    ]
    found = state(*rows)
    assert (found.gpus, len(found.per_gpu), found.hours[0].gpus) == (2, 3, 2)
    assert found.capacity.fleet.peak_tflops == pytest.approx(1.75 * 989.5)
    assert found.capacity.fleet.realized_power_tflops == pytest.approx(1.75 * 646 * 0.5)
    assert any("MIG" in text for text in found.assumptions)


def test_a_fleet_of_an_unknown_model(state: State, line: Callable[..., Any]) -> None:
    rows = [line(h, f"GPU-{g}", util=0.8, pif=0.5, model="Frobnicator 9000") for h in range(30) for g in range(3)]
    found = state(*rows)
    assert found.fleet.gpu_util_pct == pytest.approx(80)
    assert found.fleet.power_w == pytest.approx(250)
    for figure in (
        found.fleet.pif, found.fleet.rfu_power_pct, found.fleet.rfu_power_idle_corrected_pct,
        found.fleet.rfu_counters_pct, found.fleet.efficiency_gap_pp, found.active.bottlenecked_pct_of_active,
        found.capacity.fleet.peak_tflops, found.capacity.fleet.achievable_tflops,
        found.capacity.fleet.realized_power_tflops, found.capacity.fleet.realized_counters_tflops,
        found.hours[0].realized_power_tflops, found.per_gpu[0].bottlenecked_pct_of_active,
    ):  # fmt: skip
        assert isinstance(figure, Unknown)
        assert figure.why
    assert found.roi == ()
    assert found.util_power == ()
    assert found.active.classes_pct == {}
    assert found.active.class_unknown_h == pytest.approx(90)
    assert {g.klass for g in found.per_gpu} == {"not known"}
    assert any("Frobnicator" in n.why for n in found.not_known)
    assert "Frobnicator" in found.findings[-1]
    json.dumps(to_json(found), allow_nan=False)


def test_an_unknown_model_beside_known_ones(state: State, line: Callable[..., Any]) -> None:
    found = state(line(0, "GPU-a", util=0.8, pif=0.5), line(0, "GPU-b", util=0.2, pif=0.5, model="Frobnicator 9000"))
    assert found.fleet.gpu_util_pct == pytest.approx(50)
    assert found.fleet.pif == pytest.approx(0.5)
    # The gap stands on the GPU in which both are known, not on one GPU's utilization and another's power.
    assert found.fleet.efficiency_gap_pp == pytest.approx(80 - 50)
    assert found.roi[0].equivalent_gpus == pytest.approx(1 * (60 / 50 - 1))
    assert (found.capacity.fleet.gpus, found.capacity.fleet.achievable_gpus) == (2, 1)
    assert "1 of 2 GPUs" in found.capacity.fleet.note


def test_samples_without_power_or_utilization(state: State, line: Callable[..., Any]) -> None:
    found = state(line(0))
    assert isinstance(found.fleet.gpu_util_pct, Unknown)
    assert isinstance(found.fleet.util_p50_pct, Unknown)
    assert isinstance(found.fleet.energy_kwh, Unknown)
    assert isinstance(found.hours[0].power_kw, Unknown)
    json.dumps(to_json(found), allow_nan=False)


def test_nothing_in_scope_says_what_there_is(small_fleet: tuple[Lake, Path]) -> None:
    lake = small_fleet[0]
    with pytest.raises(InputError) as caught:
        efficiency_statement(lake, Scope(namespaces=("ml-trainin",)))
    assert "did you mean ml-training?" in caught.value.hint
    assert "2026-01-20 to 2026-01-21" in caught.value.hint
    with pytest.raises(InputError, match="2030") as caught:
        efficiency_statement(lake, Scope(day_start_ms("2030-01-01")))
    assert "prod-us-east-1" in caught.value.hint


def test_no_lake_no_books_no_such_source(tmp_path: Path, small_fleet: tuple[Lake, Path]) -> None:
    with pytest.raises(LakeError, match="no lake"):
        efficiency_statement(Lake(tmp_path / "nowhere"))
    bare = Lake(tmp_path / "bare")
    with bare.locked():
        bare.commit([])
    with pytest.raises(InputError, match="nothing is posted"):
        efficiency_statement(bare)
    with pytest.raises(UnknownName, match="guess"):
        efficiency_statement(small_fleet[0], achievable="guess")


@pytest.mark.parametrize("table", ["days", "hours", "gpu-hours", "spells"])
def test_a_broken_file_of_the_books_is_said(books: Callable[..., Lake], line: Callable[..., Any], table: str) -> None:
    lake = books(line(0, util=0.5))
    (file,) = lake.ledger_dir.glob(f"*/*.{table}.parquet")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(LakeError, match="cannot be read") as caught:
        efficiency_statement(lake)
    assert "delete the ledger folder" in caught.value.hint


def test_ranges_hold_their_middle(statement: EfficiencyStatement) -> None:
    for gpu in statement.per_gpu:
        counted = gpu.means.rfu_counters_pct
        assert isinstance(counted, Range)
        assert 0 <= counted.low <= counted.middle <= counted.high


def test_lines_posted_under_other_limits_are_named(state: State, line: Callable[..., Any], tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[bottleneck]\nutil_above_ratio = 0.9\n")
    assert not any("other limits" in text for text in state(line(0, util=0.5)).assumptions)
    other = state(line(0, util=0.5), thresholds=load_thresholds(own))
    assert any("other limits" in text for text in other.assumptions)


ratios = st.floats(0, 1, allow_nan=False)


@settings(max_examples=12, deadline=None)
@given(
    hours=st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from("abc"), ratios, ratios, st.integers(1, MS_PER_HOUR)),
        min_size=1,
        max_size=12,
    )
)
def test_means_lie_between_the_lines(state: State, line: Callable[..., Any], hours: list[Any]) -> None:
    found = state(*[line(h, f"GPU-{g}", util=u, pif=p, ms=ms) for h, g, u, p, ms in hours])
    utils, pifs = [round(100 * u, 4) for _, _, u, _, _ in hours], [p for _, _, _, p, _ in hours]
    assert min(utils) - 1e-3 <= found.fleet.gpu_util_pct <= max(utils) + 1e-3  # type: ignore[operator]
    assert min(pifs) - 1e-5 <= found.fleet.pif <= max(pifs) + 1e-5  # type: ignore[operator]
    assert sum(g.means.observed_h for g in found.per_gpu) == pytest.approx(found.fleet.observed_h)
    assert sum(c.hours for c in found.util_power) == pytest.approx(found.fleet.observed_h)
    assert isinstance(found.fleet.rfu_counters_pct, Unknown | Range)
