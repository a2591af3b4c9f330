"""Does an audit take the bills and node lists people have, from the command line to the dollar?"""

from __future__ import annotations

import csv
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

import gpuledger
from bills import BILLS, Machine, as_csv, aws_rows, azure_rows, days, nodes, scontrol, write_json, write_text
from gpuledger.errors import InputError
from gpuledger.units import day_start_ms

DAYS = days(day_start_ms("2026-01-20"), 2)
WINDOW = ("--since", "2026-01-20", "--until", "2026-01-22")


@pytest.fixture
def lake(cli, fleet_lake):
    """Three GPUs on three hosts, 2026-01-20 and 21, a sample each ten minutes."""
    shutil.copytree(fleet_lake, "lake")
    return "lake"


def audit(cli, *args):
    ended = cli("audit", "--lake", "lake", "--json", *args)
    assert ended.code == 0, ended.err
    return ended.json()


@pytest.fixture
def machines(cli, lake):
    """The hosts of the lake as machines of a cloud, $2, $3 and $4 per hour."""
    hosts = sorted({g["host"] for g in audit(cli, "--price", "1")["by_gpu"]})
    assert len(hosts) == 3
    return [
        Machine(host, f"i-0123456789abcde{i:02x}", "p5.48xlarge", "us-east-1", Decimal(2 + i), 1, ip=f"10.0.0.{i}")
        for i, host in enumerate(hosts)
    ]


def given(files):
    return [word for file in files for word in ("--inventory", file)]


@pytest.mark.parametrize("name", BILLS)
def test_each_kind_of_bill_to_the_cent(cli, lake, machines, tmp_path, name):
    said = audit(cli, *WINDOW, *given(BILLS[name](tmp_path, machines, DAYS)))
    assert round(Decimal(said["paid_usd"]), 6) == (2 + 3 + 4) * 48
    assert {Decimal(g["usd_per_h"]) for g in said["by_gpu"]} == {2, 3, 4}
    assert len(said["by_gpu"]) == 3
    assert {p["basis"] for p in said["prices"]} == {"inventory"}
    assert said["inventory"]["unmatched"] == []
    assert round(Decimal(said["inventory"]["matched_usd"]), 6) == 432


@pytest.mark.parametrize(
    "write",
    [
        lambda m: write_json(Path("nodes.json"), nodes(m)),
        lambda m: write_text(Path("nodes.txt"), scontrol(m)),
    ],
    ids=["kubernetes", "slurm"],
)  # fmt: skip
def test_nodes_say_what_is_paid_for_and_prices_follow_the_order(cli, lake, machines, write):
    file = write(machines)
    listed = audit(cli, *WINDOW, "--inventory", file)
    assert {p["basis"] for p in listed["prices"]} == {"instance"}
    assert listed["paid_h"] == pytest.approx(3 * 48, rel=0.01)
    chosen = audit(cli, *WINDOW, "--inventory", file, "--price", "1.5")
    assert {p["basis"] for p in chosen["prices"]} == {"given"}
    assert chosen["inventory"]["conflicts"] == []


def test_rows_that_fit_no_gpu_come_first_and_are_no_gpu(cli, lake, machines, tmp_path):
    """Without the node list the instance IDs of the bill mean nothing here."""
    bill = as_csv(tmp_path / "cur.csv", aws_rows(machines, DAYS))
    said = audit(cli, *WINDOW, "--inventory", bill)
    assert len(said["by_gpu"]) == 3
    assert (said["inventory"]["unmatched_rows"], Decimal(said["inventory"]["unmatched_usd"])) == (6, 432)
    assert {u["why"] for u in said["inventory"]["unmatched"]} == {"no_such_host"}
    assert {p["basis"] for p in said["prices"]} == {"market"}
    out = cli("audit", "--lake", "lake", *WINDOW, "--inventory", bill).out
    words = " ".join(out.split())
    assert "6 rows of the inventory ($432.00) are not in this bill" in words
    assert machines[2].instance_id in words
    assert words.index("not in this bill") < words.index("Productive")
    assert "kubectl get nodes" in words
    full = " ".join(cli("audit", "--lake", "lake", *WINDOW, "--inventory", bill, "--full").out.split())
    assert "Rows that fit no GPU of the lake" in full
    assert f"{bill}: 6 rows not for running a machine passed over" in full.replace("- ", "")


