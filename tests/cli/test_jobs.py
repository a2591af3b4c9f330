"""Do job tables reach the bill of their users, through the commands and through Python?"""

from __future__ import annotations

import csv
import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

import gpuledger
from gpuledger.ledger.read.owners import By

START = dt.datetime(2026, 1, 20)
SACCT = """\
JobID|JobName|User|Account|State|Start|End|NodeList|AllocTRES
101|train|ann|physics|COMPLETED|2026-01-20T00:00:00|2026-01-20T02:00:00|node[01-02]|cpu=64,gres/gpu=4
101.batch|batch||physics|COMPLETED|2026-01-20T00:00:00|2026-01-20T02:00:00|node01|cpu=32,gres/gpu=2
102|sweep|bob|bio|COMPLETED|2026-01-20T02:00:00|2026-01-20T04:00:00|node01|cpu=8,gres/gpu:h100=1
103|sweep|eve|bio|COMPLETED|2026-01-20T02:00:00|2026-01-20T04:00:00|node01|cpu=8,gres/gpu:h100=1
"""


@pytest.fixture
def files(cli):
    """Two hosts of two GPUs each, four hours, without any owner; and the jobs of a cluster in UTC."""
    head = "timestamp,UUID,modelName,Hostname,gpu,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE\n"
    rows = [
        f"{(START + dt.timedelta(minutes=m)).isoformat()}Z,GPU-{h}{g},NVIDIA A10G,node0{h}.lab.edu,{g},50,100\n"
        for h in (1, 2) for g in (0, 1) for m in range(0, 240, 5)
    ]  # fmt: skip
    Path("samples.csv").write_text(head + "".join(rows))
    Path("sacct.txt").write_text(SACCT)


def dollars(said: dict, by: str) -> dict[str, Decimal]:
    return {row["name"]: Decimal(row["paid_usd"]) for row in said[f"by_{by}"]}


def audit(cli, by: str) -> dict:
    ended = cli("audit", "--lake", "lake", "--price", "1", "--by", by, "--json")
    assert ended.code == 0, ended.err
    return ended.json()


def test_the_dollars_of_a_cluster_reach_its_users(cli, files):
    assert cli("import", "samples.csv", "--lake", "lake").code == 0
    before = audit(cli, "namespace")
    assert set(dollars(before, "namespace")) == {"unallocated"}
    added = cli("jobs", "sacct.txt", "--lake", "lake", "--tz", "UTC", "--json")
    assert added.code == 0, added.err
    said = added.json()
    assert (said["jobs"], said["days"]) == (3, ["2026-01-20"])
    assert said["joined"]["placed"] == 4 * 24
    assert said["joined"]["unplaced"] == 2 * 24
    assert said["joined"]["unplaced_hosts"] == ["node01.lab.edu"]
    users, accounts, jobs = (dollars(audit(cli, by), by) for by in ("user", "account", "job"))
    paid = Decimal(before["paid_usd"])
    assert users["ann"] == accounts["physics"] == jobs["101 (train)"] == 8
    assert set(users) == {"ann", "no user recorded"}
    # Which of the two GPUs each job of bio held is unknown; that both were bio's is not.
    assert accounts["bio"] == jobs["shared by jobs 102, 103 (sweep)"]
    assert sum(users.values()) == sum(accounts.values()) == sum(jobs.values()) == paid
    spaces = dollars(audit(cli, "namespace"), "namespace")
    assert set(spaces) == {"no namespace", "unallocated"}
    assert {row["name"] for row in cli("analyze", "--lake", "lake", "--json").json()["by_namespace"]} == set(spaces)
    assert any("shared by jobs without GPU indices" in note for note in audit(cli, "user")["assumptions"])
    only = cli("audit", "--lake", "lake", "--price", "1", "--namespace", "no namespace", "--json").json()
    assert Decimal(only["paid_usd"]) == spaces["no namespace"]
    shown = cli("audit", "--lake", "lake", "--price", "1", "--by", "user")
    assert "By user" in shown.out
    assert "no user recorded" in shown.out


def test_windows_that_cut_an_hour_add_up_by_user(cli, files):
    """Hours that a window cuts are posted again from samples: with the same jobs."""
    assert cli("import", "samples.csv", "--lake", "lake", "--jobs", "sacct.txt", "--tz", "UTC").code == 0
    whole = dollars(audit(cli, "user"), "user")
    parts = Counter[str]()
    for window in (("--until", "2026-01-20T01:20"), ("--since", "2026-01-20T01:20")):
        said = cli("audit", "--lake", "lake", "--price", "1", "--by", "user", "--json", *window).json()
        parts.update(dollars(said, "user"))
    # Each window is billed in whole units of 10^-12 USD.
    assert {name: round(usd, 9) for name, usd in parts.items()} == whole


def test_a_local_time_asks_for_its_zone_and_changes_nothing(cli, files):
    assert cli("import", "samples.csv", "--lake", "lake").code == 0
    ended = cli("jobs", "sacct.txt", "--lake", "lake")
    assert ended.code == 2
    assert "--tz" in ended.err
    assert not Path("lake/jobs").exists()
    ended = cli("import", "samples.csv", "--lake", "fresh", "--jobs", "sacct.txt")
    assert ended.code == 2
    assert not Path("fresh").exists()


