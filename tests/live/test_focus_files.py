"""Does a FOCUS file have the columns, types and values that the specification asks for?"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cost.fleets import UTIL, lake_of, samples
from gpuledger.cost.build import cost_statement
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.live.focus.build import FocusExport, focus_export
from gpuledger.live.focus.columns import specification
from gpuledger.live.focus.files import focus_csv, write_rows
from gpuledger.live.focus.rows import Naming

SPEC = specification()
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# It needs older libraries than ours, so it has an environment of its own: make test-focus.
OWN = Path(__file__).parents[2] / ".venv-focus" / "bin" / "focus-validator"
VALIDATOR = shutil.which("focus-validator") or (str(OWN) if OWN.exists() else None)


@pytest.fixture(scope="module")
def made(lake: Lake) -> FocusExport:
    return focus_export(lake)


@pytest.fixture(scope="module")
def table(made: FocusExport) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(focus_csv(made.rows))))


def test_the_file_of_columns_is_whole() -> None:
    assert SPEC.version == "1.4"
    assert {c.level for c in SPEC.columns.values()} == {"Mandatory", "Conditional", "Recommended"}
    assert all(name.startswith("x_") for name in SPEC.own)


def test_every_mandatory_column_is_there_and_every_column_is_known(table: list[dict[str, str]]) -> None:
    names = list(table[0])
    focus = [n for n in names if not n.startswith("x_")]
    assert {n for n, c in SPEC.columns.items() if c.level == "Mandatory"} <= set(focus)
    assert set(focus) <= set(SPEC.columns)
    assert focus == sorted(focus)  # by letter, ours after them
    assert names[len(focus) :] == list(SPEC.own)


@pytest.mark.parametrize("name", list(SPEC.types(older=False)))
def test_each_column_holds_what_its_type_allows(table: list[dict[str, str]], name: str) -> None:
    column = SPEC.columns.get(name)
    kind = SPEC.types(older=False)[name]
    for row in table:
        value = row[name]
        if value == "":
            assert column is None or column.nulls, name
            continue
        if kind == "Decimal":
            assert Decimal(value).is_finite()
            assert "." in value
        elif kind == "Number":
            assert float(value) == float(value)
        elif kind == "DateTime":
            assert INSTANT.fullmatch(value)
        elif kind == "JSON":
            assert isinstance(json.loads(value), dict)
        if column is not None and column.allowed:
            assert value in column.allowed


def test_rows_keep_the_rules_between_columns(table: list[dict[str, str]]) -> None:
    for row in table:
        start, end = row["ChargePeriodStart"], row["ChargePeriodEnd"]
        assert row["BillingPeriodStart"] <= start < end <= row["BillingPeriodEnd"]
        assert row["BillingCurrency"] == "USD"
        assert row["SkuId"]  # of usage, these may not be empty
        assert row["SkuPriceId"]
        assert row["PricingQuantity"] == row["ConsumedQuantity"]
        for cost, unit in (("ListCost", "ListUnitPrice"), ("ContractedCost", "ContractedUnitPrice")):
            product = Decimal(row[unit]) * Decimal(row["PricingQuantity"])
            assert abs(product - Decimal(row[cost])) < Decimal("1e-6")
        assert bool(row["RegionId"]) == bool(row["RegionName"])
        assert bool(row["ResourceId"]) == bool(row["ResourceType"])


def test_one_row_per_day_device_and_owner(table: list[dict[str, str]]) -> None:
    keys = [(r["ChargePeriodStart"], r["ResourceId"], r["SubAccountId"], r["x_Workload"], r["x_User"]) for r in table]
    assert len(keys) == len(set(keys))


def test_parquet_has_the_same_rows_with_exact_decimals(made: FocusExport, tmp_path: Path) -> None:
    file = write_rows(made.rows, tmp_path / "focus.parquet")
    found = pq.read_table(file)
    assert found.column_names == list(SPEC.types(older=False))
    rows = found.to_pylist()
    assert [r["EffectiveCost"] for r in rows] == [r["EffectiveCost"] for r in made.rows]
    assert rows[0]["ChargePeriodStart"] == made.rows[0]["ChargePeriodStart"]
    assert rows[0]["ChargePeriodStart"].tzinfo is not None
    assert found.schema.metadata[b"focus.version"] == b"1.4"


def test_a_window_without_a_priced_gpu_is_a_file_without_rows(tmp_path: Path) -> None:
    assert focus_csv(()).count("\n") == 1
    assert pq.read_table(write_rows((), tmp_path / "none.parquet")).num_rows == 0


def test_the_cloud_may_keep_the_billed_cost(lake: Lake) -> None:
    made = focus_export(lake, naming=Naming(issuer="ML platform", account="acct", billed=False))
    assert {r["BilledCost"] for r in made.rows} == {Decimal(0)}
    assert {(r["InvoiceIssuerName"], r["BillingAccountId"]) for r in made.rows} == {("ML platform", "acct")}
    assert all(r["EffectiveCost"] > 0 for r in made.rows)


def test_files_are_csv_or_parquet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="CSV or Parquet"):
        write_rows((), tmp_path / "focus.xlsx")


def test_a_label_that_is_a_formula_stays_text(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, samples(range(60), namespace="=1+1", **{UTIL: 50}))
    (row,) = csv.DictReader(io.StringIO(focus_csv(focus_export(lake, price=1).rows)))
    assert row["SubAccountName"] == "'=1+1"


def test_a_month_is_the_calendar_month(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, samples(range(60), **{UTIL: 50}))
    (row,) = focus_export(lake, price=1).rows
    assert row["BillingPeriodStart"] == dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    assert row["BillingPeriodEnd"] == dt.datetime(2026, 4, 1, tzinfo=dt.UTC)


def test_a_file_of_ours_reads_back_as_an_inventory_with_the_same_bill(
    made: FocusExport, lake: Lake, tmp_path: Path
) -> None:
    file = write_rows(made.rows, tmp_path / "focus.csv")
    told, back = made.statement, cost_statement(lake, inventory=file)
    assert isinstance(back.paid_usd, Decimal)
    assert isinstance(told.paid_usd, Decimal)
    assert abs(back.paid_usd - told.paid_usd) < Decimal("0.000001")
    assert not back.unpriced


def test_files_for_older_tools_have_the_columns_they_ask_for(made: FocusExport) -> None:
    (first, *_) = csv.DictReader(io.StringIO(focus_csv(made.rows, older=True)))
    for name, source in SPEC.older.same_as.items():
        assert first[name] == first[source]
    assert all(first[name] == "" for name in SPEC.older.empty)


@pytest.mark.skipif(not VALIDATOR, reason="the FinOps validator is not installed: make test-focus")
def test_the_foundations_validator_accepts_the_file(made: FocusExport, tmp_path: Path) -> None:
    file = write_rows(made.rows, tmp_path / "focus.csv", older=True)
    command = [str(VALIDATOR), "--data-file", str(file), "--validate-version", SPEC.older.version]
    # It reads a file of its own by a path from the folder it is installed in.
    (home,) = Path(str(VALIDATOR)).parents[1].glob("lib/python*/site-packages")
    found = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    assert "Validation succeeded" in found.stdout, found.stdout + found.stderr
