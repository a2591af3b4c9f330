"""Are the parameters that errors and plans name written as options on the command line, and nothing else?"""

from __future__ import annotations

import pytest

from gpuledger.cli.spelling import spell_error, spelled, spelled_document
from gpuledger.errors import FileFault, InputError
from gpuledger.report.document import Bullets, Chart, Code, Document, Section, Terms
from gpuledger.report.tables import make_table

NAMES = {
    name: f"--{name.replace('_', '-')}"
    for name in ("as_of", "service_s", "concurrency", "pools", "gpu", "gpus", "usd_per_kwh", "data", "per_gpu")
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("give service_s a value above 0", "give --service-s a value above 0"),
        ("give a later deadline, or an earlier as_of", "give a later deadline, or an earlier --as-of"),
        ("give gpus=1 or more", "give --gpus 1 or more"),
        ("give either pools or gpu", "give either --pools or --gpu"),
        ("give service_s and concurrency", "give --service-s and --concurrency"),
        ('give data="2 TB" too', 'give --data "2 TB" too'),
        ("Price (usd_per_kwh).", "Price (--usd-per-kwh)."),
    ],
)
def test_parameters_become_options(text, expected):
    assert spelled(text, NAMES) == expected


@pytest.mark.parametrize(
    "text",
    [
        "the gpus and the data are elsewhere",
        "traces/as_of.csv cannot be read",
        "folder/service_s/x.csv",
        "the column 'service_s' is empty",
        "settings.as_of.day",
        "served_s, gpu_hours",
        "--service-s 3 and gpus",
    ],
)
def test_other_words_stay(text):
    assert spelled(text, NAMES) == text


def test_the_first_word_of_an_error_may_be_a_parameter():
    error = InputError("gpus is 'x'", hint="gpu is what to give")
    spell_error(error, NAMES)
    assert (error.message, error.hint) == ("--gpus is 'x'", "--gpu is what to give")


def test_the_columns_of_a_file_stay():
    error = FileFault("a.csv", "no column with the time among as_of, service_s", hint="name it as_of, or give gpu=a10g")
    spell_error(error, NAMES)
    assert error.message == "a.csv: no column with the time among as_of, service_s"
    assert error.hint == "name it as_of, or give --gpu a10g"


def test_prose_and_tables_of_a_document_are_spelled_but_not_its_code_charts_and_data():
    words, data = "give as_of", {"as_of": "as_of"}
    blocks = [
        Bullets([words]), Terms([(words, words)]), Code(words), Chart("as_of", words),
        make_table("as_of", words, (words,), "w", [[words]], note=words),
    ]  # fmt: skip
    made = Document("as_of", "plan", words, words, sections=[Section("as_of", words, blocks)], data=lambda: data)
    told = spelled_document(made, NAMES)
    bullets, terms, code, chart, table = told.sections[0].blocks
    option = "give --as-of"
    assert (told.name, told.headline, told.sections[0].id, told.sections[0].title) == ("as_of", option, "as_of", option)
    assert (bullets.items, terms.pairs) == ([option], [(option, option)])
    assert (code.text, chart.name, chart.subject) == (words, "as_of", words)
    assert (table.name, table.caption, table.heads, table.note) == ("as_of", option, (option,), option)
    assert (table.rows[0][0].text, table.rows[0][0].key) == (option, words)
    assert told.data() == data


def test_a_plan_names_options_on_the_terminal_and_parameters_in_json(cli):
    asked = ("plan", "tco", "--gpu", "h100-sxm", "--gpus", 8)
    assert "--three-year-usd" in cli(*asked, "--full").out
    assert "three_year_usd" not in cli(*asked, "--full").out
    assert "three_year_usd" in cli(*asked, "--json").out


def test_python_hears_parameters():
    from gpuledger import plan

    with pytest.raises(InputError) as caught:
        plan.batch(jobs="jobs.csv")
    assert "--" not in str(caught.value)
    assert "pools=FILE" in str(caught.value)
