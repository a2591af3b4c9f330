"""Is a lake in a bucket whole at every moment, whichever writer is killed, and does the next one go on?"""

import os
import signal
import time
from pathlib import Path

import pytest

from gpuledger.lake.layout import Lake
from gpuledger.ledger.store import Ledger
from s3_lakes import assert_whole, lines_samples, work, write

pytestmark = pytest.mark.parametrize("s3", ["s3_process", "gcs_process"], indirect=True, ids=["s3", "gs"])

# A long run kills at every request, the short one at every twelfth.
EVERY = os.environ.get("GPULEDGER_TEST_EVERY_KILL") == "1"


def wait_for(what):
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("dropped", ["before", "after"])
def test_a_writer_killed_at_any_request_leaves_a_committed_state(s3, place, writers, tmp_path, dropped):
    """The k-th request is held, its sender is killed, then the request is dropped or carried out."""
    lake = Lake(place)
    work({"lake": place, "files": [write(tmp_path / "0.parquet")]})
    rows, request = assert_whole(lake), 0 if EVERY else -11 if dropped == "before" else -5
    seen = set()
    while True:
        request += 1 if EVERY else 12
        file = write(tmp_path / f"{request}.parquet", offset=100 * request)
        s3.fault(first=request, times=1, pause=True)
        pid = writers.start(lake=place, files=[str(file)], fold=True)
        wait_for(lambda files=Path(f"/proc/{pid}/fd/0"): s3.state()["waiting"] or not files.exists())
        held = s3.state()["waiting"]
        if held:
            os.kill(pid, signal.SIGKILL)
        assert writers.ended(pid) == (-signal.SIGKILL if held else 0)
        s3.go_on(drop=dropped)
        s3.fault()
        found = assert_whole(Lake(place))
        assert found in (rows, rows + 120), "half a commit"
        seen.add(found - rows)
        began = time.monotonic()
        work({"lake": place, "files": [file], "fold": True})  # another writer, which finds what the killed one has left
        assert time.monotonic() - began < 20, "waited for a writer that this machine knows to be dead"
        rows += 120
        assert assert_whole(Lake(place)) == rows
        assert lines_samples(Lake(place)) == rows
        if not held:
            break
    assert seen == {0, 120}
    assert len(Ledger(lake).manifest().days) == 2
