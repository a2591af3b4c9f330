"""What do import --explain and --write-map show and write?"""

from __future__ import annotations

from pathlib import Path

import pytest

OURS = "when,card,model,team,milliwatts,busy_percent,fan\n" + "".join(
    f"20.01.2026 10:{m:02d},card-1,NVIDIA A10G,team-a,150000,50,30\n" for m in range(60)
)


@pytest.fixture
def ours(cli, tmp_path):
    (tmp_path / "ours.csv").write_text(OURS)
    return "ours.csv"


def test_nothing_is_imported(cli, fleet_csv, monkeypatch):
    monkeypatch.setenv("COLUMNS", "180")
    ended = cli("import", "--explain", fleet_csv, "--lake", "lake")
    assert (ended.code, ended.err) == (0, "")
    assert not Path("lake").exists()
    words = " ".join(ended.out.split())
    assert "can be imported" in words
    assert "36-column DCGM export" in words
    assert "DCGM_FI_DEV_FB_USED fb_used_bytes MiB" in words
    assert "stated zone UTC (--tz NAME)" in words
    assert "The first values as they would be kept" in words


def test_a_starter_map_is_written_and_works(cli, ours):
    ended = cli("import", "--explain", ours, "--write-map", "m.toml")
    assert ended.code == 0
    assert "can be imported" in ended.out
    assert "gpuledger import ours.csv --map m.toml" in ended.out
    said = cli("import", ours, "--map", "m.toml", "--lake", "lake", "--json").json()
    assert (said["rows_added"], said["rejects"]) == (60, {})
    fleet = cli("analyze", "--lake", "lake", "--json").json()
    assert fleet["gpu_util_pct"] == pytest.approx(50)
    assert fleet["pif"] == pytest.approx(150 / 300)
    again = cli("import", ours, "--write-map", "m.toml")
    assert again.code == 2
    assert "the file exists" in again.err


def test_the_json_has_everything(cli, ours):
    said = cli("import", "--explain", ours, "--write-map", "m.toml", "--json").json()
    assert (said["statement"], said["importable"]) == ("explain", True)
    power = next(c for c in said["columns"] if c["column"] == "power_w")
    assert power == {
        "source": "milliwatts", "column": "power_w", "role": "reading", "unit": "milliwatts", "factor": "/ 1,000",
        "cell": "150000", "read": 150.0,
    }  # fmt: skip
    assert said["unused"] == [{"source": "fan", "cell": "30", "suggestion": None}]
    assert said["rows"][0]["power_w"] == 150.0
    assert said["files"] == {"map": "m.toml"}


def test_a_wrong_map_is_named(cli, ours, tmp_path):
    (tmp_path / "m.toml").write_text('[time]\nsources = "wen"\n[labels]\ngpu_uuid = "card"\n')
    ended = cli("import", "--explain", ours, "--map", "m.toml")
    assert ended.code == 0
    words = " ".join(ended.out.split())
    assert "lacks the required column 'time' (also read under the name wen) (nearest in the file: 'when')" in words
    assert "next: name the column in m.toml" in words


def test_rows_out_of_range_show_the_range(cli, tmp_path):
    (tmp_path / "f.csv").write_text("timestamp,gpu_uuid,busy\n1768867260,G,45\n1768867261,G,1\n")
    (tmp_path / "m.toml").write_text(
        '[time]\nsources = "timestamp"\n[labels]\ngpu_uuid = "gpu_uuid"\n'
        '[[values]]\ncolumn = "gpu_util_ratio"\nsources = "busy"\n'
    )
    words = " ".join(cli("import", "--explain", "f.csv", "--map", "m.toml").out.split())
    assert "1 of the first 2 rows would be rejected" in words
    assert "out of range: gpu_util_ratio is 0 to 1, share of time busy 45" in words


def test_control_characters_stay_visible(cli, tmp_path):
    (tmp_path / "f.csv").write_text("timestamp,gpu_uuid,power [W],\x1b[31mred\n1768867260,G,5,\x1b[2J\n")
    ended = cli("import", "--explain", "f.csv", "--write-map", "m.toml")
    assert "\x1b" not in ended.out + (tmp_path / "m.toml").read_text()
    assert cli("import", "f.csv", "--map", "m.toml", "--lake", "lake").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.csv", "b.csv"], "one file at a time"),
        (["none.csv"], "no such file"),
    ],
)
def test_what_cannot_be_explained(cli, arguments, words):
    ended = cli("import", "--explain", *arguments)
    assert ended.code == 2
    assert words in ended.err


def test_a_map_cannot_be_written_where_there_is_no_folder(cli, ours):
    ended = cli("import", "--explain", ours, "--write-map", "no/such/m.toml")
    assert ended.code == 2
    assert "cannot write the mapping file" in ended.err


EMISSIONS = (
    "timestamp,project_name,run_id,duration,emissions,emissions_rate,cpu_power,gpu_power,gpu_energy,energy_consumed,"
    "codecarbon_version,cpu_model,gpu_count,gpu_model,gpu_utilization_percent\n"
    "2026-05-10T12:00:00,a,1,3600.0,0.2,0.00006,45.0,540.0,0.54,0.6,3.2.3,AMD EPYC 7543,2,2 x NVIDIA A100-SXM4-80GB,8\n"
    "2026-05-10T13:30:00,b,2,1800.0,0.1,0.00006,45.0,510.0,0.26,0.3,3.2.3,AMD EPYC 7543,2,2 x NVIDIA A100-SXM4-80GB,8\n"
)
EARLY_EMISSIONS = (
    "timestamp,experiment_id,project_name,duration,emissions,energy_consumed,country_name,country_iso_code,region\n"
    "2021-05-10T12:00:00,1,a,3600.0,0.2,0.6,Germany,DEU,bavaria\n"
)


@pytest.mark.parametrize("text", [EMISSIONS, EARLY_EMISSIONS], ids=["now", "first release"])
def test_rows_that_are_whole_runs_get_no_map(cli, tmp_path, text):
    """CodeCarbon writes a row for each run, of all GPUs together: no map makes samples of them."""
    (tmp_path / "emissions.csv").write_text(text)
    cli("import", "--explain", "emissions.csv", "--write-map", "m.toml")
    assert not Path("m.toml").exists()
    for command in (("import", "emissions.csv", "--lake", "lake"), ("analyze", "emissions.csv"), ("emissions.csv",)):
        ended = cli(*command)
        assert ended.code == 0
        assert "Runs are not samples" in ended.out
    assert not Path("lake").exists()


def test_a_starter_map_makes_no_gpu_of_counts_and_processors(cli, tmp_path):
    (tmp_path / "runs.csv").write_text(
        "when,gpu_count,cpu_model,cpu_power_watts,gpu_power_watts\n2026-05-10T12:00:00,2,AMD EPYC 7543,45.0,540.0\n"
    )
    ended = cli("import", "--explain", "runs.csv", "--write-map", "m.toml")
    assert (ended.code, Path("m.toml").exists()) == (2, False)
    assert "no mapping file is written: its rows are of several GPUs together" in ended.err
    ended = cli("import", "runs.csv", "--lake", "lake")
    assert (ended.code, Path("lake").exists()) == (2, False)
    assert "understood: 'when' as the time, 'gpu_power_watts' as power_w" in ended.err
