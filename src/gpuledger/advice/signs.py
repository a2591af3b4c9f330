"""What do several rules look for in a case? Each sign is the evidence in words, or None where it is not there."""

from __future__ import annotations

from gpuledger.advice.case import Case
from gpuledger.advice.limits import Limits
from gpuledger.advice.rule import gb_per_s, pct
from gpuledger.catalog.gpus import Gpu
from gpuledger.units import Unknown

# Precisions of tensor work at 16 bits and below.
REDUCED = ("bf16", "fp16", "fp8", "int8", "fp4")


def waits_for_input(case: Case, limits: Limits) -> str | None:
    """The GPU does nothing while the next batch is made. A server that waits for requests is another matter."""
    if case.serves:
        return None
    if case.klass == "starved":
        engine = case.signals.engine_ratio
        busy = f"a kernel runs {pct(engine)} of the working time" if engine is not None else case.evidence[0]
        maybe = "; if it trains, rather than serves" if case.purpose == "inference" else ""
        # With the links full it is other GPUs that are waited for.
        return None if waits_for_gpus(case, limits) else f"{busy}; the GPU waits in between: {_lost(case)}{maybe}"
    if case.by_counters or not case.works:
        return None
    underused, memory = case.phase("underutilized"), case.demand.memory_max_ratio
    low = not isinstance(memory, Unknown) and memory < limits.memory.low_below_ratio
    if case.klass == "steady-partial" and (underused or 0.0) >= limits.phases.dominant_from_ratio and low:
        return (
            f"underutilized for {pct(underused or 0.0)} of the time with at most {pct(memory)} of the memory used; "
            "without counters, short waits for input cannot be told from small kernels"
        )
    return None


def waits_for_gpus(case: Case, limits: Limits) -> str | None:
    """Kernels are resident while data travels between GPUs."""
    if not case.works or case.klass in {"compute-bound", "memory-bound", "spinning", "launch-bound"}:
        return None
    links = links_busy(case, limits)
    tensor, engine = case.signals.tensor_ratio, case.signals.engine_ratio
    if case.klass == "sync-bound":
        return links or case.evidence[0]
    if case.klass == "starved" and not _both_ways(case, limits):
        return None
    if links and tensor is not None and engine and tensor / engine < limits.pipes.tensor_used_from_ratio:
        return f"{links} while the tensor pipe is active {pct(tensor / engine)} of the engine's time"
    return None


def _both_ways(case: Case, limits: Limits) -> bool:
    """Gradients travel both ways; input comes in only."""
    nvlink, pcie, received = case.signals.nvlink_ratio, case.signals.pcie_bytes_per_s, case.demand.pcie_rx_bytes_per_s
    if nvlink is not None and nvlink >= limits.traffic.links_from_ratio:
        return True
    if pcie is None or isinstance(received, Unknown):
        return False
    return min(received, pcie - received) >= limits.traffic.links_from_bytes_per_s / 2


def links_busy(case: Case, limits: Limits) -> str | None:
    """NVLink or PCIe carries a lot."""
    nvlink, pcie = case.signals.nvlink_ratio, case.signals.pcie_bytes_per_s
    said = []
    if nvlink is not None and nvlink >= limits.traffic.links_from_ratio:
        said.append(f"NVLink at {pct(nvlink)} of its bandwidth")
    if pcie is not None and pcie >= limits.traffic.links_from_bytes_per_s:
        said.append(f"PCIe at {gb_per_s(pcie)}")
    return " and ".join(said) or None


def runs_in_fp32(case: Case, limits: Limits) -> str | None:
    """The arithmetic matters and little of it is on the tensor pipe: precision is the lever."""
    if case.klass not in {"compute-bound", "steady-partial"} or case.precision in {*REDUCED, "tf32", "fp64"}:
        return None
    if case.signals.tensor_ratio is not None:
        return _off_the_tensor_pipe(case, limits)
    if case.klass != "compute-bound":
        return None
    if case.precision == "fp32":
        return "compute-bound, and the job says that it runs in fp32"
    busy = case.phase("compute_bound")
    if case.by_counters or busy is None or busy < limits.phases.dominant_from_ratio:
        return None
    return (
        f"utilization of 90 % and more for {pct(busy)} of the time, near the power limit; the precision is not "
        "recorded: skip this where the job already runs in 16 bits"
    )


