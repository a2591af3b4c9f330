"""Are files sorted by what they hold, and is each answered by itself or next to samples?"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from bills import Machine, as_csv, aws_rows, days, nodes
from gpuledger.units import day_start_ms

START = dt.datetime(2026, 1, 20)
SACCT = """\
JobID|User|State|Start|End|NodeList|AllocTRES
101|ann|COMPLETED|2026-01-20T00:00:00|2026-01-20T02:00:00|node01|cpu=64,gres/gpu=2
"""
ONE = Machine("node01", "i-0123456789abcdef0", "g5.12xlarge", "us-east-1", 6, 4)


@pytest.fixture
def files(cli):
    head = "timestamp,UUID,modelName,Hostname,gpu,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE\n"
    rows = [
        f"{(START + dt.timedelta(minutes=m)).isoformat()}Z,GPU-{g},NVIDIA A10G,node01,{g},50,100\n"
        for g in (0, 1) for m in range(0, 240, 5)
    ]  # fmt: skip
    Path("samples.csv").write_text(head + "".join(rows))
    Path("sacct.txt").write_text(SACCT)
    Path("nodes.json").write_text(json.dumps(nodes([ONE])))
    as_csv(Path("cur.csv"), aws_rows([ONE], days(day_start_ms("2026-01-20"), 1)))


@pytest.mark.parametrize("command", ["analyze", "audit", "import", ""])
def test_a_job_table_alone_is_answered(cli, files, command):
    words = [command] if command else []
    ended = cli(*words, "sacct.txt", "--json")
    assert ended.code == 0, ended.err
    said = ended.json()
    assert (said["statement"], said["gpu_hours"], said["jobs"]) == ("job_table", 4.0, 1)
    assert said["stated"] == [{"what": "times without a zone are UTC", "option": "--tz"}]
    shown = cli(*words, "sacct.txt")
    assert "stated: times without a zone are UTC (--tz)" in shown.out
    assert "4.000 GPU-hours" in shown.out


def test_a_job_table_alone_is_added_by_an_import(cli, files):
    said = cli("import", "sacct.txt", "--lake", "lake", "--json").json()
    assert said["added"][0]["jobs"] == 1
    assert cli("import", "samples.csv", "--lake", "lake").code == 0
    assert {r["name"] for r in cli("audit", "--lake", "lake", "--by", "user", "--json").json()["by_user"]} >= {"ann"}
    Path("few.txt").write_text("JobID|Elapsed|AllocTRES\n1|01:00:00|gres/gpu=1\n")
    ended = cli("import", "few.txt", "--lake", "lake", "--json")
    assert (ended.code, ended.json()["gpu_hours"]) == (0, 1.0)
    assert "not added to lake" in ended.json()["added"][0]


@pytest.mark.parametrize("command", ["analyze", "audit", "import", ""])
def test_a_bill_alone_is_answered(cli, files, command):
    words = [command] if command else []
    said = cli(*words, "cur.csv", "--json").json()
    assert (said["statement"], said["kind"], said["usd"], said["machines"], said["gpus"]) == (
        "bill",
        "aws",
        "144",
        1,
        4,
    )
    assert "--inventory cur.csv" in said["next_step"]
    shown = cli(*words, "cur.csv")
    assert "$144.00" in shown.out
    assert "1 of 2 rows is not for running a machine ($1.12)" in " ".join(shown.out.split())


def test_a_list_of_machines_alone_has_no_dollars(cli, files):
    said = cli("nodes.json", "--json").json()
    assert (said["kind"], said["machines"], said["gpus"], said["usd"]) == ("kubernetes", 1, 4, None)


def test_files_next_to_samples_are_sorted_by_what_they_hold(cli, files):
    given = ("audit", "samples.csv", "sacct.txt", "cur.csv", "nodes.json", "--by", "user")
    notes = " ".join(cli(*given).err.split())
    assert "sacct.txt: a table of jobs (sacct), taken as such; stated: its times without a zone are UTC" in notes
    assert "cur.csv: a bill or a list of machines (AWS Cost and Usage Report), taken as such" in notes
    named = ("--jobs", "sacct.txt", "--inventory", "cur.csv", "--inventory", "nodes.json", "--tz", "UTC")
    said, by_option = cli(*given, "--json").json(), cli("audit", "samples.csv", "--by", "user", *named, "--json").json()
    assert any("sacct.txt: a table of jobs" in note for note in said.pop("reading")["notes"])
    by_option.pop("reading")
    assert said == by_option
    assert {row["name"] for row in said["by_user"]} == {"ann", "no user recorded"}
    assert "stated" not in cli(*given, "--tz", "UTC").err


def test_a_file_that_a_command_does_not_use_is_named(cli, files):
    for command in ("analyze", "import"):
        ended = cli(command, "samples.csv", "cur.csv")
        assert ended.code == 0, ended.err
        assert "not used here" in ended.err
        assert "--inventory cur.csv" in " ".join(ended.err.split())


def test_several_files_without_samples_are_answered_one_by_one(cli, files):
    said = cli("analyze", "sacct.txt", "cur.csv", "--json").json()
    assert [one["statement"] for one in said["files_read"]] == ["job_table", "bill"]


@pytest.mark.parametrize(
    ("words", "what", "instead"),
    [
        (("jobs", "cur.csv"), "a bill or a list of machines", "--inventory cur.csv"),
        (("jobs", "samples.csv"), "samples of GPUs", "gpuledger samples.csv"),
        (("audit", "samples.csv", "--inventory", "sacct.txt"), "a table of jobs", "gpuledger import sacct.txt"),
    ],
)
def test_a_file_for_another_command_is_named_with_it(cli, files, words, what, instead):
    ended = cli(*words)
    assert ended.code == 2
    assert what in ended.err
    assert instead in " ".join(ended.err.split())
