"""Is the owner found where the surroundings tell it?"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuledger.devices import attribution
from gpuledger.devices.attribution import (
    attribute,
    command_name,
    container_id,
    own_rank_only,
    visible_devices,
)
from gpuledger.devices.device import Facts
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
            "SLURMD_NODENAME": "gpu-07", "SLURM_JOB_PARTITION": "h200",
        },
        host="login", command="train.py", process=Path("/nowhere"),
    )  # fmt: skip
    assert found.labels == {
        "cluster": "ares", "namespace": "nlp", "workload": "llm", "run_id": "4711",
        "host": "gpu-07", "node_group": "h200",
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
