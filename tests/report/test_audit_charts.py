"""Do the audit's charts draw their figures, on any audit, in both palettes?"""

from __future__ import annotations

import dataclasses
import re

import pytest

from gpuledger.errors import UnknownName
from gpuledger.report.audit_charts import AUDIT_CHARTS, audit_chart, audit_drawings
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.charts import CHARTS
from gpuledger.report.page_svg import page_svg
from gpuledger.report.render import to_svg
from gpuledger.report.theme import load_theme
from gpuledger.units import Unknown

NAMES = ["bill", "savings", "owners"]


def texts(name, audit):
    svg = to_svg(audit_chart(name, audit))
    return [re.sub(r"\s+", " ", t) for t in re.findall(r">([^<>]+)</text>", svg)]


def test_they_have_a_registry_of_their_own(audit):
    assert list(audit_drawings(audit, load_theme())) == NAMES
    assert not set(NAMES) & set(CHARTS.names())
    with pytest.raises(UnknownName, match="did you mean bill"):
        AUDIT_CHARTS.get("bil")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_is_drawn_in_both_palettes(name, theme, audit, unpriced_audit):
    for made in (audit, unpriced_audit):
        svg = to_svg(audit_chart(name, made, theme))
        assert svg.startswith("<svg")
        assert "NaN" not in svg


@pytest.mark.parametrize("name", NAMES)
def test_on_the_page_every_colour_is_the_themes(name, audit):
    drawn = audit_drawings(audit, load_theme())[name]
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
    drawn = audit_drawings(unpriced_audit, load_theme())
    assert "paid GPU-hours" in drawn["bill"].title
    assert any(t.endswith(" h") for t in texts("bill", unpriced_audit))
    assert "not known" in " ".join(texts("owners", unpriced_audit))


def test_the_savings_title_has_both_sums(audit):
    drawn = audit_drawings(audit, load_theme())["savings"]
    assert "40" in drawn.title
    assert "not 114" in drawn.title
    alone = dataclasses.replace(audit.savings, naive_pct=audit.savings.combined_pct)
    same = audit_drawings(dataclasses.replace(audit, savings=alone), load_theme())["savings"]
    assert ", not" not in same.title
    none = dataclasses.replace(audit, savings=Unknown("nothing was paid"))
    assert "not known" in audit_drawings(none, load_theme())["savings"].title


def test_owners_are_cut_and_said_so(audit):
    rows = tuple(dataclasses.replace(audit.cost.by_namespace[0], name=f"ns-{i:02d}") for i in range(20))
    many = dataclasses.replace(audit, cost=dataclasses.replace(audit.cost, by_namespace=rows))
    drawn = audit_drawings(many, load_theme())["owners"]
    assert "The 15 most expensive of 20" in drawn.subtitle
    one = dataclasses.replace(audit, cost=dataclasses.replace(audit.cost, by_namespace=rows[:1]))
    assert "was not put to use" in audit_drawings(one, load_theme())["owners"].title