def test_a_host_of_the_users_own_is_spread_and_a_stranger_reported(cli, lake, machines):
    rows = [
        "device,from,to,usd_per_h",
        f"{machines[0].host},2026-01-20,2026-01-22,5",
        "stranger,2026-01-20,2026-01-22,7",
    ]
    Path("hosts.csv").write_text("\n".join(rows) + "\n")
    said = audit(cli, *WINDOW, "--inventory", "hosts.csv")
    assert len(said["by_gpu"]) == 3
    assert Decimal(said["inventory"]["unmatched_usd"]) == 7 * 48
    (own,) = (g for g in said["by_gpu"] if g["host"] == machines[0].host)
    assert Decimal(own["paid_usd"]) == 240
    assert "price of the machine" in own["price_words"]


def test_a_price_next_to_a_bill_is_shown_with_both_figures(cli, lake, machines, tmp_path):
    bill = as_csv(tmp_path / "azure.csv", azure_rows(machines[:1], DAYS))
    said = audit(cli, *WINDOW, "--inventory", bill, "--price", "9")
    (conflict,) = said["inventory"]["conflicts"]
    assert (conflict["used"], Decimal(conflict["used_usd_per_h"])) == ("bill", 2)
    assert (conflict["other"], Decimal(conflict["other_usd_per_h"]), conflict["gpus"]) == ("given", 9, 1)
    assert said["inventory"]["gpus_unpriced"] == 2
    assert any(note.startswith("of several prices for a GPU") for note in said["assumptions"])
    out = " ".join(cli("audit", "--lake", "lake", *WINDOW, "--inventory", bill, "--price", "9").out.split())
    assert "$2.00 per GPU-hour by bill" in out
    assert "$9.00 by --price or [prices] is not" in out
    equal = audit(cli, *WINDOW, "--inventory", bill, "--price", "2")
    assert equal["inventory"]["conflicts"] == []


def test_a_bill_in_another_currency_is_refused(cli, lake, machines, tmp_path):
    rows = [row | {"BillingCurrencyCode": "EUR"} for row in azure_rows(machines, DAYS)]
    ended = cli("audit", "--lake", "lake", "--inventory", as_csv(tmp_path / "azure.csv", rows))
    assert ended.code == 2
    assert "the bill is in EUR" in ended.err
    assert "next: export the bill in USD" in ended.err


def test_prices_paid_compares_with_the_list(cli, lake, machines, tmp_path):
    files = BILLS["aws legacy csv"](tmp_path, machines, DAYS)
    ended = cli("prices", "paid", "--lake", "lake", "--json", "--out", "out", *WINDOW, *given(files))
    assert ended.code == 0, ended.err
    said = ended.json()
    assert said["statement"] == "paid_prices"
    assert sum(Decimal(p["paid_usd"]) for p in said["prices"]) == Decimal(said["paid_usd"]) == 432
    for price in said["prices"]:
        paid, listed = Decimal(price["paid_usd_per_h"]), Decimal(price["list_usd_per_h"])
        assert price["difference_pct"] == pytest.approx(float(100 * (paid / listed - 1)))
        assert float(price["saved_usd_per_month"]) == pytest.approx(float(listed - paid) * 720 * price["gpus"])
        assert price["listed_by"] == "instance_in_region"
        assert price["listed"] >= "2026"
    rows = list(csv.DictReader(Path("out/paid_prices.csv").read_text().splitlines()))
    assert [row["paid_usd_per_h"] for row in rows] == [p["paid_usd_per_h"] for p in said["prices"]]
    out = cli("prices", "paid", "--lake", "lake", *WINDOW, *given(files)).out
    assert "per month below list prices" in out


