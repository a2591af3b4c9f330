"""Is what was measured still there when a measurement is told to end or its time is up?"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import time
from pathlib import Path

import pytest

from gpuledger.devices.replay.clock import HUNG_S

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kept_results.py"


@pytest.fixture(scope="module")
def kept():
    spec = importlib.util.spec_from_file_location("kept_results", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_what_it_has(kept, tmp_path, number):
    file, before = tmp_path / "out.json", signal.getsignal(number)
    results = kept.Results(file)

    def work():
        for step in range(100):
            results.keep("part", {"steps": step}, cut_short="in the middle")
            try:
                if step == 3:
                    os.kill(os.getpid(), number)
                    rest(HUNG_S)
            except Exception:  # noqa: BLE001 - as trials do with faults of a job
                pass

    with pytest.raises(kept.Ended, match=number.name), kept.ending(60):
        work()
    assert json.loads(file.read_text()) == {"unfinished": {"part": "in the middle"}, "part": {"steps": 3}}
    assert signal.getsignal(number) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def rest(seconds):
    """In short pieces, as work is: a signal that another thread happens to take does not wake one that sleeps."""
    over = time.monotonic() + seconds
    while time.monotonic() < over:
        time.sleep(0.01)


def test_the_time_limit_ends_it(kept):
    begun = time.monotonic()
    with pytest.raises(kept.Ended, match="the time is up"), kept.ending(0.05):
        rest(HUNG_S)
    assert time.monotonic() - begun < HUNG_S


def test_it_is_told_again_where_the_first_was_swallowed(kept, monkeypatch):
    monkeypatch.setattr(kept, "AGAIN_S", 0.5)
    swallowed = []

    def work():
        try:
            rest(HUNG_S)
        except kept.Ended as first:
            swallowed.append(first)
        rest(HUNG_S)

    with pytest.raises(kept.Ended, match="the time is up"), kept.ending(0.5):
        work()
    assert len(swallowed) == 1


def test_a_whole_part_is_not_given_up_for_a_piece(kept, tmp_path):
    file = tmp_path / "out.json"
    kept.Results(file).keep("part", "whole")
    again = kept.Results(file)
    again.keep("part", "a piece", cut_short="cut")
    assert json.loads(file.read_text()) == {"unfinished": {}, "part": "whole", "pieces": {"part": "a piece"}}
    again.keep("part", "newer")
    assert json.loads(file.read_text()) == {"unfinished": {}, "part": "newer", "pieces": {}}


def test_the_file_is_never_half_written(kept, tmp_path):
    file = tmp_path / "out.json"
    results = kept.Results(file)
    results.keep("part", 1)
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="Circular"):
        results.keep("other", loop)
    assert json.loads(file.read_text())["part"] == 1
