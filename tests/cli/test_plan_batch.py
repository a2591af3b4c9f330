"""Does `gpuledger plan batch` answer on the terminal, as JSON and as files, and refuse bad input with exit code 2?"""

from __future__ import annotations

import csv
import json
import re

import pytest

from gpuledger.cli.app import run
from gpuledger.errors import InputError

JOBS = """id,gpus,hours,earliest,deadline,types,preemptible
tune,8,6,2026-11-16T08:00Z,2026-11-17T08:00Z,,yes
eval,1,0.5,2026-11-16T09:00Z,2026-11-16T12:00Z,,no
train,16,10,2026-11-16T08:00Z,2026-11-18T00:00Z,h100-sxm,no
"""
POOLS = """name,gpu,gpus,usd_per_gpu_h,kind,hours,dated
own,h100-sxm,8,1.9,reserved,,2026-08-22
cloud,h100-sxm,32,3.9,on-demand,,2026-08-22
cloud,,,2.6,,20-06,
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "pools.csv").write_text(POOLS)
    return tmp_path


@pytest.fixture
def plan(files, capsys):
    """Run the command with these options; gives exit code, stdout and stderr."""

    def call(*more: str, jobs: str = "jobs.csv", pools: str | None = "pools.csv") -> tuple[int, str, str]:
        capsys.readouterr()
        given = ["plan", "batch", "--jobs", jobs, *(["--pools", pools] if pools else []), *more]
        return run(given), *capsys.readouterr()

    return call


def test_the_answer_comes_first(plan):
    code, out, _ = plan()
    assert code == 0
    assert out.startswith("3 jobs for $1,024, all 3 deadlines met. FIFO would cost")
    assert "Proven" in out
    assert max(map(len, out.splitlines())) <= 80


def test_json_has_every_placement(plan):
    code, out, _ = plan("--json")
    found = json.loads(out)
    assert code == 0
    assert (found["statement"], found["proof"], found["prices_dated"]) == ("batch", "optimal", "2026-08-22")
    assert {p["job"]: (p["pool"], p["start_utc"]) for p in found["placements"]} == {
        "eval": ("own", "2026-11-16T09:00:00Z"),
        "tune": ("own", "2026-11-16T10:00:00Z"),
        "train": ("cloud", "2026-11-16T20:00:00Z"),
    }
    assert [row["name"] for row in found["runners_up"]][:3] == ["FIFO", "best fit", "earliest deadline first"]


def test_files_are_a_page_with_charts_and_a_table(plan, files):
    assert plan("--out", "report")[0] == 0
    page = (files / "report" / "batch.html").read_text()
    assert "Compared with queues" in page
    assert {p.name for p in (files / "report" / "charts").glob("*.svg")} == {
        "batch_gantt.svg", "batch_load.svg", "batch_compared.svg",
    }  # fmt: skip
    assert plan("--out", "schedule.csv")[0] == 0
    rows = csv.DictReader((files / "schedule.csv").read_text().splitlines())
    assert {row["job"] for row in rows} == {"tune", "eval", "train"}


def test_market_prices_come_with_their_date_and_range(plan):
    code, out, _ = plan("--gpu", "h100-sxm", "--capacity", "64", "--spot", "--json", pools=None)
    found = json.loads(out)
    assert code == 0
    assert found["prices_dated"].startswith("20")
    low, middle, high = (float(found["usd"][k]) for k in ("low_usd", "middle_usd", "high_usd"))
    assert 0 < low <= middle <= high
    assert {p["terms"] for p in found["pools"]} == {"on-demand", "spot"}


@pytest.mark.parametrize(
    ("jobs", "more", "words"),
    [
        ("id,gpus,hours\na,64,1\n", (), "takes 64 GPUs"),
        ("id,gpus,hours\na,1,-1\n", (), "row 2, hours"),
        ("id,gpus,hours\na,1,1\na,1,1\n", (), "more than once"),
        ("id,gpus,hours,types\na,1,1,h1000\n", (), "no GPU type is called 'h1000'"),
        ("id,gpus,hours,deadline\na,1,1,2020-01-01\n", (), "already past"),
        ("id,gpus,hours,earliest,deadline\na,32,4,2026-11-16,2026-11-16T06:00\nb,32,4,2026-11-16,2026-11-16T06:00", (),
         "--allow-late"),
        (JOBS, ("--step", "90s"), "step is 90s"),
        (JOBS, ("--seconds", "nan"), "seconds is nan"),
        (JOBS, ("--gpu", "h100-sxm"), "either --pools or --gpu"),
        (JOBS, ("--start", "soon"), "'soon' is not a time"),
        (JOBS, ("--tz", "Mars/Base"), "no time zone is called"),
        (JOBS, ("--spot-overhead-pct", "-5"), "--spot-overhead-pct is -5"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_next_step(plan, files, jobs, more, words):
    (files / "jobs.csv").write_text(jobs)
    code, out, err = plan(*more)
    assert (code, out) == (2, "")
    assert words in err
    assert "next: " in err


def test_python_gives_the_same_plan(plan, files):
    import gpuledger.plan

    answer = gpuledger.plan.batch(jobs="jobs.csv", pools="pools.csv")
    found = json.loads(plan("--json")[1])
    found.pop("files", None)
    assert answer.to_dict() == found
    assert "batch_gantt" in answer.charts
    assert len(answer.table("placements")) == 3


def test_python_takes_lists_of_dictionaries(plan, files):
    import gpuledger.plan

    jobs = list(csv.DictReader(JOBS.splitlines()))
    pools = list(csv.DictReader(POOLS.splitlines()))
    listed, read = (
        gpuledger.plan.batch(jobs=j, pools=p).to_dict() for j, p in ((jobs, pools), ("jobs.csv", "pools.csv"))
    )
    assert listed["placements"] == read["placements"]
    with pytest.raises(InputError, match="jobs is 3"):
        gpuledger.plan.batch(jobs=3)


def test_python_names_parameters_and_the_command_line_options(plan, files):
    import gpuledger.plan

    with pytest.raises(InputError) as caught:
        gpuledger.plan.batch(jobs="jobs.csv")
    assert caught.value.hint == "pools=FILE, or gpu=h100-sxm with capacity=64"
    assert "next: --pools FILE, or --gpu h100-sxm with --capacity 64" in plan(pools=None)[2]
    (files / "jobs.csv").write_text("id,gpus,hours,deadline\na,32,4,6h\nb,32,4,6h\n")
    err = " ".join(plan()[2].split())
    assert "or give --allow-late for the least late plan" in err


def test_what_is_unusual_is_in_the_short_answer(plan, files):
    (files / "jobs.csv").write_text("id,gpus,hours,earliest,deadline\nx,1,2,2020-01-01T08:00Z,2020-01-01T18:00Z\n")
    (files / "pools.csv").write_text("name,gpu,gpus,price\na,h100-sxm,8,25\n")
    out = " ".join(plan("--step", "1m")[1].split())
    assert "The deadlines lie in the past: planned as a replay from 2020-01-01 08:00 UTC." in out
    assert "Column price of the pools was read as dollars per GPU-hour" in out
    assert "steps of 1 minute " in out


def test_the_market_price_and_its_range_are_in_the_short_answer(plan):
    out = plan("--gpu", "h100-sxm", "--capacity", "64", pools=None)[1]
    assert "$/GPU-h  " in out
    assert re.match(r"3 jobs for \$[\d,.]+ \(\$[\d,.]+ to \$[\d,.]+\), all 3 deadlines met", " ".join(out.split()))