def test_prices_paid_needs_a_bill_that_fits(cli, lake, machines, tmp_path):
    ended = cli("prices", "paid", "--lake", "lake")
    assert (ended.code, "--inventory" in ended.err) == (2, True)
    bill = as_csv(tmp_path / "cur.csv", aws_rows(machines, DAYS))
    ended = cli("prices", "paid", "--lake", "lake", "--inventory", bill)
    assert ended.code == 2
    assert machines[0].instance_id in ended.err or machines[2].instance_id in ended.err
    assert "kubectl get nodes" in ended.err


def test_a_plan_takes_a_bill_too(cli, lake, machines, tmp_path):
    files = BILLS["focus csv"](tmp_path, machines, DAYS)
    ended = cli("plan", "migrate", "--lake", "lake", "--json", *WINDOW, *given(files))
    assert ended.code == 0, ended.err


def test_python_takes_several_files_too(lake, machines, tmp_path):
    files = BILLS["aws 2.0 parquet"](tmp_path, machines, DAYS)
    made = gpuledger.open("lake").audit(inventory=files, since="2026-01-20", until="2026-01-22").to_dict()
    assert Decimal(made["paid_usd"]) == 432


def focus_bill(machines, costs, *, delimiter=",", start="2026-01-20", end="2026-01-22", **more):
    """A FOCUS bill with costs and dates as they are to be spelled: a row for each machine and cost."""
    rows = [
        {"BilledCost": text, "EffectiveCost": text, "BillingCurrency": "USD", "ChargeCategory": "Usage"}
        | {"ChargePeriodStart": start, "ChargePeriodEnd": end, "ResourceId": machine.host, "ServiceCategory": "Compute"}
        | more
        for machine, text in zip(machines, costs, strict=False)
    ]
    with Path("focus.csv").open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        out.writeheader()
        out.writerows(rows)
    return "focus.csv"


@pytest.mark.parametrize(
    ("costs", "delimiter", "paid"),
    [
        (("96,00", "144,00", "192,00"), ";", 432),
        (("96,00", "144,00", "192,00"), ",", 432),
        (("1.096,00", "144,00", "1.192"), ",", 2432),
        (("1.192", "1.096,00", "144,00"), ",", 2432),
        (("1.192", "1.096,00", "144,00"), "\t", 2432),
        (("1,192", "1,096.00", "144"), ",", 2432),
        (("1\u202f192,00", "1\u00a0096,00", "144"), ";", 2432),
        (("1'192.00", "1096", "144.00"), ";", 2432),
        (("$96.00", "$144.00", "(8.00)"), ",", 240),
        (("96.125", "144.125", "191.75"), ",", 432),
        (("0.125", "144.125", "191.75"), ";", 336),
    ],
)
def test_amounts_are_read_by_what_their_column_shows(cli, lake, machines, costs, delimiter, paid):
    said = audit(cli, *WINDOW, "--inventory", focus_bill(machines, costs, delimiter=delimiter))
    negative = sum(Decimal(u["usd"]) for u in said["inventory"]["unmatched"])
    assert Decimal(said["inventory"]["matched_usd"]) == paid
    assert negative == (Decimal(-8) if "(8.00)" in costs else 0)


