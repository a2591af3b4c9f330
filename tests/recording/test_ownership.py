"""Is the time of a device given to whom it belongs?"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from gpuledger.devices.device import Facts, Held
from gpuledger.recording.ownership import FIRST_LOOK_S, LOOK_EVERY_S, Ownership, OwnerTimes
from gpuledger.recording.runs import DeviceNotes

JOB = {"workload": "train", "run_id": "r1", "namespace": "ml", "host": "h", "cluster": "c"}
SLURM = {"workload": "llm", "run_id": "77", "namespace": "nlp", "account": "nlp", "host": "h", "cluster": "c"}
BENCH = {"workload": "other: bench (pid 901)", "host": "h", "cluster": "c"}
GB = 1 << 30


class Fake:
    def __init__(self, index: int, *pids: int, files: tuple[str, ...] = ()) -> None:
        self.facts = Facts(index, f"GPU-{index}", "m")
        self.pids = list(pids)
        self.files = files
        self.looks = 0
        self.memory: int | None = None

    def holders(self) -> list[Held]:
        self.looks += 1
        if -1 in self.pids:
            raise RuntimeError("not told")
        return [Held(p, self.memory) for p in self.pids]


def put(proc: Path, pid: int, parent: int, comm: str) -> None:
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(f"{pid} ({comm}) S {parent} 1")
    (folder / "comm").write_text(comm + "\n")
    (folder / "cmdline").write_bytes(b"")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Our process and its child, a job of Slurm's, a bare program."""
    for pid, parent, comm in (
        (os.getpid(), 1, "pytest"),
        (501, os.getpid(), "child"),
        (900, 1, "python"),
        (901, 1, "bench"),
    ):
        put(tmp_path, pid, parent, comm)
    (tmp_path / "900" / "cmdline").write_bytes(b"python\0secret/train.py\0--token=abc\0")
    (tmp_path / "900" / "environ").write_bytes(b"SLURM_JOB_ID=77\0SLURM_JOB_NAME=llm\0SLURM_JOB_ACCOUNT=nlp\0")
    return tmp_path


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    @property
    def at_ms(self) -> int:
        return int(self.now * 1000)


def owned(proc: Path, *devices: Fake, environ: dict[str, str] | None = None, **more: object) -> Ownership:
    made = Ownership(devices, JOB, {}, environ or {}, lambda: 0.0, proc=proc, **more)
    made.look(0)
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
    assert found.labels(shared.facts) == [JOB, SLURM]
    assert found.labels(foreign.facts) == [SLURM]
    assert found.labels(hidden.facts) == found.labels(idle.facts) == found.labels(mute.facts) == [JOB]


def test_a_stranger_without_a_name_of_its_own_is_named_by_its_process(proc: Path) -> None:
    device = Fake(0, 501, 901)
    assert owned(proc, device).labels(device.facts) == [JOB, BENCH]


def test_a_job_keeps_what_it_was_given_and_has_what_it_uses(proc: Path) -> None:
    """The numbers of CUDA_VISIBLE_DEVICES may be in another order than the driver's: what is used counts as well."""
    given, used, neither, foreign = Fake(0, 901), Fake(1, 501), Fake(2), Fake(3, 4242)
    found = owned(proc, given, used, neither, foreign, environ={"CUDA_VISIBLE_DEVICES": "0"})
    assert [found.owned(d.facts) for d in (given, used, neither, foreign)] == [True, True, False, False]
    assert found.labels(given.facts) == [JOB, BENCH]
    assert found.labels(neither.facts) == found.labels(foreign.facts) == [{"host": "h", "cluster": "c"}]


def test_a_device_the_job_once_held_stays_its_own_in_the_notes(proc: Path) -> None:
    device = Fake(0, 900)
    found = owned(proc, device)
    assert not found.owned(device.facts)
    device.pids = [900, 501]
    found.look(1000, force=True)
    assert found.owned(device.facts)
    device.pids = [900]  # the command has ended
    found.look(2000, force=True)
    assert found.owned(device.facts)
    assert found.labels(device.facts) == [SLURM]


def test_rows_belong_to_whoever_held_the_device_when_they_were_read(proc: Path) -> None:
    device = Fake(0, 901)
    found = owned(proc, device)
    device.pids = [901, 501]
    found.look(1000, force=True)
    device.pids = [501]
    found.look(2000, force=True)
    rows = [(at, 1.0) for at in range(0, 3000, 500)]
    cut = found.split(device.facts, rows)
    assert [(who, [r[0] for r in some]) for who, some in cut] == [
        ([BENCH], [0, 500]),
        ([JOB, BENCH], [1000, 1500]),
        ([JOB], [2000, 2500]),
    ]


