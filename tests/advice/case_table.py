"""The plainest case of each kind, and the rules that apply to it.

A rule that some case here names must apply to no other case. A rule that no case names is not judged here: it has a
test of its own, so that a new rule is one file and one test.
"""

from __future__ import annotations

from casebook import A10G, H100, MI300X, V100, case

from gpuledger.advice.case import Case, Health, LongIdle

STARVED = {"engine_ratio": 0.38, "tensor_ratio": 0.15, "dram_ratio": 0.10}
WAITING = {"productive": 0.15, "stalled": 0.24, "underused": 0.61}
RESTING = {"idle_held": 0.95, "underused": 0.03, "productive": 0.02}
# Done for good after a day of work, with memory held or free; and nights without work.
HELD = LongIdle(held_h=(638.0,), held_last_h=(638.0,), last_h=638.0)
FREE = LongIdle(free_h=(672.0,), last_h=672.0)
NIGHTS = LongIdle(held_h=(12.0,) * 28, last_h=8.0)
_CASES: dict[str, tuple[Case, str]] = {
    "starved": (
        case("starved", signals=STARVED, demand={"pcie_rx_bytes_per_s": 2.5e8}, money=WAITING),
        "dali num-workers persistent-workers pin-memory prefetch spot",
    ),
    "starved, much copied": (
        case("starved", signals=STARVED, demand={"pcie_rx_bytes_per_s": 2e9}, money=WAITING),
        "dali h2d-overlap num-workers persistent-workers pin-memory prefetch spot",
    ),
    "starved, little copied": (
        case("starved", signals=STARVED, demand={"pcie_rx_bytes_per_s": 2e7}, money=WAITING),
        "dali num-workers persistent-workers prefetch spot",
    ),
    "starved, AMD": (
        case("starved", gpu=MI300X, signals=STARVED, demand={"pcie_rx_bytes_per_s": 2.5e8}, money=WAITING),
        "num-workers persistent-workers pin-memory prefetch",
    ),
    "a server short of requests": (
        case(
            "starved",
            gpu=A10G,
            signals=STARVED | {"dram_ratio": 0.2},
            demand={
                "memory_max_ratio": 0.4,
                "memory_mean_ratio": 0.35,
                "tflops": 20.0,
                "dram_bytes_per_s": 1.2e11,
                "pcie_rx_bytes_per_s": 5e7,
            },
            money=WAITING,
            namespace="chat-serving",
            purpose="inference",
            busy_ratio=0.38,
        ),
        "consolidation mps profile smaller-sku time-slicing",
    ),
    "underutilized, low memory, no counters": (
        case(
            "steady-partial",
            confidence="utilization",
            signals={"util_ratio": 0.5},
            phases={"underutilized": 0.9, "productive": 0.1},
            demand={"memory_max_ratio": 0.3, "memory_mean_ratio": 0.25},
            money={"productive": 0.5, "underused": 0.5},
        ),
        "profile spot",
    ),
    "underutilized, much memory, no counters": (
        case(
            "steady-partial",
            confidence="utilization",
            signals={"util_ratio": 0.5},
            phases={"underutilized": 0.9, "productive": 0.1},
            money={"productive": 0.5, "underused": 0.5},
        ),
        "profile spot",
    ),
    "bouncing, no counters": (
        case(
            "starved",
            confidence="utilization",
            signals={"util_ratio": 0.5},
            phases={"idle": 0.5, "compute_bound": 0.5},
            money={"productive": 0.5, "underused": 0.5},
            gpus=1,
        ),
        "dali num-workers persistent-workers prefetch profile spot",
    ),
    "70 to 90 %, no counters": (
        case(
            "steady-partial",
            confidence="utilization",
            signals={"util_ratio": 0.8},
            phases={"productive": 1.0},
            demand={"memory_max_ratio": 0.5, "memory_mean_ratio": 0.5},
            money={"productive": 0.8, "underused": 0.2},
        ),
        "profile reserved spot",
    ),
    "steady and partial": (
        case(
            "steady-partial",
            signals={"engine_ratio": 0.95, "tensor_ratio": 0.2, "dram_ratio": 0.25},
            demand={"memory_max_ratio": 0.5, "memory_mean_ratio": 0.5, "tflops": 62.0, "dram_bytes_per_s": 3.9e11},
        ),
        "larger-batch profile reserved spot torch-compile",
    ),
    "launch-bound": (
        case(
            "launch-bound",
            signals={"engine_ratio": 0.6, "sm_ratio": 0.2, "tensor_ratio": 0.02, "dram_ratio": 0.05},
            demand={"memory_max_ratio": 0.2, "memory_mean_ratio": 0.2},
            money={"productive": 0.1, "stalled": 0.5, "underused": 0.4},
        ),
        "cuda-graphs fused-kernels larger-batch profile spot sync-points torch-compile",
    ),
    "memory-bound": (
        case(
            "memory-bound",
            signals={"engine_ratio": 0.99, "tensor_ratio": 0.0, "fp32_ratio": 0.0, "dram_ratio": 0.88},
            money={"productive": 0.88, "stalled": 0.11, "underused": 0.01},
        ),
        "fused-kernels profile reserved spot torch-compile",
    ),
    "compute-bound in fp32": (
        case(
            "compute-bound",
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.02, "fp32_ratio": 0.69, "dram_ratio": 0.065},
            money={"productive": 0.05, "stalled": 0.95},
        ),
        "amp bf16 spot tensor-cores",
    ),
    "compute-bound in fp32, V100": (
        case(
            "compute-bound",
            gpu=V100,
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.02, "fp32_ratio": 0.69},
            money={"productive": 0.1, "stalled": 0.9},
        ),
        "amp",
    ),
    "compute-bound in bf16, A100": (
        case(
            "compute-bound",
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.53, "fp32_ratio": 0.03, "dram_ratio": 0.33},
            precision="bf16",
            money={"productive": 0.5, "stalled": 0.5},
        ),
        "fused-kernels reserved spot torch-compile",
    ),
    "compute-bound in bf16, H100": (
        case(
            "compute-bound",
            gpu=H100,
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.53, "fp32_ratio": 0.03, "dram_ratio": 0.33},
            money={"productive": 0.5, "stalled": 0.5},
        ),
        "fp8 fused-kernels reserved spot torch-compile",
    ),
    "compute-bound in fp8, H100": (
        case(
            "compute-bound",
            gpu=H100,
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.53},
            precision="fp8",
            money={"productive": 0.9, "stalled": 0.1},
        ),
        "fused-kernels reserved spot torch-compile",
    ),
    "tensor pipe full, H100": (
        case(
            "compute-bound",
            gpu=H100,
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.93, "dram_ratio": 0.17},
            money={"productive": 0.9, "stalled": 0.1},
        ),
        "fp8 reserved spot",
    ),
    "says bf16, off the tensor pipe": (
        case(
            "compute-bound",
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.03, "fp32_ratio": 0.6},
            precision="bf16",
            money={"productive": 0.1, "stalled": 0.9},
        ),
        "spot tensor-cores",
    ),
    "much power, only the tensor pipe recorded": (
        case(
            "compute-bound",
            gpu=H100,
            signals={"engine_ratio": 0.99, "tensor_ratio": 0.0, "dram_ratio": 0.05, "power_ratio": 0.83},
            money={"productive": 0.05, "unrated": 0.94, "underused": 0.01},
        ),
        "amp bf16 spot tensor-cores",
    ),
    "at 90 % and more, no counters": (
        case(
            "compute-bound",
            confidence="utilization",
            signals={"util_ratio": 0.99, "power_ratio": 0.95},
            phases={"compute_bound": 0.95, "productive": 0.05},
            money={"productive": 0.9, "stalled": 0.1},
        ),
        "profile reserved spot",
    ),
    "sync-bound": (
        case(
            "sync-bound",
            gpu=H100,
            signals={
                "engine_ratio": 0.95,
                "tensor_ratio": 0.1,
                "dram_ratio": 0.1,
                "nvlink_ratio": 0.45,
                "pcie_bytes_per_s": 1.6e10,
            },
            money={"productive": 0.2, "stalled": 0.75, "underused": 0.05},
        ),
        "gradient-accumulation overlap-collectives profile spot",
    ),
    "sync-bound, only the tensor pipe recorded": (
        case(
            "sync-bound",
            gpu=H100,
            signals={"engine_ratio": 0.95, "tensor_ratio": 0.1, "dram_ratio": 0.1, "nvlink_ratio": 0.45},
            money={"productive": 0.2, "unrated": 0.75, "underused": 0.05},
        ),
        "gradient-accumulation overlap-collectives profile spot",
    ),
    "sync-bound, links quiet": (
        case(
            "sync-bound",
            gpus=1,
            signals={
                "engine_ratio": 0.95,
                "tensor_ratio": 0.1,
                "dram_ratio": 0.1,
                "nvlink_ratio": 0.01,
                "pcie_bytes_per_s": 1e8,
            },
            money={"productive": 0.2, "stalled": 0.75, "underused": 0.05},
        ),
        "profile spot sync-points",
    ),
    "spinning": (
        case(
            "spinning",
            signals={"engine_ratio": 1.0, "sm_ratio": 0.01, "tensor_ratio": 0.0, "dram_ratio": 0.0},
            purpose=None,
            namespace="team-q",
            money={"stalled": 1.0},
        ),
        "profile",
    ),
    "idle, memory held": (
        case(
            "idle-held",
            demand={"memory_max_ratio": 0.1, "memory_mean_ratio": 0.1},
            money=RESTING,
            idle_held_ratio=0.95,
            busy_ratio=0.03,
            purpose=None,
            namespace="notebooks",
            long_idle=HELD,
        ),
        "consolidation cull-idle mig mps time-slicing",
    ),
    "idle, memory held, A10G": (
        case(
            "idle-held",
            gpu=A10G,
            demand={"memory_max_ratio": 0.1, "memory_mean_ratio": 0.1},
            money=RESTING,
            idle_held_ratio=0.95,
            busy_ratio=0.03,
            purpose=None,
            namespace="notebooks",
            gpus=1,
            long_idle=HELD,
        ),
        "cull-idle",
    ),
    "idle, memory full": (
        case(
            "idle-held",
            demand={"memory_max_ratio": 0.9, "memory_mean_ratio": 0.9},
            money=RESTING,
            idle_held_ratio=0.95,
            busy_ratio=0.03,
            purpose=None,
            namespace="notebooks",
            long_idle=HELD,
        ),
        "cull-idle",
    ),
    "a slice that idles": (
        case(
            "idle-held",
            sliced=True,
            demand={"memory_max_ratio": 0.1, "memory_mean_ratio": 0.1},
            money=RESTING,
            idle_held_ratio=0.95,
            busy_ratio=0.03,
            purpose=None,
            namespace="notebooks",
            long_idle=HELD,
        ),
        "cull-idle",
    ),
    "nobody's": (
        case(
            "idle",
            demand={"memory_max_ratio": 0.0, "memory_mean_ratio": 0.0},
            money={"idle": 1.0},
            idle_ratio=1.0,
            busy_ratio=0.0,
            purpose=None,
            namespace=None,
            long_idle=FREE,
        ),
        "release-idle",
    ),
    "off at night": (
        case(
            "compute-bound",
            gpu=H100,
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.53, "dram_ratio": 0.33},
            money={"productive": 0.25, "stalled": 0.25, "idle_held": 0.5},
            idle_held_ratio=0.5,
            quiet_hours=(*range(8), *range(20, 24)),
            quiet_idle_ratio=0.5,
            busy_ratio=0.5,
            namespace="research-training",
            long_idle=NIGHTS,
        ),
        "fp8 fused-kernels schedule-off-hours torch-compile",
    ),
    "production training": (
        case(
            "compute-bound",
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.53},
            namespace="prod-training",
            money={"productive": 0.5, "stalled": 0.5},
        ),
        "fused-kernels reserved torch-compile",
    ),
    "spot already": (
        case(
            "compute-bound",
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.53},
            purchase="spot",
            money={"productive": 0.5, "stalled": 0.5},
        ),
        "fused-kernels torch-compile",
    ),
    "owned, near its power limit": (
        case(
            "compute-bound",
            gpu=H100,
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.93, "power_ratio": 0.97},
            purchase="owned",
            money={"productive": 0.95, "stalled": 0.05},
        ),
        "fp8 power-cap",
    ),
    "a service by night": (
        case(
            "idle-held",
            demand={"memory_max_ratio": 0.6, "memory_mean_ratio": 0.6},
            money=RESTING,
            idle_held_ratio=0.95,
            busy_ratio=0.03,
            purpose="inference",
            namespace="chat-serving",
            gpus=1,
            long_idle=HELD,
            quiet_hours=tuple(range(12)),
            quiet_idle_ratio=0.5,
        ),
        "",
    ),
    "hot": (
        case(
            "compute-bound",
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.53, "fp32_ratio": 0.3},
            money={"productive": 0.5, "stalled": 0.5},
            health=Health(hottest_ratio=1.0, affected=("a",), hot_ratio=0.25, owner_hot_ratio=0.25),
        ),
        "reserved",
    ),
    "of nothing known": (
        case(
            "starved",
            signals=STARVED,
            demand={"pcie_rx_bytes_per_s": 2e9},
            money=WAITING,
            purpose=None,
            purpose_by="none",
            namespace="team-q",
        ),
        "profile",
    ),
    "batch inference": (
        case(
            "compute-bound",
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.85},
            namespace="ml-inference",
            workload="embed-batch",
            purpose="inference",
            money={"productive": 0.8, "stalled": 0.2},
        ),
        "reserved spot",
    ),
    "well used": (
        case(
            "compute-bound",
            signals={"engine_ratio": 1.0, "tensor_ratio": 0.93},
            purchase="reserved",
            money={"productive": 1.0},
        ),
        "",
    ),
}
CASES: dict[str, Case] = {name: one for name, (one, _) in _CASES.items()}
MUST: dict[str, frozenset[str]] = {name: frozenset(rules.split()) for name, (_, rules) in _CASES.items()}
NAMED: frozenset[str] = frozenset().union(*MUST.values())
