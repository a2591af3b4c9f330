"""Is the owner found where the surroundings tell it?"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuledger.devices import attribution
from gpuledger.devices.attribution import (
    RUN_VARIABLE,
    ProcessTree,
    attribute,
    command_name,
    container_id,
    environment,
    lineage,
    own_rank_only,
    program,
    status,
    uses_file,
    visible_devices,
)
from gpuledger.devices.device import Facts
from gpuledger.devices.replay.clock import HUNG_S
from gpuledger.telemetry import schema

HEX = "0123456789abcdef" * 4
DEVICES = [
    Facts(0, "GPU-aaaa-1", "m"),
    Facts(1, "GPU-bbbb-2", "m"),
    Facts(1, "GPU-bbbb-2", "m", "3", 0.4, ("MIG-cc-3",)),
]


def test_every_rule_fills_a_label_of_the_schema() -> None:
    assert {r.label for r in attribution._rules()} <= set(schema.labels())


def test_slurm() -> None:
    found = attribute(
        {
            "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "llm", "SLURM_CLUSTER_NAME": "ares", "SLURM_JOB_ACCOUNT": "nlp",
            "SLURMD_NODENAME": "gpu-07", "SLURM_JOB_PARTITION": "h200", "SLURM_JOB_USER": "ann",
        },
        host="login", command="train.py", process=Path("/nowhere"),
    )  # fmt: skip
    assert found.labels == {
        "cluster": "ares", "namespace": "nlp", "workload": "llm", "run_id": "4711",
        "host": "gpu-07", "node_group": "h200", "user": "ann", "account": "nlp",
    }  # fmt: skip
    assert found.found_in["run_id"] == "Slurm: SLURM_JOB_ID"


def test_kubernetes_by_the_downward_api() -> None:
    found = attribute(
        {
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "POD_NAMESPACE": "ml",
            "POD_NAME": "train-7f9c5d6b8-x2x9k",
            "NODE_NAME": "n1",
        },
        host="x",
        process=Path("/nowhere"),
    )
    assert found.labels == {"namespace": "ml", "pod": "train-7f9c5d6b8-x2x9k", "workload": "train", "host": "n1"}


def test_kubernetes_by_its_files_and_the_name_of_the_host(tmp_path: Path) -> None:
    account = tmp_path / "root/var/run/secrets/kubernetes.io/serviceaccount"
    account.mkdir(parents=True)
    (account / "namespace").write_text("research\n")
    (tmp_path / "cgroup").write_text(f"0::/kubepods/besteffort/pod1/{HEX}\n")
    found = attribute({"KUBERNETES_SERVICE_HOST": "1", "HOSTNAME": "eval-0"}, host="eval-0", process=tmp_path)
    assert found.labels["namespace"] == "research"
    assert found.labels["workload"] == "eval"
    assert found.labels["container"] == HEX[:12]


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("serve-6bd4f7d9c4-lq8zk", "serve"),
        ("nightly-train-xk29p", "nightly-train"),
        ("db-2", "db"),
        ("plain", "plain"),
        ("my-model", "my-model"),
    ],
)
def test_a_pod_is_named_after_what_made_it(pod: str, workload: str) -> None:
    found = attribute({"KUBERNETES_SERVICE_HOST": "1", "POD_NAME": pod}, host="h", process=Path("/nowhere"))
    assert found.labels["workload"] == workload


def test_given_labels_win_and_a_plain_process_is_named_after_its_command() -> None:
    given = {"workload": "mine", "tensor_precision": "bf16"}
    found = attribute({"SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "x"}, host="h", given=given, process=Path("/nowhere"))
    assert found.labels["workload"] == "mine"
    assert found.labels["tensor_precision"] == "bf16"
    assert found.found_in["workload"] == "given"
    plain = attribute({}, host="h", command="train.py", process=Path("/nowhere"))
    assert plain.labels == {"workload": "train.py", "host": "h"}


def test_a_variable_of_another_system_says_nothing() -> None:
    assert "pod" not in attribute({"HOSTNAME": "laptop"}, host="h", process=Path("/nowhere")).labels


def test_the_container_is_found_in_either_layout(tmp_path: Path) -> None:
    assert container_id(tmp_path) == ""
    (tmp_path / "cgroup").write_text("0::/\n")
    (tmp_path / "mountinfo").write_text(f"1 2 0:3 /var/lib/docker/containers/{HEX}/hostname /etc/hostname rw\n")
    assert container_id(tmp_path) == HEX
    (tmp_path / "cgroup").write_text(f"12:cpu:/docker/{HEX}\n")
    assert container_id(tmp_path) == HEX


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("0", {"GPU-aaaa-1"}),
        ("0,1", {"GPU-aaaa-1", "GPU-bbbb-2", "GPU-bbbb-2/3"}),
        ("GPU-bbbb", {"GPU-bbbb-2", "GPU-bbbb-2/3"}),
        ("MIG-cc-3", {"GPU-bbbb-2/3"}),
        ("", set()),
        ("-1", set()),
        ("GPU-", set()),
    ],
)
def test_visible_devices_name_the_jobs_own(listed: str, names: set[str]) -> None:
    assert visible_devices({"CUDA_VISIBLE_DEVICES": listed}, DEVICES) == names


def test_without_a_limit_nothing_is_said() -> None:
    assert visible_devices({}, DEVICES) is None


def test_one_of_several_ranks_records_its_own_device() -> None:
    class D:
        def __init__(self, facts: Facts) -> None:
            self.facts = facts

    devices = [D(f) for f in DEVICES[:2]]
    ranks = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert own_rank_only(ranks, devices) == [devices[1]]
    assert own_rank_only({**ranks, "CUDA_VISIBLE_DEVICES": "0"}, devices) == devices
    assert own_rank_only({"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}, devices) == devices
    assert own_rank_only({}, devices) == devices


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["python3.12", "-u", "jobs/train.py", "--lr", "1"], "train.py"),
        (["python", "-m", "torch.distributed.run", "x.py"], "torch.distributed.run"),
        (["torchrun", "--nproc", "8", "train.py"], "train.py"),
        (["python", "-c", "print('a.py')"], "python"),
        (["/usr/bin/nvidia-smi", "x.py"], "nvidia-smi"),
        ([], ""),
    ],
)
def test_a_command_is_called_what_a_person_would_call_it(argv: list[str], name: str) -> None:
    assert command_name(argv) == name


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
