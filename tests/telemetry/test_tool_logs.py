"""Do the logs of tools come in as they were printed, with figures equal to those read by other means?"""

from __future__ import annotations

import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault
from gpuledger.telemetry.explain import explain
from gpuledger.telemetry.formats import FORMATS, Fit, head_of, recognize
from gpuledger.telemetry.mapping import given

FIXTURES = Path(__file__).parent / "fixtures"
MIB = 1 << 20
# Folders of fixtures that are not called like the kind of file.
KINDS = {
    **dict.fromkeys(("amd_exporter", "exporter_page", "nvidia_gpu_exporter", "openmetrics", "tsdb_dump"), "metrics"),
    "prometheus_json": "prometheus",
}
SAID = {"host": "n1", "gpu_model": "NVIDIA H200"}


def samples(folder: Path, kind: str, name: str, **said: str) -> pd.DataFrame:
    """What the command imports, in the order of GPU and time."""
    return imported(folder, FIXTURES / kind / name, **said)


def imported(folder: Path, file: Path, **said: str) -> pd.DataFrame:
    lake = folder / "lake"
    options = [word for key, text in said.items() for word in (f"--{key.replace('_', '-')}", text)]
    assert run(["import", str(file), "--lake", str(lake), *options]) == 0
    frame = (
        gpuledger.open(lake)
        .samples()
        .df()
        .astype({"gpu_uuid": str})
        .sort_values(["gpu_uuid", "at_ms"], ignore_index=True)
    )
    assert run(["analyze", "--lake", str(lake)]) == 0
    return frame


def ms(times: pd.Series) -> list[int]:
    return [round(t.timestamp() * 1000) for t in pd.to_datetime(times, utc=True)]


def same(found: pd.Series, wanted: list | np.ndarray | pd.Series) -> None:
    np.testing.assert_allclose(found.to_numpy(float), np.asarray(wanted, float), rtol=1e-6)


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*/*")), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_exactly_one_kind_claims_a_file(file):
    sure = [name for name, one in FORMATS if one.score(head_of(file)).fit is Fit.SURE]
    assert sure == [KINDS.get(file.parent.name, file.parent.name)]
    assert recognize(file).key == sure[0]
    assert recognize(file).seen.why


@pytest.mark.parametrize("share", [0.07, 0.45, 0.93])
@pytest.mark.parametrize("end", ["head", "tail"])
def test_a_file_cut_anywhere_gives_rows_or_a_fault_with_a_next_step(tmp_path, share, end):
    for place, file in enumerate(sorted(FIXTURES.glob("*/*"))):
        whole = file.read_bytes()
        cut = round(len(whole) * share)
        (tmp_path / "cut").write_bytes(whole[:cut] if end == "head" else whole[cut:])
        lake = gpuledger.open(tmp_path / f"lake-{place}")
        hint = ""
        try:
            lake.ingest(tmp_path / "cut", at="2026-11-15", every="1s", **SAID)
        except FileFault as error:
            hint = error.hint
        assert hint or len(lake.samples().df()), file


# nvidia-smi 580.159.04, --query-gpu=... --format=csv -l 1, on an H200
def test_query_with_units(tmp_path):
    found = samples(tmp_path, "nvidia_smi_query", "units.csv")
    wanted = pd.read_csv(FIXTURES / "nvidia_smi_query" / "units.csv", sep=", ", engine="python")
    number = {c: wanted[c].astype(str).str.extract(r"^([0-9.]+)")[0].astype(float) for c in wanted.columns[5:-1]}
    assert found["at_ms"].tolist() == ms(wanted["timestamp"])
    assert set(found["gpu_uuid"]) == set(wanted["uuid"])
    assert set(found["gpu_model"]) == {"NVIDIA H200"}
    assert set(found["gpu_index"]) == {"0"}
    same(found["gpu_util_ratio"], number["utilization.gpu [%]"] / 100)
    same(found["mem_copy_util_ratio"], number["utilization.memory [%]"] / 100)
    same(found["fb_used_bytes"], number["memory.used [MiB]"] * MIB)
    same(found["fb_free_bytes"], number["memory.free [MiB]"] * MIB)
    same(found["power_w"], number["power.draw [W]"])
    same(found["power_limit_w"], number["enforced.power.limit [W]"])
    same(found["gpu_temp_c"], number["temperature.gpu"])
    same(found["mem_temp_c"], number["temperature.memory"])
    same(found["sm_clock_mhz"], number["clocks.current.sm [MHz]"])
    same(found["mem_clock_mhz"], number["clocks.current.memory [MHz]"])
    same(found["throttle_bits"], [int(text, 16) for text in wanted["clocks_event_reasons.active"]])


def test_local_times_of_a_query_take_the_zone(tmp_path):
    utc = samples(tmp_path, "nvidia_smi_query", "units.csv")
    berlin = samples(tmp_path / "b", "nvidia_smi_query", "units.csv", tz="Europe/Berlin")
    assert set(utc["at_ms"] - berlin["at_ms"]) == {3_600_000}


# the same, --format=csv,nounits -lms 500
def test_query_without_units(tmp_path):
    unnamed = samples(tmp_path / "a", "nvidia_smi_query", "nounits.csv")
    assert unnamed["gpu_model"].isna().all()
    found = samples(tmp_path, "nvidia_smi_query", "nounits.csv", gpu_model="NVIDIA H200")
    wanted = pd.read_csv(FIXTURES / "nvidia_smi_query" / "nounits.csv", skipinitialspace=True)
    assert found["at_ms"].tolist() == ms(wanted["timestamp"])
    same(found["gpu_util_ratio"], wanted["utilization.gpu [%]"] / 100)
    same(found["power_w"], wanted["power.draw [W]"])


