"""Recorded jobs keep their right class and get the right advice on their way through a lake."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from case_table import NAMED
from lake_cases import TENSOR_KINDS, TRUTH, VECTOR, Job, Judged, bouncing, judge, level, recorded_rows, steady

from gpuledger.units import Unknown

INPUT = frozenset({"num-workers", "prefetch", "persistent-workers", "pin-memory", "dali", "h2d-overlap"})
PRECISION = frozenset({"amp", "bf16", "tensor-cores"})
KERNELS = frozenset({"cuda-graphs", "fused-kernels", "larger-batch", "sync-points", "torch-compile"})
LINKS = frozenset({"gradient-accumulation", "overlap-collectives"})
IDLE = frozenset({"cull-idle", "release-idle", "schedule-off-hours"})
SHARING = frozenset({"consolidation", "mig", "mps", "time-slicing"})
WORK = INPUT | PRECISION | KERNELS | LINKS | {"fp8", "profile"}


@dataclass(frozen=True)
class Due:
    """The right class, the rules that must apply and those that must not."""

    klass: str
    must: frozenset[str]
    never: frozenset[str]
    by_counters: bool = True


STARVED = frozenset({"num-workers", "prefetch", "persistent-workers", "dali"})
LAUNCH = frozenset({"cuda-graphs", "fused-kernels", "larger-batch", "sync-points", "torch-compile", "profile"})
MEMORY = frozenset({"fused-kernels", "torch-compile", "profile"})
PARTIAL = frozenset({"larger-batch", "torch-compile", "profile"})
# Neither idle nor to be shared: whatever works all of the time.
BUSY = IDLE | SHARING | LINKS
DUE = {
    "train-bouncing": Due("starved", STARVED, BUSY | PRECISION | KERNELS | {"fp8"}),
    "train-bouncing-nvml": Due(
        "starved", STARVED, BUSY | PRECISION | KERNELS | {"pin-memory", "h2d-overlap"}, by_counters=False
    ),
    "train-short-waits": Due("starved", STARVED, BUSY | PRECISION | KERNELS | {"fp8"}),
    "train-bursts": Due("starved", STARVED, BUSY | PRECISION | KERNELS | {"fp8"}),
    "train-launch": Due("launch-bound", LAUNCH, BUSY | INPUT | PRECISION | {"fp8"}),
    "train-memory": Due("memory-bound", MEMORY, BUSY | INPUT | PRECISION | {"fp8", "cuda-graphs", "sync-points"}),
    "train-products-bf16": Due("compute-bound", frozenset({"fp8"}), BUSY | INPUT | PRECISION | KERNELS),
    "train-model-bf16": Due(
        "compute-bound", frozenset({"fp8", "fused-kernels", "torch-compile"}), BUSY | INPUT | PRECISION | {"profile"}
    ),
    "train-products-fp32": Due("compute-bound", PRECISION, BUSY | INPUT | KERNELS | {"fp8", "profile"}),
    "train-model-fp32": Due("compute-bound", PRECISION, BUSY | INPUT | {"fp8", "profile"}),
    "train-partial": Due("steady-partial", PARTIAL, BUSY | INPUT | PRECISION | {"fp8", "cuda-graphs"}),
    "decode": Due("memory-bound", frozenset({"profile"}), NAMED - {"profile"}),
    "spin": Due("spinning", frozenset({"profile"}), NAMED - {"profile"}),
    # Two minutes without work are a pause, whatever holds the memory.
    "held": Due("idle-held", frozenset(), NAMED),
    "free": Due("idle", frozenset(), NAMED),
    "train-tensor-only": Due("compute-bound", PRECISION, BUSY | INPUT | KERNELS | {"fp8"}),
    "train-tensor-only-bf16": Due(
        "compute-bound", frozenset({"fp8", "fused-kernels", "torch-compile"}), BUSY | INPUT | PRECISION
    ),
}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Job]:
    pool = recorded_rows(tmp_path_factory.mktemp("recorded"))
    model, held, fp32 = pool["lm_train_bf16_b16"], pool["idle_holding_memory"], pool["fp32_gemm_8192"]
    made = {
        "train-bouncing": Job(bouncing(model, held, period_s=6.0, duty=0.5)),
        "train-bouncing-nvml": Job(bouncing(model, held, period_s=6.0, duty=0.5), counters=False),
        "train-short-waits": Job(steady(pool["lm_train_bf16_b8_waits"])),
        "train-bursts": Job(steady(pool["data_starved_gemm"])),
        "train-launch": Job(steady(pool["tiny_kernels"])),
        "train-memory": Job(steady(pool["memcopy"])),
        "train-products-bf16": Job(steady(pool["bf16_gemm_8192"]), precision="bf16"),
        "train-model-bf16": Job(steady(model)),
        "train-products-fp32": Job(steady(fp32)),
        "train-model-fp32": Job(steady(level("h200_truth/lm_train_fp32_b4"))),
        "train-partial": Job(steady(level("own/resnet50_bf16_b64")), precision="bf16"),
        "decode": Job(steady(level("own/lm_bf16_decode_b8"))),
        "spin": Job(steady(pool["spin_one_block"])),
        "held": Job(steady(held)),
        "free": Job(steady(pool["idle"]), namespace=""),
        "train-tensor-only": Job(steady(fp32), without=VECTOR + TENSOR_KINDS),
        "train-tensor-only-bf16": Job(steady(model), without=VECTOR + TENSOR_KINDS),
    }
    assert set(made) == set(DUE)
    return made


@pytest.fixture(scope="module")
def judged(jobs: dict[str, Job], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    return judge(jobs, tmp_path_factory.mktemp("judged"))


@pytest.mark.parametrize("name", DUE)
def test_a_recorded_job_keeps_its_class(judged: dict[str, Judged], name: str) -> None:
    one = judged[name].case
    assert one.klass == DUE[name].klass, one.evidence
    assert one.by_counters == DUE[name].by_counters
    assert one.shares == {one.klass: 1.0}


@pytest.mark.parametrize("name", DUE)
def test_a_recorded_job_gets_its_advice(judged: dict[str, Judged], name: str) -> None:
    found = set(judged[name].findings)
    assert found >= DUE[name].must
    assert found.isdisjoint(DUE[name].never)


@pytest.mark.parametrize("name", DUE)
def test_every_finding_stays_within_the_dollars_of_its_case(judged: dict[str, Judged], name: str) -> None:
    one = judged[name]
    assert not isinstance(one.case.dollars, Unknown)
    assert sum(one.case.bucket_shares.values()) == pytest.approx(1)
    used = float(one.case.bucket_shares["productive"])
    for found in one.findings.values():
        if found.rule.lever not in {None, "rate"}:
            assert float(found.alone.high) <= 1 - used + 1e-6


def test_waits_are_paid_and_underused_and_not_idle(jobs: dict[str, Job], judged: dict[str, Judged]) -> None:
    """What no kernel runs in is underused; the last wait, at the edge of what was seen, stays idle: 3 s of 120 s."""
    one, rows = judged["train-bouncing"].case, jobs["train-bouncing"].rows
    no_kernel = 1 - sum(row["gr_engine_active"] for row in rows) / 100 / len(rows)
    assert one.share("underused", "idle_held") == pytest.approx(no_kernel, abs=0.01)
    assert 0 < one.share("idle_held") <= 3.1 / 120
    # 19 waits of 3 s within 120 s.
    assert one.signals.wait_ratio == pytest.approx(19 * 3 / 120, abs=0.03)
    assert one.signals.bounces_per_min == pytest.approx(10, abs=0.6)


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("train-products-bf16", "bf16_gemm_8192"),
        ("train-products-fp32", "fp32_gemm_8192"),
        ("train-model-bf16", "lm_train_bf16_b16"),
        ("train-bursts", "data_starved_gemm"),
    ],
)
def test_what_is_put_to_use_is_the_work_that_was_counted(judged: dict[str, Judged], name: str, workload: str) -> None:
    counted = TRUTH["workloads"][workload]["tflop_per_s"] / TRUTH["info"]["dense_peak_bf16_tflops"]
    assert judged[name].case.share("productive") == pytest.approx(counted, rel=0.10)


def test_idle_time_is_told_apart_by_its_memory(judged: dict[str, Judged]) -> None:
    held, free = judged["held"].case, judged["free"].case
    assert (held.share("idle_held"), held.idle_held_ratio) == (1.0, 1.0)
    assert (free.share("idle"), free.idle_ratio) == (1.0, 1.0)
    assert free.owner == "unallocated"


def test_time_that_cannot_be_rated_is_not_called_waste(judged: dict[str, Judged]) -> None:
    """fp32 products with only the tensor pipe recorded: much power and nothing that explains it."""
    one = judged["train-tensor-only"]
    assert one.case.share("stalled") == 0
    assert one.case.share("unrated") > 0.9
    assert isinstance(one.case.demand.tflops, Unknown)
    assert any("not recorded" in line for line in one.case.evidence)
    assert "record-pipes" in one.findings
    assert "record-pipes" not in judged["train-products-fp32"].findings
    for rule in PRECISION:
        found = one.findings[rule].alone
        assert float(found.low) <= float(found.middle) <= one.case.share("underused") + 1e-6
        assert float(found.high) > 0.5


def test_power_that_is_explained_leaves_nothing_unrated(judged: dict[str, Judged]) -> None:
    seen, part = judged["train-model-bf16"].case, judged["train-tensor-only-bf16"].case
    assert part.share("unrated") == 0
    assert part.share("productive") == pytest.approx(seen.share("productive"), abs=0.01)


def test_memory_traffic_hints_at_a_server_and_does_not_show_it(judged: dict[str, Judged]) -> None:
    one = judged["decode"].case
    assert (one.purpose, one.purpose_by) == ("inference", "memory")
    assert not one.serves


def test_spinning_is_guessed_to_train_and_never_surely_serves(judged: dict[str, Judged]) -> None:
    one = judged["spin"].case
    assert one.purpose_by == "utilization"
    assert not one.serves
