from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from case_table import CASES, MUST, NAMED
from casebook import A100, H100, case
from yaml_subset import parse

import gpuledger.advice.rules
from gpuledger.advice.case import Health, LongIdle
from gpuledger.advice.findings import Finding, find, find_all
from gpuledger.advice.limits import load_limits
from gpuledger.advice.rule import RULES, Gain, Rule, Snippet
from gpuledger.catalog.gpus import load_gpus
from gpuledger.cost.savings import ACTS_ON, MAYBE
from gpuledger.units import Unknown

LIMITS = load_limits()
ALL = dict(RULES)
VOCABULARY = (
    "DALI", "num_workers", "pin_memory", "prefetch", "AMP", "BF16", "FP8", "Tensor Cores", "fused kernels",
    "torch.compile", "larger batches", "H2D", "non_blocking", "smaller GPU", "SKU", "MPS", "MIG", "spot", "CUDA graph",
    "sync points", "persistent_workers", "gradient accumulation", "time-slicing", "Consolidate", "power limit",
    "off-hours", "torch.profiler", "Nsight Systems",
)  # fmt: skip


def applies(rule: str, one) -> bool:
    return find(ALL[rule], one, LIMITS) is not None


@cache
def applying(name: str) -> frozenset[str]:
    """The rules that apply to the case of that name."""
    return frozenset(rule for rule in ALL if applies(rule, CASES[name]))


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_rule_applies_to_the_cases_that_name_it_and_to_no_others(name):
    assert {one for one in CASES if name in applying(one)} == {one for one in CASES if name in MUST[one]}


def test_the_table_names_rules_that_exist():
    assert set(ALL) >= NAMED


@pytest.mark.parametrize("name", ALL)
def test_every_rule_applies_somewhere_and_not_everywhere(name):
    assert not all(name in applying(one) for one in CASES)
    others = [f for f in Path(__file__).parent.glob("test_*.py") if f.name != Path(__file__).name]
    has_its_own = any(f'"{name}"' in f.read_text(encoding="utf-8") for f in others)
    assert name in NAMED or has_its_own, "neither case_table.py nor a test of its own shows where it applies"


def test_every_rule_has_a_file_of_its_own():
    folder = Path(gpuledger.advice.rules.__file__).parent
    assert {f.stem for f in folder.glob("*.py")} - {"__init__"} == {name.replace("-", "_") for name in ALL}


def test_the_whole_vocabulary_is_covered():
    said = "\n".join(f"{r.title}\n{r.change.text}" for r in ALL.values()).casefold()
    assert [word for word in VOCABULARY if word.casefold() not in said] == []


def serving(one):
    """The same as a server of that name."""
    return replace(one, namespace="chat-serving", purpose="inference")


@cache
def findings(name: str) -> tuple[Finding, ...]:
    return tuple(find_all([CASES[name]], LIMITS))


@pytest.mark.parametrize("name", ALL)
def test_the_snippet_of_a_rule_can_be_pasted(name):
    _can_be_pasted(name, ALL[name].change)


@pytest.mark.parametrize("name", CASES)
def test_snippets_can_be_pasted_once_filled_in(name):
    for found in findings(name):
        _can_be_pasted(found.rule.id, found.change)


@cache
def _can_be_pasted(name: str, change: Snippet) -> None:
    text = re.sub(r"\{\{\w+\}\}", "1", change.text)
    if change.language == "python":
        compile(text, name, "exec")
    elif change.language == "bash":
        done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    else:
        assert parse(text)


def test_a_broken_snippet_would_be_caught():
    with pytest.raises(SyntaxError):
        compile("for x in :", "broken", "exec")
    for broken in ("a: 1\n   b: 2\n", "just words\n", "a:\n  - x\n   - y\n", "\ta: 1\n"):
        with pytest.raises(ValueError, match="line"):
            parse(broken)


@pytest.mark.parametrize("name", CASES)
def test_findings_are_filled_in_and_within_the_buckets(name):
    one = CASES[name]
    for found in findings(name):
        assert "{{" not in found.change.text
        assert any(c.isdigit() for c in found.reason.why)
        assert 0 <= found.alone.low <= found.alone.middle <= found.alone.high <= 1
        lever = found.rule.lever
        if lever and lever != "rate":
            assert float(found.alone.middle) <= one.share(*ACTS_ON[lever]) + 1e-9
            assert float(found.alone.high) <= one.share(*ACTS_ON[lever], *MAYBE.get(lever, ())) + 1e-9
        if lever:
            assert found.lever is not None
            assert found.gain.source


