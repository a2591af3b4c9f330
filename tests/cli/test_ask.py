from __future__ import annotations

import csv
import json
import shutil

import pytest

QUESTIONS = (("give-back",), ("budget", "--budget", "100"), ("change", "--last", "12h"))


@pytest.fixture
def lake(cli, fleet_lake):
    shutil.copytree(fleet_lake, "gpuledger-data")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q[0])
def test_a_question_is_answered_on_screen_in_json_and_as_one_file(cli, lake, tmp_path, question):
    ended = cli("ask", *question, "--price", "2", "--out", "answer.csv")
    assert ended.code == 0, ended.err
    told = cli("ask", *question, "--price", "2", "--json").json()
    assert told["statement"] in {"give_back", "budget", "change"}
    assert (tmp_path / "answer.csv").is_file()
    table = {"give_back": "give_back", "budget": "lines", "change": "owners"}[told["statement"]]
    assert len(list(csv.DictReader((tmp_path / "answer.csv").read_text().splitlines()))) == len(told[table])


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q[0])
def test_a_folder_gets_the_whole_document(cli, lake, tmp_path, question):
    ended = cli("ask", *question, "--price", "2", "--out", "folder", "--full")
    assert ended.code == 0, ended.err
    assert {"html", "md", "json"} <= {p.suffix[1:] for p in (tmp_path / "folder").iterdir()}
    assert json.loads(next((tmp_path / "folder").glob("*.json")).read_text())


def test_a_kind_of_file_that_cannot_be_written_is_refused(cli, lake, tmp_path):
    ended = cli("ask", "give-back", "--lake", "no-lake-needed-to-tell", "--price", "2", "--out", "answer.pdf")
    assert ended.code == 2
    assert "a .pdf file cannot be written" in ended.err
    assert ".xlsx" in ended.err
    assert not (tmp_path / "answer.pdf").exists()


def test_audit_and_analyze_write_one_table(cli, lake, tmp_path):
    assert cli("audit", "--price", "2", "--out", "a.csv").code == 0
    assert (tmp_path / "a.csv").read_text().startswith("name,gpus,paid_usd")
    assert cli("analyze", "--out", "g.csv").code == 0
    assert (tmp_path / "g.csv").read_text().startswith("gpu_uuid,")


def test_the_same_work_on_one_other_gpu(cli, dcgm_csv, tmp_path):
    """Two A100 at $3, each busy 60 %: the target at $1 of the user's own costs less, at $90 more."""
    assert cli("import", dcgm_csv("f.csv", minutes=24 * 60)).code == 0
    for price, sign in ((1, -1), (90, 1)):
        (tmp_path / "r.csv").write_text(f"gpu,usd_per_h,price_scope,as_of\nh200-sxm-141gb,{price},gpu,2026-01-01\n")
        assert cli("prices", "update", "r.csv").code == 0
        told = cli("plan", "migrate", "--lake", "gpuledger-data", "--price", "3", "--to", "h200-sxm", "--json").json()
        assert told["to"] == "h200-sxm-141gb"
        assert told["moving"] == 2
        assert float(told["change_month_usd"]) * sign > 0
        after = told["after_month"]
        gpus = told["gpus_after"][1]
        assert float(after["middle_usd"]) == pytest.approx(gpus * price * 720, rel=0.01)
    assert cli("plan", "migrate", "--lake", "gpuledger-data", "--to", "h100-sxm9").code == 2
    assert cli("plan", "migrate", "--to", "h200-sxm").code == 2


@pytest.mark.parametrize("budget", ["ten", "-5", "ml=0", "nan"])
def test_a_budget_that_is_no_amount_is_refused(cli, lake, budget):
    ended = cli("ask", "budget", "--budget", budget)
    assert ended.code == 2
    assert "--budget 20000" in ended.err


def test_python_gives_the_same_answers(cli, lake, tmp_path):
    import gpuledger

    books = gpuledger.open("gpuledger-data")
    told = cli("ask", "give-back", "--price", "2", "--json").json()
    assert books.give_back(prices=2).to_dict()["give_back"] == told["give_back"]
    told = cli("ask", "budget", "--price", "2", "--budget", "100", "--json").json()
    assert books.budget(100, prices=2).to_dict()["lines"] == told["lines"]
    told = cli("ask", "change", "--price", "2", "--last", "12h", "--json").json()
    answer = books.change(prices=2, last="12h")
    assert answer.to_dict()["owners"] == told["owners"]
    assert answer.save(tmp_path / "c.csv") == {"c.csv": tmp_path / "c.csv"}
