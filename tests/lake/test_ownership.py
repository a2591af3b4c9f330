"""Is the time of a device given to whom it belongs?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuledger.lake.ownership import LOOK_EVERY_S, Ownership
from gpuledger.telemetry.live.device import Facts

JOB = {"workload": "train", "run_id": "r1", "namespace": "ml", "host": "h", "cluster": "c"}


class Fake:
    def __init__(self, index: int, *pids: int) -> None:
        self.facts = Facts(index, f"GPU-{index}", "m")
        self.pids = list(pids)
        self.looks = 0

    def processes(self) -> list[int]:
        self.looks += 1
        if -1 in self.pids:
            raise RuntimeError("not told")
        return self.pids


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Our process and its child, a job of Slurm's, a bare program."""
    for pid, parent, comm in (
        (os.getpid(), 1, "pytest"),
        (501, os.getpid(), "child"),
        (900, 1, "python"),
        (901, 1, "bench"),
    ):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} ({comm}) S {parent} 1")
        (folder / "comm").write_text(comm + "\n")
        (folder / "cmdline").write_bytes(b"")
    (tmp_path / "900" / "cmdline").write_bytes(b"python\0secret/train.py\0--token=abc\0")
    (tmp_path / "900" / "environ").write_bytes(b"SLURM_JOB_ID=77\0SLURM_JOB_NAME=llm\0SLURM_JOB_ACCOUNT=nlp\0")
    return tmp_path


def owned(proc: Path, *devices: Fake, environ: dict[str, str] | None = None, of_job: bool = True) -> Ownership:
    made = Ownership(devices, JOB, {}, environ or {}, lambda: 0.0, of_job=of_job, proc=proc)
    made.look()
    return made


def test_a_jobs_devices_are_its_own_unless_only_strangers_hold_them(proc: Path) -> None:
    idle, ours, shared, foreign, hidden, mute = (
        Fake(0), Fake(1, 501), Fake(2, 501, 900), Fake(3, 900), Fake(4, 4242), Fake(5, -1),
    )  # fmt: skip
    found = owned(proc, idle, ours, shared, foreign, hidden, mute)
    assert [found.owned(d.facts) for d in (idle, ours, shared, foreign, hidden, mute)] == [
        True,
        True,
        True,
        False,
        True,
        True,
    ]
    assert found.labels(ours.facts) == [JOB]
    assert found.labels(foreign.facts) == [{"host": "h", "cluster": "c"}]


def test_what_the_job_may_see_decides_where_it_is_said(proc: Path) -> None:
    a, b = Fake(0), Fake(1, 501)
    found = owned(proc, a, b, environ={"CUDA_VISIBLE_DEVICES": "0"})
    assert (found.owned(a.facts), found.owned(b.facts)) == (True, False)


def test_a_device_the_job_comes_to_hold_is_its_own_again(proc: Path) -> None:
    device = Fake(0, 900)
    found = owned(proc, device)
    assert not found.owned(device.facts)
    device.pids = [900, 501]
    found.look(force=True)
    assert found.owned(device.facts)


def test_holders_are_named_without_their_arguments(proc: Path) -> None:
    device = Fake(0, 900, 501, 4242)
    found = owned(proc, device).holders(device.facts)
    assert [(h.pid, h.program, h.ours) for h in found][:2] == [(900, "train.py", False), (501, "child", True)]
    assert "not visible" in found[2].user
    assert "token" not in str(found)


def test_on_a_whole_host_time_belongs_to_who_holds_the_device(proc: Path) -> None:
    slurm, bare, both, nobody = Fake(0, 900), Fake(1, 901), Fake(2, 900, 901), Fake(3)
    made = Ownership(
        (slurm, bare, both, nobody), {"host": "h"}, {"cluster": "ares"}, {}, lambda: 0.0, of_job=False, proc=proc
    )
    made.look()
    (job,) = made.labels(slurm.facts)
    assert job == {"cluster": "ares", "namespace": "nlp", "workload": "llm", "run_id": "77", "host": "h"}
    (program,) = made.labels(bare.facts)
    assert program == {"cluster": "ares", "workload": "bench", "host": "h"}
    assert sorted(o["workload"] for o in made.labels(both.facts)) == ["bench", "llm"]
    assert made.labels(nobody.facts) == [{"host": "h"}]


def test_looking_is_not_done_all_the_time(proc: Path) -> None:
    now = [0.0]
    device = Fake(0)
    made = Ownership((device,), JOB, {}, {}, lambda: now[0], proc=proc)
    for t in (0.0, 1.0, LOOK_EVERY_S - 0.1, LOOK_EVERY_S, LOOK_EVERY_S + 1):
        now[0] = t
        made.look()
    assert device.looks == 2
