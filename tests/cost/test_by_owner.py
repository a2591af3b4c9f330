"""Do dollars add up to the bill by whatever they are broken down, and does time without a label say so?"""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from handmade import BUSY, Books, line
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.cost.build import cost_statement
from gpuledger.cost.statement import to_json
from gpuledger.cost.teams import NO_TEAM, Config, NamespaceConfig
from gpuledger.efficiency.groups import owner_rows
from gpuledger.efficiency.means import make_accounts
from gpuledger.errors import UnknownName
from gpuledger.ledger.read.books import Books as Reader
from gpuledger.ledger.read.owners import By, dimension, named_by, space_name
from gpuledger.ledger.read.rollup import read_accounts
from gpuledger.ledger.read.scope import NO_NAMESPACE, UNALLOCATED, Scope, namespace_name

TEAMS = Config(namespaces={"n1": NamespaceConfig(team="red")})
OWNERS = ("namespace", "team", "user", "account", "workload", "run_id", "pod")


def paid(lake, by: str, **scope: Any) -> dict[str, int]:
    cost = cost_statement(lake, Scope(**scope), price=1, by=by, teams=TEAMS)
    assert sum(row.dollars.paid_usd for row in cost.by_asked) == cost.paid_usd
    return {row.name: int(row.dollars.paid_usd) for row in cost.by_asked}


@pytest.fixture
def lake(books: Books):
    return books(
        line(0, **BUSY, team="blue", user="ann", account="lab", workload="train", run_id="7", pod="p0"),
        line(1, **BUSY, user="bob", run_id="8"),
        line(2, **BUSY, namespace=None, user="bob"),
        line(3, **BUSY, namespace=None),
    )


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("user", {"ann": 1, "bob": 2, "no user recorded": 1}),
        ("account", {"lab": 1, "no account recorded": 3}),
        ("job", {"7 (train)": 1, "8": 1, "no job recorded": 2}),
        ("pod", {"n1/p0": 1, "no pod recorded": 3}),
        ("team", {"blue": 1, "red": 1, NO_TEAM: 1, UNALLOCATED: 1}),
        ("namespace", {"n1": 2, NO_NAMESPACE: 1, UNALLOCATED: 1}),
        ("cluster", {"c1": 4}),
    ],
)
def test_dollars_by_every_kind_of_owner(lake, by, expected):
    assert paid(lake, by) == expected


def test_a_row_can_be_asked_for_by_its_name(lake):
    for name, dollars in paid(lake, "namespace").items():
        assert paid(lake, "namespace", namespaces=(name,)) == {name: dollars}


def test_json_keeps_its_keys_and_gains_what_was_asked_for(lake):
    plain = to_json(cost_statement(lake, price=1))
    assert to_json(cost_statement(lake, price=1, by="namespace")) == plain
    asked = to_json(cost_statement(lake, price=1, by="user"))
    assert set(asked) - set(plain) == {"by_user"}
    assert {k: v for k, v in asked.items() if k != "by_user"} == plain


@given(st.lists(st.fixed_dictionaries({n: st.sampled_from([None, "a", "b"]) for n in OWNERS}), min_size=1, max_size=8))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_breakdown_adds_up_to_the_same_bill(books, owners):
    lake = books(*(line(i, **BUSY, **owner) for i, owner in enumerate(owners)))
    bills = {by: paid(lake, by) for by in By}
    assert {sum(bill.values()) for bill in bills.values()} == {len(owners)}
    for by in By:
        accounts = make_accounts(read_accounts(Reader(lake, Scope()), by.labels), None)
        means = {row.name: row.means.observed_h for row in owner_rows(accounts, by, TEAMS.set_team)}
        assert sum(means.values()) == pytest.approx(len(owners))
        if by is not By.TEAM:  # the bill calls time without a team by two names
            assert means == {name: pytest.approx(dollars) for name, dollars in bills[by].items()}


def test_books_from_before_these_labels_stay_readable(lake):
    for file in (lake.root / "ledger").glob("*/*.parquet"):
        old = pq.read_table(file, partitioning=None)
        pq.write_table(old.drop_columns([n for n in ("team", "user", "account", "pod") if n in old.column_names]), file)
    assert paid(lake, "user") == {"no user recorded": 4}
    assert paid(lake, "team") == {"red": 2, UNALLOCATED: 2}
    assert paid(lake, "job") == {"7 (train)": 1, "8": 1, "no job recorded": 2}


def test_what_parts_without_a_label_are_called():
    assert space_name(None, owned=True) == NO_NAMESPACE
    assert space_name(None, owned=False) == UNALLOCATED
    assert namespace_name(NO_NAMESPACE) not in {NO_NAMESPACE, UNALLOCATED}
    assert named_by(By.POD, {"pod": "p", "namespace": None}, owned=True) == "p"
    with pytest.raises(UnknownName, match="usr"):
        dimension("usr")
