"""Are the figures of live GPUs those of the statements, and does every GPU keep its row?"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.advice.asking import paying
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import cost_statement
from gpuledger.devices.nvml import NvmlSource
from gpuledger.devices.replay.clock import QuickClock, VirtualClock
from gpuledger.devices.replay.doors import boards_from_csv
from gpuledger.devices.replay.fake_nvml import FakeNvml
from gpuledger.devices.replay.faults import ClockStep, LostGpu
from gpuledger.devices.replay.script import Board, Scenario, Segment
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.encode import encode
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.scope import Scope
from gpuledger.recording.record import Recording
from gpuledger.tui import live_devices
from gpuledger.tui.fleet import Waste, totals
from gpuledger.tui.live_devices import LiveDevices
from gpuledger.units import Range, Unknown
from screens import GIB, LOADS, boards, load, play_on

DATA = Path(__file__).parents[1] / "data" / "h200_replay.csv.gz"


def test_figures_are_those_of_a_recording_of_the_same_seconds(tmp_path, live):
    """The recording goes the long way: recorded, posted, stated. Both see the readings at the same instants."""
    seconds = 30
    looked = live(boards_from_csv(DATA), seconds=seconds).look()
    clock = QuickClock(200, start_s=VirtualClock().wall(), lasts_s=seconds)
    source, lake = NvmlSource(FakeNvml(boards_from_csv(DATA), clock)), Lake(tmp_path / "lake")
    with Recording(lake, hz=live_devices.HZ, device=source, of_job=False, clock=clock):
        clock.until(seconds)
    post_lake(lake, load_thresholds(None))
    scope = Scope(since_ms=looked.at_ms - 10_000, until_ms=looked.at_ms + 200)
    row = efficiency_statement(lake, scope).per_gpu[0]
    cost = cost_statement(lake, scope, price=Decimal("4.00")).by_gpu[0]
    gpu = looked.gpus[0]
    assert isinstance(gpu.realized_pct, Range)
    assert isinstance(gpu.waste, Waste)
    assert gpu.util_pct == pytest.approx(row.means.gpu_util_pct, rel=0.02)
    assert gpu.power_w == pytest.approx(row.means.power_w, rel=0.02)
    assert gpu.realized_pct.middle == pytest.approx(row.means.rfu_counters_pct.middle, rel=0.05)
    share = cost.dollars.waste_usd / cost.dollars.paid_usd
    assert float(gpu.waste.usd_per_h) == pytest.approx(4 * float(share), rel=0.05)
    assert gpu.usd_per_h == cost.usd_per_h == 4


def test_what_gpus_do_and_for_whom(node):
    found = node.look().gpus
    assert [gpu.name for gpu in found] == [f"node-1/{i}" for i in range(5)]
    assert [gpu.state for gpu in found] == list(LOADS)
    assert [gpu.owners for gpu in found] == [("llama-70b",), ("vllm",), ("llama-70b", "vllm"), (), ()]
    assert [[p.program for p in gpu.processes] for gpu in found[:3]] == [["train.py"], ["vllm"], ["train.py", "vllm"]]
    assert found[0].processes[0].memory_bytes == 118 * GIB
    assert found[3].waste == found[4].waste == Waste(Decimal(4), Decimal(0))


def test_totals_add_up(node):
    fleet = node.look()
    total = totals(fleet.gpus)
    assert (total.gpus, total.priced, total.usd_per_h) == (5, 5, 20)
    assert total.waste.usd_per_h == sum(gpu.waste.usd_per_h for gpu in fleet.gpus)
    assert total.util_pct == pytest.approx(sum(gpu.util_pct for gpu in fleet.gpus) / 5)


def test_unknown_is_never_a_number(live):
    found = [replace(boards("matrix")[0], gpm=False, model="Model X")]
    fleet = live(found, price=None).look()
    gpu, total = fleet.gpus[0], totals(fleet.gpus)
    assert gpu.state == "busy"
    for figure in (gpu.realized_pct, gpu.usd_per_h, gpu.waste, total.realized_pct, total.usd_per_h, total.waste):
        assert isinstance(figure, Unknown)
        assert figure.why
    said = encode("top", fleet)
    assert said["gpus"][0]["realized_pct"] is None
    assert {"gpus[].realized_pct", "gpus[].usd_per_h", "gpus[].waste"} <= {n["figure"] for n in said["not_known"]}


def test_work_without_a_known_price_still_shows_its_work(live):
    gpu = live([replace(boards("matrix")[0], model="Model X")], price=None).look().gpus[0]
    assert gpu.util_pct == pytest.approx(100)
    assert isinstance(gpu.usd_per_h, Unknown)


def test_the_window_is_the_last_seconds(live):
    script = Scenario([Segment(40, **LOADS["idle"]), Segment(600, **LOADS["matrix"])])
    source = live([Board(script)], seconds=45)
    assert 20 < source.look().gpus[0].util_pct < 80
    play_on(source, 15)
    assert source.look().gpus[0].util_pct == pytest.approx(100)


def test_a_short_pause_is_a_wait_and_a_long_one_idle(live):
    busy = Segment(20, **LOADS["matrix"])
    paused = [busy, Segment(15, **load(0.0, 118, 64, 0.0, 0.0, 0.0)), Segment(2, **LOADS["matrix"])]
    assert live([Board(Scenario(paused))], seconds=36.9).look().gpus[0].state == "waiting"
    ended = [busy, Segment(600, **load(0.0, 118, 64, 0.0, 0.0, 0.0))]
    assert live([Board(Scenario(ended))], seconds=60).look().gpus[0].state == "held"


def test_rows_do_not_pile_up(live):
    source = live(boards("idle"), seconds=60)
    most = len(source._held[source._driver.devices[0].facts.name])
    for _ in range(3):
        play_on(source, 60)
    assert source.observed_s <= live_devices.KEPT_S + live_devices.WINDOW_S + 2
    assert len(source._held[source._driver.devices[0].facts.name]) <= most * 1.3


def test_a_lost_gpu_is_still_there_and_still_paid_for(live):
    fleet = live(boards("matrix", "idle"), faults=[LostGpu(gpu=1, at_s=5)]).look()
    lost = fleet.gpus[1]
    assert (lost.state, lost.usd_per_h) == ("lost", 4)
    assert isinstance(lost.util_pct, Unknown)
    assert "lost" in lost.util_pct.why
    assert fleet.gpus[0].util_pct == pytest.approx(100)
    total = totals(fleet.gpus)
    assert (total.priced, total.usd_per_h) == (2, 8)
    assert total.waste.unrated_usd_per_h == 4


def test_a_mig_instance_costs_its_share(live):
    script = Scenario([Segment(600, **LOADS["matrix"])])
    board = Board(script, instances=((1, 2, script), (2, 4, script)))
    found = live([board]).look().gpus
    assert [gpu.name for gpu in found] == ["node-1/0 MIG 1", "node-1/0 MIG 2", "node-1/0 rest"]
    assert float(sum(gpu.usd_per_h for gpu in found)) == pytest.approx(4, rel=1e-3)
    assert float(found[1].usd_per_h) == pytest.approx(2 * float(found[0].usd_per_h), rel=1e-5)
    before = live([board], seconds=0).look().gpus
    assert [float(g.usd_per_h) for g in before] == pytest.approx([float(g.usd_per_h) for g in found[:2]], rel=1e-4)


def test_history_grows_with_every_look(own_node):
    node = own_node
    device = node.look().gpus[0].device
    assert not node.changed()
    play_on(node, 4)
    assert node.changed()
    node.look()
    points = node.history(device).points
    assert len(points) == 2
    assert points[0].at_ms < points[1].at_ms
    assert points[1].realized_pct == pytest.approx(67, abs=1)


def test_a_clock_set_back_does_not_freeze_the_view(tmp_path, proc):
    clock = VirtualClock(steps=[ClockStep(at_s=30, step_s=-3600)])
    source = NvmlSource(FakeNvml(boards("matrix"), clock))
    devices = LiveDevices(source, paying(tmp_path, price=Decimal(4)), clock=clock, host="n", environ={}, proc=proc)
    devices.sampler.run(50)
    fleet = devices.look()
    devices.close()
    assert fleet.at_ms == pytest.approx(1000 * (VirtualClock().wall() + 50 - 3600), abs=2000)
    assert fleet.gpus[0].util_pct == pytest.approx(100)


def test_processes_the_driver_does_not_list_are_unknown(live):
    def refuse():
        raise OSError("no permission")

    gpu = live([replace(boards("matrix")[0], pids=refuse)]).look().gpus[0]
    assert isinstance(gpu.processes, Unknown)
    assert "no permission" in gpu.processes.why


def test_a_process_that_is_not_visible_is_shown_by_its_number(live):
    gpu = live([replace(boards("matrix")[0], pids=(99999,))]).look().gpus[0]
    assert gpu.processes[0].pid == 99999
    assert isinstance(gpu.processes[0].program, Unknown)


def test_live_threads_read_real_time_and_end(tmp_path):
    devices = LiveDevices(f"replay:{DATA}", paying(tmp_path))
    devices.start()
    try:
        for _ in range(100):
            if devices.observed_s > 1:
                break
            devices._clock.sleep(0.05)
        assert devices.look().gpus[0].power_w > 50
    finally:
        devices.close()
