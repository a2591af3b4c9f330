"""Does `gpuledger plan regions` answer on a terminal, as JSON and as a page, and refuse bad input in words?"""

from __future__ import annotations

import pytest

BASE = ("plan", "regions", "--gpu", "h100-sxm", "--gpus", 8)


def test_the_front_comes_first(cli):
    ended = cli(*BASE, "--within", "eu")
    assert ended.code == 0
    assert "not beaten by another" in ended.out.splitlines()[0]
    assert "The front" in ended.out
    assert "Refused" in ended.out


def test_json_has_the_front_what_it_beats_and_every_refused_region(cli):
    ended = cli(*BASE, "--cloud", "aws", "--data", "20 TB", "--data-at", "aws:us-east-1", "--json")
    made = ended.json()
    assert (ended.code, made["statement"]) == (0, "regions")
    assert all(c["on_front"] and not c["dominated_by"] for c in made["chosen"])
    front = {f"{c['cloud']}:{c['region']}" for c in made["chosen"]}
    assert {c["dominated_by"] for c in made["runners_up"]} <= front
    assert all(c["as_of"] for c in made["chosen"])
    assert all(r["reason"] for r in made["refused_regions"])


def test_the_short_answer_says_what_to_check(cli):
    said = " ".join(cli(*BASE, "--data", "5 TB", "--country", "de", "--within", "eea").out.split())
    assert "Old prices: cudo (20" in said
    assert "Moving the data is counted as $0" in said
    assert "--data-at CLOUD:REGION" in said
    assert "--per-instance 8 asks for larger ones" in said
    assert "in eea or de" in said
    assert "de does not narrow eea" in said
    assert "Next to the audit" in said


def test_nothing_to_check_is_not_shown(cli):
    asked = ("--data", "5 TB", "--data-at", "aws:us-east-1", "--within", "eu", "--country", "ch", "--per-instance", 8)
    made = cli(*BASE, *asked, "--cloud", "aws", "--json").json()
    assert [w for w in made["warnings"] if not w.startswith("Old prices")] == []


def test_a_page_with_its_chart(cli, tmp_path):
    ended = cli(*BASE, "--within", "eu", "--out", tmp_path / "out")
    assert ended.code == 0
    page = (tmp_path / "out" / "regions.html").read_text()
    assert "Dollars against carbon" in page
    assert "Ember" in page


@pytest.mark.parametrize(
    ("given", "words", "next_step"),
    [
        (("--within", "germny"), "germny", "germany"),
        (("--region", "aws:eu-wst-1"), "aws:eu-wst-1", "aws:eu-west-1"),
        (("--cloud", "awz"), "awz", "aws"),
        (("--data", "2 apples"), "not an amount of data", "TB"),
        (("--data", "5"), "--data '5' has no unit", '--data "5 GB"'),
        (("--per-instance", "512"), "have only smaller instances", "fewer GPUs per instance"),
        (("--hours", "nan"), "--hours nan", "--hours above 0"),
        (("--hours", "-5"), "--hours -5", "--hours above 0"),
        (("--gpus", "0"), "--gpus 0", "--gpus 1"),
        (("--min-zones", "0"), "--min-zones 0", "--min-zones 1"),
        (("--load-pct", "0"), "--load-pct 0", "--load-pct above 0"),
        (("--data-at", "aws:us-east-1"), "without data", "--data"),
        (("--country", "th"), "no region can run", "allow more countries"),
        (
            ("--cloud", "aws", "--data", "1 TB", "--data-at", "runpod:US"),
            "an unknown price of moving the data",
            "--moving-usd-per-gb",
        ),
    ],
)
def test_bad_input_is_refused_with_a_next_step(cli, given, words, next_step):
    ended = cli(*BASE, *given)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert next_step in ended.err
