from __future__ import annotations

import pytest


@pytest.fixture
def lake(cli, fleet_parquet):
    assert cli("import", fleet_parquet).code == 0
    return "gpuledger-data"


def test_a_proposal_for_each_namespace_on_screen_in_json_and_in_files(cli, lake, tmp_path):
    ended = cli("plan", "migrate", "--lake", lake, "--price", "3", "--out", "plan")
    assert ended.code == 0, ended.err
    told = cli("plan", "migrate", "--lake", lake, "--price", "3", "--json").json()
    assert told["headline"] in ended.out.replace("\n", " ") or told["headline"][:60] in ended.out
    for space in told["namespaces"]:
        assert space["namespace"] in ended.out
        for held in space["holdings"]:
            assert held["verdict"]
            assert {"why", "remedy"} <= held["refused"][0].keys()
    assert {p.name for p in (tmp_path / "plan").iterdir()} == {"migrate.html", "migrate.md", "migrate.json"}
    table = ended.out.split("\n\n")[1]
    assert max(map(len, table.splitlines())) <= 100


def test_your_rates_are_used_first(cli, lake, tmp_path):
    (tmp_path / "r.csv").write_text("gpu,usd_per_h,price_scope,as_of\nb200-sxm,0.01,gpu,2026-01-01\n", encoding="utf-8")
    assert cli("prices", "update", "r.csv").code == 0
    told = cli("plan", "migrate", "--lake", lake, "--price", "3", "--json").json()
    prices = [
        move["price"]
        for space in told["namespaces"]
        for held in space["holdings"]
        for move in (held["move"], *held["runners_up"])
        if move and move["price"]
    ]
    assert any(p["yours"] and p["usd_per_gpu_h"] == "0.01" for p in prices)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--gpus", "2"], "--gpus"),
        (["--model", "llama-3.1-8b"], "--model"),
        (["--cloud", "asw"], "asw"),
        (["--region", "us-esat-1"], "us-esat-1"),
        (["--price", "cheap"], "cheap"),
        (["--namespace", "nobody-at-all"], "nobody-at-all"),
        (["--inventory", "gone.csv"], "gone.csv"),
    ],
)
def test_bad_input_is_exit_2_with_a_next_step(cli, lake, args, told):
    ended = cli("plan", "migrate", "--lake", lake, *args)
    assert ended.code == 2
    assert told in ended.err
    assert "next:" in ended.err


def test_a_lake_that_is_not_there_says_how_to_make_one(cli):
    ended = cli("plan", "migrate", "--lake", "nowhere")
    assert ended.code == 2
    assert "gpuledger import" in ended.err


def test_options_of_a_lake_need_one(cli):
    ended = cli("plan", "migrate", "--instance", "P5", "--namespace", "x")
    assert ended.code == 2
    assert "--lake" in ended.err


@pytest.mark.parametrize(
    "option", [("--busy", 20), ("--busy", 0), ("--model-size", "small"), ("--set", "basic_demos"), ("--whole",)]
)
def test_an_option_of_the_form_is_refused_by_the_name_it_was_given_by(cli, option):
    ended = cli("plan", "migrate", "--lake", "books", *option)
    assert ended.code == 2
    assert f"--lake knows what runs; it needs no {option[0]}\n" in ended.err
