"""Does audit price, judge, recommend and pass commands through, and refuse what it cannot use?"""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from cost.fleets import POWER, UTIL, lake_of, mig, samples
from gpuledger.advice.build import audit_statement
from gpuledger.cli.auditing import FailOn
from gpuledger.cli.price_options import price_of
from gpuledger.cost.statement import BUCKETS
from gpuledger.devices.replay.clock import QuickClock
from gpuledger.errors import InputError, UnknownName
from gpuledger.units import Unknown

ROOT = Path(__file__).parents[2]
REPLAY = f"replay:{ROOT / 'tests' / 'data' / 'h200_replay.csv.gz'}"


@pytest.fixture
def lake(cli, fleet_lake):
    """Three GPUs, 2026-01-20 and 21, a sample each ten minutes."""
    shutil.copytree(fleet_lake, "lake")
    return "lake"


def audit(cli, *args):
    ended = cli("audit", "--lake", "lake", "--json", *args)
    assert ended.code == 0, ended.err
    return ended.json()


@pytest.fixture
def inventory(cli, lake):
    """A row for each GPU, paid for the two days."""
    said = audit(cli, "--price", "2")
    lines = ["device,from,to,instance,region,purchase_option,usd_per_h"]
    lines += [f"{g['gpu_uuid']},2026-01-20,2026-01-22,,,owned,1.25" for g in said["by_gpu"]]
    Path("inventory.csv").write_text("\n".join(lines) + "\n")
    return "inventory.csv"


def test_the_whole_audit_as_json(cli, lake):
    said = audit(cli, "--price", "2.50")
    assert sum(said["phases"].values()) == pytest.approx(100)
    buckets = {name: Decimal(text) for name, text in said["buckets"].items()}
    assert sum(buckets.values()) == Decimal(said["paid_usd"])
    hourly, monthly = Decimal(said["hourly_usd"]), Decimal(said["monthly_usd"])
    assert monthly == round(hourly * 24 * 30, 2)
    assert set(said["savings"]) >= {"naive_pct", "combined_pct", "cap_pct", "with_rate_pct"}
    assert said["savings"]["combined_pct"] <= said["savings"]["cap_pct"] <= 100
    assert sum(said["bucket_pct"].values()) == pytest.approx(100)
    share = said["bucket_pct"]
    assert set(share) == set(BUCKETS)
    # The sample fleet does not record its vector pipes: part of the busy time is unrated, which is not waste.
    assert share["unrated"] > 5
    assert said["waste_pct"] == pytest.approx(100 - share["productive"] - share["unrated"] - share["unobserved"])
    assert f"{share['unrated']:.0f} % unrated" in said["headline"][0]
    assert said["unrated_note"].startswith(f"{share['unrated']:.0f} % of the bill ")
    assert "DCGM_FI_PROF_PIPE_FP32_ACTIVE" in said["unrated_note"]
    assert len(said["headline"]) == 2
    assert said["files"] == {}


def test_the_screen_begins_with_the_money_and_the_first_thing_to_do(cli, lake):
    said = audit(cli, "--price", "2.50")
    short = cli("audit", "--lake", "lake", "--price", "2.50").out
    assert len(short.splitlines()) <= 32, "the short answer is one screen"
    out = cli("audit", "--lake", "lake", "--price", "2.50", "--full").out
    words = " ".join(out.split())
    first, second = (" ".join(line.split()) for line in said["headline"])
    assert words.startswith(first)
    assert " ".join(short.split()).startswith(first)
    assert words.index(second) == len(first) + 1
    for title in ("The bill by bucket", "Observed time by utilization", "What this rate of", "Naive sum", "Prices"):
        assert title in out
    for r in said["recommendations"][:5]:
        assert r["title"] in words
        for line in r["change"]["text"].splitlines():
            assert line in out, "a snippet must survive being copied"
    assert words.index(" ".join(said["unrated_note"].split())) == len(first) + len(second) + 2
    bands = [line for line in out.splitlines() if line.startswith(("Near zero ", "Low ", "High ", "Very high "))]
    assert "productive" not in " ".join(bands)
    written = [float(line.split("%")[0].split()[-1]) for line in bands if "%" in line]
    assert written == pytest.approx(list(said["phases"].values()), abs=0.1)
    (record,) = (r for r in said["recommendations"] if r["id"] == "record-pipes")
    assert record["title"] in words
    assert record["monthly_usd"] is None


