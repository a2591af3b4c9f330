"""Do new measurements of training add to those that are kept, without a worse one in place of a better?"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from gpuledger.training.tune.duel import HOPELESS_FIRST_RATIO

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "results" / "training_h200.json"


@pytest.fixture(scope="module")
def results():
    return load("training_results")


@pytest.fixture(scope="module")
def figures():
    if str(ROOT / "benchmarks") not in sys.path:
        sys.path.append(str(ROOT / "benchmarks"))
    return load("training_figures")


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


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        ([20, 15.1, 24.9], "holds"),
        ([16, 10, 39], "holds in the middle; 10 to 39 measured"),
        ([20, 14.4, 22], "holds in the middle; 14 to 22 measured"),
        ([33, 28, 35], "more here"),
        ([28, 24, 35], "more here in the middle; 24 to 35 measured"),
        ([9, 2, 14], "less here"),
        ([9, 2, 30], "less here in the middle; 2 to 30 measured"),
    ],
)
def test_a_claimed_range_holds_only_with_all_that_was_measured(figures, seen, verdict):
    assert figures._in(seen, 15, 25) == verdict
    steps = {size: {"compile": {"torch.compile": speeds([1 + x / 100 for x in seen])}} for size in ("small", "large")}
    assert figures.claims({"claims": {"steps": steps}}).count(f"| {verdict} |") == 2
    idle = dict(zip(("idle_pct", "idle_low_pct", "idle_high_pct"), (x + 15 for x in seen), strict=True))
    told = figures.claims({"idle": {"0 workers": idle}})
    assert (
        f"{idle['idle_pct']:.0f} % ({idle['idle_low_pct']:.0f} to {idle['idle_high_pct']:.0f}) with 0 workers" in told
    )
    assert f"| {verdict.split(';')[0]}" in told


def speeds(seen):
    return dict(zip(("speedup", "speedup_low", "speedup_high"), seen, strict=True))


@pytest.mark.parametrize(
    ("by_size", "verdict"),
    [
        ([[13, 12, 14], [14, 13, 15]], "holds"),
        ([[2, 1, 3], [14, 13, 15]], "holds for 1024, not for the others"),
        ([[13, 12, 14], [14, 9, 15]], "holds for 512 and 1024 (in the middle)"),
        ([[2, 1, 3], [14, 9, 15]], "holds for 1024 (in the middle), not for the others"),
        ([[2, 1, 3], [4, 3, 5]], "less here"),
    ],
)
def test_tensor_cores_are_judged_by_size_and_range(figures, by_size, verdict):
    square = {n: {"bf16": speeds(seen)} for n, seen in zip(("512", "1024"), by_size, strict=True)}
    assert f"| {verdict} |" in figures.claims({"claims": {"products": {"square": square}}})


@pytest.mark.parametrize(
    ("ratio", "low", "high", "verdict"),
    [
        (0.99, 0.95, 1.09, "yes"),
        (0.99, 0.90, 1.09, "yes; the interval reaches below"),
        (0.90, 0.85, 0.94, "no"),
        (0.90, 0.85, 0.96, "no; the interval reaches above"),
        (0.99, None, None, "yes; no interval"),
        (None, None, None, "not shown: winner and best were not compared"),
    ],
)
def test_within_five_percent_is_judged_by_the_interval(figures, ratio, low, high, verdict):
    over = {"winner_over_best": ratio, "winner_over_best_low": low, "winner_over_best_high": high}
    assert figures.within({"whole": True, **over}) == verdict
    assert figures.within({"whole": False, **over}) == "not shown: the grid was cut short"
    told = job()
    told["grid"].update(over)
    assert f"| {verdict} |" in figures.grids({"tuned": told})


def test_the_words_beside_the_tables_are_those_of_the_measurement():
    guide = " ".join((ROOT / "docs" / "training.md").read_text(encoding="utf-8").split())
    short = " ".join((ROOT / "docs" / "results" / "training_h200.md").read_text(encoding="utf-8").split())
    for page in (guide, short):
        assert "the lowest and highest of 5 rounds (of 3 for the loader), not a 95 % interval" in page
    assert "\nTURNS = 5\n" in (ROOT / "benchmarks" / "training_claims.py").read_text(encoding="utf-8")
    small = json.loads(KEPT.read_text(encoding="utf-8"))["claims"]["steps"]["small"]
    same = (small["compile"]["eager"], small["fused"]["default"], small["item"]["no item"])
    ms = [f"{1000 * row['seconds']:.1f}" for row in same]
    assert f"the same step of one sequence takes {ms[0]}, {ms[1]} and {ms[2]} ms" in guide
    assert f"less than {HOPELESS_FIRST_RATIO} of the speed is given up after that one pair" in guide


def test_the_readme_tells_what_is_kept():
    words = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    kept, meter = json.loads(KEPT.read_text()), json.loads(KEPT.with_name("meter_h200.json").read_text())
    total, off = kept["worked"]["total"], max(r["parity"]["deviation_ratio"] for r in kept["worked"]["ladder"][1:])
    told = f"ran {total['ratio']:.1f}x faster (95 % CI {total['low']:.1f}-{total['high']:.1f}), loss within"
    assert f"{told} {100 * off:.2f} %" in words
    row = meter["overhead"]
    slower = f"{row['overhead_pct']:.2f} % longer ({row['low_pct']:.2f} to {row['high_pct']:.2f})"
    assert f"a step of {row['step_ms']:.0f} ms took {slower}" in words
    assert all(kept[job]["grid"]["winner_over_best"] >= 0.95 for job in ("language_model", "images", "tuned"))
    assert max(meter["off_pct"], meter["before"]["off_pct"]) < 3