def test_import_takes_job_tables_too_and_their_order_does_not_matter(cli, files):
    both = cli("import", "samples.csv", "--lake", "lake", "--jobs", "sacct.txt", "--tz", "UTC", "--json").json()
    assert both["rows_added"] == 4 * 48
    assert both["jobs"]["jobs"] == 3
    first = cli("jobs", "sacct.txt", "--lake", "other", "--tz", "UTC")
    assert first.code == 0
    assert "no samples yet" in first.out
    assert cli("import", "samples.csv", "--lake", "other").code == 0
    other = cli("audit", "--lake", "other", "--price", "1", "--by", "job", "--json").json()
    assert dollars(other, "job") == dollars(audit(cli, "job"), "job")
    again = cli("jobs", "sacct.txt", "--lake", "lake", "--tz", "UTC", "--json").json()
    assert (again["claims_new"], again["days"]) == (0, [])


def test_jobs_elsewhere_and_in_another_zone_are_noticed(cli, files):
    assert cli("import", "samples.csv", "--lake", "lake").code == 0
    Path("other.csv").write_text("job,host,start,end\n1,elsewhere,2026-01-20T00:00:00Z,2026-01-20T01:00:00Z\n")
    assert "check host names" in cli("jobs", "other.csv", "--lake", "lake").out
    Path("bad.csv").write_text("job,host,start,end\n1,node01,2026-01-20T03:00:00Z,2026-01-20T01:00:00Z\n")
    ended = cli("jobs", "bad.csv", "--lake", "lake", "--fail-on", "rejects")
    assert ended.code == 1
    assert "ends before it starts" in ended.out
    assert Path("lake/rejects/jobs-00000001.csv").exists()


def test_days_whose_samples_are_gone_keep_their_owners(cli, files):
    assert cli("import", "samples.csv", "--lake", "lake").code == 0
    assert cli("analyze", "--lake", "lake").code == 0
    assert (
        cli("tidy", "--lake", "lake", "--fold-older-than", "1d", "--drop-samples-older-than", "2d", "--yes").code == 0
    )
    before = audit(cli, "user")
    ended = cli("jobs", "sacct.txt", "--lake", "lake", "--tz", "UTC", "--json")
    assert ended.json()["kept_days"] == ["2026-01-20"]
    assert audit(cli, "user")["by_user"] == before["by_user"]
    assert "keep the owners" in cli("jobs", "sacct.txt", "--lake", "lake", "--tz", "UTC").out


@pytest.mark.parametrize("by", [b.value for b in By])
def test_every_dimension_adds_up_in_python(cli, files, by):
    lake = gpuledger.open("lake")
    lake.ingest("samples.csv")
    assert lake.jobs("sacct.txt", tz="UTC").jobs == 3
    cost = lake.audit(prices=1, by=by).statement.cost
    assert sum(row.dollars.paid_usd for row in cost.by_asked) == cost.paid_usd
    made = lake.analyze(by=by).statement
    assert sum(row.means.observed_h for row in made.by_owner) == pytest.approx(made.fleet.observed_h)
    assert f"by_{by}" in lake.analyze(by=by).to_dict()
    with pytest.raises(gpuledger.errors.UnknownName, match="dimension of ownership"):
        lake.audit(by="usr")


@pytest.mark.parametrize("by", [b.value for b in By])
def test_a_csv_has_the_owners_asked_for(cli, files, by):
    lake = gpuledger.open("lake")
    lake.ingest("samples.csv")
    lake.jobs("sacct.txt", tz="UTC")
    for made, names in (
        (lake.audit(prices=1, by=by), {row.name for row in lake.audit(prices=1, by=by).statement.cost.by_asked}),
        (lake.analyze(by=by), {row.name for row in lake.analyze(by=by).statement.by_owner}),
    ):
        made.save("answer.csv")
        assert {row["name"] for row in csv.DictReader(Path("answer.csv").read_text().splitlines())} == names


def test_files_without_a_lake_take_job_tables_too(cli, files):
    assert cli("import", "samples.csv", "--lake", "lake", "--jobs", "sacct.txt", "--tz", "UTC").code == 0
    kept = {by: dollars(audit(cli, by), by) for by in ("user", "job")}
    for by, expected in kept.items():
        ended = cli("audit", "samples.csv", "--jobs", "sacct.txt", "--tz", "UTC", "--price", "1", "--by", by, "--json")
        assert ended.code == 0, ended.err
        assert dollars(ended.json(), by) == expected
    ours = cli("analyze", "samples.csv", "--jobs", "sacct.txt", "--tz", "UTC", "--by", "user", "--json").json()
    theirs = cli("analyze", "--lake", "lake", "--by", "user", "--json").json()
    assert ours["by_user"] == theirs["by_user"]
    shown = cli("analyze", "samples.csv", "--jobs", "sacct.txt", "--tz", "UTC")
    assert "shared by jobs without GPU indices" in shown.err
    local = cli("analyze", "samples.csv", "--jobs", "sacct.txt")
    assert (local.code, "--tz" in local.err) == (2, True)


@pytest.mark.parametrize("command", [("analyze",), ("audit",), ("audit", "--", "true")])
def test_job_tables_of_a_lake_are_added_to_it(cli, files, command):
    name, *rest = command
    ended = cli(name, "--lake", "lake", "--jobs", "sacct.txt", *rest)
    assert ended.code == 2
    assert "gpuledger jobs sacct.txt --lake lake" in ended.err
