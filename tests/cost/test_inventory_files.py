"""Is each kind of file recognized by its content, and read as its cloud means it?"""

from __future__ import annotations

import gzip
import json
import zipfile
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bills import (
    BILLS,
    Machine,
    allocations,
    as_csv,
    as_parquet,
    aws_rows,
    azure_rows,
    days,
    focus_rows,
    gcp_rows,
    json_lines,
    nodes,
    scontrol,
    sinfo,
    snake_rows,
    write_json,
    write_text,
)
from gpuledger.cost.inventories.content import Content
from gpuledger.cost.inventories.fields import gpus_in, has_gpus
from gpuledger.cost.inventories.findings import Skipped
from gpuledger.cost.inventories.kinds import KINDS, Found, Spent, read_stock
from gpuledger.cost.inventories.matching import Presence
from gpuledger.cost.inventories.settling import settle
from gpuledger.errors import FactError, FileFault, InputError
from gpuledger.telemetry.formats.columns import snake
from gpuledger.units import MS_PER_DAY, day_start_ms

DAY = day_start_ms("2026-01-20")
DAYS = days(DAY, 2)
ONE = Machine("gpu-a", "i-0123456789abcdef0", "p5.48xlarge", "us-east-1", Decimal("55.04"), 8)


def one(file: Path) -> Found:
    (found,) = read_stock([file]).found
    return found


def total(found: Found) -> Decimal:
    return sum((s.usd for s in found.spent), Decimal(0))


def test_one_spelling_for_every_column() -> None:
    assert snake("lineItem/UsageAccountId") == "line_item_usage_account_id"
    assert snake("savingsPlan/SavingsPlanEffectiveCost") == "savings_plan_savings_plan_effective_cost"
    assert snake("costInUSD") == snake("CostInUsd") == "cost_in_usd"
    assert snake("service.description") == "service_description"
    assert snake("x_SkuMeterCategory") == "x_sku_meter_category"


def test_types_of_machines() -> None:
    assert (gpus_in("p5.48xlarge"), gpus_in("P5.48XLARGE"), gpus_in("m5.large")) == (8, 8, None)
    assert [has_gpus(name) for name in ("p5.48xlarge", "p99.48xlarge", "Standard_ND96zz_v9")] == [True] * 3
    assert [has_gpus(name) for name in ("m5.large", "Standard_D4s_v5", "n2-standard-4")] == [False] * 3
    assert has_gpus("") is None
    assert has_gpus("ours") is None


@pytest.mark.parametrize("name", BILLS)
def test_every_bill_holds_the_dollars_of_the_machine(tmp_path: Path, name: str) -> None:
    stock = read_stock(BILLS[name](tmp_path, [ONE], DAYS))
    assert sum((total(found) for found in stock.found), Decimal(0)) == pytest.approx(ONE.usd_per_h * 48)
    spans = {(s.start_ms, s.end_ms) for found in stock.found for s in found.spent}
    assert spans == set(DAYS)
    assert name.split()[0] in {found.kind for found in stock.found}


def test_a_file_is_known_by_its_content_not_its_name(tmp_path: Path) -> None:
    bill = as_csv(tmp_path / "nodes.json", aws_rows([ONE], DAYS))
    assert one(bill).kind == "aws"
    packed = tmp_path / "bill"
    packed.write_bytes(gzip.compress(bill.read_bytes()))
    assert total(one(packed)) == total(one(bill))
    assert one(write_text(tmp_path / "a", "device;usd_per_h\n".replace(";", ",") + "GPU-a,2\n")).kind == "own"


def test_own_rows_as_json_and_parquet(tmp_path: Path) -> None:
    rows = [{"device": "GPU-a", "usd_per_h": "2.5"}, {"device": "gpu-1", "usd_per_h": "20", "from": "2026-01-20"}]
    for file in (write_json(tmp_path / "i.json", rows), as_parquet(tmp_path / "i.parquet", rows)):
        found = one(file)
        assert [(r.device, r.usd_per_h) for r in found.paid] == [("GPU-a", Decimal("2.5")), ("gpu-1", 20)]
        assert found.paid[1].from_ms == DAY


