"""Is a figure per month given only where a day or more was seen, on every face?"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import gpuledger
from gpuledger.advice.build import audit_statement
from gpuledger.cost.build import cost_report
from gpuledger.units import Unknown

DAY_MIN = 24 * 60
SHORT = "seen for 20 min only; a month needs 24 h or more"
IDLE = {
    "util": 0, "engine": 0.0, "tensor": 0.0, "fp32": 0.0, "dram": 0.0, "used": 4, "power": 55, "namespace": "batch",
}  # fmt: skip


@pytest.fixture
def short(cli, dcgm_csv):
    """Four GPUs, one of them idle, for 20 minutes: $5.33 at $4."""
    idle, busy = dcgm_csv("i.csv", gpus=1, minutes=19, uuid="GPU-idle", **IDLE), dcgm_csv("b.csv", gpus=3, minutes=19)
    assert cli("import", idle, busy).code == 0


def per_month(told: object, path: str = "") -> list[tuple[str, object]]:
    """Every figure of an answer that names a month, a quarter or a year, where it is filled."""
    if isinstance(told, dict):
        found = []
        for key, value in told.items():
            named = any(word in key for word in ("month", "yearly", "quarter"))
            if named and value is not None and not isinstance(value, dict | list):
                found.append((f"{path}.{key}", value))
            elif named and isinstance(value, dict):
                found += [(f"{path}.{key}.{k}", v) for k, v in value.items() if v is not None]
            else:
                found += per_month(value, f"{path}.{key}")
        return found
    return [one for item in told for one in per_month(item, f"{path}[]")] if isinstance(told, list) else []


@pytest.mark.parametrize(
    "command",
    [
        ("audit",),
        ("analyze",),
        ("ask", "give-back"),
        ("ask", "energy"),
        ("plan", "migrate", "--lake", "gpuledger-data"),
        ("plan", "migrate", "--lake", "gpuledger-data", "--to", "h200-sxm"),
    ],
    ids=" ".join,
)
def test_no_answer_of_twenty_minutes_has_a_month(cli, short, command):
    price = () if command == ("analyze",) else ("--price", "4")
    told = cli(*command, *price, "--json").json()
    assert per_month(told) == []
    if command[0] != "analyze" and command != ("ask", "energy"):
        assert SHORT in {n["why"] for n in told["not_known"]}
    for text in (cli(*command, *price).out, cli(*command, *price, "--full").out):
        assert "$" not in text.split("per month")[0][-30:] or "per month" not in text


def test_the_audit_of_twenty_minutes_speaks_of_these(cli, short):
    told = cli("audit", "--price", "4", "--json").json()
    money, first = told["headline"]
    assert money.startswith("$5.33 in 20 min for 4 GPUs ($16.00 per hour), ")
    assert "month" not in money + first
    assert float(told["hourly_usd"]) == pytest.approx(16)
    assert float(told["paid_usd"]) == pytest.approx(16 / 3)
    for key in ("monthly_usd", "yearly_usd", "quarter"):
        assert told[key] is None
    assert told["projection_basis"]["seen_monthly_usd"] is None
    # The shares of the savings stay, and the dollars next to them are those of the window.
    ours = [r for r in told["recommendations"] if r["lever"]]
    assert ours
    for r in ours:
        assert r["monthly_usd"] is None
        assert r["saving"]["middle_pct"] is not None
    saved = Decimal(told["paid_usd"]) * Decimal(str(told["savings"]["combined_pct"])) / 100
    assert f"about ${saved:,.2f} of it (" in money
    assert " in this window, likely $" in " ".join(cli("audit", "--price", "4").out.split())


def test_where_no_change_was_found_there_is_no_zero_per_month(cli, dcgm_csv):
    told = cli("audit", dcgm_csv("b.csv", gpus=1, minutes=19, **IDLE), "--price", "4", "--json").json()
    assert told["savings"]["combined_pct"] == 0
    assert (told["savings"]["combined_month"], told["savings"]["with_rate_month"]) == (None, None)


def test_the_file_alone_answers_alike(cli, dcgm_csv):
    two = dcgm_csv("two.csv", gpus=1, minutes=1, **IDLE)
    ended = cli("audit", two, "--price", "2")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("$0.0667 in 2 min for 1 GPU ($2.00 per hour)")


@pytest.mark.parametrize(("last_minute", "month"), [(DAY_MIN - 1, "1440"), (DAY_MIN - 2, None)])
def test_samples_of_a_whole_day_are_a_day(cli, dcgm_csv, last_minute, month):
    """Every minute from 00:00 to 23:59 stands for a minute: 24 h. One sample less is 23 h 59 min."""
    file = dcgm_csv("day.csv", gpus=1, minutes=last_minute)
    assert cli("audit", file, "--price", "2", "--json").json()["monthly_usd"] == month


@pytest.fixture
def one_long(cli, dcgm_csv):
    """One GPU idles for 60 h, nine are at work for an hour."""
    idle = dcgm_csv("i.csv", gpus=1, minutes=60 * 60, step_min=30, uuid="GPU-long", **IDLE)
    assert cli("import", idle, dcgm_csv("b.csv", gpus=9, minutes=60, step_min=5, uuid="GPU-brief")).code == 0


def test_giving_one_gpu_back_saves_at_most_what_it_costs(cli, one_long):
    """$3 x 720 h = $2,160, whatever the other GPUs of the lake do."""
    told = cli("audit", "--price", "3", "--json").json()
    assert told["monthly_usd"] == "2160"
    assert len(told["projection_basis"]["left_out"]) == 9
    for r in told["recommendations"]:
        for case in (r, *r["targets"]):
            if case["monthly_usd"] is not None:
                assert Decimal(case["monthly_usd"]["high_usd"]) <= 2160
    assert Decimal(told["savings"]["combined_month"]["high_usd"]) <= 2160
    back = cli("ask", "give-back", "--price", "3", "--json").json()
    (gpu,) = [row for row in back["give_back"] if row["gpu_uuid"].startswith("GPU-long")]
    assert (gpu["usd_per_month"], gpu["idle_usd_per_month"]) == ("2160", "2160")
    plan = cli("plan", "migrate", "--lake", "gpuledger-data", "--price", "3", "--json").json()
    assert Decimal(plan["month_now_usd"]) == 2160
    assert any("9 GPUs were seen for less than 24 h and are left out of the month" in a for a in plan["assumptions"])


def test_what_an_inventory_pays_has_a_month_however_briefly_it_was_seen(cli, one_long):
    rows = [f"GPU-brief-{n},3" for n in range(9)]
    Path("fleet.csv").write_text("\n".join(["device,usd_per_h", *rows]) + "\n", encoding="utf-8")
    told = cli("audit", "--price", "3", "--inventory", "fleet.csv", "--json").json()
    assert told["monthly_usd"] == str(10 * 3 * 720)
    assert told["projection_basis"]["left_out"] == []


def test_a_budget_compares_each_gpu_at_its_own_hours(cli, dcgm_csv):
    """One GPU for 60 h, one for 30: each is $1,440 per month at $2, whichever team has it."""
    long = dcgm_csv("a.csv", gpus=1, minutes=60 * 60 - 30, step_min=30, namespace="long")
    brief = dcgm_csv("b.csv", gpus=1, minutes=30 * 60 - 30, step_min=30, namespace="brief", uuid="GPU-b")
    assert cli("import", long, brief).code == 0
    Path("gpuledger.toml").write_text("[budgets]\nlong = 1000\nbrief = 2000\n", encoding="utf-8")
    told = cli("--settings", "gpuledger.toml", "audit", "--price", "2", "--json").json()
    assert {b["name"]: (b["monthly_usd"], b["over"]) for b in told["budgets"]} == {
        "long": ("1440", True), "brief": ("1440", False),
    }  # fmt: skip


def test_a_budget_has_no_month_in_twenty_minutes(cli, short):
    Path("gpuledger.toml").write_text("[budgets]\nserving = 1\n", encoding="utf-8")
    (budget,) = cli("--settings", "gpuledger.toml", "audit", "--price", "4", "--json").json()["budgets"]
    assert (budget["monthly_usd"], budget["over"]) == (None, None)


def test_metrics_give_the_saving_per_hour_and_per_month_from_a_day_on(cli, short, dcgm_csv):
    def saved(text: str) -> dict[str, float]:
        rows = [line.rpartition(" ") for line in text.splitlines() if line.startswith("gpuledger_saving_usd_per_")]
        return {name: float(value) for name, _, value in rows}

    found = saved(cli("export", "metrics", "--price", "4").out)
    assert set(found) == {f'gpuledger_saving_usd_per_hour{{estimate="{e}"}}' for e in ("low", "middle", "high")}
    told = cli("audit", "--price", "4", "--json").json()
    pct = told["savings"]["combined"]["middle_pct"]
    assert found['gpuledger_saving_usd_per_hour{estimate="middle"}'] == pytest.approx(16 * pct / 100)
    assert cli("import", dcgm_csv("d.csv", gpus=1, minutes=DAY_MIN, uuid="GPU-idle", **IDLE)).code == 0
    found = saved(cli("export", "metrics", "--price", "4", "--last", "2d").out)
    assert 'gpuledger_saving_usd_per_month{estimate="middle"}' in found


def test_python_answers_alike(cli, short):
    assert cli("audit", "--price", "4").code == 0
    report = cost_report("gpuledger-data", price=4)
    assert not isinstance(report, Unknown)
    assert float(report.hourly_usd) == pytest.approx(16)
    months = (report.monthly_usd, report.yearly_usd, report.quarter, report.waste_monthly_usd)
    assert set(months) == {Unknown(SHORT)} == set(report.buckets_monthly_usd.values())
    made = audit_statement("gpuledger-data", price=4)
    assert made.savings.combined_month == made.savings.combined_quarter == Unknown(SHORT)
    assert all(r.saving for r in made.recommendations if r.lever)
    answer = gpuledger.open("gpuledger-data").give_back(price=4)
    assert (answer.found, answer.usd_per_month) == (0, Unknown(SHORT))  # nothing is given back after 20 minutes


@pytest.mark.parametrize(("minutes", "known"), [(19, False), (DAY_MIN, True)])
def test_what_a_bill_saves_per_month_needs_a_day(cli, dcgm_csv, minutes, known):
    assert cli("import", dcgm_csv("f.csv", gpus=1, minutes=minutes)).code == 0
    Path("paid.csv").write_text("device,usd_per_h\nGPU-0,1\n", encoding="utf-8")
    told = cli("prices", "paid", "--inventory", "paid.csv", "--json").json()
    assert told["prices"][0]["difference_pct"] is not None
    assert (told["saved_usd_per_month"] is not None) == known


def test_a_last_day_has_a_month_for_every_gpu_that_was_there_for_days(cli, dcgm_csv):
    """Readers take turns: of two GPUs of three days one ends 20 min before the window does. Another is new."""
    days = 3 * DAY_MIN
    whole, early = (dcgm_csv(f"{n}.csv", gpus=1, minutes=days - left, uuid=n) for n, left in (("a", 1), ("b", 21)))
    new = dcgm_csv("c.csv", gpus=1, minutes=23 * 60 + 39, uuid="c")
    later = new.read_text("utf-8").replace("2026-01-21", "2026-01-23").replace("2026-01-20", "2026-01-22")
    new.write_text(later, encoding="utf-8")
    assert cli("import", whole, early, new).code == 0
    told = cli("audit", "--last", "1d", "--price", "2", "--json").json()
    assert told["monthly_usd"] == str(2 * 2 * 720)
    assert told["projection_basis"]["left_out"] == ["c-0"]
    back = cli("plan", "migrate", "--lake", "gpuledger-data", "--last", "1d", "--price", "2", "--json").json()
    assert Decimal(back["month_now_usd"]) == 2 * 2 * 720


def test_gpus_that_take_turns_cost_per_hour_what_was_paid(cli, dcgm_csv):
    """Three GPUs at $4, each for six hours of another day."""
    for day, name in ((20, "a"), (21, "b"), (22, "c")):
        file = dcgm_csv(f"{name}.csv", gpus=1, minutes=6 * 60 - 1, uuid=name)
        file.write_text(file.read_text("utf-8").replace("2026-01-20", f"2026-01-{day}"), encoding="utf-8")
        assert cli("import", file).code == 0
    told = cli("audit", "--price", "4", "--json").json()
    assert told["monthly_usd"] is None
    assert float(told["hourly_usd"]) == 4
    assert told["headline"][0].startswith("$72.00 in 2 d 6 h for 3 GPUs ($4.00 per hour), ")


def test_targets_are_worth_a_month_of_gpus_seen_for_a_day_only(cli, dcgm_csv):
    long = dcgm_csv("a.csv", gpus=1, minutes=2 * DAY_MIN, uuid="a")
    assert cli("import", long, dcgm_csv("b.csv", gpus=9, minutes=59, uuid="b")).code == 0
    (first, *_) = cli("analyze", "--json").json()["roi"]
    assert first["gpu_hours_per_month"] == pytest.approx(720 * first["equivalent_gpus"] / 10)
    (priced, *_) = cli("audit", "--price", "4", "--json").json()["roi_priced"]
    assert float(priced["usd_per_month"]) == pytest.approx(4 * first["gpu_hours_per_month"], abs=0.01)
