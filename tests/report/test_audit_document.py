"""Does audit.html open offline, put the money first, add up and trust no label?"""

from __future__ import annotations

import dataclasses
import itertools
import re
from decimal import Decimal

import pytest

from gpuledger.advice.statement import AuditStatement
from gpuledger.cost.statement import BUCKETS, WASTE
from gpuledger.efficiency.naming import gpu_name
from gpuledger.efficiency.statement import NotKnown
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.documents.audit import audit_document, repeated
from gpuledger.report.documents.audit_rows import NAMED, audit_view, devices_named
from gpuledger.report.outline import load_outline
from gpuledger.report.render.html import render_html
from gpuledger.report.tables import Table
from gpuledger.report.written import tie
from gpuledger.units import Unknown
from reading import Page

HOSTILE = '<script>alert("x")</script>'


def page_of(audit: AuditStatement, charts: bool = True) -> str:
    return render_html(audit_document(audit), None if charts else {})


def table_of(name: str, audit: AuditStatement) -> Table:
    return load_outline("audit").table(name, audit_view(audit))


@pytest.fixture(scope="module")
def page(audit) -> str:
    return page_of(audit)


def money(text: str) -> Decimal:
    return Decimal(text.replace("$", "").replace(",", "").replace("\u2212", "-"))


def test_the_money_is_first_and_the_first_thing_to_do_second(page, audit):
    body = page[page.index("<main") :]
    first, second = body.index("$13,773 a month"), body.index("First: Change number 3")
    assert first < second < body.index('class="cards"')
    assert "<h1" in body[:first]


def test_audit_and_plan_say_how_their_savings_relate(audit):
    from gpuledger.plan.move.verdict import settings_file

    for place in (audit_document(audit).notes, audit_document(audit).screen):
        (words,) = plans_named(place)
        assert "gpuledger plan migrate --lake" in words
        assert "do not add them" in words
        assert "plan spot" not in words
        assert "plan tco" not in words
    assert "overlap and must not be added" in settings_file().beside_audit
    free = dataclasses.replace(audit, savings=Unknown("nothing is priced"))
    assert plans_named(audit_document(free).notes) == []


@pytest.mark.parametrize(("advice", "plan"), [("spot", "gpuledger plan spot"), ("reserved", "gpuledger plan tco")])
def test_the_short_answer_names_the_plan_that_works_out_its_advice(audit, advice, plan):
    first, *rest = audit.recommendations
    advised = dataclasses.replace(audit, recommendations=[dataclasses.replace(first, id=advice), *rest])
    (words,) = plans_named(audit_document(advised).screen)
    assert plan in words
    assert "Their savings and this one overlap" in words


def plans_named(place):
    return [block.text for block in place if block.kind == "prose" and "gpuledger plan" in block.text]


def test_nothing_is_fetched_and_every_tag_is_closed(page):
    parsed = Page(page)
    assert parsed.open == []
    assert (parsed.count("h1"), parsed.count("svg"), parsed.count("figure")) == (1, 3, 3)
    for tag, attributes in parsed.tags:
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"\$[a-z]", page)