def test_aws_counts_a_commitment_at_its_effective_cost(tmp_path: Path) -> None:
    """The list price of covered usage is cancelled by another row; what the plan costs is in a column of its own."""
    base = aws_rows([ONE], DAYS[:1])[0]
    covered = base | {
        "lineItem/LineItemType": "SavingsPlanCoveredUsage", "savingsPlan/SavingsPlanEffectiveCost": "700.10",
        "lineItem/UsageAmount": "20",
    }  # fmt: skip
    negation = base | {"lineItem/LineItemType": "SavingsPlanNegation", "lineItem/UnblendedCost": "-1320.96"}
    reserved = base | {
        "lineItem/LineItemType": "DiscountedUsage", "lineItem/UnblendedCost": "0",
        "reservation/EffectiveCost": "90.05", "lineItem/UsageAmount": "4",
    }  # fmt: skip
    discount = base | {"lineItem/LineItemType": "EdpDiscount", "lineItem/UnblendedCost": "-10.15"}
    uncosted = base | {"lineItem/LineItemType": "DiscountedUsage", "reservation/EffectiveCost": ""}
    found = one(as_csv(tmp_path / "cur.csv", [covered, negation, reserved, discount, uncosted]))
    assert total(found) == Decimal("780.00")
    assert sum(s.hours or 0 for s in found.spent) == 24
    assert found.skipped == {Skipped.NOT_COMPUTE: 1, Skipped.NO_COST: 1}
    assert {s.purchase_option for s in found.spent} == {"reserved", "on_demand"}


def test_aws_passes_over_what_is_not_a_gpu_machine(tmp_path: Path) -> None:
    base = aws_rows([ONE], DAYS[:1])[0]
    cpu = base | {"product/instanceType": "m5.large", "lineItem/UsageType": "BoxUsage:m5.large"}
    volume = base | {"lineItem/ResourceId": "vol-0123", "lineItem/UsageType": "EBS:VolumeUsage.gp3"}
    fee = base | {"lineItem/ResourceId": "", "lineItem/UsageType": ""}
    tax = base | {"lineItem/LineItemType": "Tax", "lineItem/UnblendedCost": "5.00"}
    found = one(as_csv(tmp_path / "cur.csv", [base, cpu, volume, fee, tax]))
    assert (len(found.spent), found.rows) == (1, 5)
    assert found.skipped == {Skipped.NO_GPU: 1, Skipped.NOT_COMPUTE: 2, Skipped.NO_MACHINE: 1}


def test_gcp_adds_cores_memory_gpus_and_credits(tmp_path: Path) -> None:
    found = one(json_lines(tmp_path / "gcp.json", gcp_rows([ONE], DAYS[:1])))
    assert len(found.spent) == 3
    assert {s.names for s in found.spent} == {("gpu-a",)}
    assert found.skipped == {Skipped.NOT_COMPUTE: 1}
    cpu = [r for r in gcp_rows([ONE], DAYS[:1]) if "GPU" not in r["sku"]["description"]]
    assert one(json_lines(tmp_path / "cpu.json", cpu)).skipped == {Skipped.NO_GPU: 2, Skipped.NOT_COMPUTE: 1}


def test_gcp_counts_usage_before_the_credit_of_a_commitment(tmp_path: Path) -> None:
    (row, *_rest) = gcp_rows([ONE], DAYS[:1])
    row |= {"cost": 100.0, "credits": [
        {"type": "COMMITTED_USAGE_DISCOUNT", "amount": -100.0}, {"type": "PROMOTION", "amount": -7.5},
    ]}  # fmt: skip
    found = one(json_lines(tmp_path / "gcp.json", [row]))
    assert total(found) == Decimal("92.5")
    assert found.skipped == {Skipped.COMMITMENT_CREDIT: 1}


def test_gcp_in_another_currency_uses_the_rate_of_the_row(tmp_path: Path) -> None:
    rows = gcp_rows([ONE], DAYS[:1])[:1]
    euros = [r | {"currency": "EUR", "cost": 92.0, "credits": [], "currency_conversion_rate": 0.92} for r in rows]
    assert total(one(json_lines(tmp_path / "eur.json", euros))) == 100
    del euros[0]["currency_conversion_rate"]
    with pytest.raises(FactError, match="the bill is in EUR, not in USD") as caught:
        one(json_lines(tmp_path / "eur.json", euros))
    assert "in USD" in caught.value.hint


