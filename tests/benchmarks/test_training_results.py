"""Do new measurements of training add to those that are kept, without a worse one in place of a better?"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "results" / "training_h200.json"


@pytest.fixture(scope="module")
def results():
    return load("training_results")


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(date="2026-12-01", gpu="NVIDIA H200", **parts):
    made_with = {"gpu": gpu, "torch": "2.11", "python": "3.12", "command": "python x", "date": date}
    return {"made_with": made_with, **parts}


def job(points=8, *, whole=True, ratio=0.98):
    tuning = {"job": "a job", "gained": False, "total": None, "tuning_s": 9.0}
    over = {"winner_over_best": ratio, "winner_over_best_low": 0.9, "winner_over_best_high": 1.0}
    return {"tuning": tuning, "grid": {"points": [0] * points, "possible": 8, "whole": whole, **over}}


def test_what_is_kept_can_be_joined_with_a_new_run_and_keeps_its_origin(results):
    kept = results.read(KEPT)
    again = results.joined([kept, run(idle={"0 workers": {}}, tuned=job())])
    assert {part: again[part] for part in ("worked", "language_model")} == {
        part: kept[part] for part in ("worked", "language_model")
    }
    assert again["tuned"] == job()
    origin = {part: one["date"] for one in again["runs"] for part in one["parts"]}
    assert origin["worked"] == kept["runs"][0]["date"]
    assert origin["idle"] == origin["tuned"] == "2026-12-01"
    assert results.joined([again]) == again


def test_a_piece_does_not_take_the_place_of_a_whole(results):
    first, cut = run("1", tuned=job()), run("2", tuned=job(2, whole=False))
    assert results.joined([first, cut])["tuned"]["grid"]["whole"]
    assert not results.joined([cut])["tuned"]["grid"]["whole"]
    assert results.joined([cut, first])["runs"][0]["date"] == "1"
    claims = run("2", claims={"products": 1}, unfinished={"claims": "cut"})
    assert results.joined([claims, run("3", claims={"products": 2})])["claims"] == {"products": 2}
    assert results.joined([run("3", claims={"products": 2}), claims])["unfinished"] == {}
    assert results.joined([run("3", worked={"total": {"ratio": 4}}), run("4", worked={"total": None})])["worked"][
        "total"
    ]
    killed = run("3", tuned=job(), unfinished={"tuned": "the run ended in the middle of it"})
    found = results.joined([first, killed])
    assert found["unfinished"] == {}
    assert [one["date"] for one in found["runs"]] == ["1"]
    assert results.joined([killed])["unfinished"] == {"tuned": "the run ended in the middle of it"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps(run(gpu="CPU")), "was measured on CPU; these pages are about the H200"),
        ("{", "not what benchmarks/tuner_on_gpu.py writes"),
        ("{}", "not what benchmarks/tuner_on_gpu.py writes"),
        ("[]", "not what benchmarks/tuner_on_gpu.py writes"),
    ],
)
def test_what_is_no_such_measurement_is_refused(results, tmp_path, text, said):
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(SystemExit, match=said):
        results.read(file)