def guessed(case: Case) -> str:
    """The range of gains: where neither counters nor the job show the precision, there may be nothing to gain."""
    return "" if case.by_counters or case.precision is not None else "guessed"


def _off_the_tensor_pipe(case: Case, limits: Limits) -> str | None:
    tensor, fp32 = case.signals.tensor_ratio, case.signals.fp32_ratio
    if tensor is None or (fp32 is None and case.klass != "compute-bound"):
        return None
    if fp32 is None:
        unused = tensor < limits.pipes.tensor_unused_below_ratio
        return f"compute-bound with the tensor pipe active {pct(tensor)} of the time" if unused else None
    if fp32 < limits.pipes.fp32_used_from_ratio or tensor >= min(fp32, limits.pipes.tensor_used_from_ratio):
        return None
    both = f"the fp32 pipe active {pct(fp32)} of the time, the tensor pipe {pct(tensor)}"
    return f"{case.klass} with {both}: matrix products and convolutions belong on the latter"


def runs_in_tf32(case: Case) -> str | None:
    """The job says TF32 and the tensor pipe works: 16 bits do twice the work."""
    tensor = case.signals.tensor_ratio
    if case.klass not in {"compute-bound", "steady-partial"} or case.precision != "tf32" or tensor is None:
        return None
    return f"the job says that it runs in tf32, and the tensor pipe is active {pct(tensor)} of the time"


def tensor_busy(case: Case, limits: Limits) -> str | None:
    """The tensor pipe does the work and is the limit."""
    tensor = case.signals.tensor_ratio
    if case.klass != "compute-bound" or tensor is None or tensor < limits.pipes.tensor_used_from_ratio:
        return None
    return f"compute-bound with the tensor pipe active {pct(tensor)} of the time"


def small_kernels(case: Case) -> str | None:
    """Kernels that do not fill the GPU."""
    if case.klass != "launch-bound":
        return None
    engine, sm = case.signals.engine_ratio, case.signals.sm_ratio
    said = [f"a kernel runs {pct(engine)} of the time"] if engine is not None else []
    said += [f"{pct(sm / engine)} of the SMs have work then"] if sm is not None and engine else []
    return "launch-bound: " + ("; ".join(said) or case.evidence[0])


def launch_gaps(case: Case, limits: Limits) -> str | None:
    """The host cannot launch fast enough: small kernels with gaps between them."""
    engine = case.signals.engine_ratio
    return small_kernels(case) if engine is None or engine < limits.pipes.gaps_below_ratio else None


def memory_limit(case: Case) -> str | None:
    """The memory interface is the limit."""
    dram = case.signals.dram_ratio
    if case.klass != "memory-bound":
        return None
    return f"memory-bound: the memory interface is active {pct(dram)} of the time" if dram else case.evidence[0]


def steady_partial(case: Case, limits: Limits) -> str | None:
    """Kernels run without a break and nothing is at its limit, or utilization stays at 70 to 90 %."""
    if not case.works or waits_for_gpus(case, limits):
        return None
    if case.klass == "steady-partial":
        tensor, util = case.signals.tensor_ratio, case.signals.util_ratio
        beside = f", utilization {pct(util)}" if util is not None else ""
        beside += f", the tensor pipe active {pct(tensor)} of the time" if tensor is not None else ""
        return f"steady and partial: nothing is at its limit{beside}"
    busy = case.phase("productive")
    if (
        not case.by_counters
        and case.klass == "starved"
        and busy is not None
        and busy >= limits.phases.dominant_from_ratio
    ):
        return f"utilization of 70 to 90 % for {pct(busy)} of the time"
    return None


def memory_room(case: Case, limits: Limits) -> str | None:
    """Enough memory has never been used."""
    used = case.demand.memory_max_ratio
    if isinstance(used, Unknown) or 1 - used < limits.memory.batch_room_from_ratio:
        return None
    return f"at most {pct(used)} of the memory was ever used"


def nvidia(case: Case) -> bool:
    """Whether the GPU is known to be NVIDIA's."""
    return isinstance(case.gpu, Gpu) and case.gpu.vendor.casefold() == "nvidia"


def _lost(case: Case) -> str:
    return f"{pct(case.share('underused'))} of what is paid goes by there"
