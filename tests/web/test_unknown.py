"""Is what is unknown shown as unknown on every page, in the JSON, in a scrape and on the terminal?"""

from __future__ import annotations

import csv
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from gpuledger.cli.app import run
from gpuledger.lake.batch import device_name

DARK = ("GPU-warm", "GPU-full")


def lines(odd: TestClient) -> dict[str, dict[str, Any]]:
    return {row["device"]: row for row in odd.get("/api/v1/gpus").json()["gpus"]}


def row_of(page: str, name: str) -> str:
    (found,) = [row for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if f">{name}</" in row]
    return found


@pytest.mark.parametrize("device", DARK)
def test_a_gpu_without_activity_has_no_waste_and_no_idle_time(odd: TestClient, device: str) -> None:
    found = lines(odd)[device]
    assert (found["waste_usd"], found["idle_h"]) == (None, None)
    assert found["paid_usd"] > 0
    one = odd.get(f"/api/v1/gpus/{device}").json()
    assert one["dollars"]["waste_usd"] is None
    assert one["figures"]["longest_idle_h"] is None
    assert {n["figure"] for n in one["not_known"]} >= {"dollars.waste_usd", "figures.idle_h"}
    page = odd.get(f"/gpus/{device}").text
    assert "activity not recorded 100.0" in page
    assert "0.0 h" not in page
    assert "$0.00" not in page
    scrape = odd.get("/metrics").text
    assert not re.search(
        rf"gpuledger_gpu_(waste_usd_per_hour|idle_seconds|idle_held_seconds){{gpu=\"{device}\"", scrape
    )


def test_the_table_shows_unknown_and_a_least(odd: TestClient) -> None:
    page = odd.get("/gpus").text
    dark, half, idle = (row_of(page, name) for name in ("n1/0", "n2/0", "n1/3"))
    assert 'data-h="Wasted">unknown' in dark
    assert 'data-h="Idle">unknown' in dark
    assert re.search(r'data-h="Wasted">\$[\d.]+\+<', half)
    assert re.search(r'data-h="Wasted">\$[\d.]+<', idle)
    assert lines(odd)["GPU-half"]["waste_at_least"]
    assert "$0.00" not in page


def test_a_scrape_has_the_waste_that_is_known(odd: TestClient) -> None:
    scrape = odd.get("/metrics").text
    assert re.search(r'gpuledger_gpu_waste_usd_per_hour{gpu="GPU-idle".*} [1-9]', scrape)
    assert re.search(r'gpuledger_gpu_idle_seconds{gpu="GPU-idle".*} 3[56]', scrape)


def test_the_bill_has_no_dollars_for_time_without_a_price(odd: TestClient) -> None:
    audit = odd.get("/api/v1/audit?namespace=odd&namespace=edge").json()
    assert audit["bucket_h"]["idle_held"] == pytest.approx(3, abs=0.1)  # the GPU without a price
    assert audit["buckets"]["idle_held"] is None
    assert audit["bucket_pct"]["idle_held"] is None
    assert "buckets.idle_held" in {n["figure"] for n in audit["not_known"]}
    known = sum(Decimal(usd) for usd in audit["buckets"].values() if usd is not None)
    assert known == Decimal(audit["paid_usd"])
    scrape = odd.get("/metrics?namespace=odd&namespace=edge&last=3h").text
    assert 'gpuledger_bucket_usd_per_hour{bucket="unrated"}' in scrape
    assert 'gpuledger_bucket_usd_per_hour{bucket="idle_held"}' not in scrape


def test_productive_dollars_are_unknown_where_no_busy_time_is_rated(odd: TestClient) -> None:
    page = odd.get("/?namespace=edge").text
    assert re.search(r"Productive</p><p class=\"value unknown\">unknown", page)
    assert "how much of it was put to use is unknown" in page
    assert "0\u202f% of it put to use" not in page
    for path in ("/", "/owners"):
        assert not re.search(r"(Productive|Stalled)\W{0,40}\$0\.00", odd.get(f"{path}?namespace=edge").text), path
    audit = odd.get("/api/v1/audit?namespace=edge").json()
    (owner,) = audit["by_namespace"]
    for holder in (audit, owner, *audit["by_gpu"]):
        for part in ("buckets", "bucket_h", "bucket_pct"):
            assert (holder[part]["productive"], holder[part]["stalled"]) == (None, None), part
    assert "unrated" in owner["unknown_why"]
    figures = {n["figure"]: n["why"] for n in audit["not_known"]}
    assert "unrated" in figures["buckets.productive"]
    scrape = odd.get("/metrics?namespace=edge").text
    assert 'bucket="productive"' not in scrape
    assert re.search(r'gpuledger_unknown_info{figure="productive",reason=".*unrated.*"} 1', scrape)


def test_the_terminal_says_the_same(odd_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "--lake", str(odd_lake), "--namespace", "odd", "--namespace", "edge"]) == 0
    said = capsys.readouterr().out
    held = next(line for line in said.splitlines() if line.startswith("Idle, memory held"))
    assert held.count("unknown") == 2
    assert "unknown, " in said.partition("The bill")[0]


