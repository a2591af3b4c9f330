from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.catalog.prices.own_rates import COLUMNS, Rate, doubts, read_rates
from gpuledger.errors import FactError, FileFault, InputError
from gpuledger.units import Unknown

TODAY = dt.date(2026, 11, 15)
HEAD = ",".join(COLUMNS)
# cloud, instance, gpu, count, region, purchase, usd_per_h, price_scope, as_of, note
P5 = "aws,p5.48xlarge,h100-sxm,8,us-east-1,on-demand,20.00,instance,2026-10-01,negotiated"
OWN = ",,a100-sxm4-80gb,,,,1.25,gpu,2026-09-01,our own racks"


def csv_file(folder: Path, *rows: str, head: str = HEAD) -> Path:
    file = folder / "rates.csv"
    file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return file


def test_rates_are_read_and_a_price_is_for_what_it_says(tmp_path: Path) -> None:
    p5, own = read_rates(csv_file(tmp_path, P5, OWN), TODAY)
    # $20.00 for the instance is $2.50 a GPU; $1.25 for a GPU is $1.25 for the one GPU it is given for.
    assert (p5.offer.usd_per_h, p5.offer.usd_per_gpu_h, p5.offer.price_scope) == (20, Decimal("2.5"), "instance")
    assert (own.offer.usd_per_h, own.offer.usd_per_gpu_h, own.offer.price_scope) == (
        Decimal("1.25"),
        Decimal("1.25"),
        "gpu",
    )
    assert (own.cloud, own.count, own.purchase, own.offer.yours) == ("yours", 1, "on_demand", True)


def test_what_the_list_knows_of_an_instance_may_be_left_out(tmp_path: Path) -> None:
    (rate,) = read_rates(csv_file(tmp_path, ",P5.48xlarge,,,,spot,2.10,gpu,2026-10-01,"), TODAY)
    assert (rate.cloud, rate.instance, rate.gpu, rate.count) == ("aws", "p5.48xlarge", "h100-sxm5-80gb", 8)
    assert rate.offer.usd_per_h == Decimal("16.80")


@pytest.mark.parametrize("kind", ["toml", "json", "json-list"])
def test_toml_and_json_say_the_same_as_csv(tmp_path: Path, kind: str) -> None:
    expected = read_rates(csv_file(tmp_path, P5, OWN), TODAY)
    if kind == "toml":
        file = tmp_path / "r.toml"
        file.write_text(
            '[[rates]]\ncloud = "aws"\ninstance = "p5.48xlarge"\ngpu = "h100-sxm"\ncount = 8\nregion = "us-east-1"\n'
            'purchase = "on-demand"\nusd_per_h = 20.00\nprice_scope = "instance"\nas_of = 2026-10-01\n'
            'note = "negotiated"\n[[rates]]\ngpu = "a100-sxm4-80gb"\nusd_per_h = 1.25\nprice_scope = "gpu"\n'
            'as_of = "2026-09-01"\nnote = "our own racks"\n',
            encoding="utf-8",
        )
    else:
        rows = [dict(zip(COLUMNS, row.split(","), strict=True)) for row in (P5, OWN)]
        file = tmp_path / "r.json"
        file.write_text(json.dumps(rows if kind == "json-list" else {"rates": rows}), encoding="utf-8")
    assert read_rates(file, TODAY) == expected


