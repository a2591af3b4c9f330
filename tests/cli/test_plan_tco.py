"""Does `gpuledger plan tco` answer on a terminal, as JSON and as a page, and refuse bad input in words?"""

from __future__ import annotations

import pytest

BASE = ("plan", "tco", "--gpu", "h100-sxm")


def test_the_answer_comes_first_then_paths_and_what_decides_it(cli):
    ended = cli(*BASE, "--gpus", 64)
    assert ended.code == 0
    assert ended.out.startswith("64 x H100-SXM5-80GB for 3 years: owning costs")
    assert "on-demand" in ended.out
    assert "What decides it" in ended.out
    assert "1-year commitment" in ended.out  # refused: its price is unknown


def test_json_is_exact_and_names_the_source_of_every_input(cli):
    ended = cli(*BASE, "--rent-usd", 3, "--three-year-discount-pct", 40, "--json")
    made = ended.json()
    assert (ended.code, made["statement"]) == (0, "tco")
    assert all(one["source"] or one["basis"] == "assumed" for one in made["inputs"])
    prices = {one["name"]: one["middle"] for one in made["inputs"]}
    assert (prices["rent_usd"], prices["three_year_usd"]) == ("3", "1.8")
    assert made["swings"]


def test_every_default_is_named_in_the_assumptions(cli):
    made = cli(*BASE, "--json").json()
    said = " ".join(made["assumptions"])
    used = [one["name"] for one in made["inputs"] if one["basis"] != "given" and one["name"] != "decline_pct"]
    assert not [name for name in used if name not in said]


def test_a_page_with_its_charts(cli, tmp_path):
    ended = cli(*BASE, "--one-year-usd", 3, "--spot", "--out", tmp_path / "out")
    assert ended.code == 0
    page = (tmp_path / "out" / "tco.html").read_text()
    assert "Cash by month" in page
    assert "matters most" in page


def test_the_short_answer_has_ranges_and_the_date_of_both_prices(cli):
    ended = cli(*BASE, "--gpus", 64)
    assert "purchase price of 2024-08" in ended.out
    assert "on-demand prices of 20" in ended.out
    assert "Range" in ended.out
    assert "Next to the audit" in ended.out


def test_figures_are_rounded_and_a_price_of_the_user_has_no_date(cli):
    ended = cli(*BASE, "--years", 4, "--rent-usd", 2, "--purchase-usd", 30_000, "--utilization-pct", 99.0414, "--full")
    assert "99 % used" in ended.out
    assert "on-demand price given" in ended.out
    assert "purchase price given" in ended.out
    assert "prices of given" not in ended.out
    assert "48.7 months" in ended.out
    assert "$555,266 to" not in ended.out  # 8 x 35,040 h x 99.0414 % x $2, without a range
    assert "$555,266" in ended.out


@pytest.mark.parametrize(
    ("given", "words", "next_step"),
    [
        (("--gpu", "h200-sxm"), "no citable purchase price", "--purchase-usd"),
        (("--gpu", "h100z"), "h100z", "did you mean"),
        (("--years", 0), "--years 0", "--years 1"),
        (("--gpus", -3), "--gpus -3", "--gpus 1"),
        (("--pue", 0.9), "--pue 0.9", "--pue 1 or more"),
        (("--utilization-pct", 0), "--utilization-pct 0", "above 0"),
        (("--utilization-pct", 120), "--utilization-pct 120", "up to 100"),
        (("--purchase-usd", "inf"), "--purchase-usd inf", "above 0"),
        (("--rent-usd", "nan"), "--rent-usd nan", "above 0"),
        (("--capital-pct", -1), "--capital-pct -1", "0 or more"),
        (("--one-year-usd", 2, "--one-year-discount-pct", 30), "--one-year-discount-pct 30", "one of the two"),
        (("--one-year-discount-pct", 100), "--one-year-discount-pct 100", "less than 100"),
        (("--last", "7d"), "without a lake", "--lake"),
        (("--lake", "/nowhere"), "nowhere", "import"),
        (("--cloud", "nowhere"), "nowhere", "--rent-usd"),
    ],
)
def test_bad_input_is_refused_with_a_next_step(cli, given, words, next_step):
    ended = cli(*BASE, *given)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert next_step in ended.err
