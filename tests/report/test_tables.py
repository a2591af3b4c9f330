"""Are the tables filled from the statement, cut and sorted as their data file says?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.errors import UnknownName
from gpuledger.report import tables
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.outline import load_outline
from gpuledger.report.tables import SAME_REASON, Table
from gpuledger.report.written import NARROW, model
from gpuledger.units import Unknown


def build_table(name: str, s: EfficiencyStatement) -> Table:
    return load_outline("efficiency").table(name, s)


def test_every_table_can_be_filled_from_any_statement(
    statement: EfficiencyStatement, one_gpu: EfficiencyStatement, unknown_statement: EfficiencyStatement
) -> None:
    for name in load_outline("efficiency").tables:
        for s in (statement, one_gpu, unknown_statement):
            table = build_table(name, s)
            assert all(len(row) == len(table.heads) == len(table.words) for row in table.rows)
            assert all(0 < place < len(table.heads) for place in (*table.below, *table.wide))


def test_rows_and_total_are_the_statement_s(statement: EfficiencyStatement) -> None:
    table = build_table("models", statement)
    assert [row[0].text for row in table.rows] == [model(g.name) for g in statement.by_model]
    util = table.heads.index("Utilization")
    assert table.rows[0][util].text == f"69.0{NARROW}%"
    assert table.rows[0][util].key == 69.0
    assert table.total is not None
    assert (table.total[0].text, table.total[util].text) == ("Fleet", f"70.9{NARROW}%")
    assert table.total[table.heads.index("Bottlenecked, of active")].text == ""


def test_one_row_has_no_total(one_gpu: EfficiencyStatement) -> None:
    single = dataclasses.replace(one_gpu, by_model=one_gpu.by_model[:1])
    assert build_table("models", single).total is None


def test_worst_first_and_cut_with_a_note(make: Callable[..., EfficiencyStatement]) -> None:
    table = build_table("per_gpu", make(gpus=300, hours=2))
    assert len(table.rows) == 200
    assert "first 200 of 300 rows" in table.note
    keys = [row[table.heads.index("Bottlenecked, of active")].key for row in table.rows]
    assert keys == sorted(keys, reverse=True)


def test_whole_fleet_fits_without_a_note(statement: EfficiencyStatement) -> None:
    table = build_table("per_gpu", statement)
    assert (len(table.rows), table.note) == (50, "")


def test_optional_columns_appear_only_where_used(statement: EfficiencyStatement) -> None:
    assert "MIG instance" not in build_table("per_gpu", statement).heads
    first = dataclasses.replace(statement.per_gpu[0], gpu_instance_id="3")
    mig = dataclasses.replace(statement, per_gpu=(first, *statement.per_gpu[1:]))
    assert "MIG instance" in build_table("per_gpu", mig).heads


def test_a_reason_is_said_once_in_a_row(statement: EfficiencyStatement) -> None:
    row = build_table("capacity_models", statement).rows[2]
    said = [c.text for c in row if c.unknown]
    assert said == ["not known: Homemade X1 is not in the catalog", *[SAME_REASON] * 3]
    assert all(c.key is None for c in row if c.unknown)


def test_bottlenecked_table_holds_the_consistent_ones(statement: EfficiencyStatement) -> None:
    table = build_table("bottlenecked", statement)
    assert len(table.rows) == len(statement.bottlenecked_gpus) == 20
    assert {row[table.heads.index("Likely cause")].text for row in table.rows} == {"storage", "network"}


def test_unknown_table_suggests_the_nearest(statement: EfficiencyStatement) -> None:
    with pytest.raises(UnknownName, match="did you mean models"):
        build_table("model", statement)


def test_written_shares_of_a_whole_make_a_hundred(statement: EfficiencyStatement) -> None:
    """Rounded one by one these are 10.4, 25.8, 30.1 and 33.8: 100.1 %."""
    phases = {"idle": 10.36, "underutilized": 25.76, "productive": 30.06, "compute_bound": 33.82}
    given = dataclasses.replace(statement, active=dataclasses.replace(statement.active, phases_pct=phases))
    found = [float(row[1].text.removesuffix(f"{NARROW}%")) for row in build_table("phases", given).rows]
    assert sum(found) == pytest.approx(100.0, abs=1e-9)
    assert all(abs(share - exact) < 0.1 for share, exact in zip(found, phases.values(), strict=True))


def test_bands_of_utilization_are_not_called_as_buckets_are(statement: EfficiencyStatement) -> None:
    names = [row[0].text for row in build_table("phases", statement).rows]
    assert names == ["Near zero", "Low", "High", "Very high"]
    assert not {name.casefold() for name in names} & {kind.title.casefold() for kind in bucket_kinds()}


CENTS = st.integers(0, 500_000).map(lambda cents: Decimal(cents) / 100)
SPLITS = st.lists(st.fixed_dictionaries({kind.name: CENTS for kind in bucket_kinds()}), min_size=1, max_size=6)


@settings(max_examples=80, deadline=None)
@given(SPLITS, st.sampled_from([0, 2]))
def test_dollars_add_up_where_a_row_is_unknown_too(splits: list[dict[str, Decimal]], places: int) -> None:
    """A row without a price holds no dollars: the others are all there is."""
    unpriced, why = {"name": "amd", "gpus": 1, "times": {"paid_h": 1.0}}, Unknown("no price")
    rows = [
        {**unpriced, "name": f"n{i}", "dollars": {"paid_usd": sum(s.values()), "waste_usd": s["idle"]}, "buckets": s}
        for i, s in enumerate(splits)
    ]
    known = {name: sum((s[name] for s in splits), Decimal(0)) for name in splits[0]}
    rows.append({**unpriced, "dollars": why, "buckets": dict.fromkeys(known, why)})
    whole = {**unpriced, "by_namespace": rows, "buckets": known, "dollars": {"paid_usd": sum(known.values())}}
    made = tables.build_table("n", load_outline("audit").tables["namespaces"], {"cost": whole}, places)
    assert made.total is not None
    for place in range(made.heads.index("Paid"), len(made.heads)):
        cells = [row[place].text for row in made.rows if not row[place].unknown]
        assert sum(map(dollars, cells)) == dollars(made.total[place].text), made.heads[place]


def dollars(text: str) -> Decimal:
    return Decimal(text.replace("$", "").replace(",", ""))
