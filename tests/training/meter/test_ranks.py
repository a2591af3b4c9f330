"""Do two ranks that train together name the slow one of them?"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("torch")

from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.lake.counted import read_counted
from gpuledger.lake.layout import Lake
from gpuledger.report.documents.training import by_run
from gpuledger.report.documents.training import run_data as as_data

pytestmark = pytest.mark.torch
DISK_S = 0.06
RANK = """
import sys, time
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from gpuledger.training.meter.meter import Meter

rank, lake, port, disk_s = int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{port}", rank=rank, world_size=2)
torch.manual_seed(0)
model = DistributedDataParallel(nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
meter = Meter(model, lake=lake, run_id="two")
def batches():
    for _ in range(12):
        time.sleep(disk_s * rank)  # rank 1 has the slower disk
        yield torch.randn(8, 16)
for batch in meter(batches()):
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
meter.report(all_ranks=True)
meter.finish()
dist.destroy_process_group()
"""


def train_together(folder):
    """Both ranks to their end; what they said, and what the lake has of them."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(RANK)]
    folder.mkdir()
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(folder / "lake"), str(folder / "meet"), str(DISK_S)],
            stderr=subprocess.PIPE, text=True, env=env,
        )
        for rank in range(2)
    ]  # fmt: skip
    said = [r.communicate(timeout=5 * HUNG_S)[1] for r in ranks]
    assert [r.returncode for r in ranks] == [0, 0], said
    return said, sorted(read_counted(Lake(folder / "lake")), key=lambda r: r.rank)


def test_the_rank_with_the_slower_disk_is_named(tmp_path):
    # A machine that holds up the other rank for longer than the disk does makes that one the slow one, and rightly.
    for attempt in range(5):
        said, counted = train_together(tmp_path / str(attempt))
        assert said[1] == ""
        assert [(r.run_id, r.rank, r.world_size) for r in counted] == [("two", 0, 2), ("two", 1, 2)]
        compared = as_data("two", by_run(counted)["two"])["compared"]
        if compared["behind_ms"] == pytest.approx(1000 * DISK_S, rel=0.5) and compared["slow"] == 1:
            break
    assert "rank 1 on" in said[0], "rank 0 shows the table for all"
    assert (compared["slow"], compared["phase"]) == (1, "data_wait")
    assert compared["behind_ms"] == pytest.approx(1000 * DISK_S, rel=0.5)
    waits = {row["rank"]: row["waited_in_ms"] for row in compared["rows"]}
    assert waits[0] > waits[1] + 500 * DISK_S, "rank 0 waits for the other's gradients"