@pytest.mark.parametrize(
    ("costs", "delimiter", "readings"),
    [
        (("1,900", "1,900", "950"), ",", ("1.900", "1900")),
        (("384,125", "192", "144"), ";", ("384.125", "384125")),
        (("1.384", "1.384", "2.768"), ";", ("1.384", "1384")),
        (("1.384", "1.384", "2.768"), "\t", ("1.384", "1384")),
        (("96.50", "144,00", "192"), ",", ("144,00", "96.50")),
        (("96,50", "144.00", "192"), ";", ("144.00", "96,50")),
    ],
)
def test_amounts_with_two_readings_are_refused_with_both(cli, lake, machines, costs, delimiter, readings):
    ended = cli("audit", "--lake", "lake", *WINDOW, "--inventory", focus_bill(machines, costs, delimiter=delimiter))
    assert ended.code == 2
    assert "focus.csv: row" in ended.err
    assert "next: write" in ended.err
    assert all(text in ended.err for text in readings)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("01/20/2026", "01/22/2026"),
        ("20/01/2026", "22/01/2026"),
        ("20.01.2026", "22.01.2026"),
        ("1/20/2026", "1/22/2026"),
    ],
)
def test_dates_with_one_reading_are_read(cli, lake, machines, start, end):
    bill = focus_bill(machines, ("96", "144", "192"), start=start, end=end)
    said = audit(cli, *WINDOW, "--inventory", bill)
    assert Decimal(said["inventory"]["matched_usd"]) == 432
    assert {Decimal(g["usd_per_h"]) for g in said["by_gpu"]} == {2, 3, 4}


def test_a_date_is_read_by_the_other_dates_of_the_bill(cli, lake, machines):
    """January 2 to 20 and 20 to 22: the end of the first row and both dates of the others tell the order."""
    rows = ["BilledCost,ChargePeriodStart,ChargePeriodEnd,ResourceId"]
    rows += [f"100,02/01/2026,20/01/2026,{machines[0].host}", f"96,20/01/2026,22/01/2026,{machines[0].host}"]
    Path("bill.csv").write_text("\n".join(rows) + "\n")
    said = audit(cli, *WINDOW, "--inventory", "bill.csv")
    assert Decimal(said["inventory"]["matched_usd"]) == 96
    assert Decimal(said["inventory"]["outside_lake_usd"]) == 100


@pytest.mark.parametrize(
    ("dates", "words"),
    [
        ((("02/01/2026", "03/01/2026"),), ("2026-02-01", "2026-01-02")),
        ((("20/01/2026", "01/22/2026"),), ("20/01/2026", "01/22/2026")),
        ((("01/20/2026", "01/22/2026"), ("20/01/2026", "22/01/2026")), ("20/01/2026", "01/22/2026")),
    ],
)
def test_dates_with_two_readings_are_refused_with_both(cli, lake, machines, dates, words):
    rows = ["BilledCost,ChargePeriodStart,ChargePeriodEnd,ResourceId"]
    rows += [f"96,{start},{end},{machine.host}" for machine, (start, end) in zip(machines, dates, strict=False)]
    Path("bill.csv").write_text("\n".join(rows) + "\n")
    ended = cli("audit", "--lake", "lake", *WINDOW, "--inventory", "bill.csv")
    assert ended.code == 2
    assert all(word in ended.err for word in words)
    assert "next: write dates as 2026-01-20" in ended.err


@pytest.mark.parametrize("date", ["02/01/2026 00:00", "2/1/26", "02/30/2026", "31/02/2026", "2026/01/02", "00/01/2026"])
def test_a_date_of_another_spelling_is_refused(cli, lake, machines, date):
    ended = cli("audit", "--lake", "lake", "--inventory", focus_bill(machines, ("96",), start=date))
    assert (ended.code, f"charge_period_start: found '{date}'" in ended.err) == (2, True)


