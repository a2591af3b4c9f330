"""Does the client know when it was itself the bottleneck?"""

from __future__ import annotations

import asyncio
import time

import pytest

from gpuledger.bench.client import ClientWatch, verdict

ROOM = {"cpu_s": 1.0, "wall_s": 10.0, "p95_lag_s": 0.001, "p95_late_s": None}


@pytest.mark.parametrize(
    ("found", "quick_s", "words"),
    [
        ({}, 0.1, ""),
        ({"cpu_s": 8.6}, 0.1, "86 % of a core"),
        ({"p95_lag_s": 0.011}, 0.1, "late by 11 ms"),
        ({"p95_lag_s": 0.011}, 1.0, ""),  # a hundredth of an answer
        ({"p95_late_s": 0.2}, 1.0, "sent 200 ms after they were due"),
        ({"cpu_s": 9.9}, 0.0, ""),  # nothing was answered: whoever failed, it was not for want of a client
    ],
)
def test_verdicts(found, quick_s, words):
    said = verdict({**ROOM, **found}, quick_s)
    assert words in said
    assert bool(said) is bool(words)


def watched(work, *, remote=True):
    async def run():
        watch = ClientWatch()
        watch.start()
        await work()
        return await watch.stop([0.05] * 20, [], remote=remote)

    return asyncio.run(run())


async def _hog():
    for _ in range(10):
        end = time.process_time() + 0.03
        while time.process_time() < end:
            pass
        await asyncio.sleep(0)


def test_a_busy_client_is_told_from_one_at_rest():
    begun = time.monotonic()
    rest = watched(lambda: asyncio.sleep(0.3))
    assert 0.3 <= rest["wall_s"] <= time.monotonic() - begun
    assert rest["cpu_s"] < rest["wall_s"] / 2
    busy = watched(_hog)
    assert busy["bottleneck"]
    assert busy["max_lag_s"] > 0.02
    assert busy["cpu_s"] >= 0.3


def test_where_the_work_is_done_here_there_is_no_client_to_blame():
    found = watched(_hog, remote=False)
    assert not found["bottleneck"]
    assert found["why"] == "the work itself runs in the worker"
