"""What is advised, and what is not, for kinds of jobs that look alike: through the command, from files of telemetry."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

START = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
A100 = "NVIDIA A100-SXM4-80GB"
CULL, RELEASE = "cull-idle", "release-idle"
SHARING = {"consolidation", "mig", "mps", "time-slicing"}
Row = dict[str, Any]


def held(util: float = 0, watts: float = 70, **more: float) -> Row:
    """Next to nothing is done, and memory is held."""
    used = {"DCGM_FI_DEV_FB_USED": 30_000, "DCGM_FI_DEV_FB_FREE": 51_920}
    return {"DCGM_FI_DEV_GPU_UTIL": util, "DCGM_FI_DEV_POWER_USAGE": watts, **used, **more}


def free() -> Row:
    """Nothing is done, and no memory is held."""
    return held() | {"DCGM_FI_DEV_FB_USED": 4, "DCGM_FI_DEV_FB_FREE": 81_916}


def works(util: float = 97, watts: float = 350) -> Row:
    """A kernel runs nearly all the time."""
    return held(util, watts)


def counted(**ratios: float) -> Row:
    """The activity counters of a GPU at work, at its full clock."""
    names = {"engine": "GR_ENGINE", "sm": "SM", "tensor": "PIPE_TENSOR", "fp32": "PIPE_FP32", "fp64": "PIPE_FP64",
             "fp16": "PIPE_FP16", "dram": "DRAM"}  # fmt: skip
    found = {f"DCGM_FI_PROF_{names[name]}_ACTIVE": value for name, value in ratios.items()}
    return works() | {"DCGM_FI_DEV_SM_CLOCK": 1400} | found


def samples(
    minutes: int, step: int, does: Callable[[int], Row], *, namespace: str = "", pod: str = "", gpu: int = 0
) -> Iterator[Row]:
    """One GPU every `step` minutes."""
    for at in range(0, minutes, step):
        when = f"{START + dt.timedelta(minutes=at):%Y-%m-%dT%H:%M:%SZ}"
        yield {"timestamp": when, "UUID": f"GPU-{gpu}", "modelName": A100, "namespace": namespace, "pod": pod} | does(
            at
        )


@pytest.fixture
def audit(cli):
    """The audit of one file of some GPUs."""

    def run(*gpus: Iterator[Row]) -> dict[str, Any]:
        rows = [row for gpu in gpus for row in gpu]
        with Path("fleet.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)), restval="")
            writer.writeheader()
            writer.writerows(rows)
        ended = cli("audit", "fleet.csv", "--price", "4", "--json")
        assert ended.code == 0, ended.err
        return ended.json()

    return run


def ids(made: dict[str, Any]) -> set[str]:
    return {r["id"] for r in made["recommendations"]}


def test_a_gpu_whose_encoder_works_is_not_idle(audit):
    """Two days of transcoding: no kernel to speak of, 88 % of the encoder, and every sample as quiet otherwise."""
    busy = held(4, 99, DCGM_FI_DEV_ENC_UTIL=88, DCGM_FI_DEV_DEC_UTIL=62)
    quiet = counted(engine=0.006, sm=0.004, tensor=0.0, fp32=0.001, fp64=0.0, fp16=0.0, dram=0.06)
    for name in ("media", "video-api"):
        made = audit(samples(2880, 30, lambda _: quiet | busy, namespace=name, pod="ffmpeg-0"))
        assert ids(made).isdisjoint({CULL, RELEASE, "smaller-sku"} | SHARING)
        assert float(made["buckets"]["idle"]) == float(made["buckets"]["idle_held"]) == 0
        # Nothing records what it did: that is unknown, not stalled.
        assert float(made["buckets"]["unrated"]) > 0.8 * float(made["paid_usd"])
        assert float(made["buckets"]["stalled"]) == 0
    without = {name: 0 for name in busy if "ENC" in name or "DEC" in name}
    made = audit(samples(2880, 30, lambda _: quiet | busy | without, namespace="media", pod="x-0"))
    assert CULL in ids(made)
    assert float(made["buckets"]["idle_held"]) == float(made["paid_usd"])


def test_a_little_utilization_is_work_to_the_advice_and_idle_to_the_bill(audit):
    """Ten replicas at 8 % for two days, without counters; the same without any utilization are forgotten."""

    def fleet(util: float) -> list[Iterator[Row]]:
        return [samples(2880, 60, lambda _: held(util), namespace="team-q", pod=f"rep-{n}", gpu=n) for n in range(10)]

    loaded, forgotten = audit(*fleet(8)), audit(*fleet(0.5))
    for made in (loaded, forgotten):
        assert float(made["buckets"]["idle_held"]) == float(made["paid_usd"])
    assert CULL not in ids(loaded)
    assert {b["class"] for b in loaded["behaviours"]}.isdisjoint({"idle", "idle-held"})
    assert CULL in ids(forgotten)


@pytest.mark.parametrize(
    ("pause", "pod", "expected"),
    [
        (5, "jupyter-cy-0", False),
        (55, "jupyter-cy-0", False),
        (90, "jupyter-cy-0", True),
        (90, "job-0", False),
        (90, "vllm-mixtral-0", False),
    ],
)
def test_pauses_are_culled_beyond_the_timeout_of_notebooks(audit, pause, pod, expected):
    cycle = pause + 30
    made = audit(samples(1440, 5, lambda at: works() if at % cycle < 30 else held(), namespace="team-q", pod=pod))
    assert (CULL in ids(made)) is expected
    assert RELEASE not in ids(made)


@pytest.mark.parametrize(
    ("namespace", "pod", "expected"),
    [
        ("notebooks", "jupyter-ana-0", True),
        ("research", "train-run7-0", True),
        ("", "", True),
        ("prod-fraud", "x-0", False),
        ("team-q", "tgi-llama-0", False),
        ("inference", "rep-0", False),
    ],
)
def test_what_has_stopped_for_days_is_ended_unless_it_must_answer(audit, namespace, pod, expected):
    made = audit(samples(4200, 30, lambda at: works() if at < 900 else held(), namespace=namespace, pod=pod))
    assert ids(made) & {CULL, "spot", "schedule-off-hours"} == ({CULL} if expected else set())
    if expected:
        text = next(r["change"]["text"] for r in made["recommendations"] if r["id"] == CULL)
        assert ("cull_idle_timeout" in text) is ("jupyter" in pod)


@pytest.mark.parametrize(("minutes", "expected"), [(9, False), (1380, False), (1500, True)])
def test_a_free_gpu_is_given_back_after_a_day(audit, minutes, expected):
    made = audit(samples(minutes, 1 if minutes < 60 else 10, lambda _: free(), namespace="ml", pod="x-0"))
    assert (RELEASE in ids(made)) is expected


def test_the_list_to_give_back_agrees(cli, audit):
    """A day free, nine hours free, a server that waits, an encoder at work: one is listed."""
    at_work = held(4, 99, DCGM_FI_DEV_ENC_UTIL=88)
    gpus = [
        samples(1560, 10, lambda _: free(), namespace="a", gpu=1),
        samples(1560, 10, lambda at: works() if at < 1000 else free(), namespace="b", gpu=2),
        samples(1560, 10, lambda at: works() if at < 60 else held(), namespace="c", pod="vllm-0", gpu=3),
        samples(1560, 10, lambda _: at_work, namespace="d", gpu=4),
    ]
    made = audit(*gpus)
    released = next(r for r in made["recommendations"] if r["id"] == RELEASE)
    assert [d for t in released["targets"] for d in t["devices"]] == ["GPU-1"]
    assert CULL not in ids(made)
    cli("import", "fleet.csv", "--lake", "lake")
    listed = cli("ask", "give-back", "--lake", "lake", "--price", "4", "--json").json()
    assert [g["gpu_uuid"] for g in listed["give_back"]] == ["GPU-1"]


TRAINS = counted(engine=0.97, sm=0.95, tensor=0.0, fp32=0.62, fp64=0.0, fp16=0.0, dram=0.3)


@pytest.mark.parametrize(
    ("namespace", "pod", "expected"),
    [("chem", "gmx-0", False), ("team-q", "job-0", False), ("vision-train", "job-0", True), ("q", "torchrun-0", True)],
)
def test_precision_is_advised_where_a_name_says_that_it_trains(audit, namespace, pod, expected):
    made = audit(samples(60, 1, lambda _: TRAINS, namespace=namespace, pod=pod))
    assert ({"amp", "bf16", "tensor-cores"} <= ids(made)) is expected
    if not expected:
        assert not [r["id"] for r in made["recommendations"] if "torch" in r["change"]["text"]]


def test_without_counters_no_precision_is_guessed(audit):
    made = audit(samples(60, 1, lambda _: works(99, 380), namespace="pretrain", pod="job-0"))
    assert ids(made).isdisjoint({"amp", "bf16", "tensor-cores", "h2d-overlap", "num-workers"})
    assert "profile" in ids(made)


def test_heat_comes_before_the_training_loop(audit):
    """One of eight GPUs is hot in every sample: what its counters show is the heat, and the others wait for it."""
    busy = counted(engine=0.98, sm=0.9, tensor=0.5, fp32=0.05, fp64=0.0, fp16=0.0, dram=0.3)

    def gang(bits: int) -> list[Iterator[Row]]:
        row = busy | {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0}
        hot = row | {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": bits}
        return [samples(30, 1, lambda _, n=n: row if n else hot, namespace="pretrain", gpu=n) for n in range(8)]

    cool, hot = audit(*gang(0)), audit(*gang(0x40))
    assert "torch-compile" in ids(cool)
    assert hot["recommendations"][0]["id"] == "health"
    assert ids(hot).isdisjoint({"torch-compile", "fused-kernels", "fp8", "spot"})


def test_a_gpu_with_faults_is_not_shared_and_one_load_is_not_shared_with_itself(audit):
    """Small notebooks that rest in between: two share, one alone does not, nor two of which one fails."""

    def small(at: int, xid: int = 0) -> Row:
        load = works() if at % 60 < 15 else held()
        return load | {"DCGM_FI_DEV_FB_USED": 9_000, "DCGM_FI_DEV_FB_FREE": 72_920, "DCGM_FI_DEV_XID_ERRORS": xid}

    def pods(n: int, *, broken: bool = False, pod: str = "jupyter-{}") -> list[Iterator[Row]]:
        xid = [79 if broken and not gpu else 0 for gpu in range(n)]
        return [
            samples(720, 5, lambda at, g=g: small(at, xid[g] if at > 300 else 0), namespace="notebooks",
                    pod=pod.format(g), gpu=g)
            for g in range(n)
        ]  # fmt: skip

    assert SHARING & ids(audit(*pods(2)))
    for gpus in (pods(1), pods(2, broken=True), pods(2, pod="jupyter-0")):
        assert not SHARING & ids(audit(*gpus))


def test_a_job_that_hangs_is_looked_at_first(audit):
    """Five hours of training, then a kernel that only waits, at next to idle power, for seven."""

    def does(at: int) -> Row:
        trains = counted(engine=0.98, sm=0.9, tensor=0.45, fp32=0.03, fp64=0.0, fp16=0.0, dram=0.4)
        waits = counted(engine=1.0, sm=0.05, tensor=0.0, fp32=0.0, fp64=0.0, fp16=0.0, dram=0.0)
        return trains if at < 300 else waits | {"DCGM_FI_DEV_POWER_USAGE": 75, "DCGM_FI_DEV_GPU_UTIL": 100}

    made = audit(samples(720, 2, does, namespace="pretrain", pod="llm-0"))
    (only,) = made["recommendations"]
    assert only["id"] == "profile"
    assert "the board draws next to nothing for 58 % of the working time" in only["why"]


@pytest.mark.parametrize(("part_load", "expected"), [(25, False), (115, True)])
def test_phases_at_part_load_are_no_wait_for_input(audit, part_load, expected):
    """Of 115 min of a training job so many at a third of the GPU: tests of a job that else is full, or all of it."""

    def does(at: int) -> Row:
        full = counted(engine=0.97, sm=0.88, tensor=0.5, fp32=0.03, fp64=0.0, fp16=0.0, dram=0.4)
        part = counted(engine=0.35, sm=0.31, tensor=0.12, fp32=0.02, fp64=0.0, fp16=0.0, dram=0.15)
        part |= {"DCGM_FI_DEV_GPU_UTIL": 35, "DCGM_FI_DEV_POWER_USAGE": 190}
        return full if at % 115 < 115 - part_load else part

    found = ids(audit(samples(690, 1, does, namespace="research", pod="train-lm-0")))
    assert ("num-workers" in found) == expected
    assert "profile" in found or expected
