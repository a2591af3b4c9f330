"""Does `gpuledger train report` show what meters stored, without torch?"""

from __future__ import annotations

import sys

import pytest

from gpuledger.catalog.gpus import get_gpu
from gpuledger.lake.counted import CountedSpan
from gpuledger.lake.layout import Lake
from gpuledger.training.findings import find_all
from gpuledger.training.meter.observed import Identity, LoaderFacts, Observed, Place, StepSeconds, Work
from gpuledger.training.meter.report import make_report, price_of, store


def stored(lake: Lake, rank: int = 0, ranks: int = 1, forward_s: float = 0.02) -> None:
    gpu = get_gpu("h100-sxm5-80gb")
    phases = {"data_wait": 0.04, "h2d": 0.0, "forward": forward_s, "backward": 0.04, "optimizer": 0.0, "sync": 0.0}
    total = sum(phases.values())
    seen = Observed(
        who=Identity("run-7", rank, ranks, f"node{rank}"), place=Place("cuda", "NVIDIA H100 80GB HBM3", gpu, "GPU-a"),
        state="done", steps=50, timed_steps=40, updates=50, start_ms=0, end_ms=5000, phases_s=phases, host_s=phases,
        step=StepSeconds(total, total, total, total), precision="bf16", work=Work(4e13, 4e13, 1e13, "counted"),
        tokens_per_step=8192.0, samples_per_step=8.0, loader=LoaderFacts("DataLoader", 0, False), cpus=8,
    )  # fmt: skip
    made = make_report(seen, price_of(gpu, 2.0), (), find_all(seen))
    store(lake, made, (CountedSpan(start_ms=0, end_ms=5000, steps=50, tflop=2000.0),))


def test_no_meter_yet_says_the_next_step(cli):
    ended = cli("train", "report", "--lake", "nowhere")
    assert ended.code == 2
    assert "metered(loader, model" in ended.err


def test_the_table_and_the_json_say_the_same(cli, tmp_path):
    loaded = "torch" in sys.modules  # by other tests, where it is installed
    stored(Lake(tmp_path / "lake"))
    data = cli("train", "report", "--lake", "lake", "--json").json()
    report = data["runs"][0]["ranks"][0]
    shown = cli("train", "report", "--lake", "lake")
    assert shown.code == 0
    assert report["mfu_pct"] == pytest.approx(100 * 4e13 / 0.1 / 989.5e12)
    for figure in (f"{report['mfu_pct']:.1f} %", f"{report['tokens_per_s']:,.0f}", "The device waits for its batches"):
        assert figure in shown.out
    assert report["findings"][0]["rule"] == "num-workers"
    assert "next: record the GPU during the job" in shown.out + shown.err  # an audit needs telemetry: there is none yet
    assert ("torch" in sys.modules) is loaded


def test_the_slow_rank_is_named(cli, tmp_path):
    lake = Lake(tmp_path / "lake")
    for rank, forward_s in ((0, 0.02), (1, 0.05)):
        stored(lake, rank, 2, forward_s)
    ended = cli("train", "report", "--lake", "lake")
    assert "rank 1 on node1" in ended.out
    assert cli("train", "report", "--lake", "lake", "--json").json()["runs"][0]["compared"]["slow"] == 1


def test_an_unknown_run_names_the_nearest(cli, tmp_path):
    stored(Lake(tmp_path / "lake"))
    ended = cli("train", "report", "--lake", "lake", "--run", "run-8")
    assert ended.code == 2
    assert "run-7" in ended.err