def test_accessible(page):
    parsed = Page(page)
    assert all(a.get("scope") in {"col", "row"} for t, a in parsed.tags if t == "th")
    assert all(a.get("aria-label") for t, a in parsed.tags if t == "svg")
    assert parsed.count("caption") == parsed.count("table")
    levels = [int(t[1]) for t, _ in parsed.tags if re.fullmatch(r"h[1-6]", t)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    ids = [a["id"] for _, a in parsed.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    links = {str(a["href"])[1:] for t, a in parsed.tags if t == "a"}
    assert links <= set(ids)


def test_every_recommendation_has_its_card_and_snippet(page, audit):
    text = Page(page).text
    for r in audit.recommendations:
        assert f'id="advice-{r.id}"' in page
        assert r.title in text
        assert r.change.text.splitlines()[0] in text
    assert "if a &lt; b and c &gt; d: ```" in page
    assert "one way to buy" in text
    assert page.count("start here") == 1
    assert "nobody measured it" in text
    assert "assumed: assumed" not in text
    assert tie("705 kWh (300 to 1,367), likely $84.66") in text


def test_savings_say_which_overlap_and_which_compound(page, audit):
    text = Page(page).text
    for words in audit.savings.words:
        assert words in text
    assert "113.8" in text


def test_the_bill_adds_up_on_the_page(audit):
    table = table_of("bill", audit)
    place = table.heads.index("Dollars")
    assert sum(money(row[place].text) for row in table.rows) == money(table.total[place].text)
    assert money(table.total[place].text) == round(audit.cost.paid_usd, 2)
    shares = [row["pct"] for row in audit_view(audit)["bill"]]
    assert all(share == round(share, 1) for share in shares)
    assert round(sum(shares), 6) == 100
    assert round(sum(audit_view(audit)["phases_pct"].values()), 6) == 100


@pytest.mark.parametrize("name", ["namespaces", "teams", "owners", "gpus"])
def test_columns_add_up_to_their_totals_and_totals_to_the_bill(audit, name):
    table = table_of(name, audit)
    heads = [h for h in table.heads if h in {"Paid", "Idle held", *(kind.title for kind in bucket_kinds())}]
    assert len(heads) == 1 + len(bucket_kinds())
    totals = {}
    for head in heads:
        place = table.heads.index(head)
        totals[head] = money(table.total[place].text)
        assert sum(money(row[place].text) for row in table.rows) == totals[head]
    assert sum(totals[h] for h in heads[1:]) == totals["Paid"]


def test_a_cut_table_still_adds_up(audit):
    rows = audit.cost.by_gpu * 120
    many = dataclasses.replace(audit, cost=dataclasses.replace(audit.cost, by_gpu=rows))
    table = table_of("gpus", many)
    place = table.heads.index("Paid")
    assert len(table.rows) == 201
    assert table.rows[-1][0].text == "160 more"
    assert "first 200 of 360 rows" in table.note
    assert sum(money(row[place].text) for row in table.rows) == money(table.total[place].text)


def test_every_table_can_be_filled(audit, unpriced_audit, compared_audit):
    for name in load_outline("audit").tables:
        for made in (audit, unpriced_audit, compared_audit):
            table = table_of(name, made)
            assert all(len(row) == len(table.heads) for row in table.rows)


def test_without_a_price_hours_remain_and_dollars_are_not_known(unpriced_audit):
    page = page_of(unpriced_audit)
    text = Page(page).text
    assert "not known: no price for Homemade X1" in text
    assert "paid GPU-hours were not put to use" in text
    assert "$nan" not in text.lower()


def test_the_last_period_appears_where_asked_for(page, compared_audit, audit):
    assert 'id="before"' not in page
    text = Page(page_of(compared_audit, charts=False)).text
    assert "Against the last period" in text
    assert "paid more by volume" in text
    why = dataclasses.replace(audit.cost, previous=Unknown("the period before has nothing to compare with"))
    said = Page(page_of(dataclasses.replace(audit, cost=why), charts=False)).text
    assert "not known: the period before has nothing to compare with" in said


def test_tables_that_say_nothing_are_left_out(audit):
    assert repeated(audit.cost) == frozenset()
    rows = audit.cost.by_namespace
    nobody = tuple(dataclasses.replace(r, name="no team") for r in rows[:1])
    plain = dataclasses.replace(audit.cost, by_owner=rows, by_team=nobody)
    assert repeated(plain) == {"teams", "owners"}


def test_hostile_labels_stay_words(audit):
    def evil(row):
        return dataclasses.replace(row, name=HOSTILE)

    cost = dataclasses.replace(
        audit.cost,
        by_namespace=tuple(map(evil, audit.cost.by_namespace)),
        by_owner=tuple(map(evil, audit.cost.by_owner)),
        by_gpu=tuple(dataclasses.replace(g, gpu_uuid=HOSTILE, gpu_model=HOSTILE) for g in audit.cost.by_gpu),
    )
    advice = tuple(
        dataclasses.replace(r, namespaces=(HOSTILE,), why=HOSTILE, change=dataclasses.replace(r.change, text=HOSTILE))
        for r in audit.recommendations
    )
    page = page_of(
        dataclasses.replace(
            audit, cost=cost, recommendations=advice, headline=(HOSTILE, HOSTILE), assumptions=(HOSTILE,),
            not_known=(NotKnown(HOSTILE, HOSTILE),),
        )
    )  # fmt: skip
    assert "<script>alert" not in page
    assert Page(page).count("script") == 1


def test_what_cannot_be_rated_stands_below_the_first_thing_to_do(audit: AuditStatement):
    note = "12 % of the bill ($9.99) is unrated: busy. Next step: record the fp32 pipe."
    text = Page(page_of(dataclasses.replace(audit, unrated_note=note), charts=False)).text
    assert text.index(audit.headline[0].split(",")[0]) < text.index(audit.headline[1]) < text.index(tie(note))
    assert text.index(tie(note)) < text.index("Paid in this window")
    assert 'class="under warning"' not in page_of(audit, charts=False)


def test_no_recommendation_at_all(audit: AuditStatement):
    empty = dataclasses.replace(audit, recommendations=(), savings=Unknown("nothing to combine"), behaviours=())
    text = Page(page_of(empty)).text
    assert "No rule found anything to change." in text
    assert "not known: nothing to combine" in text


def test_buckets_are_the_statements_own():
    assert sorted(k.name for k in bucket_kinds()) == sorted(BUCKETS)
    assert {k.name for k in bucket_kinds() if k.waste} == set(WASTE)
    assert len({k.role for k in bucket_kinds()}) == len(BUCKETS)


def test_figures_alone_fill_no_table(audit: AuditStatement, monkeypatch: pytest.MonkeyPatch):
    def filled(*_given: object) -> Table:
        raise AssertionError("a table was filled")

    monkeypatch.setattr("gpuledger.report.outline.build_table", filled)
    made = audit_document(audit)
    assert made.data()["statement"] == "audit"
    bill = next(s for s in made.sections if s.id == "bill")
    with pytest.raises(AssertionError, match="a table was filled"):
        list(bill.blocks)


def test_a_recommendation_names_the_gpus_with_the_most_expensive_waste(audit: AuditStatement):
    rows, first = audit.cost.gpu_rows, audit.recommendations[0]
    waste = {name: 0 if isinstance(row.dollars, Unknown) else row.dollars.waste_usd for name, row in rows.items()}
    worst = sorted((name for name in rows if waste[name]), key=lambda name: (-waste[name], name))[:NAMED]
    assert len(worst) == NAMED
    everywhere = dataclasses.replace(first.targets[0], devices=("GPU-0", *sorted(rows)))
    words = ", ".join(gpu_name(rows[name], rows[name].gpu_instance_id) for name in worst)
    found = devices_named(dataclasses.replace(first, targets=(everywhere,)), audit)
    assert found == f"GPUs: {words} and {len(rows) + 1 - NAMED} more"