def test_an_aws_bill_saved_again_with_other_dates_is_asked(cli, lake, machines, tmp_path):
    """AWS writes ISO dates; Azure writes the month first, so that its bills need no question."""
    start, end = "lineItem/UsageStartDate", "lineItem/UsageEndDate"
    rows = [row | {start: "01/02/2026", end: "01/03/2026"} for row in aws_rows(machines, DAYS)]
    ended = cli("audit", "--lake", "lake", "--inventory", as_csv(tmp_path / "cur.csv", rows))
    assert (ended.code, "'01/02/2026' can be 2026-01-02 or 2026-02-01" in ended.err) == (2, True)
    azure = [row | {"Date": "01/02/2026"} for row in azure_rows(machines[:1], DAYS[:1])]
    said = audit(cli, "--inventory", as_csv(tmp_path / "azure.csv", azure))
    assert {u["start_ms"] for u in said["inventory"]["unmatched"]} == {day_start_ms("2026-01-02")}
    storage = azure[0] | {"Date": "13/02/2026", "MeterCategory": "Storage"}
    ended = cli("audit", "--lake", "lake", "--inventory", as_csv(tmp_path / "mixed.csv", [*azure, storage]))
    assert (ended.code, "its dates have the day first ('13/02/2026')" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("prices", "code", "words"),
    [
        (('"2,50"', "3"), 0, "5.50"),
        (('"$1,008.00"', "3"), 0, "1011"),
        (('"1,900"', "3"), 2, "can be 1.900 or 1900"),
        (('"1,900"', "3.25"), 0, "1903.25"),
        (("1.384", "3"), 0, "4.384"),
    ],
)
def test_prices_of_your_own_table_are_read_by_their_column(cli, lake, machines, prices, code, words):
    rows = ["device,from,to,usd_per_h"]
    rows += [f"{m.host},2026-01-20,2026-01-22,{price}" for m, price in zip(machines, prices, strict=False)]
    Path("own.csv").write_text("\n".join(rows) + "\n")
    ended = cli("audit", "--lake", "lake", "--json", *WINDOW, "--inventory", "own.csv")
    assert ended.code == code
    if code:
        assert words in ended.err
    else:
        used = [Decimal(p["usd_per_h"]) for p in ended.json()["prices"] if p["basis"] == "inventory"]
        per_gpu = [Decimal(g["usd_per_h"]) for g in ended.json()["by_gpu"] if "inventory" in g["price_words"]]
        assert used
        assert sum(per_gpu) == Decimal(words)


def test_a_date_of_your_own_table_is_refused_with_both_readings(cli, lake, machines):
    Path("own.csv").write_text(f"device,from,usd_per_h\n{machines[0].host},02/01/2026,2\n")
    ended = cli("audit", "--lake", "lake", "--inventory", "own.csv")
    assert (ended.code, "'02/01/2026' can be 2026-02-01 or 2026-01-02" in ended.err) == (2, True)


def cur_of_other_machines(machines, tmp_path, **changed):
    return as_csv(tmp_path / "cur.csv", [row | changed for row in aws_rows(machines, DAYS)])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"lineItem/ResourceId": "i-0aaa"}, "name no machine"),
        ({"lineItem/UsageType": "BoxUsage:m5.4xlarge", "product/instanceType": "m5.4xlarge"}, "without GPUs"),
        ({"lineItem/UsageType": "EBS:VolumeUsage.gp3"}, "are not for running a machine"),
        ({}, "fit no GPU of the lake"),
    ],
)
def test_a_bill_that_is_not_used_is_said_before_the_dollars(cli, lake, machines, tmp_path, changed, why):
    bill = cur_of_other_machines(machines, tmp_path, **changed)
    said = audit(cli, *WINDOW, "--inventory", bill)
    (file,) = said["inventory"]["files"]
    assert (file["used"], {p["basis"] for p in said["prices"]}) == (0, {"market"})
    dollars = sum(Decimal(usd) for usd in file["skipped_usd"].values())
    assert dollars + Decimal(said["inventory"]["unmatched_usd"]) >= 432
    assert said["headline"][0].startswith(f"{bill} was not used, so this is at market prices: $")
    out = " ".join(cli("audit", "--lake", "lake", *WINDOW, "--inventory", bill, "--out", "rep").out.split())
    assert out.index("was not used") < out.index("no row was used: ") < out.index(why) < out.index("Productive")
    page = Path("rep/audit.md").read_text()
    assert page.index("was not used") < page.index("no row was used: ") < page.index(why) < page.index("Key figure")
    assert "no row was used" in Path("rep/audit.html").read_text()
    refused = cli("prices", "paid", "--lake", "lake", *WINDOW, "--inventory", bill)
    assert refused.code == 2
    assert why in refused.err
    for ask in ("budget", "give-back"):
        assert "no row was used: " in " ".join(cli("ask", ask, "--lake", "lake", "--inventory", bill).out.split())


