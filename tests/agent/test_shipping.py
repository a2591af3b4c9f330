"""Does every sealed row reach the lake once, whatever fails on the way?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from spools import MIN, START, keys, record, sealed_minutes, spool_at

import gpuledger
from gpuledger.agent.mounts import not_mounted
from gpuledger.agent.notes import Why
from gpuledger.agent.shipping import LAST_RETRY_S, Shipper, first_s
from gpuledger.agent.spool import Spool
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.cost.build import cost_statement
from gpuledger.errors import GpuledgerError, LakeError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.tidying import drop_samples
from gpuledger.units import MS_PER_DAY


def shipper(spool: Spool, lake: Path) -> Shipper:
    return Shipper(spool, Lake(lake), str(lake))


@pytest.fixture
def spool(tmp_path) -> Spool:
    return spool_at(tmp_path / "spool")


def test_all_batches_arrive_and_go(spool, tmp_path):
    sealed_minutes(spool, 4)
    assert shipper(spool, tmp_path / "lake").ship() == 480
    found = keys(Lake(tmp_path / "lake"))
    assert len(found) == len(set(found)) == 480
    assert spool.batches() == []
    state = spool.state()
    assert (state.shipped_rows, state.shipped_batches, state.problem, state.losses) == (480, 4, "", ())


def test_a_batch_shipped_twice_adds_nothing(spool, tmp_path):
    """The agent was killed after the lake had the rows and before the file was deleted."""
    sealed_minutes(spool, 3)
    shutil.copytree(spool.outbox, tmp_path / "again")
    shipper(spool, tmp_path / "lake").ship()
    before = keys(Lake(tmp_path / "lake"))
    for file in (tmp_path / "again").iterdir():
        shutil.copy(file, spool.outbox)
    assert shipper(spool, tmp_path / "lake").ship() == 0
    assert keys(Lake(tmp_path / "lake")) == before


def test_while_the_lake_is_away_batches_wait_and_then_all_arrive(spool, tmp_path):
    away = tmp_path / "share"
    away.write_text("not a folder: nothing can be written below it")
    sealed_minutes(spool, 2)
    ships = shipper(spool, away / "lake")
    waits = []
    for _ in range(10):
        with pytest.raises(GpuledgerError):
            ships.ship()
        waits.append(ships.retry_s(60.0))
    assert all(later > sooner for sooner, later in pairwise(waits[:6]))
    assert max(waits) <= 1.1 * LAST_RETRY_S
    assert len(spool.batches()) == 2
    assert spool.state().failures == 10
    assert spool.state().problem
    away.unlink()
    assert ships.ship() == 240
    assert spool.state().problem == ""
    assert 54 <= ships.retry_s(60.0) <= 66


@pytest.mark.parametrize("every_s", [60.0, 600.0])
def test_hosts_that_start_together_ship_all_over_the_interval(every_s):
    """A thousand hosts of a cluster that was started at once: each tenth of the interval gets its share."""
    tenths = Counter(int(10 * first_s(every_s) / every_s) for _ in range(1000))
    assert set(tenths) == set(range(10))
    assert max(tenths.values()) < 180  # 100 are expected; eight times the spread that chance brings


def test_a_share_that_was_unmounted_gets_no_second_lake(spool, tmp_path):
    sealed_minutes(spool, 1)
    ships = shipper(spool, tmp_path / "mnt")
    ships.ship()
    (tmp_path / "mnt").rename(tmp_path / "elsewhere")
    (tmp_path / "mnt").mkdir()
    sealed_minutes(spool, 1, first=1)
    with pytest.raises(LakeError, match="the lake is gone"):
        ships.ship()
    assert list((tmp_path / "mnt").iterdir()) == []
    assert len(spool.batches()) == 1
    (tmp_path / "mnt").rmdir()
    (tmp_path / "elsewhere").rename(tmp_path / "mnt")
    assert ships.ship() == 120


def test_a_share_that_was_never_mounted_gets_no_lake(spool, tmp_path, monkeypatch):
    """The first start of all, before the share is there: its mount point is an empty folder."""
    share = tmp_path / "the share"
    share.mkdir()
    table = tmp_path / "fstab"
    table.write_text(
        "# <file system> <mount point>\n/dev/sda1 / ext4 defaults 0 1\nswap none swap sw 0 0\n"
        f"nas:/gpus {str(share).replace(' ', chr(92) + '040')} nfs4 _netdev 0 0\n"
    )
    monkeypatch.setattr("gpuledger.agent.mounts.TABLE", table)
    sealed_minutes(spool, 1)
    said: list[str] = []
    ships = Shipper(spool, Lake(share / "lake"), str(share / "lake"), said.append)
    with pytest.raises(LakeError, match=r"nothing is mounted at .*the share") as refused:
        ships.ship()
    assert "mount" in refused.value.hint
    assert list(share.iterdir()) == []
    assert (len(spool.batches()), said) == (1, [])
    mounted = tmp_path / "mountinfo"
    mounted.write_text(f"36 35 0:42 / {str(share).replace(' ', chr(92) + '040')} rw shared:1 - nfs4 nas:/gpus rw\n")
    monkeypatch.setattr("gpuledger.agent.mounts.MOUNTED", mounted)
    assert ships.ship() == 120
    assert said == [f"started a new lake: {share / 'lake'} held none"]
    sealed_minutes(spool, 1, first=1)
    ships.ship()
    assert len(said) == 1


def test_what_is_mounted_here_is_known():
    """The real table of this machine: nothing that is mounted counts as missing."""
    assert not_mounted(Path("/proc/self")) is None
    assert not_mounted(Path("/")) is None


def test_a_broken_batch_does_not_hold_up_the_others(spool, tmp_path):
    sealed_minutes(spool, 3)
    broken = spool.batches()[1]
    broken.file.write_bytes(broken.file.read_bytes()[:-100])
    assert shipper(spool, tmp_path / "lake").ship() == 240
    assert [f.name for f in spool.refused.iterdir()] == [broken.file.name]
    assert spool.batches() == []
    (loss,) = spool.state().losses
    assert (loss.why, loss.rows, loss.first_ms) == (Why.REFUSED, 120, START + MIN)


def test_rows_of_a_closed_day_are_counted_as_lost(spool, tmp_path):
    lake = Lake(tmp_path / "lake")
    sealed_minutes(spool, 1)
    shipper(spool, lake.root).ship()
    with lake.locked():
        drop_samples(lake, ["2026-01-20"])
    sealed_minutes(spool, 1, first=5)
    record(spool, START + MS_PER_DAY)
    spool.seal()
    assert shipper(spool, lake.root).ship() == 120
    (loss,) = spool.state().losses
    assert (loss.why, loss.rows, loss.first_ms) == (Why.DAY_CLOSED, 120, START + 5 * MIN)


def test_what_was_dropped_is_unobserved_in_the_bill(spool, tmp_path):
    """Of thirty minutes the second ten were dropped: 2 GPUs x 10 minutes unobserved, none of it billed as work."""
    sealed_minutes(spool, 30)
    spool.lose(spool.batches()[10:20], Why.SPOOL_FULL)
    lake = Lake(tmp_path / "lake")
    shipper(spool, lake.root).ship()
    post_lake(lake, load_thresholds())
    times = cost_statement(lake, price=2).times.each()
    cap_ms = 2 * 2500  # a sample stands for at most 2.5 steps
    assert times["unobserved"] == pytest.approx(2 * 10 * MIN, abs=cap_ms)
    assert sum(times.values()) == pytest.approx(2 * 30 * MIN, abs=cap_ms)


def test_job_tables_go_with_the_samples(spool, tmp_path):
    sealed_minutes(spool, 1)
    (spool.jobs / "4711.csv").write_text(
        "job_id,job_name,user,host,gpu,start,end\n4711,llm,ada,h1,GPU-h1-0,2026-01-20T00:00:00Z,2026-01-20T00:01:00Z\n"
    )
    (spool.jobs / "broken.csv").write_text("a,b\n1,2\n")
    shipper(spool, tmp_path / "lake").ship()
    assert list(spool.jobs.iterdir()) == []
    assert [f.name for f in spool.refused.iterdir()] == ["broken.csv"]
    found = gpuledger.open(tmp_path / "lake").audit(prices=2, by="user").to_dict()
    assert "ada" in str(found)


def test_hosts_that_ship_at_the_same_time_do_not_lose_each_others_rows(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(Path(gpuledger.__file__).parents[1])}
    spools = [spool_at(tmp_path / f"spool-{host}") for host in range(2)]
    for host, spool in enumerate(spools):
        for minute in range(4):
            record(spool, START + minute * MIN, host=f"h{host}")
            spool.seal()
    every = sorted(k for spool in spools for b in spool.batches() for k in _rows_of(b.file))
    command = [sys.executable, "-m", "gpuledger", "agent", "--once", "-q", "--lake", str(tmp_path / "lake")]
    running = [subprocess.Popen([*command, "--spool", str(spool.root)], env=env) for spool in spools]
    assert [process.wait(60) for process in running] == [0, 0]
    assert keys(Lake(tmp_path / "lake")) == every


def test_killed_at_any_moment_every_row_arrives_once(spool, tmp_path):
    """Real processes, killed later and later while they ship; then one that may finish."""
    sealed_minutes(spool, 6)
    every = sorted(k for b in spool.batches() for k in _rows_of(b.file))
    command = [sys.executable, "-m", "gpuledger", "agent", "--once", "--quiet"]
    command += ["--spool", str(spool.root), "--lake", str(tmp_path / "lake")]
    env = {**os.environ, "PYTHONPATH": str(Path(gpuledger.__file__).parents[1])}
    killed = 0
    for attempt in range(40):
        process = subprocess.Popen(command, env=env)
        time.sleep(0.35 + 0.09 * attempt)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        if attempt % 2 and (parts := Lake(tmp_path / "lake").manifest().parts):
            assert len(keys(Lake(tmp_path / "lake"))) == sum(p.rows for p in parts)
        if killed >= 6 or not spool.batches():
            break
    assert killed
    assert subprocess.run(command, env=env, check=False).returncode == 0
    assert keys(Lake(tmp_path / "lake")) == every


def _rows_of(file: Path) -> list[tuple[str, int, int]]:
    names = ["gpu_uuid", "at_ms", "energy_mj"]
    table = pq.read_table(file, columns=names, partitioning=None)
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))
