"""What does a worker keep of an answer?"""

from __future__ import annotations

import asyncio

import msgspec
import numpy as np

from gpuledger.bench.crew import Records, Task
from gpuledger.bench.load import Order, Phase
from gpuledger.bench.targets import TARGETS
from gpuledger.bench.worker import Worker


def given(request):
    """A function that counts with numpy and keeps what no JSON knows."""
    return {"output_tokens": np.int64(7), "ttft_s": np.float32(0), "shape": np.zeros(2), "who": object}


class Line:
    def __init__(self):
        self.said = []

    def say(self, message):
        self.said.append(message)

    async def go(self):
        pass


def test_figures_of_other_libraries_do_not_end_the_worker(monkeypatch):
    assert "python_callable" in TARGETS.names()
    monkeypatch.setattr("gpuledger.bench.targets.python_callable.load_callable", lambda _spec: given)
    line = Line()
    orders = (Order(0, 1, 1), Order(1, 1, 1))
    task = Task("a", "python_callable", {"callable": "made:up"}, (Phase(1, orders),), 5.0, "0")
    asyncio.run(Worker(task, line).work())
    rows = [msgspec.json.decode(r) for m in line.said if isinstance(m, Records) for r in m.lines.splitlines()]
    assert [r["output_tokens"] for r in rows] == [7, 7]
    assert rows[0]["ttft_s"] == 0
    assert rows[0]["ok"] is True
    assert rows[0]["shape"] == "[0. 0.]"
