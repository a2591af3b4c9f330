"""Is a table with its own headers read by names, units and values, and is what is not of GPUs refused?"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuledger
from gpuledger.errors import FileFault, UnknownKind
from gpuledger.telemetry import schema
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.mapping import bind, load_mapping
from gpuledger.telemetry.mapping.own_headers import proposal
from gpuledger.telemetry.mapping.shape import open_shaped
from gpuledger.telemetry.mapping.suggest import suggest, vocabulary
from gpuledger.telemetry.starter import write_starter

START_S = 1_772_359_200
UUID = "GPU-eca2ff5e-c8ed-5a8e-9bca-b9013c2f2a11"


def table(folder: Path, header: str, *rows: str, every_s: float = 5, name: str = "f.csv") -> Path:
    """A file of these rows again and again; T in a row is its time, which goes on at every repetition."""
    lines = [row.replace("T", f"{START_S + n * every_s:.1f}") for n in range(12) for row in rows]
    file = folder / name
    file.write_text("\n".join([header, *lines]) + "\n")
    return file


def read(file: Path) -> set[str]:
    """Each reading and label with the column it is read from and the unit of its bare numbers."""
    rules = proposal(file).mapping
    found = [f"{rule.column}={rule.sources[0]}|{rule.unit}" for rule in rules.values]
    return {one.replace(" ", "_") for one in (*found, *(f"{label}={one[0]}" for label, one in rules.labels.items()))}


def samples(folder: Path, file: Path, **more) -> list[dict]:
    lake = gpuledger.open(folder)
    lake.ingest(file, **more)
    return lake.samples().df().astype(object).where(lambda d: d.notna(), None).to_dict("records")


@pytest.mark.parametrize(
    ("header", "rows", "wanted"),
    [
        ("Time,GPU_ID,Utilization", ("T,0,57", "T,1,3"), "gpu_index=GPU_ID gpu_util_ratio=Utilization|percent"),
        ("timestamp,gpu,power.draw", ("T,0,57.5", "T,1,300"), "gpu_index=gpu power_w=power.draw|W"),
        ("time,gpu0_util,gpu1_util,gpu0_mem", ("T,50,60,4", "T,51,61,5"), "gpu_util_ratio=util|percent"),
        ("ts,GPU 0 Utilization (%),GPU 1 Utilization (%)", ("T,50,60",), "gpu_util_ratio=Utilization_(%)|"),
        ("ts,gpu_util_0,gpu_util_1,gpu_power_0", ("T,50,60,70",), "gpu_util_ratio=util|percent power_w=power|W"),
        ("ts,util_gpu0,util_gpu1", ("T,50,60",), "gpu_util_ratio=util|percent"),
        ("ts,gpu0_w,gpu1_w,gpu0_c,power_w", ("T,50,60,40,900",), "power_w=w|w gpu_temp_c=c|c"),
        ("ts,gpu0_mib,gpu1_mib", ("T,700,800", "T,701,800"), "fb_used_bytes=mib|mib"),
        ("timestamp,gpu_usage,temp_c", ("T,57,55",), "gpu_util_ratio=gpu_usage|percent gpu_temp_c=temp_c|c"),
        ("time,gpu_mem_used_mb,power_w", ("T,1000,300",), "fb_used_bytes=gpu_mem_used_mb|MiB power_w=power_w|w"),
        ("unix_time,gpuload", ("T,0.5", "T,0.75"), "gpu_util_ratio=gpuload|share"),
        ("when,gpu_power,gpu_temp", ("T,120000,55",), "power_w=gpu_power|mW gpu_temp_c=gpu_temp|C"),
        ("time,gpu_memory_used", ("T,12000000000",), "fb_used_bytes=gpu_memory_used|bytes"),
        ("time,gpu usage,vram", ("T,57 %,4 GiB", "T,5 %,5 GiB"), "gpu_util_ratio=gpu_usage|% fb_used_bytes=vram|GiB"),
        ("time,name,load", ("T,NVIDIA GeForce RTX 4090,57",), "gpu_model=name gpu_util_ratio=load|percent"),
        ("time,id,load", (f"T,{UUID},57",), "gpu_uuid=id gpu_util_ratio=load|percent"),
        ("time,cpu_percent,gpu_percent,power_w", ("T,57,3,400",), "gpu_util_ratio=gpu_percent|percent"),
        ("time,host,gpu,index,power", ("T,n,0,0,9", "T,n,1,0,9"), "host=host gpu_index=gpu power_w=power|W"),
        ("time,gpu_clock,gpu_mclk", ("T,1410,9501",), "sm_clock_mhz=gpu_clock|MHz mem_clock_mhz=gpu_mclk|MHz"),
        ("time,gpu,temperature.gpu", ("T,0,30", "T,1,31"), "gpu_index=gpu gpu_temp_c=temperature.gpu|"),
    ],
)  # fmt: skip
def test_what_names_units_and_values_say(tmp_path, header, rows, wanted):
    file = table(tmp_path, header, *rows)
    made = proposal(file)
    assert made.why_not == ""
    assert read(file) == set(wanted.split())


@pytest.mark.parametrize(
    ("header", "rows", "why"),
    [
        ("timestamp,cpu_percent,ram_used_mb", ("T,57,1000",), "reading|GPUs"),
        ("timestamp,disk_read,disk_write", ("T,57,1000",), "reading"),
        ("time,temperature,humidity,power", ("T,21.5,40,300",), "of GPUs"),
        ("time,load,usage", ("T,57,1",), "of GPUs"),
        ("step,loss,lr", ("T,0.5,0.001",), "time"),
        ("timestamp,step,loss,lr", ("T,1,0.5,0.001",), "reading"),
        ("gpu,price_usd,memory_gb,tdp_w", ("A100,2.5,80,400",), "time"),
        ("timestamp,gpu,price_usd,power_w", ("T,A100,2.5,400",), "not samples"),
        ("timestamp,gpu,pid,process_name,gpu_util,used_memory_mib", ("T,0,57,python,57,1000",), "not samples"),
        ("timestamp,gpu,batch_size,throughput,gpu_util", ("T,A100,8,1000,57",), "not samples"),
        ("job,start_time,end_time,gpu_util", ("1,T,T,57",), "start and an end"),
        ("timestamp,gpu_count,gpu_util,gpu_power", ("T,8,57,2500",), "several GPUs"),
        ("timestamp,total_gpu_power_w,gpu_name", ("T,2000,A100",), "reading"),
        ("timestamp,avg_gpu_util,max_gpu_temp", ("T,50,60",), "reading"),
        ("timestamp,gpu_util", ("T,0", "T,1"), "reading"),  # percent or shares
        ("timestamp,gpu_memory_used", ("T,1000",), "reading"),  # MiB or MB
        ("timestamp,gpu_power_w", ("T,4939",), "reading"),  # mW, whatever its name says
        ("timestamp,gpu_util_pct", ("T,0.25", "T,0.75"), "reading"),
        ("timestamp,gpu_util", ("T,50", "T,180"), "reading"),
        ("timestamp,gpu_memory_percent,gpu_fan", ("T,50,30",), "reading"),
        ("timestamp,GPU0,GPU1", ("T,199.9,256.5",), "reading"),
        ("date,gpu_util", ("2026-03-01,50",), "time"),
        ("Date,Time,gpu_util", ("04-03-2026,10:00:00,50",), "time"),
        ("timestamp,gpu_energy_kwh", ("T,0.5", "T,0.2"), "reading"),
        ("timestamp,container,gpu_util", ("T,a,50", "T,b,50", "T,c,0"), "by turns of several .'container'"),
    ],
)
def test_what_is_not_sure_is_refused(tmp_path, header, rows, why):
    file = table(tmp_path, header, *rows)
    assert re.search(why, proposal(file).why_not), proposal(file)
    with pytest.raises(UnknownKind, match="no tool that is known") as raised:
        bind(file, header.split(","))
    assert "--write-map" not in raised.value.hint
    with pytest.raises(FileFault, match="no mapping file is written"):
        write_starter(explain(file), tmp_path / "m.toml")
    assert not (tmp_path / "m.toml").exists()


def test_results_that_come_at_any_time_are_no_samples(tmp_path):
    at_s = [START_S + 60 * n**3 for n in range(20)]
    file = tmp_path / "f.csv"
    file.write_text("timestamp,model,gpu_util\n" + "".join(f"{at},resnet,57\n" for at in at_s))
    assert "evenly" in proposal(file).why_not


def test_the_whole_file_says_whether_small_numbers_are_percent(tmp_path):
    rows = [f"{START_S + n},{0.5 if n < 5000 else 57}" for n in range(6000)]
    file = tmp_path / "f.csv"
    file.write_text("timestamp,gpu_util\n" + "\n".join(rows) + "\n")
    assert read(file) == {"gpu_util_ratio=gpu_util|percent"}


def test_names_of_dcgm_without_their_prefix_are_in_its_units(tmp_path):
    header = "timestamp,gpu,GPU_UTIL,POWER_USAGE,FB_USED,SM_ACTIVE,MEM_COPY_UTIL,TOTAL_ENERGY_CONSUMPTION"
    file = table(tmp_path, header, "T,0,1,300,1000,0.5,25,5000", "T,1,0,70,2000,0.25,0,6000")
    prefixed = header.replace("GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL").replace("SM_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE")
    for name in ("POWER_USAGE", "FB_USED", "MEM_COPY_UTIL", "TOTAL_ENERGY_CONSUMPTION"):
        prefixed = prefixed.replace(name, f"DCGM_FI_DEV_{name}")
    other = tmp_path / "other.csv"
    other.write_text(file.read_text().replace(header, prefixed))
    hosts = {"host": "h"}
    assert samples(tmp_path / "a", file, **hosts) == samples(tmp_path / "b", other, **hosts)
    assert {round(row["gpu_util_ratio"], 6) for row in samples(tmp_path / "c", file, **hosts)} == {0.01, 0}


def test_one_column_per_gpu_is_read_and_cut_alike(tmp_path):
    file = table(tmp_path, "time,gpu0_util,gpu1_util,gpu1_power_w", "T,50,60,300")
    rows = samples(tmp_path / "lake", file, host="h")
    assert {(r["gpu_uuid"], r["gpu_util_ratio"], r["power_w"]) for r in rows} == {
        ("h:gpu0", 0.5, None), ("h:gpu1", 0.6, 300.0),
    }  # fmt: skip


def test_each_piece_of_a_file_is_read_alike(tmp_path):
    file = table(tmp_path, "time,gpu,gpu_load,gpu_power", "T,0,0.5,120000", "T,1,1,90000")
    rules = [open_shaped(file, None, part, 3).mapping for part in range(3)]
    assert [[(rule.column, rule.unit) for rule in one.values] for one in rules] == 3 * [
        [("gpu_util_ratio", "share"), ("power_w", "mW")]
    ]
    assert [len(open_shaped(file, None, part, 3).notes) for part in range(3)] == [1, 0, 0]


def test_rows_that_do_not_fit_the_header_are_counted(tmp_path):
    file = table(tmp_path, "time,gpu,gpu_util", "T,2026,0,57")
    assert proposal(file).why_not == "each of its 12 rows has another number of cells than the header"


def test_a_parquet_table_without_a_gpu_column_is_refused(tmp_path):
    times = [START_S + n for n in range(10)]
    pq.write_table(pa.table({"timestamp": times, "gpu_util": [57.5] * 10}), tmp_path / "f.parquet")
    assert proposal(tmp_path / "f.parquet").why_not == "no column names the GPU of a row"
    pq.write_table(pa.table({"timestamp": times, "gpu": [0] * 10, "gpu_util": [57.5] * 10}), tmp_path / "g.parquet")
    assert {r["gpu_util_ratio"] for r in samples(tmp_path / "lake", tmp_path / "g.parquet", host="h")} == {0.575}


@pytest.mark.parametrize(
    "header_and_rows",
    [
        ("Time,GPU_ID,Utilization", "T,0,57", "T,1,3"),
        ("time,gpu0_util,gpu1_util,gpu0_mem_mib", "T,57,58,3", "T,57,58,4"),
        ("timestamp,gpu_util,memory_used,fan", "T,57,4000,30"),
        ("ts,GPU_UTIL,POWER_USAGE,FB_USED", "T,57,300,4000"),
        ("when,card,model,busy_percent", "T,card-1,NVIDIA A10G,57"),
        ("unix,gpu_load,gpu_power", "T,0.5,120000"),
    ],
)
def test_the_map_that_is_written_works_as_written(tmp_path, header_and_rows):
    header, *rows = header_and_rows
    file = table(tmp_path, header, *rows)
    write_starter(explain(file), tmp_path / "m.toml")
    plain = samples(tmp_path / "a", file, host="h")
    assert plain
    assert plain == samples(tmp_path / "b", file, mapping=str(tmp_path / "m.toml"), host="h")


def test_a_unit_that_values_show_is_written_with_the_reason(tmp_path):
    write_starter(explain(table(tmp_path, "time,gpu_load,memory_used", "T,57,4000")), tmp_path / "m.toml")
    text = (tmp_path / "m.toml").read_text()
    assert 'unit = "percent"  # by its values, up to 57' in text
    assert "# Not read: memory_used, first cell" in text
    assert "nothing states its unit" in text
    assert load_mapping(str(tmp_path / "m.toml")).values[0].column == "gpu_util_ratio"


def test_a_known_layout_without_a_time_gets_no_map(tmp_path):
    file = table(tmp_path, "UUID,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE", "GPU-1,57,300")
    with pytest.raises(FileFault, match=r"no mapping file is written: .*'time'"):
        write_starter(explain(file), tmp_path / "m.toml")
    assert not (tmp_path / "m.toml").exists()


def test_no_other_table_is_taken_for_the_export_of_36_columns(tmp_path):
    file = table(tmp_path, "run_id,scrape,model,UID", "1,T,x,2")
    with pytest.raises(UnknownKind) as raised:
        bind(file, ["run_id", "scrape", "model", "UID"])
    assert "36-column" not in str(raised.value)


def test_columns_that_look_like_readings_and_are_dropped_are_named(tmp_path):
    header = "timestamp, index, uuid, utilization.gpu [%], power.draw [mW], memory.used [W], temperature.memory [x]"
    row = "2026/03/01 10:00:00.000, 0, GPU-1, 57, 300000, 5, 40"
    file = tmp_path / "f.csv"
    file.write_text(f"{header}\n{row}\n{row.replace('10:00:00', '10:00:05')}\n")
    lake = gpuledger.open(tmp_path / "lake")
    notes = lake.ingest(file).notes
    assert "f.csv: column 'memory.used [W]' is not read: W is not a unit of fb_used_bytes" in notes
    assert lake.samples().df()["power_w"].tolist() == [300, 300]
    assert any("temperature.memory" in note for note in notes)


def test_a_unit_in_the_header_counts_more_than_that_of_the_layout(tmp_path):
    file = table(tmp_path, "timestamp,UUID,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_FB_USED [MB]", "T,GPU-1,57,1000")
    assert {row["fb_used_bytes"] for row in samples(tmp_path / "lake", file)} == {1_000_000_000}


words = st.sampled_from(
    ["gpu", "cpu", "ram", "power", "util", "memory", "used", "model", "count", "w", "temp", "id", "n"]
)


@given(st.lists(words, min_size=1, max_size=4), st.sampled_from(["_", ".", " ", "-"]))
def test_counts_and_other_devices_never_name_a_gpu_nor_its_readings(parts, mark):
    name = mark.join(parts)
    found = suggest(name, "2")
    if {*parts} & (vocabulary().others | vocabulary().not_one):
        assert found is None or not (found.column in schema.readings() or found.column.startswith("gpu_")), name


@given(st.lists(st.lists(st.text(max_size=12), min_size=1, max_size=5), min_size=1, max_size=8))
def test_any_table_is_read_or_refused(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("own") / "f.csv"
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    file.write_text(text.getvalue() or "a\n", "utf-8", errors="replace")
    try:
        made = proposal(file)
    except FileFault:
        return
    assert made.why_not or made.mapping.values


NOT_MEASURED = (
    "gpu_idle_pct", "gpu_waste_pct", "gpu_util_target_pct", "predicted_gpu_util", "gpu_util_headroom", "util_gap_pct",
    "gpu_power_budget_w", "fan_power_w", "gpu_cooling_power_w", "gpu_quota_pct", "non_gpu_util_pct", "old_gpu_util",
)  # fmt: skip


@pytest.mark.parametrize("name", NOT_MEASURED)
def test_a_name_with_other_words_is_no_reading(tmp_path, name):
    file = tmp_path / "f.csv"
    file.write_text(f"timestamp,gpu,{name}\n" + "".join(f"2026-03-01 10:00:{s:02},0,{40 + s}\n" for s in range(20)))
    with pytest.raises(FileFault):
        gpuledger.open(tmp_path / "lake").ingest(file)
    both = file.read_text().replace(f"{name}\n", f"{name},gpu_util_pct\n")
    file.write_text("\n".join(line if line.startswith("time") else f"{line},7" for line in both.splitlines()) + "\n")
    lake = gpuledger.open(tmp_path / "lake")
    lake.ingest(file)
    found = lake.samples().df()
    assert set(found["gpu_util_ratio"].round(6)) == {0.07}
    assert found["power_w"].isna().all()


@pytest.mark.parametrize("cells", [("0", "error"), ("0.0", "1.0"), ("slot a1", "slot b2,")])
def test_a_column_that_should_name_gpus_and_does_not_is_no_reason_to_see_one(tmp_path, cells):
    rows = "".join(f"2026-03-01 10:00:{s:02},{cells[s % 7 == 3].rstrip(',')},{40 + s}\n" for s in range(40))
    (tmp_path / "f.csv").write_text(f"timestamp,gpu_id,gpu_util_pct\n{rows}")
    lake = gpuledger.open(tmp_path / "lake")
    try:
        lake.ingest(tmp_path / "f.csv")
    except FileFault as error:
        assert "gpu_id" in error.message  # noqa: PT017
    else:
        assert lake.samples().df()["gpu_uuid"].nunique() == 2