def test_azure_dollars_and_scale_sets(tmp_path: Path) -> None:
    (row, *_rest) = azure_rows([ONE], DAYS[:1])
    euros = row | {"BillingCurrencyCode": "EUR"}
    with pytest.raises(FactError, match="row 2: the bill is in EUR"):
        one(as_csv(tmp_path / "a.csv", [euros]))
    assert total(one(as_csv(tmp_path / "b.csv", [euros | {"costInUsd": "12.5"}]))) == Decimal("12.5")
    pool = "/subscriptions/0/resourceGroups/r/providers/Microsoft.Compute/virtualMachineScaleSets/aks-gpu-vmss"
    (spent,) = one(as_csv(tmp_path / "c.csv", [row | {"ResourceId": pool, "AdditionalInfo": ""}])).spent
    assert spent.names == ("aks-gpu-vmss",)
    others = [row | {"MeterCategory": "Storage"}, row | {"AdditionalInfo": '{"ServiceType": "Standard_D4s_v5"}'}]
    found = one(as_csv(tmp_path / "d.csv", [row, *others]))
    assert found.skipped == {Skipped.NOT_COMPUTE: 1, Skipped.NO_GPU: 1}


def test_focus_takes_the_effective_cost(tmp_path: Path) -> None:
    (row, *_rest) = focus_rows([ONE], DAYS[:1])
    tax = row | {"ChargeCategory": "Tax"}
    cpu = row | {"SkuPriceDetails": '{"InstanceType": "m5.large"}'}
    found = one(as_csv(tmp_path / "f.csv", [row | {"BilledCost": "0", "EffectiveCost": "77.7"}, tax, cpu]))
    assert total(found) == Decimal("77.7")
    assert found.spent[0].names[0] == ONE.instance_id
    assert found.skipped == {Skipped.NOT_COMPUTE: 1, Skipped.NO_GPU: 1}


def test_allocations_give_a_rate_and_idle_rows_the_whole(tmp_path: Path) -> None:
    document = allocations([ONE], DAYS[:1], "0.5")
    (spent,) = one(write_json(tmp_path / "a.json", document)).spent
    assert (spent.gpu_hours, spent.usd) == (96, ONE.usd_per_h * 12)
    window = document["data"][0]["ml/train-0"]["window"]
    document["data"][0]["c1/gpu-a/__idle__"] = {
        "name": "c1/gpu-a/__idle__", "properties": {"node": "gpu-a"}, "window": window, "gpuCost": 660.48,
    }  # fmt: skip
    found = one(write_json(tmp_path / "b.json", document))
    assert [s.gpu_hours for s in found.spent] == [None, None]
    assert total(found) == ONE.usd_per_h * 24
    table = [{"Name": "p", "Node": "gpu-a", "GPU Cost": "10", "GPU Hours": "5", "Date": "2026-01-20"}]
    (row,) = one(as_csv(tmp_path / "k.csv", table)).spent
    assert (row.names, row.usd, row.gpu_hours, row.start_ms, row.end_ms) == (
        ("gpu-a",), 10, 5, DAY, DAY + MS_PER_DAY,
    )  # fmt: skip
    with pytest.raises(FileFault, match="do not name their node") as caught:
        one(as_csv(tmp_path / "n.csv", [{"Namespace": "ml", "GPUCost": "10", "Date": "2026-01-20"}]))
    assert "aggregate=node" in caught.value.hint


def test_nodes_are_known_by_all_their_names(tmp_path: Path) -> None:
    found = one(write_json(tmp_path / "n.json", nodes([ONE])))
    (node,) = found.nodes
    assert {"i-0123456789abcdef0", "10.0.1.2", "ip-10-0-1-2"} <= node.aliases
    assert (node.instance, node.region, node.gpus) == ("p5.48xlarge", "us-east-1", 8)
    assert node.from_ms == day_start_ms("2026-01-01")
    assert found.skipped == {Skipped.NO_GPU: 1}
    azure: dict[str, Any] = nodes([ONE])
    azure["items"][0]["spec"]["providerID"] = (
        "azure:///subscriptions/0/resourceGroups/r/providers/Microsoft.Compute/virtualMachineScaleSets/"
        "aks-gpu-vmss/virtualMachines/3"
    )
    (node,) = one(write_json(tmp_path / "a.json", azure)).nodes
    assert {"aks-gpu-vmss", "aks-gpu-vmss_3"} <= node.aliases
    assert "3" not in node.aliases


