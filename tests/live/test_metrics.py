"""Does a scrape give the figures of the statements in the format Prometheus reads, and nothing for the unknown?"""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pytest

from cost.fleets import B300, ENGINE, MEMORY, POWER, UTIL, lake_of, samples
from gpuledger.advice.asking import asked
from gpuledger.cost.statement import BUCKETS, WASTE, Dollars
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import newest_ms
from gpuledger.live.exposition import Family, family, text_of
from gpuledger.live.figures import window_families
from gpuledger.live.metrics import read_window, recent
from gpuledger.units import MS_PER_HOUR, Unknown
from servers.real_prometheus import PROMTOOL, needs_prometheus


def families(lake: Lake, scope: Scope | None = None, **terms: object) -> dict[str, Family]:
    made = read_window(lake, recent(lake, scope or Scope()), asked(lake.root, **terms))  # type: ignore[arg-type]
    return {f.name: f for f in window_families(made, newest_ms(lake))}


def value(found: Family, **labels: str) -> float:
    (one,) = [v for own, v in found.series if labels.items() <= own.items()]
    return float(one)


@needs_prometheus
@pytest.mark.parametrize(
    "namespace", ["plain", 'quo"te', "back\\slash", "two\nlines", "esc\x1b[31m", "日本 ü", "a,b={c}"]
)
def test_promtool_reads_what_labels_may_hold(namespace: str) -> None:
    made = family("gpuledger_test_usd_per_hour", 'A "help" with a \\ and\na line.', [({"namespace": namespace}, 1.5)])
    command = [str(PROMTOOL), "check", "metrics"]
    found = subprocess.run(command, input=text_of([made]), capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_the_text_is_as_the_format_writes_it() -> None:
    made = family("x_ratio", "Of\nall.", [({"a": 'q"\\\n', "b": None}, 0.5), ({}, 3)])
    assert (
        text_of([made]) == '# HELP x_ratio Of\\nall.\n# TYPE x_ratio gauge\nx_ratio{a="q\\"\\\\\\n"} 0.5\nx_ratio 3\n'
    )


def test_what_is_unknown_has_no_series_and_an_empty_family_no_lines() -> None:
    given = [({"a": "1"}, Unknown("not recorded")), ({"a": "2"}, None), ({"a": "3"}, math.nan)]
    assert text_of([family("x", "X.", given)]) == ""


def test_what_no_evidence_rates_has_a_reason_instead_of_a_figure(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, samples(range(120), model=B300, namespace="dark", **{UTIL: 100, POWER: 900}))
    found = families(lake, price=1)
    for name, more in (("gpuledger", {}), ("gpuledger_namespace", {"namespace": "dark"})):
        rated = {own["bucket"] for own, _ in found[f"{name}_bucket_usd_per_hour"].series}
        assert rated == set(BUCKETS) - {"productive", "stalled"}
        assert not found[f"{name}_waste_usd_per_hour"].series
        why = {own["figure"]: own["reason"] for own, _ in found[f"{name}_unknown_info"].series}
        assert why.keys() == {"productive", "stalled", "waste"}
        assert all("unrated" in reason for reason in why.values())
        assert all(more.items() <= own.items() for own, _ in found[f"{name}_unknown_info"].series)


@needs_prometheus
def test_promtool_accepts_a_whole_page(lake: Lake) -> None:
    page = text_of(families(lake).values())
    command = [str(PROMTOOL), "check", "metrics"]
    found = subprocess.run(command, input=page, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_dollars_are_those_of_the_audit(lake: Lake) -> None:
    made = read_window(lake, Scope(), asked(lake.root))
    found = {f.name: f for f in window_families(made, newest_ms(lake))}
    cost = made.audit.cost
    assert isinstance(cost.dollars, Dollars)
    rate = float(cost.dollars.paid_usd) / cost.wall_h
    assert value(found["gpuledger_paid_usd_per_hour"]) == pytest.approx(rate)
    for bucket in BUCKETS:
        mine = float(cost.dollars.each()[bucket]) / cost.wall_h
        assert value(found["gpuledger_bucket_usd_per_hour"], bucket=bucket) == pytest.approx(mine)
    for label in ("namespace", "team"):
        spread = found[f"gpuledger_{label}_bucket_usd_per_hour"]
        assert sum(float(v) for _, v in spread.series) == pytest.approx(rate)
    waste = sum(float(v) for _, v in found["gpuledger_gpu_waste_usd_per_hour"].series)
    assert waste == pytest.approx(float(cost.dollars.waste_usd) / cost.wall_h)
    assert set(WASTE) < set(BUCKETS)


def test_without_a_window_it_is_the_last_hour(lake: Lake) -> None:
    found = families(lake)
    assert value(found["gpuledger_window_seconds"]) == pytest.approx(3600, abs=61)
    newest = newest_ms(lake)
    assert value(found["gpuledger_newest_sample_timestamp_seconds"]) == pytest.approx(newest / 1000)
    since = Scope(newest - 3 * MS_PER_HOUR)
    assert value(families(lake, since)["gpuledger_window_seconds"]) == pytest.approx(3 * 3600, abs=61)


def test_readings_that_were_not_recorded_are_absent(tmp_path: Path) -> None:
    rows = samples(range(60), "GPU-util", **{UTIL: 50, MEMORY: 9000})
    rows += samples(range(60), "GPU-power", **{POWER: 200})
    found = families(lake_of(tmp_path, rows), price=1)
    seen = {name: {own["gpu"] for own, _ in f.series} for name, f in found.items() if name.startswith("gpuledger_gpu_")}
    assert seen["gpuledger_gpu_utilization_ratio"] == {"GPU-util"}
    assert seen["gpuledger_gpu_power_watts"] == {"GPU-power"}
    assert seen["gpuledger_gpu_memory_used_bytes"] == {"GPU-util"}
    assert seen["gpuledger_gpu_memory_size_bytes"] == set()
    assert seen["gpuledger_gpu_idle_seconds"] == {"GPU-util"}  # of the other it is unknown whether it was idle
    assert seen["gpuledger_gpu_realized_ratio"] == set()


def test_a_gpu_without_a_price_has_no_dollars_and_is_counted(tmp_path: Path) -> None:
    rows = samples(range(60), "GPU-x", "Banana 9000", **{UTIL: 50}) + samples(range(60), **{UTIL: 50})
    found = families(lake_of(tmp_path, rows))
    assert value(found["gpuledger_unpriced_gpus"]) == 1
    assert {own["gpu"] for own, _ in found["gpuledger_gpu_paid_usd_per_hour"].series} == {"GPU-a"}


def test_idle_time_is_told_apart_by_memory_held(tmp_path: Path) -> None:
    rows = samples(range(60), "GPU-free", **{UTIL: 0, ENGINE: 0.0, MEMORY: 10})
    rows += samples(range(60), "GPU-held", **{UTIL: 0, ENGINE: 0.0, MEMORY: 30_000})
    found = families(lake_of(tmp_path, rows), price=1)
    assert value(found["gpuledger_gpu_idle_seconds"], gpu="GPU-free") == pytest.approx(3600, abs=60)
    assert value(found["gpuledger_gpu_idle_held_seconds"], gpu="GPU-held") == pytest.approx(3600, abs=60)
    assert value(found["gpuledger_gpu_idle_seconds"], gpu="GPU-held") == 0