@pytest.mark.parametrize("name", ["amp", "bf16", "tensor-cores", "fp8"])
def test_precision_is_never_the_answer_to_a_memory_limit(name):
    one = CASES["memory-bound"]
    for signals in ({}, {"fp32_ratio": 0.5}, {"tensor_ratio": None}):
        assert not applies(name, replace(one, signals=replace(one.signals, **signals)))
    assert not applies(name, replace(one, confidence="utilization", phases={"compute_bound": 1.0}))


def test_fp8_and_mig_follow_the_hardware():
    idle = CASES["idle, memory held"]
    busy = CASES["compute-bound in bf16, H100"]
    fp8 = {k for k, gpu in load_gpus().items() if applies("fp8", replace(busy, gpu=gpu))}
    assert fp8 == {k for k, gpu in load_gpus().items() if "fp8" in gpu.peak_tflops and gpu.vendor == "NVIDIA"}
    mig = {k for k, gpu in load_gpus().items() if applies("mig", replace(idle, gpu=gpu))}
    assert {A100, H100, "a30", "b200-sxm"} <= mig
    assert mig.isdisjoint({"a10g", "l4", "l40s", "t4", "v100-sxm2-16gb", "mi300x", "a40"})


def test_an_unknown_gpu_gets_only_advice_that_needs_no_facts():
    one = CASES["compute-bound in fp32"]
    unknown = replace(one, gpu=Unknown("'Banana 9000' is not in the catalog"))
    assert {f.rule.id for f in find_all([unknown], LIMITS)}.isdisjoint(NAMED)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"purpose": "inference"}, False),
        ({"purpose": "inference", "workload": "nightly-batch"}, True),
        ({"purpose": None, "namespace": "team-q"}, False),
        ({"purpose_by": "utilization", "namespace": "platform"}, False),
        ({"purpose_by": "utilization", "namespace": "research"}, False),
        ({"purpose_by": "utilization", "namespace": "research", "pod_words": frozenset({"trainer"})}, True),
        ({"pod_words": frozenset({"jupyter"})}, False),
        ({"idle_held_ratio": 0.3}, False),
        ({"purpose": "inference", "namespace": "research-serving"}, False),
        ({"namespace": "production"}, False),
        ({"workload": "prod-ranker"}, False),
        ({"purchase": "spot"}, False),
        ({"purchase": "reserved"}, False),
        ({"purchase": "owned"}, False),
        ({"klass": "idle-held"}, False),
    ],
)
def test_spot_is_for_work_that_can_stop(given, expected):
    one = CASES["compute-bound in bf16, H100"]
    assert applies("spot", replace(one, **given)) is expected


def test_bouncing_and_steady_get_different_advice():
    bouncing, steady = MUST["bouncing, no counters"], MUST["steady and partial"]
    assert {"dali", "num-workers"} <= bouncing - steady
    assert {"larger-batch", "torch-compile"} <= steady - bouncing


def test_a_training_loop_is_changed_only_where_a_name_says_that_it_trains():
    one = CASES["starved"]
    assert applies("num-workers", one)
    guess = replace(one, namespace="team-q", purpose="training", purpose_by="utilization")
    assert not applies("num-workers", guess)
    assert applies("num-workers", replace(guess, pod_words=frozenset({"torchrun"})))
    # Names that contradict each other show nothing.
    for word in ("vllm", "jupyter", "gromacs"):
        assert not applies("num-workers", replace(one, pod_words=frozenset({word})))
    assert not applies("num-workers", replace(one, purpose="inference"))


def test_several_gpus_that_exchange_data_may_wait_for_each_other():
    one = CASES["starved"]
    linked = replace(one, demand=replace(one.demand, nvlink_bytes_per_s=2e10))
    assert not applies("num-workers", linked)
    # Ten times as much comes in as goes out: input.
    fed = replace(linked, signals=replace(linked.signals, pcie_bytes_per_s=2.75e8))
    assert applies("num-workers", fed)


def test_profiles_of_what_is_not_known_to_be_python_need_none():
    known, unknown = CASES["launch-bound"], CASES["of nothing known"]
    assert "torch.profiler" in find(ALL["profile"], known, LIMITS).change.text
    text = find(ALL["profile"], unknown, LIMITS).change.text
    assert "nsys profile" in text
    assert "torch" not in text


