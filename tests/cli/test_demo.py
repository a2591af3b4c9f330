"""Does the demo make, post, analyze and report its fleet, and land where it must?"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gpuledger.cli.app import run
from gpuledger.cli.commands.demo import published_findings

MAX_W = {"NVIDIA A100-SXM4-40GB": 400.0, "NVIDIA H100 80GB HBM3": 700.0, "NVIDIA A10G": 300.0}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One run of the whole demo: its folder and its answer."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(["demo", "--out", str(folder), "--json"]) == 0
    return folder, json.loads(out.getvalue())


def test_the_answer_is_complete(demo):
    folder, said = demo
    assert (said["samples"], said["gpus"], said["clusters"]) == (504_000, 50, 3)
    assert said["roi"]
    assert all(set(r) >= {"target_rfu_pct", "equivalent_gpus"} for r in said["roi"])
    assert said["rfu_counters_pct"] is None  # SM activity is not recorded: a range
    assert 0 < said["rfu_counters"]["low"] < said["rfu_counters"]["high"]
    assert Path(said["report"]) == folder / "report.html"
    for path in (said["data"], said["lake"], said["report"], *said["files"].values()):
        assert Path(path).exists(), path
    assert len(pq.read_schema(said["data"])) == 36
    assert pq.read_metadata(said["data"]).num_rows == 504_000


def test_equal_to_a_plain_calculation_on_the_same_file(demo):
    _, said = demo
    names = {"MODELNAME": "model", "DCGM_FI_DEV_GPU_UTIL": "util", "DCGM_FI_DEV_POWER_USAGE": "power"}
    frame = pq.read_table(said["data"], columns=list(names)).to_pandas().rename(columns=names)
    pif = (frame["power"] / frame["model"].map(MAX_W).astype(float)).clip(0, 1)
    active = frame["util"] > 1
    bottlenecked = active & (frame["util"] > 70) & (pif < 0.60)
    assert said["gpu_util_pct"] == pytest.approx(frame["util"].mean(), rel=1e-6)
    assert said["pif"] == pytest.approx(pif.mean(), rel=1e-6)
    assert said["rfu_power_pct"] == pytest.approx(100 * pif.mean(), rel=1e-6)
    assert said["efficiency_gap_pp"] == pytest.approx((frame["util"] - 100 * pif).mean(), rel=1e-6)
    assert said["bottlenecked_pct_of_active"] == pytest.approx(100 * bottlenecked.sum() / active.sum(), rel=1e-6)


def test_near_the_published_findings(demo):
    _, said = demo
    published = {f["name"]: f["value"] for f in said["published"]["figures"]}
    for name, room in (
        ("gpu_util_pct", 2),
        ("pif", 0.02),
        ("efficiency_gap_pp", 2.5),
        ("bottlenecked_pct_of_active", 5),
    ):
        assert abs(said[name] - published[name]) <= room, name
    at_70 = next(r for r in said["roi"] if r["target_rfu_pct"] == 70)
    assert at_70["equivalent_gpus"] == pytest.approx(50 * (70 / said["rfu_power_pct"] - 1))


def test_published_figures_are_as_published():
    """50 x (70 / 65.5 - 1) = 3.4: the published figures agree with each other."""
    figures = {f.name: f.value for f in published_findings().figures}
    assert figures["rfu_power_pct"] == 100 * figures["pif"]
    assert figures["efficiency_gap_pp"] == pytest.approx(figures["gpu_util_pct"] - figures["rfu_power_pct"])
    assert figures["equivalent_gpus_at_70"] == pytest.approx(50 * (70 / figures["rfu_power_pct"] - 1), abs=0.05)


def test_again_on_the_screen(demo, cli, monkeypatch):
    """The second run replaces the first; the money comes first, on one screen."""
    monkeypatch.setattr("gpuledger.report.charts.can_draw", lambda: False)
    folder, said = demo
    (folder / "left over").touch()
    ended = cli("demo", "--out", folder)
    assert ended.code == 0, ended.err
    assert not (folder / "left over").exists()
    assert len(ended.out.splitlines()) <= 40
    flat = " ".join(ended.out.split())
    assert flat.startswith("$")
    assert "Do first" in flat
    assert f"${float(said['audit']['paid_usd']):,.2f}" in flat
    assert str(folder / "report.html") in flat


def test_a_folder_of_others_is_refused(cli, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    ended = cli("demo", "--out", "mine")
    assert (ended.code, ended.out) == (2, "")
    assert "mine" in ended.err
    assert [f.name for f in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_the_report_says_what_was_published(demo):
    folder, said = demo
    page = (folder / "report.html").read_text()
    assert "Compared with GPU Efficiency Analytics (2026-01)" in page
    assert page.index("Cost audit") < page.index("Busy time against power")
    assert "paid time comes from inventory.csv" in page, "not from the folder it was made in"
    assert f"{said['published']['figures'][0]['value']:.1f}" in page


def test_the_demo_can_be_audited_as_it_says(demo, capfd):
    _, said = demo
    args = ["audit", "--lake", said["lake"], "--inventory", said["inventory"], "--teams", said["teams"], "--json"]
    capfd.readouterr()
    assert run(args) == 0
    audit = json.loads(capfd.readouterr().out)
    vocabulary = {"dali", "num-workers", "pin-memory", "prefetch", "fp8", "fused-kernels", "torch-compile", "spot"}
    assert len({r["id"] for r in audit["recommendations"]} & vocabulary) >= 2
    assert {p["basis"] for p in audit["prices"]} == {"inventory"}
    assert audit["buckets"]["unobserved"] == "0"
    assert {t["name"] for t in audit["by_team"]} == {"foundation models", "research", "risk", "serving"}
    savings = audit["savings"]
    assert savings["combined_pct"] <= savings["cap_pct"] < savings["naive_pct"]
    assert savings["with_rate_pct"] <= 100