def test_the_terminal_and_the_csv_say_why_no_busy_time_is_rated(
    odd_lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", "--lake", str(odd_lake), "--namespace", "edge"]
    assert run([*command, "--out", str(tmp_path / "made")]) == 0
    assert run(command) == 0
    said = capsys.readouterr().out
    productive = next(line for line in said.splitlines() if line.startswith("Productive "))
    assert productive.split()[1:] == ["unknown"] * 3
    assert "unknown because the busy time is unrated" in " ".join(said.split())
    with (tmp_path / "made" / "cost_by_gpu.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["productive_usd"], row["stalled_usd"]) for row in rows} == {("", "")}
    assert all("unrated" in row["unknown_why"] for row in rows)
    assert run([*command, "--fail-on", "productive>99"]) == 1


def test_a_limit_on_waste_fails_where_waste_is_unknown(odd_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["audit", "--lake", str(odd_lake), "--fail-on", "waste>99", "--namespace"]
    assert run([*given, "train"]) == 0
    assert run([*given, "dark"]) == 1
    assert "waste is not known" in capsys.readouterr().err


def test_energy_says_which_gpus_it_leaves_out(
    odd: TestClient, odd_lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = odd.get("/api/v1/energy").json()
    assert (found["gpus"], found["unpriced_gpus"], found["unmetered_gpus"]) == (8, 1, 3)
    assert {row["name"]: row["waste_usd"] for row in found["by_owner"]}["dark"] is None
    assert sum(hour["energy_kwh"] for hour in found["by_hour"]) == pytest.approx(found["energy_kwh"])
    assert run(["ask", "energy", "--lake", str(odd_lake)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "drawn by 5 of 8 GPUs, next to" in said
    assert "paid for 7 of 8 GPUs" in said
    page = odd.get("/energy").text
    assert "Energy of each hour" in page
    assert "prices: market medians of 20" in page


def test_the_rows_of_the_table_come_to_the_bill(odd: TestClient) -> None:
    audit, rows = odd.get("/api/v1/audit").json(), list(lines(odd).values())
    assert sum(row["paid_usd"] or 0 for row in rows) == pytest.approx(float(audit["paid_usd"]))
    page = odd.get("/gpus").text
    assert "8 GPUs, 10 rows" in page
    assert "8\u202fGPUs" in odd.get("/").text or "8 GPUs" in odd.get("/").text
    assert "n5/0, not in a slice" in page


@pytest.mark.parametrize("text", ["zo\u00eb", "\u00c9quipe", "\u00e9QUIPE"])
def test_a_gpu_is_found_by_any_of_its_owners(odd: TestClient, text: str) -> None:
    found = odd.get("/api/v1/gpus", params={"q": text}).json()["gpus"]
    assert {row["device"] for row in found} == {"GPU-busy", "GPU-idle"}


def test_a_gpu_whose_uuid_has_slashes_opens(odd: TestClient) -> None:
    (href,) = re.findall(r'href="(/gpus/[^"]*passwd)"', odd.get("/gpus").text)
    assert "/../" not in href  # a browser would go up
    answer = odd.get(href)
    assert (answer.status_code, "n3/0" in answer.text) == (200, True)
    slice_ = device_name("GPU-cut", "2")
    assert "n5/0 MIG 2" in odd.get(f"/gpus/{slice_}").text


def test_the_page_of_one_gpu_has_its_dollars_power_and_owners(odd: TestClient) -> None:
    page = odd.get("/gpus/GPU-idle").text
    assert re.search(r"Paid</p><p class=\"value\">\$11\.", page)
    assert re.search(r"Power</p><p class=\"value\">70 W", page)
    assert "table-dollars" in page


@pytest.mark.parametrize("path", ["/", "/timeline", "/gpus", "/owners", "/savings", "/energy", "/plans", "/data"])
def test_a_filter_without_data_is_an_empty_page_with_its_filters(odd: TestClient, path: str) -> None:
    answer = odd.get(f"{path}?namespace=no-such")
    assert answer.status_code == 200
    assert "No data for these filters" in answer.text
    assert '<form class="filters"' in answer.text
    assert "namespaces no-such" in answer.text
    assert "<option selected>no-such</option>" in answer.text  # the form shows what is filtered by


@pytest.mark.parametrize("name", ["audit", "efficiency", "gpus", "energy", "plans/move", "data"])
def test_a_filter_without_data_is_an_empty_answer(odd: TestClient, name: str) -> None:
    answer = odd.get(f"/api/v1/{name}?since=2020-01-01&until=2020-01-02")
    assert answer.status_code == 200
    assert answer.json()["empty"] is True
    assert odd.get("/metrics?namespace=no-such").text.startswith("# HELP gpuledger_build_info")


def test_pages_name_the_date_of_their_prices(odd: TestClient) -> None:
    for path in ("/", "/gpus", "/owners", "/savings"):
        assert "prices: market medians of 20" in odd.get(path).text, path
    assert "Prices used, dollars per GPU-hour" in odd.get("/data").text


@pytest.mark.parametrize(("path", "words"), [("/gpus?sort=zzz", "zzz"), ("/owners?by=zzz", "zzz")])
def test_an_unknown_order_or_owner_is_an_error(odd: TestClient, path: str, words: str) -> None:
    answer = odd.get(path)
    assert answer.status_code == 404
    assert words in answer.text


def test_a_length_replaces_a_start(odd: TestClient) -> None:
    assert odd.get("/?since=2020-01-01&last=2h").status_code == 200
    assert odd.get("/?since=F&last=2h").status_code == 400