def test_culling_takes_a_stretch_beyond_its_timeout():
    one = replace(CASES["idle, memory held"], long_idle=LongIdle(held_h=(9.0, 1.5)))
    assert applies("cull-idle", one)
    assert not applies("cull-idle", replace(one, long_idle=LongIdle(held_h=(0.9,))))
    # 100 of 672 h lie beyond the timeout, and 0.8 of them are given back.
    found = find(ALL["cull-idle"], replace(one, long_idle=LongIdle(held_h=(101.0,))), LIMITS)
    assert float(found.alone.middle) == pytest.approx(0.8 * 100 / 672, rel=1e-3)
    # What is not known to be interactive may come back: only what has stopped for a day is ended, by its process.
    other = replace(one, namespace="team-q", long_idle=LongIdle(held_h=(30.0,)))
    assert not applies("cull-idle", other)
    stopped = find(ALL["cull-idle"], replace(other, long_idle=LongIdle((30.0,), (), (30.0,), 30.0)), LIMITS)
    assert "kill -TERM" in stopped.change.text
    for namespace in ("prod-team", "chat-serving"):
        assert not applies("cull-idle", replace(one, namespace=namespace))
    assert not applies("cull-idle", replace(one, pod_words=frozenset({"vllm"})))


def test_giving_back_takes_a_day_and_a_whole_board():
    one = CASES["nobody's"]
    assert applies("release-idle", one)
    assert not applies("release-idle", replace(one, long_idle=LongIdle(free_h=(23.9,) * 20)))
    assert not applies("release-idle", replace(one, sliced=True))
    assert not applies("release-idle", replace(one, namespace="prod-team"))


def test_one_gpu_with_one_load_is_not_shared_with_itself():
    one = CASES["idle, memory held"]
    for rule in ("mig", "mps", "time-slicing", "consolidation"):
        assert applies(rule, one)
        assert not applies(rule, replace(one, gpus=1))
        # A pod with all four GPUs may need them together; nothing is put next to faults; a job pauses.
        assert not applies(rule, replace(one, own_pods=False))
        assert not applies(rule, replace(one, health=Health(xid_events=1, affected=("a",), failing=1)))
        assert not applies(rule, replace(one, namespace="notebooks-training"))


def test_idle_heavy_begins_where_the_limit_says():
    one = CASES["idle, memory held"]
    at, below = replace(one, idle_held_ratio=0.30), replace(one, idle_held_ratio=0.2999)
    assert applies("cull-idle", at)
    assert applies("mps", at)
    assert not applies("cull-idle", below)
    assert not applies("mps", below)


def test_a_smaller_gpu_needs_measured_headroom():
    one = serving(CASES["steady and partial"])
    assert applies("smaller-sku", one)
    for change in ({"tflops": 300.0}, {"dram_bytes_per_s": 1.5e12}, {"memory_max_bytes": 200e9}):
        assert not applies("smaller-sku", replace(one, demand=replace(one.demand, **change)))
    assert not applies("smaller-sku", replace(one, signals=replace(one.signals, sm_ratio=0.8)))
    assert not applies("smaller-sku", CASES["steady and partial"])
    blank = serving(case("steady-partial", signals={"engine_ratio": 0.95, "tensor_ratio": 0.2}))
    assert not applies("smaller-sku", blank)


def test_off_hours_are_named():
    one = CASES["off at night"]
    found = find(ALL["schedule-off-hours"], one, LIMITS)
    assert found is not None
    assert "20:00 to 08:00 UTC" in found.reason.why
    assert 'schedule: "0 20 * * *"' in found.change.text
    assert [float(x) for x in (found.alone.low, found.alone.middle, found.alone.high)] == [0.25, 0.4, 0.5]
    assert not applies("schedule-off-hours", replace(one, days=2.0))
    assert not applies("schedule-off-hours", replace(one, namespace="training"))
    assert not applies("schedule-off-hours", replace(one, namespace="research-api"))
    assert not applies("schedule-off-hours", replace(one, long_idle=LongIdle(last_h=24.0)))
    assert not applies("schedule-off-hours", replace(one, quiet_hours=tuple(range(24))))


def test_mig_names_the_slice_that_holds_the_job():
    one = CASES["idle, memory held"]
    found = find(ALL["mig"], one, LIMITS)
    assert found is not None
    assert "1g.5gb" in found.change.text
    # One of seven slices: 6 / 7 of the bill, of which 0.98 is idle or underused.
    assert float(found.alone.middle) == pytest.approx(6 / 7, abs=1e-6)


def test_the_power_cap_saves_energy_not_bill():
    one = CASES["owned, near its power limit"]
    found = find(ALL["power-cap"], one, LIMITS)
    assert found is not None
    assert found.lever is None
    assert found.reason.energy is not None
    assert "nvidia-smi -pl 560" in found.change.text
    assert not applies("power-cap", replace(one, purchase="on_demand"))


def test_a_rule_that_forgets_its_gain_is_a_mistake():
    from gpuledger.advice.rule import Effort, Reason, bash

    none = Gain("computed", "assumed", "calculated from the case")
    broken = Rule("mps", "t", "hours", Effort("small", 1), bash("true"), lambda *_: Reason("why"), none)
    with pytest.raises(ValueError, match="gave none"):
        find(broken, CASES["idle, memory held"], LIMITS)
