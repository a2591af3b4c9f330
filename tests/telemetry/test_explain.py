"""Does an explanation say what an import does, and does its starter map import the same samples?"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpuledger
from gpuledger.errors import FileFault
from gpuledger.telemetry import schema
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.mapping import given, load_mapping
from gpuledger.telemetry.mapping.suggest import suggest, vocabulary, wide_pattern
from gpuledger.telemetry.starter import starter_map
from gpuledger.telemetry.synthetic import FleetSpec, write_fleet

OURS = "when,card,model,team,milliwatts,busy_percent,fan\n" + "".join(
    f"20.01.2026 10:{m:02d},card-1,NVIDIA A10G,a,{100_000 + m},50,30\n" for m in range(5)
)


def samples(folder, *files, **more) -> list[dict]:
    lake = gpuledger.open(folder)
    lake.ingest(*files, **more)
    return lake.samples().df().astype(object).where(lambda d: d.notna(), None).to_dict("records")


def test_a_strange_file_gets_a_proposal_whose_starter_map_works(tmp_path):
    (tmp_path / "ours.csv").write_text(OURS)
    found = explain(tmp_path / "ours.csv")
    assert found.problem == ""
    assert {c.source: (c.column, c.factor, c.cell) for c in found.columns} == {
        "when": ("at_ms", "", "20.01.2026 10:00"),
        "card": ("gpu_uuid", "", "card-1"),
        "model": ("gpu_model", "", "NVIDIA A10G"),
        "team": ("team", "", "a"),
        "milliwatts": ("power_w", "/ 1,000", "100000"),
        "busy_percent": ("gpu_util_ratio", "/ 100", "50"),
    }
    assert [u.source for u in found.unused] == ["fan"]
    assert found.zoneless
    (tmp_path / "m.toml").write_text(starter_map(found))
    rows = samples(tmp_path / "lake", tmp_path / "ours.csv", mapping=str(tmp_path / "m.toml"))
    assert rows == samples(tmp_path / "plain", tmp_path / "ours.csv")
    assert [(r["power_w"], r["gpu_util_ratio"]) for r in rows] == [(100 + m / 1000, 0.5) for m in range(5)]
    assert found.rows[0]["power_w"] == rows[0]["power_w"]
    again = explain(tmp_path / "ours.csv", mapping=load_mapping(str(tmp_path / "m.toml")))
    assert (again.problem, again.known) == ("", True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_starter_map_of_a_known_file_imports_the_same(tmp_path, kind):
    file = tmp_path / f"fleet.{kind}"
    write_fleet(FleetSpec(gpus=2, days=10 / 1440), file, kind)
    found = explain(file)
    assert (found.known, found.problem, found.rejected) == (True, "", [])
    (tmp_path / "m.toml").write_text(starter_map(found))
    plain = samples(tmp_path / "a", file)
    assert plain == samples(tmp_path / "b", file, mapping=str(tmp_path / "m.toml"))
    first = {c.column: c.read for c in found.columns}
    assert first["power_w"] in {r["power_w"] for r in plain}
    assert first["fb_used_bytes"] in {r["fb_used_bytes"] for r in plain}


def test_a_wide_file_with_a_date_and_a_time_apart(tmp_path):
    (tmp_path / "w.csv").write_text(
        "date,time,host,gpu0_power [W],gpu1_power [W],gpu1_mem_used\n2026-01-20,10:00,h,100,0.2 kW,40 MiB\n"
    )
    found = explain(tmp_path / "w.csv")
    assert (found.gpus_per_row, found.device_by, found.bound.time) == (2, "host and index", "date + time")
    assert [r["power_w"] for r in found.rows] == [100, 200]
    (tmp_path / "m.toml").write_text(starter_map(found))
    rows = samples(tmp_path / "lake", tmp_path / "w.csv", mapping=str(tmp_path / "m.toml"))
    assert [(r["gpu_uuid"], r["power_w"], r["fb_used_bytes"]) for r in rows] == [
        ("h:gpu0", 100, None),
        ("h:gpu1", 200, 40 * 2**20),
    ]


def test_what_is_missing_and_what_would_be_rejected(tmp_path):
    (tmp_path / "f.csv").write_text("UUID,DCGM_FI_DEV_GPU_UTIL\nGPU-1,50\n")
    found = explain(tmp_path / "f.csv")
    assert found.missing == ["time"]
    assert "'time'" in found.problem
    assert found.rows == []
    at = explain(tmp_path / "f.csv", given=given(at="2026-01-20T10:00:00Z"))
    assert (at.problem, at.missing, len(at.rows)) == ("", [], 1)
    (tmp_path / "g.csv").write_text("timestamp,UUID,DCGM_FI_DEV_GPU_UTIL\n1768867260,GPU-1,50\n1768867261,GPU-1,x\n")
    (one,) = explain(tmp_path / "g.csv").rejected
    assert (one.row, one.reason, one.column, one.value) == (2, "not_a_number", "DCGM_FI_DEV_GPU_UTIL", "x")


def test_a_repeated_hour_is_placed_as_the_import_places_it(tmp_path):
    clocks = ["02:00", "02:30", "02:00", "02:30"]
    rows = "".join(f"2026-10-25 {c},GPU-1,{n}\n" for n, c in enumerate(clocks))
    (tmp_path / "f.csv").write_text("timestamp,UUID,DCGM_FI_DEV_GPU_UTIL\n" + rows)
    found = explain(tmp_path / "f.csv", zone="Europe/Berlin")
    assert found.rejected == []
    assert [r["at_ms"] for r in found.rows] == [1_792_886_400_000 + n * 1_800_000 for n in range(3)]


def test_a_unit_that_nothing_states_is_asked_for_in_the_starter_map(tmp_path):
    (tmp_path / "f.csv").write_text("timestamp,gpu_uuid,memory_used,temp_c,mystery\n1768867260,GPU-1,300,50,7\n")
    found = explain(tmp_path / "f.csv")
    assert "fb_used_bytes" not in {c.column for c in found.columns}
    (memory,) = [u for u in found.unused if u.source == "memory_used"]
    assert (memory.suggestion.column, memory.suggestion.sure) == ("fb_used_bytes", False)
    text = starter_map(found)
    assert '# column = "fb_used_bytes"' in text
    assert '# unit = "B"  # which one?' in text
    (tmp_path / "m.toml").write_text(text)
    assert load_mapping(str(tmp_path / "m.toml")).values[0].column == "gpu_temp_c"
    lines = text[text.index("# [[values]]") :].splitlines()
    (tmp_path / "m.toml").write_text(
        text[: text.index("# [[values]]")] + "\n".join(x.removeprefix("# ") for x in lines[:4])
    )
    (row,) = samples(tmp_path / "lake", tmp_path / "f.csv", mapping=str(tmp_path / "m.toml"))
    assert row["fb_used_bytes"] == 300


def test_a_column_of_lists_does_not_stop_the_others(tmp_path):
    table = pa.table({"timestamp": [1_768_867_260], "UUID": ["G"], "DCGM_FI_DEV_GPU_UTIL": [5], "tags": [["a", "b"]]})
    pq.write_table(table, tmp_path / "f.parquet")
    found = explain(tmp_path / "f.parquet")
    assert found.problem == ""
    assert [(u.source, u.cell) for u in found.unused] == [("tags", "")]


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.table([[1_768_867_260], ["G"], [5], [6]], ["timestamp", "UUID", "DCGM_FI_DEV_GPU_UTIL", "UUID"])
    pq.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(FileFault, match="two columns are called 'UUID'"):
        explain(tmp_path / "f.parquet")
    with pytest.raises(FileFault, match="two columns are called 'UUID'"):
        gpuledger.open(tmp_path / "lake").ingest(tmp_path / "f.parquet")


@pytest.mark.parametrize(
    ("name", "cell", "column", "unit"),
    [
        ("power.draw [W]", "300", "power_w", ""),
        ("PowerDraw", "300.1 W", "power_w", "W"),
        ("gpu_power_mw", "300", "power_w", None),  # mW or MW?
        ("gpu_power_milliwatts", "300", "power_w", "milliwatts"),
        ("enforced.power.limit [W]", "700", "power_limit_w", ""),
        ("memory_used_mib", "5", "fb_used_bytes", "mib"),
        ("utilization.gpu [%]", "5", "gpu_util_ratio", ""),
        ("temperature.memory", "61 C", "mem_temp_c", "C"),
        ("dcgm_fi_dev_fb_used", "5", "fb_used_bytes", ""),
        ("Hostname", "a", "host", None),
        ("clocks.sm [MHz]", "1980 MHz", "sm_clock_mhz", ""),
        ("name", "NVIDIA H100 80GB HBM3", "gpu_model", None),
        ("thing", "GPU-eca2ff5e-c8ed-5a8e-9bca-b9013c2f2a11", "gpu_uuid", None),
        ("clocks_event_reasons.active", "0x0000000000000004", "throttle_bits", ""),
        ("clocks_event_reasons.active", "Not Active", "throttle_bits", None),
        ("cpu_usage", "5", None, None),
        ("cpu_model", "AMD EPYC 7543 32-Core Processor", None, None),
        ("cpu_power_watts", "45.0", None, None),
        ("ram_energy_kwh", "0.02", None, None),
        ("ram_utilization_percent", "30.1", None, None),
        ("gpu_count", "2", None, None),
        ("gpu_type", "A100", None, None),
        ("gpu_fan_speed", "30", None, None),
        ("n_gpu", "8", None, None),
        ("gpu_score", "0.75", None, None),
        ("gpu", "2", "gpu_index", None),
        ("gpu_serial", "1324920041", "gpu_uuid", None),
        ("machine_type", "a2-highgpu-1g", None, None),
        ("mystery", "5", None, None),
    ],
)
def test_what_a_name_suggests(name, cell, column, unit):
    found = suggest(name, cell)
    assert (found.column if found else None) == column
    if found and found.rule:
        assert found.rule.unit == unit
    elif found:
        assert unit is None


def test_suggestions_are_columns_of_the_schema():
    assert {e.column for e in vocabulary().entries} <= set(schema.columns()) - {schema.TIME}


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["t", "gpu0_w", "gpu1_w"], "gpu{gpu_index}_{reading}"),
        (["t", "system.gpu.0.temp", "system.gpu.1.temp"], "system.gpu.{gpu_index}.{reading}"),
        (["t", "GPU 0: power", "GPU 1: power"], "GPU {gpu_index}: {reading}"),
        (["t", "gpu0_w", "gpu0_temp"], None),
        (["t", "DCGM_FI_DEV_GPU_UTIL"], None),
        (["t", "gpu{0_w", "gpu{1_w"], None),
    ],
)
def test_the_pattern_of_wide_columns(names, pattern):
    found = wide_pattern(names)
    assert (found.pattern if found else None) == pattern


def test_odd_names_survive_the_starter_map(tmp_path):
    odd = 'power "" \\ é\u2028 [W]'
    table = pa.table({"timestamp": [1_768_867_260], "gpu_uuid": ["G"], odd: [5.0], "#\n[x]": ["a"]})
    pq.write_table(table, tmp_path / "f.parquet")
    (tmp_path / "m.toml").write_text(starter_map(explain(tmp_path / "f.parquet")), "utf-8")
    (row,) = samples(tmp_path / "lake", tmp_path / "f.parquet", mapping=str(tmp_path / "m.toml"))
    assert row["power_w"] == 5
