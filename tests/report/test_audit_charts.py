"""Do the audit's charts draw their figures, on any audit, in both palettes?"""

from __future__ import annotations

import dataclasses
import re

import pytest

from gpuledger.errors import UnknownName
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.charts import CHARTS, chart, chart_names
from gpuledger.report.documents.audit import audit_document
from gpuledger.report.render.html import draw_charts
from gpuledger.report.render.pictures import page_svg, to_svg
from gpuledger.units import Unknown

NAMES = ["bill", "savings", "owners"]


def texts(name, audit):
    svg = to_svg(chart(name, audit))
    return [re.sub(r"\s+", " ", t) for t in re.findall(r">([^<>]+)</text>", svg)]


def drawings_of(audit):
    return draw_charts(audit_document(audit))


def test_they_are_in_the_one_registry(audit):
    assert list(drawings_of(audit)) == NAMES == chart_names("audit")
    with pytest.raises(UnknownName, match="did you mean bill"):
        CHARTS.get("bil")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_is_drawn_in_both_palettes(name, theme, audit, unpriced_audit):
    for made in (audit, unpriced_audit):
        svg = to_svg(chart(name, made, theme))
        assert svg.startswith("<svg")
        assert "NaN" not in svg


@pytest.mark.parametrize("name", NAMES)
def test_on_the_page_every_colour_is_the_themes(name, audit):
    drawn = drawings_of(audit)[name]
    svg = page_svg(name, drawn)
    assert "var(--" in svg
    assert not re.search(r'(fill|stroke)="#[0-9a-f]{6}"', svg)
    assert 'aria-label="' in svg


def test_the_bill_steps_down_from_paid_to_productive(audit):
    said = texts("bill", audit)
    for title in ("Paid", *(kind.title for kind in bucket_kinds())):
        assert title in said
    assert any("%" in t and "$" in t for t in said)


def test_without_a_price_the_bill_is_in_hours(unpriced_audit):
    drawn = drawings_of(unpriced_audit)
    assert "paid GPU-hours" in drawn["bill"].title
    assert any(t.endswith(" h") for t in texts("bill", unpriced_audit))
    assert "not known" in " ".join(texts("owners", unpriced_audit))


def test_the_savings_title_has_both_sums(audit):
    drawn = drawings_of(audit)["savings"]
    assert "40" in drawn.title
    assert "not 114" in drawn.title
    alone = dataclasses.replace(audit.savings, naive_pct=audit.savings.combined_pct)
    same = drawings_of(dataclasses.replace(audit, savings=alone))["savings"]
    assert ", not" not in same.title
    none = dataclasses.replace(audit, savings=Unknown("nothing was paid"))
    assert "not known" in drawings_of(none)["savings"].title


def test_owners_are_cut_and_said_so(audit):
    rows = tuple(dataclasses.replace(audit.cost.by_namespace[0], name=f"ns-{i:02d}") for i in range(20))
    many = dataclasses.replace(audit, cost=dataclasses.replace(audit.cost, by_namespace=rows))
    drawn = drawings_of(many)["owners"]
    assert "The 15 most expensive of 20" in drawn.subtitle
    one = dataclasses.replace(audit, cost=dataclasses.replace(audit.cost, by_namespace=rows[:1]))
    assert "was not put to use" in drawings_of(one)["owners"].title
