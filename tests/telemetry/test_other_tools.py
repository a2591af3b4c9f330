"""Are CodeCarbon, gpustat, and the JSON of rocm-smi, amd-smi and nvtop read as they mean it?"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gpuledger.cli.app import run
from gpuledger.errors import GpuledgerError
from gpuledger.report.documents import document_of
from gpuledger.telemetry.formats import Kind, Opened, open_source, recognize
from gpuledger.telemetry.mapping.suggest import suggest
from gpuledger.telemetry.runs import Runs
from gpuledger.units import Unknown

CORPUS = Path(__file__).parents[1] / "corpus"
COLUMNS = "timestamp,project_name,run_id,duration,emissions,gpu_power,gpu_energy,energy_consumed,gpu_count,gpu_model"


def runs(tmp_path: Path, *rows: str, header: str = COLUMNS) -> Runs:
    file = tmp_path / "emissions.csv"
    file.write_text("\n".join((header, *rows)) + "\n")
    found = recognize(file)
    assert (found.key, found.format.kind) == ("codecarbon", Kind.RUNS)
    assert found.format.read is not None
    made = found.format.read(file)
    assert isinstance(made, Runs)
    return made


def rows_of(path: Path) -> tuple[list[dict[str, str]], Opened]:
    """The rows of a file as its format cuts them, without what is empty."""
    opened = open_source(path)
    rows = [row for batch in opened.batches(opened.names, ()) for row in batch.to_pylist()]
    return [{name: str(cell) for name, cell in row.items() if cell not in (None, "")} for row in rows], opened


def text(tmp_path: Path, words: str, name: str = "gpus.txt") -> Path:
    file = tmp_path / name
    file.write_text(words)
    return file


def test_the_last_row_of_a_run_counts(tmp_path):
    found = runs(
        tmp_path,
        "2026-01-01T01:00:00,a,r1,1800,0.1,400,0.2,0.3,2,2 x NVIDIA L4",
        "2026-01-01T02:00:00,b,r2,3600,0.1,70,0.07,0.1,1,1 x NVIDIA L4",
        "2026-01-01T01:30:00,a,r1,3600,0.2,420,0.41,0.5,2,2 x NVIDIA L4",
    )
    assert (found.runs, found.rows, found.gpus, found.gpu_models) == (2, 3, 2, ("NVIDIA L4",))
    assert (found.run_hours, found.gpu_hours) == (2, 3)
    assert found.energy_kwh == pytest.approx(0.48)
    assert found.power_w == pytest.approx(160)


@pytest.mark.parametrize(("gpus", "energy"), [("", ""), ("0", "0.0"), ("", "0"), ("0.0", "")])
def test_a_run_without_a_gpu_counts_nothing(tmp_path, gpus, energy):
    found = runs(tmp_path, f"2026-01-01T01:00:00,a,r1,1800,0.1,0.0,{energy},0.3,{gpus},")
    assert (found.runs_without_gpus, found.gpus, found.gpu_hours, found.run_hours) == (1, 0, 0, 0)
    assert found.energy_kwh == found.by_run[0].energy_kwh == Unknown("no GPU was measured")
    assert isinstance(found.power_w, Unknown)


def test_a_gpu_that_gives_zero_energy_was_not_measured(tmp_path):
    found = runs(
        tmp_path,
        "2026-01-01T01:00:00,a,r1,3600,0.1,0,0.0,0.3,4,4 x NVIDIA L4",
        "2026-01-01T02:00:00,a,r2,3600,0.1,70,0.07,0.3,1,1 x NVIDIA L4",
    )
    assert (found.gpu_hours, found.energy_kwh, found.power_w) == (5, 0.07, pytest.approx(70))
    assert isinstance(found.by_run[0].energy_kwh, Unknown)
    assert "1 run with GPUs but without their energy" in str(document_of(found).notes)


def test_the_graphics_of_a_mac_are_what_gpu_count_says(tmp_path):
    with_count = runs(tmp_path, "2026-01-01T01:00:00,a,r1,3600,0.1,0.002,0.000002,0.3,1,Apple M1")
    assert (with_count.gpus, with_count.gpu_hours) == (1, 1)
    assert "Apple: the graphics of a Mac's chip" in str(document_of(with_count).notes)
    without = runs(tmp_path, "2026-01-01T01:00:00,a,r1,3600,0.1,0.0,0.0,0.3,0,")
    assert (without.gpus, without.gpu_hours) == (0, 0)


def test_a_file_without_a_number_of_gpus_has_no_gpu_hours(tmp_path):
    header = "timestamp,project_name,run_id,duration,emissions,gpu_energy,energy_consumed"
    found = runs(tmp_path, "2026-01-01T01:00:00,a,r1,3600,0.1,0.25,0.3", header=header)
    assert isinstance(found.gpus, Unknown)
    assert isinstance(found.gpu_hours, Unknown)
    assert isinstance(found.power_w, Unknown)
    assert found.energy_kwh == 0.25
    assert document_of(found).data()["gpus"] is None


def test_tasks_and_rows_without_a_run_are_runs_of_their_own(tmp_path):
    row = "2026-01-01T01:00:00,a,{run},3600,0.1,70,0.07,0.3,1,1 x NVIDIA L4"
    tasks = [f"{task},{row.format(run='r1')}" for task in ("load", "train")]
    assert runs(tmp_path, *tasks, header=f"task_name,{COLUMNS}").gpu_hours == 2
    assert runs(tmp_path, row.format(run=""), row.format(run="")).gpu_hours == 2


def test_several_files_in_one_and_several_models(tmp_path):
    found = runs(
        tmp_path,
        "2026-01-01T01:00:00,a,r1,3600,0.1,70,0.07,0.3,2,1 x NVIDIA A301 x NVIDIA A10",
        "duration,emissions,energy_consumed,run_id,gpu_count,gpu_energy",
        "3600,0.1,0.3,r2,1,0.07",
    )
    assert (found.gpu_hours, found.gpu_models) == (3, ("NVIDIA A30 + NVIDIA A10",))


def test_runs_at_the_same_time_are_noted(tmp_path):
    row = "2026-01-01T{hour}:00:00,a,{run},3600,0.1,70,0.07,0.3,1,1 x NVIDIA L4"
    at_once = [row.format(hour="01", run=run) for run in ("r1", "r2")]
    assert runs(tmp_path, *at_once).overlapping == 1
    assert "counted twice" in str(document_of(runs(tmp_path, *at_once)).notes)
    assert runs(tmp_path, row.format(hour="01", run="r1"), row.format(hour="02", run="r2")).overlapping == 0
    assert runs(tmp_path, at_once[0].replace("2026-01-01T01", "2026-02-31T01"), at_once[1]).overlapping == 0


def test_rows_that_cannot_be_read_are_counted(tmp_path):
    good = "2026-01-01T01:00:00,a,r1,3600,0.1,70,0.07,0.3,1,1 x NVIDIA L4"
    bad = ("", "2026-01-01T01:00:00,a,r2,36", good.replace("3600", "nan"), good.replace("3600", "-1"))
    found = runs(tmp_path, *bad, good)
    assert (found.rows, found.rows_not_read, found.gpu_hours) == (1, 3, 1)
    with pytest.raises(GpuledgerError, match="without a whole row"):
        runs(tmp_path)


def test_no_figure_of_runs_is_one_of_samples(tmp_path, capsys):
    file = text(tmp_path, (CORPUS / "codecarbon_3.csv").read_text(), "emissions.csv")
    packed = tmp_path / "emissions.csv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for words in (["analyze", str(packed)], ["audit", str(file)], ["import", str(file), "--lake", str(tmp_path / "l")]):
        assert run([*words, "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert (made["statement"], made["gpus"], made["runs"]) == ("runs", 4, 3)
        assert not [key for key in made if "util" in key or "idle" in key or "usd" in key]
    assert run(["import", str(file), "--lake", str(tmp_path / "l")]) == 0
    assert "nothing is added to a lake" in capsys.readouterr().out.replace("\n", " ")


def test_no_name_of_codecarbon_is_taken_for_a_gpu():
    cells = {"gpu_count": "2", "cpu_model": "AMD EPYC 7543 32-Core Processor", "cpu_count": "32", "cpu_power": "45.0"}
    for name, cell in cells.items():
        assert suggest(name, cell) is None, name


LINE = "[3] {name} | 61°C, {shares}{power} |  9000 / 23028 MB | kim(8000M)"


@pytest.mark.parametrize(
    ("shares", "power", "expected"),
    [
        ("  40 %", "", {"util [%]": "40"}),
        ("  31 %,  40 %", "", {"util [%]": "40"}),
        ("  31 %,  ?? %", ",   ?? / 150 W", {"power limit [W]": "150"}),
        ("  40 % (E:  12 %  D:  ?? %)", ",   70 W", {"util [%]": "40", "encoder [%]": "12", "power [W]": "70"}),
        ("  ?? %,  40 % (D:   7 %)", ",   70 /  ?? W", {"util [%]": "40", "decoder [%]": "7", "power [W]": "70"}),
    ],
)
def test_the_readings_of_gpustat(tmp_path, shares, power, expected):
    file = text(tmp_path, LINE.format(name="NVIDIA L4", shares=shares, power=power) + "\n")
    ((row,), _) = rows_of(file)
    always = {"gpu": "3", "model": "NVIDIA L4", "temperature [C]": "61"}
    assert row == always | {"memory used [MiB]": "9000", "memory total [MiB]": "23028"} | expected


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("Mon Feb  2 22:22:22 2026", "2026-02-02 22:22:22"),
        ("Mon Feb 22 22:22:22 2016", "2016-02-22 22:22:22"),
        ("Mon 02 Feb 2026 10:22:22 PM CET  570.86.15", "2026-02-02 22:22:22"),
        ("Mon Feb  2 22:22:22 2026  570.86.15", "2026-02-02 22:22:22"),
    ],
)
def test_the_header_of_gpustat(tmp_path, stamp, time):
    file = text(tmp_path, f"gpu-7.example  {stamp}\n{LINE.format(name='L4', shares=' 5 %', power='')}\n")
    ((row,), _) = rows_of(file)
    assert (row["host"], row["time"]) == ("gpu-7.example", time)


def test_a_line_of_gpustat_that_is_cut_is_a_wrong_row(tmp_path):
    line = LINE.format(name="L4", shares=" 5 %", power="")
    rows, opened = rows_of(text(tmp_path, f"{line}\n{line.replace('[3]', '[4]')[:30]}\n"))
    assert [row["gpu"] for row in rows] == ["3"]
    assert opened.wrong_rows[0][1].startswith("line 2: [4] L4")


def test_dies_with_one_identifier_are_told_apart_by_order():
    rows, opened = rows_of(CORPUS / "rocm_smi_mi250x.json")
    assert [row["device"] for row in rows] == ["card0", "card1"]
    assert "Unique ID" not in opened.names
    assert rows[0]["VRAM Total Used Memory (B)"] == "34351349760"


def test_identifiers_tell_cards_of_rocm_smi_apart(tmp_path):
    cards = {f"card{i}": {"Unique ID": f"0x{i}", "GPU use (%)": "7", "Card series": "0x1002"} for i in range(2)}
    rows, _ = rows_of(text(tmp_path, json.dumps(cards), "rocm.json"))
    assert [row["Unique ID"] for row in rows] == ["0x0", "0x1"]
    assert "Card Series" not in rows[0]


def test_the_units_of_amd_smi_monitor(tmp_path):
    gpu = {"gpu": 0, "xcp": 0, "power_usage": {"value": 300, "unit": "W"}, "gfx": {"value": 42, "unit": "%"}}
    gpu |= {"hotspot_temperature": "N/A", "vram_used": {"value": 1.5, "unit": "GB"}}
    part = {"gpu": 1, "xcp": 1, "power_usage": "N/A", "gfx": "N/A"}
    rows, _ = rows_of(text(tmp_path, json.dumps([gpu, part]), "amd.json"))
    assert rows == [{"gpu": "0", "power_usage": "300", "gfx": "42", "vram_used [GiB]": "1.5"}]


@pytest.mark.parametrize(
    "words", ['{"card0": 5}', '{"card0": {', '[{"device_name": "x", "gpu_clock": null', '{"gpus": 3, "query_time": 1}']
)
def test_json_without_a_whole_gpu_is_refused_by_name(tmp_path, words):
    file = text(tmp_path, words, "page.json")
    with pytest.raises(GpuledgerError, match=r"without a whole GPU|of a kind that is not known|of one result") as found:
        rows_of(file)
    assert found.value.hint


CUT = [
    file
    for file in sorted(CORPUS.iterdir())
    if file.stem.startswith(("codecarbon", "gpustat", "nvtop", "amd_smi_metric_watch", "rocm_smi_mi"))
    and file.suffix != ".expect"
]


@pytest.mark.parametrize("whole", CUT, ids=lambda file: file.stem)
def test_a_file_cut_anywhere_gives_rows_or_a_fault(tmp_path, whole):
    content, file, hints = whole.read_bytes(), tmp_path / whole.name, set[str]()
    for size in range(1, len(content), max(1, len(content) // 60)):
        file.write_bytes(content[:size])
        try:
            found = recognize(file).format
            assert found.read(file).runs if found.kind is Kind.RUNS else rows_of(file)
        except GpuledgerError as error:
            hints.add(error.hint)
    assert all(hints)


def test_what_gpustat_and_nvtop_say_besides():
    for name in ("gpustat_fan_colors.txt", "gpustat_json.json"):
        rows, _ = rows_of(CORPUS / name)
        assert {row["host"][:9] for row in rows} == {"rack2-gpu"}, name
        assert len({row["time"] for row in rows}) == len(rows) / 2, name
    _, opened = rows_of(CORPUS / "nvtop_no_commas.json")
    assert opened.notes == ["nvtop lists integrated graphics like a GPU: RaptorLake-S GT1 (UHD Graphics 770)"]
