"""Does import --explain say of any file what it is, why, what is stated, and what to do next, in one screen?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpuledger.cli.app import run
from gpuledger.report.document import Terms
from gpuledger.report.documents.explained import explained_document
from gpuledger.telemetry.explain import explain, explain_file
from gpuledger.telemetry.formats import Format, Kind, Seen, recognize

TESTS = Path(__file__).parents[1]
SAMPLES = [*(TESTS / "telemetry" / "fixtures").glob("*/*"), *(TESTS / "corpus").glob("*_way_out.*")]


@pytest.mark.parametrize("file", sorted(f for f in SAMPLES if f.suffix != ".expect"), ids=lambda f: f.name)
def test_an_explanation_is_one_screen(file, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(file.parent)
    assert run(["import", "--explain", file.name]) == 0
    lines = capsys.readouterr().out.rstrip("\n").splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines), default=0) <= 80


def test_what_is_stated_and_why_it_was_recognized(tmp_path):
    (tmp_path / "node7.csv").write_text("timestamp, index, power.draw [W]\n2026/03/02 09:00:00.000, 0, 50.00 W\n")
    found = explain_file(tmp_path / "node7.csv")
    assert {one.option for one in found.stated} >= {"--host NAME", "--tz NAME"}
    assert found.problem == ""
    data = explained_document(found).data()
    assert (data["format"], data["runner_up"]) == ("nvidia_smi_query", None)
    assert data["why"] == "line 1: timestamp, index, power.draw [W]"
    assert data["stated"][0] == {"what": "host 'node7' after the file's name", "option": "--host NAME"}


def test_a_format_that_is_as_sure_is_named(tmp_path):
    (tmp_path / "f.csv").write_text("time,gpu,power [W]\n2026-03-02T09:00:00Z,0,50\n")
    found = recognize(tmp_path / "f.csv")
    other = Format("twin", Kind.TELEMETRY, lambda _: Seen(found.seen.fit, "its header"))
    twins = found._replace(next_key="twin", next_format=other, next_seen=Seen(found.seen.fit, "its header"))
    document = explained_document(replace(explain(tmp_path / "f.csv"), recognized=twins))
    assert document.data()["runner_up"] == "twin"
    (above, _) = [block for block in document.summary if isinstance(block, Terms)]
    assert ("as likely", "twin: its header") in above.pairs


@pytest.mark.parametrize(
    ("name", "kind", "answer"),
    [("job_table.csv", "jobs", "GPU-hours"), ("codecarbon_3.csv", "runs", "kWh"), ("focus.csv", "inventory", "GPUs"),
     ("vllm_page_oldest.txt", "requests", "prompt tokens")],
)  # fmt: skip
def test_a_file_of_another_kind_says_what_it_holds(capsys, name, kind, answer):
    assert run(["import", "--explain", str(TESTS / "corpus" / name), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["importable"]) == (kind, False)
    assert answer in found["answer"]
    assert found["why"]
    assert name in found["next"]
