"""Do the migration page and its Markdown show every plan, option and refusal, safely and offline?"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from decimal import Decimal

import pytest

from gpuledger.encode import encode
from gpuledger.plan.guide.asking import form_of, plan_configured
from gpuledger.plan.guide.config import reference
from gpuledger.plan.guide.sets import plan_set, together
from gpuledger.plan.guide.words import dollars
from gpuledger.report.documents.migrate import key_figures, migrate_document
from gpuledger.report.documents.migrate_rows import options_table, shown
from gpuledger.report.render.html import render_html
from gpuledger.report.render.markdown import render_markdown
from gpuledger.report.theme import load_theme
from gpuledger.report.write import write_document


@pytest.fixture(scope="module")
def found():
    config = reference()
    return plan_set(config, "performance_focus", lambda i: plan_configured(config, form_of(config.workloads[i]), i))


def test_page_and_twin_hold_every_plan_option_and_refusal(found):
    document = migrate_document(found)
    page, text = render_html(document), render_markdown(document)
    for plan in found.plans:
        assert plan.verdict != "nothing fits"
        for shape in (page, text):
            assert plan.job.expected_outcome in shape
        for option in shown(plan):
            assert option.candidate.name in page
        for group in plan.refused_groups:
            assert group.remedies[0].replace("<", "&lt;") in page
    assert page.count('<section aria-labelledby="plan-') == len(found.plans)


def test_the_page_opens_offline(found):
    page = render_html(migrate_document(found))
    assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', page.replace('href="migrate.json"', ""))


def test_a_name_is_words_not_markup(found):
    plan = found.plans[0]
    wicked = replace(plan, job=replace(plan.job, name="<script>alert(1)</script>|**x**"))
    page, text = (render(migrate_document(together([wicked]))) for render in (render_html, render_markdown))
    assert "<script>alert" not in page
    assert "<script>alert" not in text
    assert "|**x**" not in text


def test_every_figure_of_the_tables_is_in_the_json(found):
    data = encode("migration", found)
    for plan, told in zip(found.plans, data["plans"], strict=True):
        by_id = {o["id"]: o for o in told["options"]}
        for option, row in zip(shown(plan), options_table(plan).rows, strict=True):
            same = by_id[option.candidate.id]
            assert float(same["monthly_usd"]) == float(option.monthly_usd)
            assert row[-1].text == f"{same['score']:.3f}"
        assert len(told["refused"]) == len(plan.refused)
        assert len(by_id) == len(plan.options)


def test_what_is_not_known_says_why(found):
    told = encode("migration", found)
    assert told["plans"][0]["chosen"]["speed_ratio"] is None
    whys = {n["figure"]: n["why"] for n in told["not_known"]}
    assert "cannot run it" in whys["plans[].chosen.speed_ratio"]


def test_files_are_whole_and_json_is_strict(found, tmp_path):
    files = write_document(migrate_document(found), tmp_path, charts=False)
    assert set(files) == {"migrate.html", "migrate.md", "migrate.json"}
    data = json.loads(files["migrate.json"].read_text(), parse_constant=pytest.fail)
    assert [f.label for f in key_figures(found)] == ["Now", "As proposed", "Saving"]
    assert data["now_usd"] == "12400"


class TestChart:
    def test_each_plan_has_its_own_and_every_point_is_a_row_of_the_table(self, found):
        pytest.importorskip("vl_convert")
        page = render_html(migrate_document(found))
        for number, plan in enumerate(found.plans, 1):
            (chart,) = re.findall(rf'<figure id="chart-options-{number}">.*?</figure>', page, re.DOTALL)
            for option in shown(plan):
                assert f"{option.candidate.name}: {dollars(option.monthly_usd)} per month, " in chart
            assert ("keep: " if plan.chosen.current else "chosen: ") in chart

    def test_names_do_not_cover_each_other(self):
        pytest.importorskip("altair")
        from gpuledger.report.charts.migrate.options import HEIGHT, LABEL_PX, heights

        places = heights([0.1, 0.1, 0.11, 0.9, 0.0])
        assert all(b - a >= LABEL_PX - 0.01 for a, b in itertools.pairwise(sorted(places)))
        assert 0 < min(places) < max(places) < HEIGHT
        assert places[3] == pytest.approx(0.1 * HEIGHT)

    def test_one_option_alone_draws_no_chart(self, found):
        pytest.importorskip("altair")
        from gpuledger.report.charts.migrate.options import draw

        plan = found.plans[1]
        alone = replace(plan, options=(plan.chosen,), runners_up=(), cheapest=plan.chosen, fastest=plan.chosen)
        assert draw(alone, load_theme("light")) is None


def test_dollars_below_zero_have_their_sign_in_front(found):
    assert dollars(Decimal(-33200)) == "-$33,200"
    assert "$-" not in render_html(migrate_document(found))
