"""Does an audit take the bills and node lists people have, from the command line to the dollar?"""

from __future__ import annotations

import csv
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

import gpuledger
from bills import BILLS, Machine, as_csv, aws_rows, azure_rows, days, nodes, scontrol, write_json, write_text
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