@pytest.mark.parametrize(
    ("row", "field", "value", "allowed"),
    [
        (P5.replace("20.00", "-1"), "usd_per_h", "-1", "above 0"),
        (P5.replace("20.00", "0"), "usd_per_h", "'0'", "above 0"),
        (P5.replace("20.00", "cheap"), "usd_per_h", "cheap", "plain number"),
        (P5.replace("20.00", ""), "usd_per_h", "''", "plain number"),
        (P5.replace("20.00", "inf"), "usd_per_h", "inf", "above 0"),
        (P5.replace("h100-sxm", "h1000"), "gpu", "h1000", "catalog gpus"),
        (P5.replace("h100-sxm", "l4"), "gpu", "l4", "h100-sxm5-80gb"),
        (OWN.replace("a100-sxm4-80gb", ""), "gpu", "''", "name the GPU"),
        (P5.replace(",8,", ",0,"), "count", "'0'", "from 1 on"),
        (P5.replace(",8,", ",4,"), "count", "'4'", "has 8"),
        (OWN.replace("gpu,2026", "instance,2026"), "count", "''", "how many GPUs"),
        (P5.replace("us-east-1", "us-esat-1"), "region", "us-esat-1", "us-east-1"),
        (P5.replace("on-demand", "reserved"), "purchase", "reserved", "on-demand"),
        (P5.replace(",instance,", ",,"), "price_scope", "''", "gpu or instance"),
        (P5.replace("2026-10-01", "last week"), "as_of", "last week", "2026-10-01"),
        (P5.replace("2026-10-01", "2027-01-01"), "as_of", "2027-01-01", "up to today"),
    ],
)
def test_a_wrong_field_is_named_with_file_row_value_and_what_is_allowed(
    tmp_path: Path, row: str, field: str, value: str, allowed: str
) -> None:
    with pytest.raises(FactError) as caught:
        read_rates(csv_file(tmp_path, OWN.replace("our own", "more"), row), TODAY)
    assert "rates.csv" in caught.value.message
    assert f"row 3, {field}" in caught.value.message
    assert value in caught.value.message
    assert allowed in caught.value.hint


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("r.json", '{"rates": [', "broken JSON"),
        ("r.toml", "[[rates]\n", "broken TOML"),
        ("r.json", '{"price": 3}', "not a list of rates"),
        ("r.json", "[]", "no rates"),
        ("r.csv", HEAD + "\n", "no rates"),
        ("r.csv", "gpu,usd\nl4,1\n", "'usd' is unknown"),
        ("r.csv", "gpu,usd_per_h,as_of\nl4,1,2026-01-01\n", "'price_scope' is missing"),
        ("r.csv", HEAD + "\n" + P5 + ",more\n", "more values"),
        ("r.xlsx", "x", ".xlsx"),
        ("r.json", '[{"gpu": "l4", "usd": 1}]', "'usd' is unknown"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, name: str, text: str, told: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_rates(file, TODAY)
    assert told in caught.value.message
    assert caught.value.hint


def test_bytes_and_missing_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFault, match="not UTF-8 text"):
        read_rates(file, TODAY)
    with pytest.raises(FileFault, match="no such file"):
        read_rates(tmp_path / "gone.csv", TODAY)


def test_two_rates_for_one_thing_contradict(tmp_path: Path) -> None:
    with pytest.raises(FactError, match="row 2 gives this rate already"):
        read_rates(csv_file(tmp_path, P5, P5.replace("20.00", "21.00")), TODAY)


def test_a_price_of_an_instance_given_as_that_of_a_gpu_is_doubted() -> None:
    rate = Rate(
        cloud="aws", instance="p5.48xlarge", gpu="h100-sxm5-80gb", count=8, region="", purchase="on_demand",
        usd_per_h="55.04", price_scope="gpu", as_of="2026-10-01",
    )  # fmt: skip
    (told,) = doubts([rate], {"h100-sxm5-80gb": Decimal("6.88")}, 3.0)
    assert "8 times the market median" in told
    assert "price_scope = gpu" in told
    assert not doubts([rate], {"h100-sxm5-80gb": Decimal(50)}, 3.0)
    assert not doubts([rate], {"h100-sxm5-80gb": Unknown("no offers")}, 3.0)


@given(st.decimals("0.01", "500", places=4), st.integers(1, 16), st.sampled_from(["gpu", "instance"]))
def test_per_gpu_times_gpus_is_per_instance(usd: Decimal, count: int, scope: str) -> None:
    offer = Rate(
        cloud="c", instance="i", gpu="l4", count=count, region="", purchase="spot", usd_per_h=str(usd),
        price_scope=scope, as_of="2026-01-01",  # type: ignore[arg-type]
    ).offer  # fmt: skip
    assert not isinstance(offer.usd_per_gpu_h, Unknown)
    assert (offer.usd_per_gpu_h if scope == "gpu" else offer.usd_per_h) == usd
    assert abs(offer.usd_per_gpu_h * count - offer.usd_per_h) < Decimal("1e-20")  # type: ignore[operator]