def test_time_held_and_shared_adds_up(proc: Path) -> None:
    clock, device = Clock(), Fake(0, 901)
    found = Ownership((device,), JOB, {}, {}, clock, proc=proc)
    for seconds, pids in ((0, [901]), (2, [901, 501]), (10, [501])):
        clock.now, device.pids = float(seconds), pids
        device.memory = (seconds + 1) * GB
        found.look(clock.at_ms, force=True)
    clock.now = 14.0
    found.end(clock.at_ms)
    assert found.times(device.facts) == (12.0, 8.0, "")
    bench, child = found.holders(device.facts)
    assert (bench.pid, bench.ours, bench.first_ms, bench.last_ms, bench.shared_s) == (901, False, 0, 10_000, 8.0)
    assert bench.memory_bytes == 3 * GB
    assert (child.pid, child.ours, child.first_ms, child.last_ms, child.shared_s) == (501, True, 2000, 14_000, 0.0)
    assert notes(found, device).who_held_it(16.0) == [
        "GPU 0 was shared with bench (pid 901) for 50 % of the run; its time is split evenly"
    ]


def notes(found: Ownership, device: Fake) -> DeviceNotes:
    f = device.facts
    run_s, shared_s, unknown = found.times(f)
    return DeviceNotes(
        f.name, f.gpu_uuid, None, "m", None, found.owned(f), held_by=found.holders(f), index=f.index, run_s=run_s,
        shared_s=shared_s, holders_unknown=unknown,
    )  # fmt: skip


def test_holders_are_named_without_their_arguments(proc: Path) -> None:
    device = Fake(0, 900, 501, 4242)
    found = owned(proc, device).holders(device.facts)
    assert [(h.pid, h.program, h.ours) for h in found][:2] == [(900, "train.py", False), (501, "child", True)]
    assert "not visible" in found[2].user
    assert "token" not in str(found)


def test_who_is_here_is_as_of_the_last_look(proc: Path) -> None:
    device = Fake(0, 900, 501)
    found = owned(proc, device)
    assert [h.pid for h in found.here(device.facts)] == [900, 501]
    device.pids = [501]
    found.look(2000, force=True)
    assert [h.pid for h in found.here(device.facts)] == [501]
    assert [h.pid for h in found.holders(device.facts)] == [900, 501]


def test_numbers_that_match_nobody_make_no_claim_and_that_is_said(proc: Path) -> None:
    """In a container the driver may list the numbers of the machine: whose they are cannot be told."""
    device = Fake(0, 4242, 4243)
    found = owned(proc, device)
    for at_ms in (1000, 2000, 3000):
        found.look(at_ms, force=True)
    assert found.labels(device.facts) == [JOB]
    assert found.times(device.facts)[1] == 0
    assert {h.matched for h in found.holders(device.facts)} == {False}
    (words,) = notes(found, device).who_held_it(3.0)
    assert words.startswith("GPU 0: the driver lists processes 4242, 4243, which cannot be matched")
    assert words.endswith("its whole time is counted as this run's")
    assert "before" not in words


def test_a_number_that_happens_to_exist_here_is_not_taken_for_the_holder(proc: Path) -> None:
    """A process without the driver's files open does not hold the GPU, whatever its number."""
    device = Fake(0, 901, files=("/dev/nvidia",))
    (proc / "901" / "fd").mkdir()
    found = owned(proc, device)
    assert found.labels(device.facts) == [JOB]
    assert not found.holders(device.facts)[0].matched
    (proc / "901" / "fd" / "3").symlink_to("/dev/nvidia0")
    found.look(1000, force=True)
    assert found.labels(device.facts) == [BENCH]


def test_a_number_that_was_there_before_the_command_makes_no_claim_but_is_said(proc: Path) -> None:
    """One number may stand for all processes of a container: it may be the command's as well."""
    device = Fake(0, 4242)
    found = Ownership((device,), JOB, {}, {}, lambda: 0.0, around_command=True, proc=proc)
    found.look(0)
    found.follow(501, 100)
    device.pids = [4242, 4300]
    found.look(1000, force=True)
    assert found.labels(device.facts) == [JOB]
    assert found.owned(device.facts)
    assert [(h.pid, h.here_before) for h in found.holders(device.facts)] == [(4242, True), (4300, False)]
    (words,) = notes(found, device).who_held_it(1.0)
    assert "processes 4242, 4300, which cannot be matched" in words
    assert "; 4242 held it before the command started, so it may be shared; its whole time" in words


def test_around_a_command_the_recorder_itself_is_another(proc: Path) -> None:
    device = Fake(0, os.getpid(), 501)
    found = Ownership((device,), JOB, {}, {}, lambda: 0.0, around_command=True, proc=proc)
    found.look(0)
    found.follow(502, 100)
    assert not found.owned(device.facts)
    put(proc, 502, os.getpid(), "command")
    device.pids.append(502)
    found.look(200, force=True)
    assert found.labels(device.facts)[0] == JOB