@pytest.mark.parametrize(
    "capacity", [{"nvidia.com/gpu": "32"}, {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "56"}]
)
def test_slices_and_shares_of_a_node_are_not_its_boards(tmp_path: Path, capacity: dict[str, str]) -> None:
    document: dict[str, Any] = nodes([ONE])
    document["items"][0]["status"]["capacity"] = capacity
    document["items"][0]["metadata"]["labels"] = {"nvidia.com/gpu.count": "8"}
    (node,) = one(write_json(tmp_path / "n.json", document)).nodes
    assert node.gpus == 8


@pytest.mark.parametrize("text", [scontrol([ONE]), sinfo([ONE])], ids=["scontrol", "sinfo"])
def test_slurm_nodes(tmp_path: Path, text: str) -> None:
    found = one(write_text(tmp_path / "nodes.txt", text))
    (node,) = found.nodes
    assert (found.kind, node.name, node.gpus) == ("slurm", "gpu-a", 8)
    assert found.skipped == {Skipped.NO_GPU: 1}
    if "NodeName" in text:
        assert (node.instance, ONE.instance_id in node.aliases) == ("p5.48xlarge", True)


def test_cur_2_is_the_same_bill(tmp_path: Path) -> None:
    old = one(as_csv(tmp_path / "a.csv", aws_rows([ONE], DAYS)))
    new = one(as_csv(tmp_path / "b.csv", snake_rows(aws_rows([ONE], DAYS))))
    assert [(s.names, s.usd, s.hours, s.start_ms) for s in old.spent] == [
        (s.names, s.usd, s.hours, s.start_ms) for s in new.spent
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"a,b\n1,2\n", "not a known kind of inventory"),
        (b'{"items": []}', "not a known kind of inventory"),
        (b'{"data": ', "cannot be read as JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"PAR1 but not more", "cannot be read as Parquet"),
        (b"PK\x03\x04....", "spreadsheet"),
        (b"\x1f\x8bbroken", "cannot be unpacked"),
        (b"device\n\xff\xfe\n", "not text"),
        (b"lineItem/UnblendedCost,lineItem/UsageStartDate\n1,2026-01-20\n", "no column line_item_resource_id"),
    ],
)
def test_what_is_no_inventory_is_refused_with_a_next_step(tmp_path: Path, data: bytes, words: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    with pytest.raises(InputError, match=words) as caught:
        read_stock([file])
    assert caught.value.hint
    assert str(file) in caught.value.message


@pytest.mark.parametrize(
    ("field", "value"),
    [("lineItem/UnblendedCost", "a lot"), ("lineItem/UnblendedCost", "1e99"), ("lineItem/UsageStartDate", "yesterday")],
)
def test_a_wrong_cell_is_named(tmp_path: Path, field: str, value: str) -> None:
    rows = aws_rows([ONE], DAYS)
    rows[2] |= {field: value}
    with pytest.raises(FactError, match=f"row 4, {snake(field)}: found '{value}'"):
        read_stock([as_csv(tmp_path / "cur.csv", rows)])


def test_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    file = as_csv(tmp_path / "cur.csv", aws_rows([ONE], DAYS))
    copy = tmp_path / "copy.csv"
    copy.write_bytes(file.read_bytes())
    for twice in ([file, file], [file, copy]):
        with pytest.raises(InputError, match="same content") as caught:
            read_stock(twice)
        assert "once" in caught.value.hint


def test_deep_json_rows_are_read(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = {"a": deep}
    rows = [r | {"labels": deep} for r in gcp_rows([ONE], DAYS[:1])]
    assert len(one(write_text(tmp_path / "g.json", json.dumps(rows))).spent) == 3


def sheet(path: Path, rows: list[list[Any]]) -> Path:
    """A spreadsheet as Excel writes it: shared texts, numbers, and dates by their format."""
    texts = sorted({cell for row in rows for cell in row if isinstance(cell, str)})
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = []
        for place, cell in enumerate(row):
            where = f'r="{chr(65 + place)}{number}"'
            if isinstance(cell, str):
                cells.append(f'<c {where} t="s"><v>{texts.index(cell)}</v></c>')
            elif isinstance(cell, tuple):
                cells.append(f'<c {where} s="1"><v>{cell[0]}</v></c>')
            elif cell is not None:
                cells.append(f"<c {where}><v>{cell}</v></c>")
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    ns = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "xl/worksheets/sheet1.xml", f"<worksheet {ns}><sheetData>{''.join(lines)}</sheetData></worksheet>"
        )
        shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
        book.writestr("xl/sharedStrings.xml", f"<sst {ns}>{shared}</sst>")
        formats = '<xf numFmtId="0"/><xf numFmtId="14"/>'
        book.writestr("xl/styles.xml", f"<styleSheet {ns}><cellXfs>{formats}</cellXfs></styleSheet>")
    return path


def test_own_rows_in_a_spreadsheet(tmp_path: Path) -> None:
    rows = [["device", "from", "usd_per_h"], ["GPU-a", (46042,), 2.5], ["gpu-1", None, 20]]
    found = one(sheet(tmp_path / "own.xlsx", rows))
    assert [(r.device, r.from_ms, r.usd_per_h) for r in found.paid] == [
        ("GPU-a", DAY, Decimal("2.5")), ("gpu-1", None, 20),
    ]  # fmt: skip


def test_a_spreadsheet_with_entities_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(file, "w") as book:
        book.writestr("xl/worksheets/sheet1.xml", '<!DOCTYPE x [<!ENTITY a "aaaa">]><worksheet>&a;</worksheet>')
    with pytest.raises(FileFault, match="declares entities"):
        one(file)
    with zipfile.ZipFile(file, "w") as book:
        book.writestr("notes.txt", "no sheet")
    with pytest.raises(FileFault, match="a zip archive, not a spreadsheet"):
        one(file)


class Racks:
    """A kind of another package."""

    def fits(self, content: Content) -> bool:
        return "rack_usd" in content.columns

    def read(self, content: Content) -> Found:
        rows = [row for _, row in content.table]
        spent = (Spent(content.path, 2, (r["rack"],), DAY, DAY + MS_PER_DAY, Decimal(r["rack_usd"])) for r in rows)
        return Found(content.path, "racks", len(rows), spent=tuple(spent))


def test_a_kind_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    KINDS.names()
    monkeypatch.setitem(KINDS._things, "racks", Racks())
    found = one(write_text(tmp_path / "racks.csv", "rack,rack_usd\ngpu-a,12.50\n"))
    assert (found.kind, total(found)) == ("racks", Decimal("12.50"))


VALUES = st.sampled_from(
    [None, True, 0, -1, 1e308, "", [], {}, [1], {"a": 1}, "x", "2026-01-20", [[]], 10**30, "NaN", "Infinity"]
)
DOCUMENTS = {
    "nodes": nodes([ONE]), "allocations": allocations([ONE], DAYS), "gcp": gcp_rows([ONE], DAYS[:1]),
    "aws": aws_rows([ONE], DAYS[:1]), "azure": azure_rows([ONE], DAYS[:1]), "focus": focus_rows([ONE], DAYS[:1]),
    "own": [{"device": "gpu-a", "usd_per_h": 3, "from": "2026-01-20"}],
}  # fmt: skip


def changed(value: Any, chance: Random, put: Any) -> Any:
    """The document with one part of it replaced."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        return value | {key: changed(value[key], chance, put)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        return [*value[:place], changed(value[place], chance, put), *value[place + 1 :]]
    return put


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(chance=st.randoms(use_true_random=False), puts=st.lists(VALUES, min_size=1, max_size=3))
def test_whatever_a_file_holds_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: str, chance: Random, puts: list[Any]
) -> None:
    document = DOCUMENTS[kind]
    for put in puts:
        document = changed(document, chance, put)
    file = write_json(tmp_path_factory.getbasetemp() / f"{kind}.json", document)
    there = [Presence("GPU-a", "gpu-a", "0", "NVIDIA H100 80GB HBM3", DAY, DAY + MS_PER_DAY)]
    next_step, devices = "none needed", set[str]()
    try:
        devices = {row.device for row in settle(read_stock([file]), there).rows}
    except InputError as error:
        next_step = error.hint
    assert next_step
    assert devices <= {"GPU-a"}
