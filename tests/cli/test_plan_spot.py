"""Does `gpuledger plan spot` answer on the command line, as JSON and as a page, and refuse bad input in words?"""

from __future__ import annotations

import json

import pytest

JOB = ("plan", "spot", "--gpu", "t4", "--hours", "8", "--deadline", "16h", "--region", "us-east-1", "--draws", "10")


def test_the_answer_comes_first_with_the_date_of_its_prices(cli):
    ended = cli(*JOB)
    words = " ".join(ended.out.split())
    assert ended.code == 0
    assert words.startswith("Run 1 x T4 on spot, ")
    assert "Prices of 2026-08-22." in words
    assert "Checkpoint every" in words


def test_json_has_every_part_of_a_plan(cli):
    data = cli(*JOB, "--json").json()
    assert data["chosen"]["on_time_pct"] == 100
    assert data["prices_dated"] == "2026-08-22"
    assert {"runners_up", "refused", "assumptions", "options", "pools", "intervals"} <= set(data)
    assert float(data["chosen"]["cost"]["low_usd"]) <= float(data["chosen"]["cost"]["high_usd"])


def test_a_page_with_the_back_test(cli, tmp_path):
    ended = cli(*JOB, "--backtest", "--out", tmp_path / "out")
    assert ended.code == 0
    assert "any, fallback" in ended.out
    page = (tmp_path / "out" / "spot.html").read_text(encoding="utf-8")
    assert "What each rule would have cost" in page
    assert json.loads((tmp_path / "out" / "spot.json").read_text())["backtest"]["starts"] > 20


def test_a_history_of_the_user(cli, tmp_path):
    rows = "\n".join(f"2026-10-{day:02d}T00:00:00Z,g5.xlarge,us-east-1a,0.{40 + day}" for day in range(1, 29))
    (tmp_path / "mine.csv").write_text(f"time,type,zone,price\n{rows}\n", encoding="utf-8")
    data = cli("plan", "spot", "--gpu", "a10g", "--hours", "4", "--history", "mine.csv", "--json").json()
    assert data["prices_dated"] == "2026-10-28"
    assert data["pools"][0]["zone"] == "us-east-1a"
    assert "mine.csv" in data["price_source"]


def _prices(folder, year, days=28, instance="g5.xlarge"):
    rows = "\n".join(f"{year}-01-{day:02d}T00:00:00Z,{instance},us-east-1a,0.4" for day in range(1, days + 1))
    (folder / "mine.csv").write_text(f"time,type,zone,price\n{rows}\n", encoding="utf-8")
    return ("plan", "spot", "--gpu", "a10g", "--hours", "4", "--history", "mine.csv", "--draws", "5")


def test_the_job_starts_now_and_not_at_the_last_price(cli, tmp_path):
    asked = _prices(tmp_path, 2020)
    past = cli(*asked, "--deadline", "2020-06-01")
    assert past.code == 2
    assert "is past: the plan starts at" in past.err
    assert "--as-of 2020-01-28" in past.err
    data = cli(*asked, "--deadline", "10h", "--json").json()
    assert data["prices_dated"] == "2020-01-28"
    assert data["start_ms"] > 1_700_000_000_000
    words = " ".join(cli(*asked, "--deadline", "10h").out.split())
    assert f"prices of 2020-01-28, {data['price_age_days']} days old" in words


def test_a_replay_of_the_past_starts_then(cli, tmp_path):
    data = cli(*_prices(tmp_path, 2020), "--as-of", "2020-01-28", "--deadline", "2020-01-29", "--json").json()
    assert data["job"]["deadline_h"] == 24
    assert data["start_ms"] == 1_580_169_600_000


def test_prices_of_the_future_are_refused(cli, tmp_path):
    ended = cli(*_prices(tmp_path, 2131))
    assert ended.code == 2
    assert "lie in the future" in ended.err
    assert "--as-of 2131-01-28" in ended.err


def test_one_row_of_prices_is_planned_with_a_warning(cli, tmp_path):
    ended = cli(*_prices(tmp_path, 2020, days=1))
    assert ended.code == 0
    assert "spans no more than a day" in " ".join(ended.out.split())


def test_instance_types_that_nobody_knows_are_named(cli, tmp_path):
    ended = cli(*_prices(tmp_path, 2020, instance="gn7i-ünï"))
    assert ended.code == 2
    assert "gn7i-ünï" in ended.err


def test_a_zone_is_not_broken_into_pieces_at_80_columns(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli(*JOB, "--full").out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Prices of") and "all instances" in line)
    assert "g4dn.xlarge" in "\n".join(lines[start : start + 6])
    assert "us-east-1 use1-az" in "\n".join(lines[start : start + 6])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--deadline", "2020-01-01"), "is past"),
        (("--deadline", "4h"), "no GPU can do the job in time"),
        (("--region", "us-eest-1"), "us-east-1"),
        (("--hours", "nan"), "--hours nan"),
        (("--hours", "-3"), "--hours -3"),
        (("--gpus", "0"), "--gpus 0"),
        (("--gpus", "1000000"), "give --gpus 100000 or fewer"),
        (("--budget-usd", "0.01"), "raise the budget"),
        (("--restart-seconds", "inf"), "--restart-seconds"),
        (("--checkpoint-seconds", "0"), "--checkpoint-seconds 0"),
        (("--as-of", "2026-05-01"), "not observed"),
        (("--history", "none.csv"), "no such file"),
        (("--gpu", "mi300x"), "no spot price history"),
        (("--gpu", "t4:x"), "not a number of hours"),
        (("--on-demand-usd", "3"), "history of your own"),
    ],
)
def test_bad_input_is_refused_with_a_next_step(cli, options, words):
    base = dict(zip(JOB[2::2], JOB[3::2], strict=True)) | dict([options])
    ended = cli("plan", "spot", *(part for pair in base.items() for part in pair))
    assert ended.code == 2
    assert words in ended.err
    assert "next:" in ended.err