def test_the_table_on_the_screen_adds_up(cli, lake):
    out = cli("audit", "--lake", "lake", "--price", "2.50").out
    table = out[out.index("The bill by bucket") : out.index("Do first")]
    amounts = [Decimal(w.replace("$", "").replace(",", "")) for w in table.split() if w.startswith("$")]
    assert 2 < len(amounts) <= len(BUCKETS) + 1
    assert sum(amounts[:-1]) == amounts[-1]
    shares = [Decimal(w) for w, unit in itertools.pairwise(table.split()) if unit == "%"]
    assert sum(shares[:-1]) == shares[-1] == 100


@pytest.mark.parametrize("width", [80, 100])
def test_every_gpu_keeps_its_name_and_every_bucket_that_holds_money(cli, fleet_csv, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    head, *lines = fleet_csv.read_text().splitlines()
    uuid, model = head.split(",").index("UUID"), head.split(",").index("MODELNAME")
    names = sorted({line.split(",")[uuid] for line in lines})
    rows = [line.split(",") for line in lines]
    for row in rows:
        row[model] = "Some Card 9000" if row[uuid] == names[0] else row[model]
    Path("fleet.csv").write_text("\n".join([head, *(",".join(row) for row in rows)]) + "\n")
    assert cli("import", "fleet.csv", "--lake", "lake").code == 0
    stock = ["device,from,to,instance,region,purchase_option,usd_per_h"]
    stock += [f"{name},2026-01-20,2026-01-21,,,on_demand,2" for name in names[1:]]
    Path("inventory.csv").write_text("\n".join(stock) + "\n")
    out = cli("audit", "--lake", "lake", "--inventory", "inventory.csv", "--until", "2026-01-21", "--full").out
    assert "for 2 of 3 GPUs, the price of 1 unknown" in " ".join(out.split())
    table = out[out.rindex("Every GPU") : out.index("What each number means")]
    for name in names:
        assert name.removeprefix("GPU-")[:8] in table
    assert "unknown" in table
    assert "same reason" not in table
    # Nearly all of the day has no sample: a table without that column would not add up.
    assert "Unobserved" in table
    total = next(line for line in table.splitlines() if line.startswith("Paid"))
    paid, *parts = (Decimal(w.replace("$", "").replace(",", "")) for w in total.split() if w.startswith("$"))
    assert sum(parts) == paid


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_the_terminal(cli, lake, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    ended = cli("audit", "--lake", "lake", "--price", "2.50")
    snippets = {line.strip() for r in audit(cli)["recommendations"] for line in r["change"]["text"].splitlines()}
    lines = [line for line in ended.out.splitlines() if line.strip() not in snippets]
    assert max(map(len, lines[:-1])) <= width
    assert not any("…" in line for line in lines), "a figure was cut off"


def test_inventory_price_and_market(cli, lake, inventory):
    said = audit(cli, "--inventory", inventory)
    assert {p["basis"] for p in said["prices"]} == {"inventory"}
    assert Decimal(said["paid_usd"]) == Decimal("1.25") * 48 * 3
    given = audit(cli, "--price", "H100-SXM5-80GB=3", "--price", "A100-SXM4-40GB=2", "--price", "A10G=1")
    assert {p["basis"] for p in given["prices"]} == {"given"}
    market = audit(cli)
    assert {p["basis"] for p in market["prices"]} == {"market"}
    assert any("market median" in a for a in market["assumptions"])
    assert all(p["newest"] for p in market["prices"])


def test_teams_window_filters_and_previous(cli, lake, tmp_path):
    rows = audit(cli, "--price", "2")["by_namespace"]
    names = [row["name"] for row in rows]
    (tmp_path / "teams.toml").write_text(f'[namespaces.{names[0]}]\nteam = "A team"\n')
    teams = audit(cli, "--price", "2", "--teams", "teams.toml")["by_team"]
    assert "A team" in {t["name"] for t in teams}
    alone = audit(cli, "--price", "2", "--namespace", names[0])
    assert Decimal(alone["paid_usd"]) == Decimal(rows[0]["paid_usd"])
    day = audit(cli, "--price", "2", "--since", "2026-01-21", "--previous")
    assert day["previous"]["total"]["before_usd"]
    assert (
        "Against the last period"
        in cli("audit", "--lake", "lake", "--price", "2", "--since", "2026-01-21", "--previous", "--full").out
    )
    assert audit(cli, "--price", "2", "--last", "6h")["wall_h"] < 7


def test_files(cli, lake):
    said = audit(cli, "--price", "2", "--out", "report")
    assert {"audit.html", "audit.md", "audit.json", "cost_by_gpu.csv", "recommendations.csv"} <= set(said["files"])
    kept = json.loads(Path("report/audit.json").read_text())
    assert {k: v for k, v in said.items() if k not in {"files", "failed"}} == kept
    rows = list(csv.DictReader(Path("report/cost_by_gpu.csv").read_text().splitlines()))
    assert sum(Decimal(r["paid_usd"]) for r in rows) == Decimal(said["paid_usd"])


def test_a_calibration_is_used(cli, lake):
    before = audit(cli, "--price", "2")
    uuid = before["by_gpu"][0]["gpu_uuid"]
    spread = {"low": 1e12, "median": 1e12, "high": 1e12, "repeats": 10}
    model = before["by_gpu"][0]["gpu_model"]
    board = {"gpu_uuid": uuid, "gpu_model": model, "as_of": "2026-03-01", "seconds": 5, "bandwidth_bytes_per_s": spread}
    Path("lake/calibration").mkdir()
    Path("lake/calibration/one.json").write_text(json.dumps(board))
    after = audit(cli, "--price", "2")
    assert Decimal(after["buckets"]["productive"]) > Decimal(before["buckets"]["productive"])


def test_fail_on(cli, lake):
    said = audit(cli, "--price", "2", "--fail-on", "waste>99.9")
    assert said["failed"] is None
    ended = cli("audit", "--lake", "lake", "--price", "2", "--json", "--fail-on", "waste>1")
    assert ended.code == 1
    assert "above 1 %" in ended.json()["failed"]
    assert "failed: waste is" in ended.err


@pytest.mark.parametrize("bucket", BUCKETS)
def test_fail_on_takes_every_bucket(cli, lake, bucket):
    share = audit(cli, "--price", "2")["bucket_pct"][bucket]
    args = ("audit", "--lake", "lake", "--price", "2", "-q", "--fail-on")
    assert cli(*args, f"{bucket}>{share + 1:.0f}").code == 0
    assert cli(*args, f"{bucket}>{share / 2:.6f}").code == (1 if share else 0)


def test_fail_on_reads_shares_of_the_bill(cli, lake):
    assert FailOn.parse(" Waste > 40 % ") == FailOn("waste", 40.0)
    assert FailOn.parse("idle_held>2.5") == FailOn("idle_held", 2.5)
    with pytest.raises(UnknownName, match="did you mean waste"):
        FailOn.parse("wate>40")
    for text in ("waste", "waste<40", "waste>", "waste>x"):
        with pytest.raises(InputError, match="not NAME>PERCENT"):
            FailOn.parse(text)

    class Cost:
        dollars = Unknown("no price")

    assert FailOn("waste", 99).verdict(Cost()) == "waste is not known: no price"


def test_prices_as_people_write_them():
    assert price_of([]) is None
    assert price_of(["$2.50"]) == Decimal("2.50")
    assert price_of(["A10G=1", "H100 = 3.25"]) == {"A10G": 1, "H100": Decimal("3.25")}
    for given in (["2", "3"], ["2", "A10G=1"], ["A10G=1", "A10G=2"], ["two"], ["-1"], ["A10G=nan"], ["A10G="]):
        with pytest.raises(InputError):
            price_of(given)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--price", "H100Z=3"], "did you mean H"),
        (["--price", "0"], "above 0"),
        (["--price", "2", "--instance", "p5.48xlarge"], "one of them"),
        (["--instance", "p5.4xlarge9"], "did you mean p5.4xlarge"),
        (["--region", "us-east-1"], "needs an instance"),
        (["--inventory", "missing.csv"], "missing.csv"),
        (["--teams", "missing.toml"], "missing.toml"),
        (["--limits", "missing.toml"], "missing.toml"),
        (["--usd-per-kwh", "cheap"], "plain number"),
        (["--fail-on", "everything"], "waste>40"),
        (["--namespace", "nobody"], "ml-"),
        (["--since", "2030-01-01"], "2026-01-20"),
    ],
)
def test_bad_wishes(cli, lake, args, words):
    ended = cli("audit", "--lake", "lake", *args)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert "next: " in ended.err