def test_where_our_own_numbers_match_a_hidden_one_is_another(proc: Path) -> None:
    """It must be listed again: a process of ours may end between the driver's list and our look."""
    device = Fake(0, 501, 4242)
    found = owned(proc, device)
    assert found.labels(device.facts) == [JOB]
    found.look(1000, force=True)
    assert [o["workload"] for o in found.labels(device.facts)] == ["train", "other: not visible here (pid 4242)"]
    assert [h.name for h in found.holders(device.facts)] == ["child (pid 501)", "a process not visible here (pid 4242)"]


def test_another_process_of_the_same_job_is_the_jobs(proc: Path) -> None:
    device = Fake(0, 900)
    same = {**JOB, "run_id": "77"}
    found = Ownership((device,), same, {}, {}, lambda: 0.0, proc=proc)
    found.look(0)
    assert found.labels(device.facts) == [same]


def test_a_process_of_another_recording_has_that_runs_labels(proc: Path) -> None:
    device, labels = Fake(0, 501, 901), {"workload": "eval", "run_id": "r2", "host": "h"}
    found = owned(proc, device, other_run=lambda pid: labels if pid == 901 else None)
    assert found.labels(device.facts) == [JOB, labels]


def test_a_go_between_is_nobody(proc: Path) -> None:
    put(proc, 950, 1, "nvidia-cuda-mps-server")
    device = Fake(0, 950, 501)
    assert owned(proc, device).labels(device.facts) == [JOB]


def test_a_driver_that_does_not_answer_leaves_the_owners_as_they_were(proc: Path) -> None:
    device = Fake(0, 501, 901)
    found = owned(proc, device)
    device.pids = [-1]
    found.look(1000, force=True)
    assert found.labels(device.facts) == [JOB, BENCH]
    assert "not told" in found.times(device.facts)[2]
    assert any("not known which processes" in words for words in notes(found, device).who_held_it(1.0))


def test_on_a_whole_host_time_belongs_to_who_holds_the_device(proc: Path) -> None:
    slurm, bare, both, nobody = Fake(0, 900), Fake(1, 901), Fake(2, 900, 901), Fake(3)
    made = Ownership(
        (slurm, bare, both, nobody), {"host": "h"}, {"cluster": "ares"}, {}, lambda: 0.0, of_job=False, proc=proc
    )
    made.look(0)
    (job,) = made.labels(slurm.facts)
    assert job == {
        "cluster": "ares",
        "namespace": "nlp",
        "account": "nlp",
        "workload": "llm",
        "run_id": "77",
        "host": "h",
    }
    (program,) = made.labels(bare.facts)
    assert program == {"cluster": "ares", "workload": "bench", "host": "h"}
    assert sorted(o["workload"] for o in made.labels(both.facts)) == ["bench", "llm"]
    assert made.labels(nobody.facts) == [{"host": "h"}]


def test_looking_is_done_often_at_first_and_then_every_second(proc: Path) -> None:
    clock, device = Clock(), Fake(0)
    made = Ownership((device,), JOB, {}, {}, clock, proc=proc)
    looked: list[float] = []
    for tick in range(601):
        clock.now, before = tick / 10, device.looks
        made.look(clock.at_ms)
        looked += [clock.now] * (device.looks - before)
    gaps = [b - a for a, b in pairwise(looked)]
    assert looked[0] == 0
    assert gaps[0] == pytest.approx(FIRST_LOOK_S)
    assert gaps[-20:] == pytest.approx([LOOK_EVERY_S] * 20)
    assert len(looked) < 75


def test_a_slow_driver_is_looked_at_less_often(proc: Path) -> None:
    clock = Clock()

    class Slow(Fake):
        def holders(self) -> list[Held]:
            clock.now += 0.5
            return super().holders()

    device = Slow(0)
    made = Ownership((device,), JOB, {}, {}, clock, proc=proc)
    while clock.now < 100.0:
        clock.now += 0.1
        made.look(clock.at_ms)
    assert device.looks * 0.5 <= 0.06 * 100


def test_owners_are_found_by_time_also_after_the_clock_was_set_back() -> None:
    times = OwnerTimes([{"workload": "first"}])
    a, b = [{"workload": "a"}], [{"workload": "b"}]
    times.change(10_000, a)
    times.change(11_000, b)
    times.change(5_001, a)  # set back: odd stamps from here on
    assert [times.at(t) for t in (10_500, 11_500, 5_501, 12_001)] == [a, b, a, a]
    times.change(6_001, b)
    assert [times.at(t) for t in (11_500, 5_501, 6_501)] == [b, a, b]
    times.forget(6_501)
    assert times.at(6_501) == b
