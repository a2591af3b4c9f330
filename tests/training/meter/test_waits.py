"""Is one wait in each step told as one, also in a short run?"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from gpuledger.training.meter.meter import Meter  # noqa: E402

pytestmark = pytest.mark.torch


def test_one_wait_a_step_is_one():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meter = Meter(model)
    for batch in meter([torch.ones(2, 4)] * 12):
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        loss.item()
    (found,) = [f for f in meter.report(show=False).findings if f.topic == "sync_points"]
    meter.finish()
    assert found.figures["waits_per_step"] == 1.0
    assert "test_waits.py:" in found.why