def test_no_lake_says_what_to_do(cli):
    ended = cli("audit")
    assert ended.code == 2
    assert "gpuledger demo" in ended.err


def test_two_samples_are_said_to_be_few(cli, fleet_csv):
    lines = fleet_csv.read_text().splitlines()
    uuid = lines[0].split(",").index("UUID")
    own = [line for line in lines[1:] if line.split(",")[uuid] == lines[1].split(",")[uuid]]
    Path("two.csv").write_text("\n".join([lines[0], *own[:2]]) + "\n")
    assert cli("import", "two.csv", "--lake", "lake").code == 0
    ended = cli("audit", "--lake", "lake", "--price", "2")
    assert ended.code == 0, ended.err
    assert "Only 2 samples in this window: too few to judge." in " ".join(ended.out.split())
    said = audit(cli, "--price", "2")
    assert said["samples"] == 2
    assert any("only 2 samples" in a for a in said["assumptions"])


# Around a command: a Python of its own, as signals and terminals are the process's.


def around(tmp_path, *args, command, env=None, tool=("-m", "gpuledger")):
    call = [sys.executable, *tool, "audit", "--lake", "lake", *args, "--", *command]
    return subprocess.run(
        call, cwd=tmp_path, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
    )


# The whole tool on a clock of its own: exactly four seconds are recorded, and then a file tells the command to end.
FOUR_SECONDS = """
import pathlib, sys, threading, time
from gpuledger.cli.app import run
from gpuledger.recording import record
from gpuledger.devices.replay.clock import QuickClock
clock = QuickClock(20.0, start_s=time.time() - 60, lasts_s=3.95)
record.Clock = lambda: clock
def tell():
    clock.until(3.95)
    pathlib.Path("recorded").touch()
threading.Thread(target=tell, daemon=True).start()
sys.exit(run())
"""
UNTIL_RECORDED = "while [ ! -e recorded ]; do sleep 0.05; done"