# the same in a shell loop: a header with each round, two GPUs, the last line cut off
def test_query_rounds_with_repeated_headers_and_unknown_cells(tmp_path):
    found = samples(tmp_path, "nvidia_smi_query", "rounds.csv")
    lines = (FIXTURES / "nvidia_smi_query" / "rounds.csv").read_text().splitlines()
    rows = [line.split(", ") for line in lines if not line.startswith("timestamp") and line.count(",") == 17]
    first, second = (found[found["gpu_index"] == index] for index in ("0", "1"))
    assert len(first) == len(second) == len(rows) // 2
    same(first["power_w"], [float(r[10].removesuffix(" W")) for r in rows[::2]])
    assert second["power_w"].isna().all()
    assert second["mem_temp_c"].isna().all()
    same(second["gpu_util_ratio"], [float(r[5].removesuffix(" %")) / 100 for r in rows[1::2]])
    (rejects,) = (tmp_path / "lake" / "rejects").iterdir()
    assert "rounds.csv,17,wrong_number_of_cells" in rejects.read_text()


# the same with all 220 fields that driver knows
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_query_columns_that_change_are_refused_with_their_line(tmp_path, end):
    head = "timestamp, uuid, name, memory.used [MiB], power.draw [W]"
    rows = [f"2026/03/02 09:00:0{s}.000, GPU-1, NVIDIA H200, 100, 300.00" for s in range(3)]
    file = tmp_path / "gpus.csv"
    swapped = "timestamp, uuid, name, power.draw [W], memory.used [MiB]"
    file.write_text(end.join([head, *rows, head, swapped, rows[0]]) + end)
    with pytest.raises(FileFault, match="its columns change at line 6") as raised:
        gpuledger.open(tmp_path / "lake").ingest(file)
    assert "split the file" in raised.value.hint
    file.write_text(end.join([head, *rows, head, head[:20]]))  # it was stopped while it wrote the header again
    assert len(imported(tmp_path / "cut", file)) == 3


def test_query_of_every_field(tmp_path):
    (row,) = samples(tmp_path, "nvidia_smi_query", "all_fields.csv").to_dict("records")
    names, cells = (
        line.split(", ") for line in (FIXTURES / "nvidia_smi_query" / "all_fields.csv").read_text().splitlines()
    )
    cell = dict(zip(names, cells, strict=True))
    assert row["power_w"] == float(cell["power.draw [W]"].removesuffix(" W"))
    assert row["remapped_correctable_rows"] == int(cell["remapped_rows.correctable"])
    assert row["fb_used_bytes"] == 0
    assert pd.isna(row["host"])  # hostname: [N/A]


def test_a_board_known_by_its_bus_is_named_by_its_host(tmp_path):
    named = samples(tmp_path / "a", "nvidia_smi_query", "bus_id.csv")
    assert set(named["gpu_uuid"]) == {"bus_id:00000000:00:06.0"}
    found = samples(tmp_path, "nvidia_smi_query", "bus_id.csv", host="n1")
    assert set(found["gpu_uuid"]) == {"n1:00000000:00:06.0"}


def test_a_query_without_a_row_or_a_gpu_says_what_to_print(tmp_path):
    (tmp_path / "no_row.csv").write_text("timestamp, uuid, power.draw [W]\n")
    with pytest.raises(FileFault, match="not one row"):
        gpuledger.open(tmp_path).ingest(tmp_path / "no_row.csv")
    (tmp_path / "no_gpu.csv").write_text("timestamp, power.draw [W]\n" + "2026/11/15 23:52:20.596, 80.00 W\n" * 17)
    with pytest.raises(FileFault, match="which GPU") as caught:
        gpuledger.open(tmp_path).ingest(tmp_path / "no_gpu.csv")
    assert "--query-gpu=uuid" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "# of gpu power\n# gpu, by hand\nnode-1 3\n",
        "timestamp,gpu,power_usage\n2026-01-20T00:00:00Z,0,300\n",
        "when,card,driver_version\n2026-01-20T00:00:00Z,0,580\n",
        "device,model,price\ncard0,MI300X,3\n",
    ],
)
def test_other_text_is_not_claimed(tmp_path, text):
    (tmp_path / "file").write_text(text)
    assert not [name for name, one in FORMATS if one.score(head_of(tmp_path / "file")).fit is Fit.SURE]


def dmon(name: str) -> pd.DataFrame:
    text = (FIXTURES / "nvidia_smi_dmon" / name).read_text().replace(",", " ")
    header, _, *lines = text.splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    return pd.read_csv(io.StringIO("\n".join(lines)), sep=r"\s+", names=header.lstrip("#").split(), na_values="-")


