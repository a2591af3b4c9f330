"""Are reports of nvidia-smi -q -x read as what each GPU said at their instant?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gpuledger
from gpuledger.cli.app import run
from gpuledger.errors import FileFault

# As the drivers print it: the names of power readings changed with 535 (v12) and 560 (v13).
POWER = {
    "v11": "<power_readings><power_draw>139.62 W</power_draw><enforced_power_limit>320.00 W</enforced_power_limit>"
    "</power_readings>",
    "v12": "<gpu_power_readings><power_draw>139.62 W</power_draw><current_power_limit>320.00 W</current_power_limit>"
    "</gpu_power_readings><module_power_readings><power_draw>700.00 W</power_draw></module_power_readings>",
    "v13": "<gpu_power_readings><average_power_draw>139.62 W</average_power_draw>"
    "<instant_power_draw>142.33 W</instant_power_draw><current_power_limit>320.00 W</current_power_limit>"
    "</gpu_power_readings><module_power_readings><average_power_draw>700.00 W</average_power_draw>"
    "</module_power_readings>",
}


def gpu(uuid: str, power: str, util: str = "65 %", mig: str = "") -> str:
    mode = "Enabled" if mig else "Disabled"
    return (
        f'\t<gpu id="00000000:0C:00.0">\n<product_name>NVIDIA L4</product_name>\n<uuid>{uuid}</uuid>\n'
        f"<mig_mode><current_mig>{mode}</current_mig></mig_mode>\n<mig_devices>{mig}</mig_devices>\n"
        f"<fb_memory_usage><total>10240 MiB</total><used> 9184 MiB </used><free>660 MiB</free></fb_memory_usage>\n"
        f"<utilization><gpu_util>{util}</gpu_util><memory_util>9 %</memory_util></utilization>\n"
        f"<temperature><gpu_temp>27 C</gpu_temp><memory_temp>N/A</memory_temp></temperature>\n{power}\n"
        "<clocks><sm_clock>1950 MHz</sm_clock></clocks>\n</gpu>\n"
    )


def report(*gpus: str, time: str = "Fri Apr 10 10:23:01 2026", version: str = "v12") -> str:
    head = f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_{version}.dtd">\n<nvidia_smi_log>\n'
    stamp = f"\t<timestamp>{time}</timestamp>\n" if time else ""
    return f"{head}{stamp}{''.join(gpus)}</nvidia_smi_log>\n"


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "report.xml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("version", POWER)
def test_a_report_is_a_snapshot(tmp_path, capsys, version):
    file = written(tmp_path, report(gpu("GPU-a", POWER[version]), gpu("GPU-b", POWER[version], "5 %"), version=version))
    assert run(["analyze", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["statement"], told["gpus"], told["at_utc"]) == ("snapshot", 2, "2026-04-10T10:23:01Z")
    assert (told["fleet"]["gpu_util_pct"], told["fleet"]["power_w"]) == (35, 139.62)
    row = told["by_gpu"][0]
    assert (row["power_limit_w"], row["memory_used_bytes"], row["gpu_temp_c"]) == (320, 9184 * 2**20, 27)


def test_the_utilization_of_a_board_in_slices_is_unknown(tmp_path, capsys):
    slices = "<mig_device><index>0</index></mig_device><mig_device><index>1</index></mig_device>"
    file = written(tmp_path, report(gpu("GPU-a", POWER["v12"], "N/A", slices)))
    assert run(["analyze", str(file)]) == 0
    shown = capsys.readouterr()
    assert "utilization unknown" in shown.out
    assert "MIG is on for 1 of the GPUs, in 2 slices" in shown.err


def test_repeated_reports_are_a_series(tmp_path):
    times = [f"Fri Apr 10 10:23:{s:02d} 2026" for s in range(0, 50, 10)]
    text = "".join(report(gpu("GPU-a", POWER["v13"]), time=time, version="v13") for time in times)
    taken = gpuledger.open(tmp_path / "lake").ingest(
        written(tmp_path, text + '<?xml version="1.0" ?>\n<nvidia_smi_log>\n')
    )
    assert (taken.rows_added, taken.rows_rejected) == (5, 1)  # the last one was cut off
    assert gpuledger.open(tmp_path / "lake").analyze().to_dict()["fleet"]["gpu_util_pct"] == pytest.approx(65)


def test_without_a_time_it_was_read_when_it_was_written(tmp_path):
    file = written(tmp_path, report(gpu("GPU-a", POWER["v12"]), time=""))
    taken = gpuledger.open(tmp_path / "lake").ingest(file)
    assert "--at TIME" in [one.option for one in taken.stated]
    at_ms = gpuledger.open(tmp_path / "lake").samples().df()["at_ms"].item()
    assert at_ms == int(file.stat().st_mtime) * 1000


def test_a_report_without_a_gpu_is_refused(tmp_path):
    with pytest.raises(FileFault, match="without a GPU"):
        gpuledger.open(tmp_path / "lake").ingest(written(tmp_path, report()))


def test_entities_are_not_read(tmp_path):
    text = report(gpu("GPU-a", POWER["v12"])).replace(
        'SYSTEM "nvsmi_device_v12.dtd"', '[<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]'
    )
    with pytest.raises(FileFault, match="without a GPU"):
        gpuledger.open(tmp_path / "lake").ingest(written(tmp_path, text.replace("GPU-a", "&b;")))