def test_a_command_is_recorded_audited_and_passed_through(tmp_path):
    command = ["sh", "-c", f"echo from the job; echo to its stderr >&2; {UNTIL_RECORDED}; exit 3"]
    wanted = ("--device", REPLAY, "--price", "4", "--label", "namespace=me")
    done = around(tmp_path, *wanted, command=command, tool=("-c", FOUR_SECONDS))
    assert done.returncode == 3
    assert done.stdout == "from the job\n", "stdout is the command's alone"
    assert "to its stderr" in done.stderr
    assert "The bill by bucket" in done.stderr
    assert done.stderr.index("to its stderr") < done.stderr.index(" s for 1 GPU ($4.00 per hour)")
    assert "per month" not in done.stderr
    again = subprocess.run(
        [sys.executable, "-m", "gpuledger", "audit", "--lake", "lake", "--price", "4", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(again.stdout)["by_namespace"][0]["name"] == "me"


def test_with_json_the_answer_follows_the_commands_output(tmp_path):
    command = ["sh", "-c", f"echo from the job; {UNTIL_RECORDED}"]
    wanted = ("--device", REPLAY, "--price", "4", "--json", "--out", "report")
    done = around(tmp_path, *wanted, command=command, tool=("-c", FOUR_SECONDS))
    assert done.returncode == 0
    head, _, rest = done.stdout.partition("\n")
    assert head == "from the job"
    said = json.loads(rest)
    assert (said["exit_code"], said["recorded"], said["gpus"]) == (0, True, 1)
    assert 20 <= said["samples_recorded"] <= 40
    assert sum(map(Decimal, said["buckets"].values())) == Decimal(said["paid_usd"])
    assert (tmp_path / "report" / "audit.html").is_file()


def test_without_a_driver_the_command_still_runs_and_it_is_said(tmp_path):
    done = around(tmp_path, "--json", command=["sh", "-c", "echo ran; exit 5"], env={"LD_LIBRARY_PATH": "/nowhere"})
    if '"recorded": true' in done.stdout:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 5
    assert done.stdout.startswith("ran\n")
    said = json.loads(done.stdout.partition("\n")[2])
    assert (said["recorded"], said["exit_code"]) == (False, 5)
    assert said["problem"]
    assert "NOT RECORDING" in done.stderr


def test_commands_that_cannot_run(tmp_path):
    assert around(tmp_path, command=["no-such-command"]).returncode == 127
    script = tmp_path / "not-executable"
    script.write_text("#!/bin/sh\n")
    script.chmod(stat.S_IRUSR)
    assert around(tmp_path, command=[str(script)]).returncode == 126


@pytest.mark.parametrize(
    "args",
    [
        ["--price", "H1000=3"],
        ["--inventory", "missing.csv"],
        ["--since", "2026-01-20"],
        ["--namespace", "me"],
        ["--previous"],
        ["--fail-on", "waste>40"],
        ["--label", "nonsense"],
    ],
)
def test_bad_wishes_stop_before_the_command_starts(cli, tmp_path, args):
    ended = cli("audit", "--lake", "lake", *args, "--", "touch", "ran")
    assert ended.code == 125
    assert "the command was not started" in ended.err
    assert not (tmp_path / "ran").exists()


def test_a_run_too_short_to_audit_says_so(cli, monkeypatch):
    monkeypatch.setattr("gpuledger.recording.record.Clock", lambda: QuickClock(1.0, lasts_s=0.05))
    done = cli("audit", "--lake", "lake", "--device", REPLAY, "--json", "--", "true")
    assert done.code == 0
    problem = done.json()["problem"]
    assert "the run left 1 sample in" in problem
    assert "too short to audit" in problem


def seen_alternating(dcgm_csv, gpus, hours):
    """One GPU after the other, each for some hours; `few.csv`."""
    head, *rows = dcgm_csv("f.csv", gpus=gpus, minutes=60 * hours * gpus, step_min=15).read_text().splitlines()
    start = dt.datetime.fromisoformat(rows[0][:19])

    def hour(row):
        return (dt.datetime.fromisoformat(row[:19]) - start) / dt.timedelta(hours=1)

    kept = [r for r in rows if hour(r) // hours == int(r.split(",")[1].removeprefix("GPU-"))]
    Path("few.csv").write_text("\n".join([head, *kept]) + "\n", encoding="utf-8")


def test_gpus_seen_for_a_part_of_the_window_are_projected_by_their_own_hours(cli, dcgm_csv):
    """3 GPUs, 26 hours each, one after the other: the projection says what it assumes, at the rate while seen."""
    seen_alternating(dcgm_csv, 3, 26)
    assert cli("import", "few.csv").code == 0
    told = cli("audit", "--price", "1", "--json").json()
    assert told["monthly_usd"] == "2160"
    basis = told["projection_basis"]
    assert basis["sparse"] is True
    assert (basis["gpus"], basis["usd_per_gpu_h"]) == (3, "1")
    assert Decimal(basis["seen_monthly_usd"]) == 720
    assert "3 x 720 h" in told["headline"][0]
    assert any("no inventory says when they are paid for" in words for words in told["assumptions"])
    # What could be saved is a share of the same month.
    saved = Decimal(told["savings"]["combined_month"]["middle_usd"])
    assert float(saved) == pytest.approx(2160 * told["savings"]["combined_pct"] / 100, rel=1e-3)


def test_gpus_seen_for_minutes_have_no_month(cli, dcgm_csv):
    """3 GPUs, 2 hours each, in a lake of 30 hours of a fourth: three are named, one has a month."""
    seen_alternating(dcgm_csv, 3, 2)
    long = dcgm_csv("long.csv", gpus=1, minutes=30 * 60, uuid="GPU-long")
    assert cli("import", "few.csv", long).code == 0
    told = cli("audit", "--price", "1", "--json").json()
    assert told["monthly_usd"] == "720"
    assert "$720.00 per month for 1 of 4 GPUs" in told["headline"][0]
    assert "3 GPUs were seen for less than 24 h and are left out of the month" in told["headline"][0]
    assert len(told["projection_basis"]["left_out"]) == 3


def test_the_next_quarter_follows_the_newest_sample_in_the_command_and_in_python(cli, dcgm_csv):
    assert cli("import", dcgm_csv("f.csv", minutes=24 * 60)).code == 0
    told = cli("audit", "--price", "1", "--json").json()
    assert told["quarter"]["name"] == "2026-Q2"
    assert told["quarter"]["as_of"] == "2026-01-21"
    made = audit_statement("gpuledger-data", price=1)
    assert not isinstance(made.cost.projection, Unknown)
    assert made.cost.projection.quarter.name == told["quarter"]["name"]
    assert made.cost.projection.quarter.usd == Decimal(told["quarter"]["usd"])
    assert "Next quarter after 2026-01-21: 2026-Q2" in cli("audit", "--price", "1", "--full").out


def test_a_gpu_of_several_owners_is_counted_once(cli, dcgm_csv):
    """Two GPUs, each used by three namespaces in turn: no recommendation is for more than two GPUs."""
    lines = dcgm_csv("f.csv", minutes=24 * 60, step_min=5, util=20, engine=0.2).read_text(encoding="utf-8").splitlines()
    shared = [lines[0], *(r.replace(",serving,", f",team-{int(r[11:13]) // 8},") for r in lines[1:])]
    Path("shared.csv").write_text("\n".join(shared) + "\n", encoding="utf-8")
    assert cli("import", "shared.csv").code == 0
    told = cli("audit", "--price", "1", "--json").json()
    wide = [r for r in told["recommendations"] if len(r["targets"]) >= 3]
    assert wide
    assert {r["gpus"] for r in wide} == {2}
    assert sum(t["gpus"] for t in wide[0]["targets"]) == 6


def test_a_price_beside_an_inventory_says_what_it_does(cli, lake, inventory):
    alone = audit(cli, "--inventory", inventory)
    assert not any("--price" in words for words in alone["assumptions"])
    beside = audit(cli, "--inventory", inventory, "--price", "9")
    assert beside["paid_usd"] == alone["paid_usd"]
    assert (
        "--price has no effect: every GPU is priced by the inventory, whose prices come first." in beside["assumptions"]
    )
    lines = Path(inventory).read_text().splitlines()
    Path("two.csv").write_text("\n".join(lines[:-1]) + "\n")
    some = audit(cli, "--inventory", "two.csv", "--price", "9")
    assert "--price prices only the 1 GPU that the inventory does not price." in some["assumptions"]
    assert "--price has no effect" in " ".join(
        cli("audit", "--lake", lake, "--inventory", inventory, "--price", "9", "--full").out.split()
    )


@pytest.fixture
def troubled(cli, tmp_path):
    """Two hours of A100s: one sick and hot, one at a lowered power limit, one whose vector pipes are not recorded."""
    heads = (
        "timestamp", "UUID", "modelName", "Hostname", "namespace", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_XID_ERRORS",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
        "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE",
    )  # fmt: skip
    lines = [",".join(heads)]
    for minute in range(121):
        at = f"2026-01-20T{minute // 60:02d}:{minute % 60:02d}:00Z,{{}},NVIDIA A100-SXM4-40GB,node-1,{{}},95"
        heat, xid = (0x40, 79) if minute >= 60 else (0, 0)
        lines += [
            f"{at.format('GPU-sick', 'lab')},300,400,{heat},{xid},0.95,0.3,0.3,0.2,20000,20000",
            f"{at.format('GPU-capped', 'capped')},249,250,4,0,0.95,0.3,0.3,0.2,20000,20000",
            f"{at.format('GPU-unseen', 'unseen')},300,400,0,0,0.95,0.3,,0.2,20000,20000",
        ]
    (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
    assert cli("import", "f.csv", "--lake", "lake").code == 0


def test_a_sick_gpu_a_lowered_limit_and_missing_pipes_are_found(cli, troubled):
    said = audit(cli, "--price", "2", "--usd-per-kwh", "0.12")
    found = {r["id"]: r for r in said["recommendations"]}
    for name, owner in (("health", "lab"), ("lift-power-limit", "capped"), ("record-pipes", "unseen")):
        assert [t["owner"] for t in found[name]["targets"]] == [owner], name
        assert found[name]["monthly_usd"] is None
        assert found[name]["gpus"] == 1
    assert "1 XID error, clocks held down by heat for up to 50 % of a GPU's time" in found["health"]["why"]
    assert "at a power limit of 250 W for 100 % of the working time" in found["lift-power-limit"]["why"]
    assert "DCGM_FI_PROF_PIPE_FP32_ACTIVE" in found["record-pipes"]["why"]
    assert "capped" not in {t["owner"] for r in said["recommendations"] if r["id"] == "power-cap" for t in r["targets"]}
    ended = cli("analyze", "--lake", "lake", "--out", "out")
    assert ended.code == 0, ended.err
    assert "1 XID error" in ended.out
    assert "Check node-1 (GPU-sick): 1 XID error" in " ".join(ended.out.split())
    (row,) = csv.DictReader(Path("out/gpu_health.csv").read_text().splitlines())
    assert (row["gpu_uuid"], row["host"], row["xid_events"]) == ("GPU-sick", "node-1", "1")
    assert float(row["thermal_pct"]) == pytest.approx(50, abs=1)


def test_single_samples_have_no_paid_time_but_an_hourly_price(cli, dcgm_csv):
    assert cli("import", dcgm_csv("one.csv", gpus=3, minutes=0), "--lake", "lake").code == 0
    assert cli("analyze", "--lake", "lake", "--json").json()["statement"] == "snapshot"
    for scope in ((), ("--namespace", "serving")):
        said = cli("audit", "--lake", "lake", "--price", "1", *scope, "--json").json()
        assert (said["statement"], said["gpus"], said["usd_per_h"]) == ("snapshot", 3, "3")
        assert not {"paid_usd", "savings", "recommendations"} & set(said)
    ended = cli("audit", "--lake", "lake", "--price", "1", "--fail-on", "waste>40")
    assert ended.code == 1
    assert "waste is not known: each GPU has a single sample" in ended.err
    ended = cli("audit", "--lake", "lake", "--price", "1", "--namespace", "nobody")
    assert "no data matches: namespaces nobody" in ended.err
    rows = [f"GPU-{n},2026-01-20,2026-01-21,,,owned,1" for n in range(3)]
    Path("paid.csv").write_text("\n".join(["device,from,to,instance,region,purchase_option,usd_per_h", *rows]) + "\n")
    window = ("--since", "2026-01-20", "--until", "2026-01-21")
    assert Decimal(audit(cli, "--inventory", "paid.csv", *window)["paid_usd"]) == 72


def test_every_table_counts_a_sliced_gpu_once_and_says_so(cli, tmp_path):
    """Three slices of one GPU for one job, and a whole GPU for another: two GPUs, whatever they are grouped by."""
    use = {UTIL: 90, POWER: 300, "namespace": "ml"}
    sliced = [r for s in "123" for r in samples(range(60), "GPU-m", **mig(s, "2g.20gb"), **use, workload="train")]
    lake = lake_of(tmp_path, sliced + samples(range(60), "GPU-w", **use, workload="serve")).root
    for by in ("job", "namespace", "pod", "team"):
        made = cli("audit", "--lake", lake, "--price", "2", "--by", by, "--json").json()
        rows = {row["name"]: row["gpus"] for row in made[f"by_{by}"]}
        assert made["gpus"] == 2
        assert max(rows.values()) <= 2, rows
    assert {row["name"]: row["gpus"] for row in made["by_owner"]}["ml/train"] == 1
    for command in ("audit", "analyze"):
        words = cli(command, "--lake", lake, "--by", "job").out
        assert "By job; a GPU cut into MIG slices counts once" in words


def test_words_within_a_line_are_small(cli, tmp_path):
    """What a step is worth comes after its title, also where that is unknown."""
    lake = lake_of(tmp_path, samples(range(1500), "GPU-x", "Model X", **{UTIL: 0, POWER: 60, "namespace": "ml"})).root
    words = " ".join(cli("audit", "--lake", lake).out.split())
    assert ": dollars unknown: " in words
    assert ": Dollars" not in words
    assert ": No saving" not in words
    assert "Dollars unknown: " in cli("audit", "--lake", lake, "--full").out
