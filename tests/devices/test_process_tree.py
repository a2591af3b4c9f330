"""Are the processes of a run recognized, whatever became of their parents?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuledger.devices.attribution import (
    RUN_VARIABLE,
    ProcessTree,
    environment,
    lineage,
    program,
    status,
    uses_file,
)
from gpuledger.devices.replay.clock import HUNG_S


def put(
    root: Path, pid: int, parent: int, *, group: int = 1, session: int = 1, started: int = 5, env: str = ""
) -> None:
    folder = root / str(pid)
    folder.mkdir(exist_ok=True)
    middle = " ".join(["0"] * 15)
    (folder / "stat").write_text(f"{pid} (a b) c) S {parent} {group} {session} {middle} {started} 0")
    (folder / "environ").write_bytes(env.encode())


def test_a_status_is_read_past_odd_names(tmp_path: Path) -> None:
    put(tmp_path, 11, 10, group=3, session=4, started=77)
    found = status(11, tmp_path)
    assert found is not None
    assert (found.pid, found.state, found.parent, found.group, found.session, found.started) == (11, "S", 10, 3, 4, 77)
    assert status(12, tmp_path) is None


def test_our_own_status_is_the_kernels() -> None:
    found = status(os.getpid())
    assert found is not None
    assert (found.parent, found.group, found.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert lineage(os.getpid())[1].pid == os.getppid()


def test_a_process_belongs_where_an_ancestor_does(tmp_path: Path) -> None:
    for pid, parent in ((10, 1), (11, 10), (12, 11), (20, 1), (21, 20)):
        put(tmp_path, pid, parent)
    tree = ProcessTree(10, proc=tmp_path)
    assert [tree.includes(p) for p in (10, 11, 12, 20, 21, 99)] == [True, True, True, False, False, False]


def test_before_it_has_a_root_nobody_belongs(tmp_path: Path) -> None:
    put(tmp_path, 10, 1, env=f"{RUN_VARIABLE}=r1")
    tree = ProcessTree(None, "r1", tmp_path)
    assert not tree.includes(10)
    tree.plant(10)
    assert tree.includes(10)


def test_a_process_seen_once_stays_when_its_parents_end(tmp_path: Path) -> None:
    for pid, parent in ((10, 1), (11, 10), (12, 11)):
        put(tmp_path, pid, parent)
    tree = ProcessTree(10, proc=tmp_path)
    assert tree.includes(12)
    put(tmp_path, 12, 1)  # 11 has ended
    put(tmp_path, 13, 12)
    assert tree.includes(12)
    assert tree.includes(13)


def test_a_number_used_again_is_another_process(tmp_path: Path) -> None:
    put(tmp_path, 10, 1)
    put(tmp_path, 11, 10, started=5)
    tree = ProcessTree(10, proc=tmp_path)
    assert tree.includes(11)
    put(tmp_path, 11, 1, started=900)
    assert not tree.includes(11)


def test_a_session_the_run_opened_is_its_own_and_the_shells_is_not(tmp_path: Path) -> None:
    put(tmp_path, 10, 1, group=7, session=7)
    put(tmp_path, 11, 10, group=11, session=11)
    put(tmp_path, 12, 1, group=12, session=11)
    put(tmp_path, 30, 1, group=7, session=7)
    tree = ProcessTree(10, proc=tmp_path)
    assert not tree.includes(12)  # nobody of that session was seen yet
    assert tree.includes(11)
    assert tree.includes(12)
    assert not tree.includes(30)  # started by the same shell


def test_the_runs_variable_tells_who_was_never_seen_before(tmp_path: Path) -> None:
    put(tmp_path, 10, 1)
    put(tmp_path, 12, 1, group=12, session=12, env=f"PATH=/bin\0{RUN_VARIABLE}=r1\0")
    put(tmp_path, 13, 1, group=13, session=13, env=f"{RUN_VARIABLE}=r2\0")
    tree = ProcessTree(10, "r1", tmp_path)
    assert (tree.includes(12), tree.includes(13)) == (True, False)
    assert environment(12, tmp_path)["PATH"] == "/bin"


def test_a_real_orphan_in_a_session_of_its_own_is_recognized(tmp_path: Path) -> None:
    """A daemon: forked twice, its parents gone, its session its own; only what it inherited tells whose it is."""
    daemon = f"import os, time; open({str(tmp_path / 'pid')!r} + str(os.getpid()), 'w'); time.sleep(60)"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {daemon!r}], start_new_session=True)"
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, RUN_VARIABLE: "mine"})
    tree, stranger = ProcessTree(parent.pid, "mine"), ProcessTree(parent.pid, "another")
    parent.wait()
    deadline = time.monotonic() + HUNG_S
    while not (found := list(tmp_path.glob("pid*"))) and time.monotonic() < deadline:
        time.sleep(0.01)
    orphan = int(found[0].name.removeprefix("pid"))
    try:
        assert parent.pid not in [s.pid for s in lineage(orphan)]
        assert tree.includes(orphan)
        assert not stranger.includes(orphan)
        assert program(orphan).startswith("python")
    finally:
        os.kill(orphan, 9)


@pytest.mark.parametrize(("begins", "found"), [(("/dev/nul",), True), (("/dev/nvidia",), False)])
def test_files_a_process_has_open(begins: tuple[str, ...], *, found: bool) -> None:
    with Path("/dev/null").open():
        assert uses_file(os.getpid(), begins) is found


def test_files_we_may_not_look_at_prove_nothing(tmp_path: Path) -> None:
    assert uses_file(4242, ("/dev/nvidia",), tmp_path) is None