# nvidia-smi 580.159.04 dmon -o DT, and with --format csv, -s pucvmet, -s mt, --gpm-metrics
@pytest.mark.parametrize("name", ["DT.txt", "csv.txt", "all.txt", "memory.txt", "gpm.txt"])
def test_dmon(tmp_path, name):
    found, wanted = samples(tmp_path, "nvidia_smi_dmon", name, **SAID), dmon(name)
    assert found["at_ms"].tolist() == ms(wanted["Date"].astype(str) + "T" + wanted["Time"])
    assert set(found["gpu_uuid"]) == {"n1:gpu0"}
    factors = {
        "power_w": ("pwr", 1), "gpu_temp_c": ("gtemp", 1), "mem_temp_c": ("mtemp", 1), "sm_clock_mhz": ("pclk", 1),
        "mem_clock_mhz": ("mclk", 1), "gpu_util_ratio": ("sm", 0.01), "mem_copy_util_ratio": ("mem", 0.01),
        "fb_used_bytes": ("fb", MIB), "engine_ratio": ("gract", 0.01), "sm_ratio": ("smutil", 0.01),
        "occupancy_ratio": ("smocc", 0.01), "tensor_ratio": ("mmaact", 0.01), "hmma_ratio": ("hmmat", 0.01),
        "dram_ratio": ("dram", 0.01), "fp32_ratio": ("fp32", 0.01), "pcie_rx_bytes_per_s": ("pcirx", MIB),
    }  # fmt: skip
    for column, (short, factor) in factors.items():
        if short in wanted:
            same(found[column], wanted[short] * factor)
        else:
            assert found[column].isna().all()


# dmon -o T: the time of day; dmon alone: no time
def test_dmon_of_a_day_or_with_start_and_interval(tmp_path):
    found = samples(tmp_path, "nvidia_smi_dmon", "T.txt", at="2026-11-15", **SAID)
    assert found["at_ms"].tolist() == ms("2026-11-15T" + dmon("T.txt")["Time"])
    found = samples(tmp_path / "b", "nvidia_smi_dmon", "no_time.txt", at="2026-11-15T08:00Z", every="2s", **SAID)
    assert found["at_ms"].tolist() == [1_794_729_600_000 + 2000 * n for n in range(6)]