def test_dollars_passed_over_are_said_first(cli, lake, machines, tmp_path):
    files = BILLS["aws legacy csv"](tmp_path, machines, [*DAYS, *days(day_start_ms("2026-03-01"), 1)])
    said = audit(cli, *WINDOW, *given(files))
    (file,) = (f for f in said["inventory"]["files"] if f["kind"] == "aws")
    passed = sum(Decimal(usd) for usd in file["skipped_usd"].values())
    assert file["rows"] == file["used"] + sum(file["skipped"].values()) + 3
    assert Decimal(said["inventory"]["outside_lake_usd"]) == (2 + 3 + 4) * 24
    assert "was not used" not in said["headline"][0]
    out = " ".join(cli("audit", "--lake", "lake", *WINDOW, *given(files)).out.split())
    assert f"3 of {file['rows']} rows are for time before the first or after the last sample ($216.00)" in out
    assert f"are not for running a machine (${passed:,.2f}): not in this bill." in out
    assert out.index("not in this bill") < out.index("Productive")


def test_a_row_passed_over_whose_cost_cannot_be_read_is_said_first(cli, lake, machines, tmp_path):
    rows = aws_rows(machines, DAYS)
    storage = rows[0] | {"lineItem/UsageType": "EBS:VolumeUsage.gp3", "lineItem/UnblendedCost": "1900 USD"}
    bill = as_csv(tmp_path / "cur.csv", [*rows, storage])
    before = audit(cli, *WINDOW, "--inventory", as_csv(tmp_path / "before.csv", rows))["inventory"]["files"][0]
    (file,) = audit(cli, *WINDOW, "--inventory", bill)["inventory"]["files"]
    assert (file["skipped_usd"], file["skipped_unread"]) == (before["skipped_usd"], {"not_compute": 1})
    out = " ".join(cli("audit", "--lake", "lake", *WINDOW, "--inventory", bill).out.split())
    assert "the cost of 1 cannot be read)" in out
    assert out.index("cannot be read") < out.index("Productive")


@pytest.mark.parametrize("option", ["--price", "--budget"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,900", ("can be 1.900 or 1900", "write 1.900 or 1900")),
        ("1.900,00", ("has a decimal comma", "write 1900.00")),
        ("1,90", ("has a decimal comma", "write 1.90")),
        ("a lot", ("'a lot' is not a", "give dollars")),
    ],
)
def test_a_price_and_a_budget_with_two_readings_are_asked_alike(cli, lake, option, text, words):
    ended = cli("ask", "budget", "--lake", "lake", option, text)
    assert ended.code == 2
    assert option in ended.err
    assert all(word in ended.err for word in words)


@pytest.mark.parametrize(
    ("text", "usd"), [("1,900.00", 1900), ("$1,900,000", 1_900_000), ("1900.5", Decimal("1900.5"))]
)
def test_a_budget_with_one_reading_is_read(cli, lake, text, usd):
    ended = cli("ask", "budget", "--lake", "lake", "--json", "--budget", text)
    assert Decimal(ended.json()["lines"][0]["budget_usd"]) == usd
    made = gpuledger.open(lake).budget(text)
    assert made.lines[0].budget_usd == usd


@pytest.mark.parametrize("text", ["1,900", "1.900", "1.900,00", "1,90"])
def test_budgets_and_prices_in_python_are_asked_alike(lake, cli, text):
    opened = gpuledger.open(lake)
    with pytest.raises(InputError):
        opened.budget(text)
    with pytest.raises(InputError):
        opened.budget({"ml": text})
    if text != "1.900":  # dollars per hour often have three decimals
        with pytest.raises(InputError):
            opened.audit(prices=text)