def test_a_log_with_the_time_of_day_is_explained(capsys):
    file, said = FIXTURES / "nvidia_smi_dmon" / "T.txt", ["--at", "2026-11-15", "--host", "n1", "--gpu-model", "H200"]
    assert run(["import", "--explain", str(file), *said, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["importable"]
    assert said["rejected"] == []


def test_a_dmon_log_across_midnight_and_of_two_gpus(tmp_path):
    header = "#Time         gpu    pwr \n#HH:MM:SS     Idx      W \n"
    rows = [(f"23:59:{s}", 0) for s in (58, 58, 59, 59)] + [("00:00:00", 1), ("00:00:00", 2)]
    lines = [f" {time}       {n % 2}     {80 + n} \n" for n, (time, _) in enumerate(rows)]
    (tmp_path / "log").write_text(header + "".join(lines[:3]) + header + "".join(lines[3:]) + " 00:00:0")
    found = imported(tmp_path, tmp_path / "log", at="2026-11-15", **SAID)
    days = ["2026-11-15T23:59:58Z", "2026-11-15T23:59:59Z", "2026-11-16T00:00:00Z"]
    assert found["at_ms"].tolist() == ms(pd.Series(days * 2))
    assert found["power_w"].tolist() == [80, 82, 84, 81, 83, 85]
    (rejects,) = (tmp_path / "lake" / "rejects").iterdir()
    assert "line 11:  00:00:0" in rejects.read_text()


def test_dmon_columns_that_change_are_refused_with_their_line(tmp_path):
    one, other = (FIXTURES / "nvidia_smi_dmon" / name for name in ("DT.txt", "all.txt"))
    (tmp_path / "log").write_text(one.read_text() + other.read_text())
    with pytest.raises(FileFault, match="change at line 27"):
        gpuledger.open(tmp_path / "lake").ingest(tmp_path / "log", **SAID)


# nvidia-smi 580.159.04 pmon -o DT, one process; shared.txt: two processes on GPU 0, none on GPU 1
def test_pmon_adds_up_the_processes_of_a_gpu(tmp_path):
    found = samples(tmp_path, "nvidia_smi_pmon", "DT.txt", **SAID)
    text = (FIXTURES / "nvidia_smi_pmon" / "DT.txt").read_text()
    shares = [re.split(r"\s+", line.strip())[5:7] for line in text.splitlines()[2:]]
    same(found["gpu_util_ratio"], [np.nan if sm == "-" else int(sm) / 100 for sm, _ in shares])
    same(found["mem_copy_util_ratio"], [np.nan if mem == "-" else int(mem) / 100 for _, mem in shares])
    assert found["fb_used_bytes"].isna().all()
    found = samples(tmp_path / "b", "nvidia_smi_pmon", "shared.txt", **SAID)
    busy, free = (found[found["gpu_index"] == index] for index in ("0", "1"))
    assert busy["gpu_util_ratio"].tolist() == [1.0] * 4  # 60 % and 55 %
    same(busy["mem_copy_util_ratio"], [0.25] * 4)
    assert busy["fb_used_bytes"].tolist() == [41_000 * MIB] * 4
    assert free[["gpu_util_ratio", "fb_used_bytes"]].isna().all().all()


# dcgmi dmon -e 203,155,156,150,252,1001,1002,1004,1005 in the layout of DCGM 3.3
def test_dcgmi_dmon(tmp_path):
    found = samples(tmp_path, "dcgmi_dmon", "fields.txt", at="2026-11-15", every="0.5s", **SAID)
    rows = [line.split() for line in (FIXTURES / "dcgmi_dmon" / "fields.txt").read_text().splitlines()]
    wanted = pd.DataFrame([r[1:] for r in rows if r[0] == "GPU"], columns=["gpu", *rows[0][1:]])
    wanted = wanted.replace("N/A", np.nan).astype(float).sort_values("gpu", kind="stable", ignore_index=True)
    start = pd.Timestamp("2026-11-15", tz="UTC").timestamp() * 1000
    assert found["at_ms"].tolist() == [start + 500 * n for n in range(8)] * 2
    for column, (short, factor) in {
        "gpu_util_ratio": ("GPUTL", 0.01), "power_w": ("POWER", 1), "energy_mj": ("TOTEC", 1),
        "gpu_temp_c": ("TMPTR", 1), "fb_used_bytes": ("FBUSD", MIB), "engine_ratio": ("GRACT", 1),
        "sm_ratio": ("SMACT", 1), "tensor_ratio": ("TENSO", 1), "dram_ratio": ("DRAMA", 1),
    }.items():  # fmt: skip
        same(found[column], wanted[short] * factor)


def test_dcgmi_names_with_blanks_cut_cells_and_other_entities(tmp_path):
    text = (
        "#Entity   DVNAM                 POWER       TOTEC   \n"
        "ID                               W           mJ     \n"
        "GPU 0     NVIDIA H200           80.000      12345...\n"
        "GPU-I 0   NVIDIA H200           N/A         N/A     \n"
    )
    (tmp_path / "log").write_text(text)
    result = gpuledger.open(tmp_path / "lake").ingest(tmp_path / "log", at="2026-11-15", host="n1")
    assert any("GPU-I" in note for note in result.notes)
    (row,) = gpuledger.open(tmp_path / "lake").samples().df().to_dict("records")
    assert (row["gpu_model"], row["power_w"]) == ("NVIDIA H200", 80.0)
    assert np.isnan(row["energy_mj"])


# amd-smi of ROCm 6 and 7: metric -u -p -c -t -m -w 1 --csv, monitor -p -t -u -m -v -w 2 --csv
def test_amd_smi_in_watch_mode(tmp_path):
    said = {"host": "n1", "gpu_model": "AMD Instinct MI300X"}
    found = samples(tmp_path, "amd_smi", "metric_watch.csv", **said)
    wanted = pd.read_csv(FIXTURES / "amd_smi" / "metric_watch.csv").sort_values(["gpu", "timestamp"])
    assert found["at_ms"].tolist() == (wanted["timestamp"] * 1000).tolist()
    for column, (name, factor) in {
        "gpu_util_ratio": ("gfx_activity", 0.01), "mem_copy_util_ratio": ("umc_activity", 0.01),
        "power_w": ("socket_power", 1), "sm_clock_mhz": ("gfx_0_clk", 1), "mem_clock_mhz": ("mem_0_clk", 1),
        "gpu_temp_c": ("hotspot", 1), "mem_temp_c": ("mem", 1), "fb_used_bytes": ("used_vram", MIB),
    }.items():  # fmt: skip
        same(found[column], wanted[name] * factor)
    found = samples(tmp_path / "b", "amd_smi", "monitor_watch.csv", **said)
    wanted = pd.read_csv(FIXTURES / "amd_smi" / "monitor_watch.csv").sort_values(["gpu", "timestamp"])
    for column, (name, factor) in {
        "gpu_util_ratio": ("gfx", 0.01), "mem_copy_util_ratio": ("mem", 0.01), "power_w": ("power_usage", 1),
        "gpu_temp_c": ("hotspot_temperature", 1), "mem_temp_c": ("memory_temperature", 1),
        "fb_used_bytes": ("vram_used", MIB), "fb_free_bytes": ("vram_free", MIB),
    }.items():  # fmt: skip
        same(found[column], wanted[name] * factor)


# amd-smi monitor --csv of ROCm 7 alone: memory in GiB, no times, one round
def test_amd_smi_once(tmp_path):
    found = samples(tmp_path, "amd_smi", "monitor_once.csv", at="2026-11-15", **SAID)
    same(found["fb_used_bytes"], [round(146.5 * 2**30), round(0.3 * 2**30)])


# rocm-smi --showtemp --showuse --showpower --showclocks --showmeminfo vram --showproductname --csv in a shell loop
def test_rocm_smi(tmp_path):
    found = samples(tmp_path, "rocm_smi", "loop.csv", at="2026-11-15", every="10s", host="n1")
    text = (FIXTURES / "rocm_smi" / "loop.csv").read_text()
    rows = sorted(line.split(",") for line in text.splitlines() if line.startswith("card"))
    rows.sort(key=lambda r: (r[0], float(r[7]), float(r[6])))
    assert set(found["gpu_model"]) == {"AMD Instinct MI250X"}
    same(found["gpu_util_ratio"], [float(r[7]) / 100 for r in rows])
    same(found["power_w"], [float(r[6]) for r in rows])
    same(found["gpu_temp_c"], [float(r[2]) for r in rows])
    same(found["fb_used_bytes"], [float(r[9]) for r in rows])
    same(found["sm_clock_mhz"], [float(re.search(r"\d+", r[5])[0]) for r in rows])


# python -m zeus.monitor power, zeus 0.16, into a file; ZeusMonitor(log_file=...) of the same version
def test_zeus(tmp_path):
    found = samples(tmp_path, "zeus", "power.txt", **SAID)
    text = (FIXTURES / "zeus" / "power.txt").read_text().partition("Total")[0]
    blocks = re.findall(r"(\d{4}-\d\d-\d\d [\d:.]+)\s*(\{[^}]*\})", text)
    watts = [json.loads(block.replace("'", '"')) for _, block in blocks]
    assert len(found) == 8 * len(blocks)
    for index in range(8):
        mine = found[found["gpu_index"] == str(index)]
        same(mine["power_w"], [w[f"GPU{index}"] for w in watts])
        assert mine["at_ms"].tolist() == [int(pd.Timestamp(t, tz="UTC").timestamp() * 1000) for t, _ in blocks]
    found = samples(tmp_path / "b", "zeus", "windows.csv", **SAID)
    wanted = pd.read_csv(FIXTURES / "zeus" / "windows.csv")
    steps = wanted[wanted["window_name"] == "step"]
    for index in range(2):
        mine = found[found["gpu_index"] == str(index)]
        same(mine["power_w"], steps[f"gpu{index}_energy"] / steps["elapsed_time"])
        assert mine["at_ms"].tolist() == (steps["start_time"] * 1000).round().astype(int).tolist()


# run.history(stream="events").to_csv(), wandb-events.jsonl, names of wandb 0.31; Parquet of the same frame
@pytest.mark.parametrize("name", ["events.csv", "events.jsonl", "events.parquet"])
def test_wandb_events(tmp_path, name):
    wanted = pd.DataFrame(map(json.loads, (FIXTURES / "wandb_events" / "events.jsonl").read_text().splitlines()))
    file = FIXTURES / "wandb_events" / name
    if name.endswith(".parquet"):
        file = tmp_path / name
        wanted.to_parquet(file)
    found = imported(tmp_path, file, **SAID)
    for index in range(2):
        mine = found[found["gpu_index"] == str(index)]
        rows = wanted[wanted[f"system.gpu.{index}.gpu"].notna()]
        assert mine["at_ms"].tolist() == (rows["_timestamp"] * 1000).tolist()
        for column, (key, factor) in {
            "gpu_util_ratio": ("gpu", 0.01), "mem_copy_util_ratio": ("memory", 0.01), "power_w": ("powerWatts", 1),
            "fb_used_bytes": ("memoryAllocatedBytes", 1), "power_limit_w": ("enforcedPowerLimitWatts", 1),
            "gpu_temp_c": ("temp", 1), "sm_clock_mhz": ("smClock", 1), "mem_clock_mhz": ("memoryClock", 1),
            "sm_ratio": ("smActive", 0.01), "tensor_ratio": ("pipeTensorActive", 0.01),
            "dram_ratio": ("dramActive", 0.01),
        }.items():  # fmt: skip
            same(mine[column], rows[f"system.gpu.{index}.{key}"] * factor)


def test_wandb_labels_are_hosts_and_unclear_activity_is_left_out(tmp_path):
    lake = gpuledger.open(tmp_path / "lake")
    result = lake.ingest(FIXTURES / "wandb_events" / "labelled.jsonl", gpu_model="NVIDIA H200")
    assert any("may be shares or percent" in note for note in result.notes)
    found = lake.samples().df()
    assert set(found["gpu_uuid"]) == {f"node-{n}:gpu{g}" for n in (0, 1) for g in (0, 1)}
    assert found["sm_ratio"].isna().all()
    assert found["power_w"].notna().all()


# ResourceMetricCollector of nvitop 1.7, five seconds a row, DataFrame.to_csv()
def test_nvitop(tmp_path):
    found = samples(tmp_path, "nvitop", "collector.csv", **SAID)
    wanted = pd.read_csv(FIXTURES / "nvitop" / "collector.csv")
    for index in range(2):
        mine, prefix = found[found["gpu_index"] == str(index)], f"train/cuda:{1 - index} (gpu:{index})"
        assert mine["at_ms"].tolist() == (wanted["train/last_timestamp"] * 1000).tolist()
        same(mine["gpu_util_ratio"], wanted[f"{prefix}/gpu_utilization (%)/last"] / 100)
        same(mine["power_w"], wanted[f"{prefix}/power_usage (W)/last"])
        same(mine["power_limit_w"], wanted[f"{prefix}/power_limit (W)/last"])
        same(mine["gpu_temp_c"], wanted[f"{prefix}/temperature (C)/last"])
        same(mine["fb_used_bytes"], wanted[f"{prefix}/memory_used (MiB)/last"] * MIB)


def test_nvitop_means_are_read_where_there_is_no_last_reading(tmp_path):
    frame = pd.read_csv(FIXTURES / "nvitop" / "collector.csv", index_col=0)
    frame = frame.drop(columns=[c for c in frame if "/last" in c])
    frame.to_parquet(tmp_path / "rows.parquet")
    found = imported(tmp_path, tmp_path / "rows.parquet", **SAID)
    assert found["at_ms"].tolist() == (frame["train/timestamp"] * 1000).tolist() * 2
    same(found["power_w"][:6], frame["train/cuda:1 (gpu:0)/power_usage (W)/mean"])


def test_nvitop_means_since_one_start_are_refused(tmp_path):
    frame = pd.read_csv(FIXTURES / "nvitop" / "collector.csv", index_col=0)
    frame = frame.drop(columns=[c for c in frame if "/last" in c])
    frame["train/duration (s)"] = frame["train/timestamp"] - frame["train/timestamp"].iloc[0] + 5
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(FileFault, match="since the collector was started") as caught:
        gpuledger.open(tmp_path / "lake").ingest(tmp_path / "rows.parquet", **SAID)
    assert "clear()" in caught.value.hint


HEADER = "timestamp, name, utilization.gpu [%], power.draw [W]"


def query_log(folder: Path, *seconds: float, header: str = HEADER, between: str = "") -> Path:
    file = folder / "smi.csv"
    rows = [f"2026/01/20 08:00:{s:06.3f}, {between}NVIDIA H200, 50 %, 300.00 W" for s in seconds]
    file.write_text("\n".join([header, *rows, ""]))
    return file


def test_a_single_gpu_needs_no_index(tmp_path):
    file = query_log(tmp_path, 0, 1.001, 2.0, 9.5)
    assert imported(tmp_path / "a", file)["gpu_uuid"].unique().tolist() == ["smi:gpu0"]
    found = imported(tmp_path, file, host="n1")
    assert found["gpu_index"].astype(int).tolist() == [0] * 4
    assert found["gpu_uuid"].unique().tolist() == ["n1:gpu0"]


@pytest.mark.parametrize(
    "seconds", [(0, 0, 1), (0, 0, 1, 1, 1, 2, 2), (0, 0.003, 1, 1.003), (0, 5, 5.2, 10, 15), (2, 1)], ids=str
)
def test_rows_that_may_be_of_several_gpus_are_refused_without_an_index(tmp_path, seconds):
    with pytest.raises(FileFault, match="which GPU a row is of") as raised:
        gpuledger.read(query_log(tmp_path, *seconds), host="n1")
    assert "--query-gpu=uuid" in raised.value.hint


def test_a_log_of_a_host_without_gpus(tmp_path):
    file = tmp_path / "smi.csv"
    file.write_text("No devices were found\n")
    with pytest.raises(FileFault, match="nvidia-smi found no GPU"):
        gpuledger.read(file)


def test_a_board_named_by_its_bus_is_explained_once(tmp_path):
    header = HEADER.replace("name", "pci.bus_id, name")
    found = explain(query_log(tmp_path, 0, 1, header=header, between="00000000:01:00.0, "), given=given(host="n1"))
    read = {column.source: column.column for column in found.columns}
    assert len(read) == len(found.columns)
    assert read["pci.bus_id"] == "gpu_uuid"
    assert found.rows[0]["gpu_uuid"] == "n1:00000000:01:00.0"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["nvidia_smi_query/units.csv", "nvidia_smi_dmon/DT.txt", "dcgmi_dmon"])
def test_text_in_utf16_is_read_as_the_same_in_utf8(tmp_path, encoding, name, pack):
    """As Windows PowerShell writes what a command prints: `> gpus.csv`."""
    file = FIXTURES / name
    file = file if file.is_file() else min(file.iterdir())
    wide = tmp_path / file.name
    wide.write_bytes(pack(("\ufeff" + file.read_text().replace("\n", "\r\n")).encode(encoding)))
    said = SAID | {"at": "2026-11-15", "every": "1s"}
    wanted = imported(tmp_path / "utf8", file, **said)
    pd.testing.assert_frame_equal(imported(tmp_path / "utf16", wide, **said), wanted)


def test_a_table_in_utf16_is_read_in_pieces_and_cut_in_a_letter(tmp_path):
    rows = [f"2026-01-20T08:{n // 60 % 60:02}:{n % 60:02}Z,GPU-é{n % 2},0.25" for n in range(3000)]
    text = "\n".join(["at_ms,gpu_uuid,gpu_util_ratio", *rows])
    (tmp_path / "wide.csv").write_bytes(("\ufeff" + text).encode("utf-16-le")[:-1])
    found = imported(tmp_path, tmp_path / "wide.csv")
    assert sorted(set(found["gpu_uuid"])) == ["GPU-é0", "GPU-é1"]
    assert found["gpu_util_ratio"].iloc[:-1].eq(0.25).all()


def test_one_row_without_a_header(tmp_path):
    (row,) = samples(tmp_path, "nvidia_smi_query", "no_header.csv", **SAID).to_dict("records")
    assert (row["gpu_util_ratio"], row["power_w"], row["gpu_uuid"]) == (0, pytest.approx(79.92), "n1:gpu0")


COMMAND = "nvidia-smi --query-gpu=timestamp,index,uuid,utilization.gpu,power.draw --format=csv -l 1"
ABOVE = {
    "nohup": "nohup: ignoring input\n",
    "blank": "\n\n",
    "command": f"$ {COMMAND}\n",
    "shell": f"nohup: ignoring input\n\n+ {COMMAND}\nlogging, all, GPUs\n",
    "mark": "\ufeff",
}


@pytest.mark.parametrize("above", ABOVE.values(), ids=ABOVE)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_above_the_header_are_passed_over(tmp_path, above, end):
    """5 rows of 10 to 50 %, the header again among them: 30 % and 300 W."""
    header = "timestamp, index, uuid, utilization.gpu [%], power.draw [W]"
    rows = [f"2026/01/20 08:00:0{n}.000, 0, GPU-1, {10 * n} %, 300.00 W" for n in range(1, 6)]
    file = tmp_path / "gpus.csv"
    file.write_bytes((above + "\n".join([header, *rows[:2], header, *rows[2:], ""])).replace("\n", end).encode())
    found = imported(tmp_path, file, **SAID)
    assert found["gpu_uuid"].tolist() == ["GPU-1"] * 5
    same(found["gpu_util_ratio"], [0.1, 0.2, 0.3, 0.4, 0.5])
    same(found["power_w"], [300] * 5)


def test_lines_above_do_not_hide_where_the_logs_of_two_hosts_meet(tmp_path):
    header = "timestamp, index, utilization.gpu [%]"
    rows = [f"2026/01/20 08:00:0{n}.000, 0, {10 * n} %" for n in range(1, 6)]
    file = tmp_path / "gpus.csv"
    others = [row.replace(".000", ".400") for row in rows]
    file.write_text("\n".join(["nohup: ignoring input", header, *rows, header, *others]))
    found = gpuledger.open(tmp_path / "lake")
    found.ingest(file)
    assert set(found.samples().df()["gpu_uuid"]) == {"gpus log 1:gpu0", "gpus log 2:gpu0"}
    file.write_text("\n".join(["nohup: ignoring input", header, *rows, header.replace("gpu", "memory"), *rows]))
    with pytest.raises(FileFault, match="its columns change at line 8"):
        gpuledger.read(file, **SAID)


@pytest.mark.parametrize(
    ("separator", "quote"), [(";", '"'), (";", ""), ("\t", '"'), ("\t", ""), (",", '"'), (",", "")]
)
def test_a_log_saved_by_a_spreadsheet(tmp_path, separator, quote):
    rows = [line.split(", ") for line in (FIXTURES / "nvidia_smi_query" / "units.csv").read_text().splitlines()]
    file = tmp_path / "saved.csv"
    file.write_text("".join(separator.join(f"{quote}{cell}{quote}" for cell in row) + "\n" for row in rows))
    wanted = samples(tmp_path / "wanted", "nvidia_smi_query", "units.csv")
    pd.testing.assert_frame_equal(imported(tmp_path / "saved", file), wanted)


def test_a_single_query_is_a_snapshot(tmp_path):
    found = gpuledger.read(query_log(tmp_path, 0), host="n1").analyze().to_dict()
    assert (found["statement"], found["gpus"], found["at_utc"]) == ("snapshot", 1, "2026-01-20T08:00:00Z")
    assert found["fleet"] == {"gpu_util_pct": 50.0, "power_w": 300.0}
    reasons = {gap["figure"]: gap["why"] for gap in found["not_known"]}
    assert reasons["by_gpu[].memory_used_bytes"] == "no memory use in the sample"


def test_columns_of_a_tool_are_not_taken_for_misspelled_ones(tmp_path):
    file = tmp_path / "gpus.csv"
    head = "timestamp, uuid, name, power.draw.average [W], power.draw.instant [W], clocks.max.memory [MHz]"
    file.write_text(f"{head}\n2026/03/02 09:00:00.000, GPU-1, NVIDIA H200, 300.00 W, 400.00 W, 3201 MHz\n")
    result = gpuledger.open(tmp_path / "lake").ingest(file, tz="UTC")
    assert not any("did you mean" in note for note in result.notes)


def test_partitions_of_amd_smi_are_not_boards(tmp_path):
    head = "timestamp,gpu,xcp,power_usage,hotspot_temperature,gfx,mem,vram_used,vram_total"
    rows = [
        f"{1772442000 + t},{4 * board + part},{part},"
        + (f"{180 + board},49,{board},0,0.3,192.0" if not part else "N/A,N/A,N/A,N/A,0.5,48.0")
        for t in range(3)
        for board in range(2)
        for part in range(4)
    ]
    file = tmp_path / "monitor.csv"
    file.write_text("\n".join([head, *rows]) + "\n")
    found = imported(tmp_path, file, host="n1", gpu_model="AMD Instinct MI300X")
    assert found["gpu_uuid"].tolist() == ["n1:gpu0"] * 3 + ["n1:gpu4"] * 3
    same(found["power_w"], [180] * 3 + [181] * 3)
    result = gpuledger.open(tmp_path / "again").ingest(file, host="n1", gpu_model="AMD Instinct MI300X")
    assert any("partitions of a board" in note for note in result.notes)
    file.write_text("\n".join([head, *(row for row in rows if ",1," in row[:16])]) + "\n")
    with pytest.raises(FileFault, match="xcp 0"):
        gpuledger.open(tmp_path / "part").ingest(file, host="n1", gpu_model="AMD Instinct MI300X")


def test_memory_of_amd_smi_in_gib(tmp_path):
    file = tmp_path / "monitor.csv"
    head = "timestamp,gpu,power_usage,gfx,vram_used,vram_free,vram_total"
    file.write_text(f"{head}\n1772442000,0,300,90,5.5,186.1,191.6\n")
    found = imported(tmp_path, file, host="n1", gpu_model="AMD Instinct MI300X")
    same(found["fb_used_bytes"], [round(5.5 * 2**30)])
    same(found["fb_free_bytes"], [round(186.1 * 2**30)])


SCREENS = {
    "nvidia-smi --query-gpu": [
        "Mon Mar  2 09:00:00 2026\n+------------+\n| NVIDIA-SMI 580.65.06    Driver Version: 580.65.06 |\n",
        "\n==============NVSMI LOG==============\n\nTimestamp          : Mon Mar  2 09:00:00 2026\n",
    ],
    "amd-smi monitor": [
        "TIMESTAMP  GPU  POWER  GPU_TEMP  GFX_UTIL\n1772442000    0  300 W      50 C      90 %\n",
        "GPU  XCP  POWER  GPU_T  MEM_T  GFX_CLK  GFX%  MEM%\n  0    0  300 W   50 C   40 C  90 MHz  1 %  2 %\n",
        "+------+\n| AMD-SMI 26.0.0+37d158ab    amdgpu version: 6.14.14 |\n",
    ],
    "rocm-smi --showuse": ["\n======== ROCm System Management Interface ========\n==== Concise Info ====\n"],
}


@pytest.mark.parametrize(("instead", "text"), [(c, t) for c, texts in SCREENS.items() for t in texts])
def test_a_screen_names_the_command_that_records(tmp_path, capsys, instead, text):
    file = tmp_path / "log.txt"
    file.write_text(text)
    for more in ([], ["--explain"]):
        assert run(["import", str(file), "--lake", str(tmp_path / "lake"), *more]) == 2
        words = capsys.readouterr().err
        assert "not samples over time" in words
        assert f"next: record samples: {instead}" in " ".join(words.split())
    (tmp_path / "gpus.csv").write_text(
        "timestamp, uuid, name, power.draw [W]\n2026/03/02 09:00:00.000, GPU-1, NVIDIA H200, 300.00 W\n"
    )
    assert run(["import", str(tmp_path), "--lake", str(tmp_path.parent / f"{tmp_path.name}-lake")]) == 0
    assert "log.txt:notimported:itis" in "".join(capsys.readouterr().out.split())  # a long path is cut at the edge


@pytest.mark.parametrize(
    "text", ['{"timestamp": "2026-03-02T09:00:00Z", "UUID": "GPU-1", "util": 5}\n', '[\n {"a": 1}]\n']
)
def test_json_of_no_known_kind_says_how_to_go_on(tmp_path, text):
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(FileFault, match="JSON of a kind that is not known") as raised:
        gpuledger.open(tmp_path / "lake").ingest(tmp_path / "log.json")
    assert "as CSV" in raised.value.hint


def test_decimals_with_a_comma_say_how_to_go_on(tmp_path):
    file = tmp_path / "gpus.csv"
    file.write_text("timestamp;UUID;modelName;DCGM_FI_DEV_POWER_USAGE\n2026-03-02T09:00:00Z;GPU-1;NVIDIA L4;40,5\n")
    with pytest.raises(FileFault, match="not one usable row") as raised:
        gpuledger.open(tmp_path / "lake").ingest(file)
    assert "decimals with a point" in raised.value.hint
    pd.read_csv(file, sep=None, decimal=",", engine="python").to_csv(tmp_path / "points.csv")
    assert len(imported(tmp_path, tmp_path / "points.csv")) == 1


# A W&B panel, Export, CSV: one metric of a run, its x-axis first
PANEL = '"{x}",' + ",".join(f'"sun-1 - system.gpu.0.powerWatts{end}"' for end in ("", "__MIN", "__MAX")) + "\n"


def test_a_panel_of_wandb_is_read_where_it_has_times(tmp_path):
    file = tmp_path / "panel.csv"
    rows = "".join(f'"{1768870800 + 15 * i}","{300 + i}","290","310"\n' for i in range(4))
    file.write_text(PANEL.format(x="Wall Time") + rows)
    lake = gpuledger.open(tmp_path / "lake")
    assert any("a sample of one metric" in note for note in lake.ingest(file, **SAID).notes)
    found = lake.samples().df()
    assert found["power_w"].tolist() == [300, 301, 302, 303]
    assert found["at_ms"].tolist() == [(1768870800 + 15 * i) * 1000 for i in range(4)]


@pytest.mark.parametrize("axis", ["Relative Time (Process)", "Relative Time (Wall)"])
def test_a_panel_of_wandb_over_relative_time_states_its_start(tmp_path, axis):
    file = tmp_path / "panel.csv"
    file.write_text(PANEL.format(x=axis) + '"0.5","300","290","310"\n"15.25","301","290","310"\n"soon","1","1","1"\n')
    stated = gpuledger.open(tmp_path / "stated").ingest(file, **SAID).stated
    assert [one.option for one in stated if "when the file was written" in one.what] == ["--at TIME"]
    lake = gpuledger.open(tmp_path / "lake")
    made = lake.ingest(file, at="2026-01-20T08:00:00Z", **SAID)
    assert any("pause" in note for note in made.notes)
    assert made.rows_rejected == 1
    found = lake.samples().df()
    assert found["power_w"].tolist() == [300, 301]
    start = pd.Timestamp("2026-01-20T08:00:00Z").value // 1_000_000
    assert (found["at_ms"] - start).tolist() == [500, 15250]


@pytest.mark.parametrize("axis", ["Step", "_runtime"])
def test_a_panel_of_wandb_without_times_names_what_to_export(tmp_path, axis):
    file = tmp_path / "panel.csv"
    file.write_text(PANEL.format(x=axis) + '"1","300","290","310"\n')
    with pytest.raises(FileFault, match="W&B panel over '" + re.escape(axis)) as raised:
        gpuledger.open(tmp_path / "lake").ingest(file, **SAID)
    assert "history(stream='events'" in raised.value.hint
    two = PANEL.format(x="Wall Time").replace("\n", ',"sea-2 - system.gpu.0.powerWatts"\n')
    file.write_text(two + '"1768870800","300","290","310","320"\n')
    with pytest.raises(FileFault, match=r"2 runs \(sea-2, sun-1\)"):
        gpuledger.open(tmp_path / "lake").ingest(file, **SAID)
