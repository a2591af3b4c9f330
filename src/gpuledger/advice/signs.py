"""What do several rules look for in a case, and what could sharing or packing its GPUs save?

Each sign is the evidence in words, or None where it is not there.
"""

from __future__ import annotations

import math

from gpuledger.advice.rule import Case, Gain, Limits, Range, gb_per_s, pct
from gpuledger.catalog.gpus import Gpu
from gpuledger.physics.purpose import names_of
from gpuledger.units import Unknown

# Precisions of tensor work at 16 bits and below.
REDUCED = ("bf16", "fp16", "fp8", "int8", "fp4")
TO_16_BITS = Gain(
    "speedup",
    "measured",
    "own recordings on one H200: resnet50 in strict fp32 20 -> 54 TFLOP/s in bf16 at the same batch (2.6x), a 735M "
    "language model at the same batch 49 -> 395 TFLOP/s (8.0x); middle: their geometric mean",
    (2.6, 4.6, 8.0),
    variants={
        "tf32": Gain(
            "speedup",
            "measured",
            "own recordings on one H200, tf32 against bf16: 8192 GEMM 377 -> 669 TFLOP/s (1.8x), a 735M language "
            "model 187 -> 395 at batch 4 (2.1x), 199 -> 478 at batch 16 (2.4x)",
            (1.8, 2.1, 2.4),
        ),
    },
)
TO_TENSOR_CORES = Gain(
    "speedup",
    "measured",
    "own recordings on one H200, fp32 against tf32: resnet50 20 -> 48 TFLOP/s (2.4x), a 735M language model at the "
    "same batch 49 -> 187 (3.8x), 8192 GEMM 51 -> 377 (7.4x)",
    (2.4, 3.8, 7.4),
)


def trains(case: Case, limits: Limits) -> bool:
    """Whether something recorded says that it trains: its own meter, or a name that no other name contradicts."""
    if case.measured:
        return True
    names = limits.names
    said = (case.purpose == "training" and case.purpose_by == "name") or case.words & _training(limits)
    return bool(said) and not is_service(case, limits) and not case.words & {*names.interactive, *names.other}


def _training(limits: Limits) -> frozenset[str]:
    return names_of("training") | set(limits.names.training)


def is_service(case: Case, limits: Limits) -> bool:
    """Whether a name says that it answers requests."""
    return case.serves or bool(case.words & (names_of("inference") | set(limits.names.service)))


def is_interactive(case: Case, limits: Limits) -> bool:
    """Whether a name says that a person works at it, and none that it answers requests."""
    return bool(case.words & set(limits.names.interactive)) and not stays_up(case, limits)


def stays_up(case: Case, limits: Limits) -> bool:
    """Production and services are asked about, never ended: they wait for requests, however long."""
    return is_service(case, limits) or bool(case.words & set(limits.names.production))


def faults_first(case: Case, limits: Limits) -> bool:
    """Whether faults or heat come first: enough of the owner's GPUs have them for the others to wait."""
    health, rule = case.health, limits.faults
    return health.owner_failing_ratio >= rule.failing_from_ratio or health.owner_hot_ratio >= rule.hot_from_ratio


def clocks_held(case: Case, limits: Limits) -> bool:
    """Whether faults, heat or a power limit below the board's own hold the work down."""
    return faults_first(case, limits) or case.demand.capped_ratio >= limits.power.capped_from_ratio


def spins(case: Case, limits: Limits) -> bool:
    """Whether kernels stand still for much of the working time, as where one of several processes has died."""
    return case.klass == "spinning" or case.spun_ratio >= limits.power.spinning_from_ratio


def of_long(gain: Gain, case: Case, hours: float) -> Range:
    """What a change gives back of some hours of long stretches without work, rather than of all pauses."""
    resting = (case.idle_held_ratio if "idle_held" in gain.of else case.idle_ratio) * case.observed_h
    part = min(1.0, hours / resting) if resting else 0.0
    assert gain.range is not None
    return Range.of(*(share * part * case.share(*gain.of) for share in gain.range))


def waits_for_input(case: Case, limits: Limits) -> str | None:
    """The GPU does nothing while the next batch is made. A server that waits for requests is another matter."""
    if case.serves:
        return None
    if case.klass == "starved":
        engine = case.signals.engine_ratio
        busy = f"a kernel runs {pct(engine)} of the working time" if engine is not None else case.evidence[0]
        maybe = "; if it trains, rather than serves" if case.purpose == "inference" else ""
        # With the links full it is other GPUs that are waited for.
        lost = f"{pct(case.share('underused'))} of what is paid is lost there"
        if waits_for_gpus(case, limits) or _may_wait(case, limits) or _in_phases(case, limits):
            return None
        return f"{busy}; the GPU waits in between: {lost}{maybe}"
    return None


def _in_phases(case: Case, limits: Limits) -> bool:
    """Whether it is full for most of the time and at part load for some, hardly ever empty: phases, such as tests."""
    full, quiet, engine = case.phase("compute_bound"), case.phase("idle"), case.signals.engine_ratio
    if full is None or quiet is None or engine is None:
        return False
    # With waits within the samples utilization is full where the engine is not.
    return limits.phases.dominant_from_ratio <= full <= engine and quiet < limits.idle.active_from_ratio


def _may_wait(case: Case, limits: Limits) -> bool:
    """Whether several GPUs may wait for each other: they exchange data, or nothing shows that they do not.

    Input comes in only: where much more comes in over PCIe than goes out, it is input that they take.
    """
    exchanged, received = case.demand.nvlink_bytes_per_s, case.demand.pcie_rx_bytes_per_s
    if case.gpus == 1:
        return False
    if not isinstance(received, Unknown) and (both := case.signals.pcie_bytes_per_s) is not None:
        takes = received >= limits.traffic.pinned_from_bytes_per_s and received >= 2 * (both - received)
        return not takes and (isinstance(exchanged, Unknown) or exchanged >= limits.traffic.copies_from_bytes_per_s)
    if isinstance(exchanged, Unknown):
        return not case.by_counters
    return exchanged >= limits.traffic.copies_from_bytes_per_s


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
    return None


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
        seen = f", utilization {pct(util)}" if util is not None else ""
        seen += f", the tensor pipe active {pct(tensor)} of the time" if tensor is not None else ""
        return f"steady and partial: nothing is at its limit{seen}"
    busy = case.phase("productive")
    if not case.by_counters and case.klass == "starved" and (busy or 0.0) >= limits.phases.dominant_from_ratio:
        return f"utilization of 70 to 90 % for {pct(busy or 0.0)} of the time"
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


# A GPU that is busy, or holds memory, for less of its time than this has no work that could share a card.
NO_WORK_RATIO = 0.01


def room_to_share(case: Case, limits: Limits) -> str | None:
    """Idle-heavy, or a server with time to spare, and small enough for two on a card most of the time.

    One GPU with one load is not shared with itself; a job that trains, or of which nothing is known, may need all of
    its GPUs at once; and nothing is put next to faults.
    """
    memory = case.demand.memory_mean_ratio
    if case.sliced or case.namespace is None or isinstance(memory, Unknown) or not may_share(case, limits):
        return None
    if max(case.busy_ratio, case.idle_held_ratio) < NO_WORK_RATIO:  # nothing to share: give it back
        return None
    if memory >= limits.memory.two_fit_below_ratio or waits_for_gpus(case, limits) or case.klass == "spinning":
        return None
    resting, fits = case.idle_ratio + case.idle_held_ratio, _fits(case, memory, limits)
    if resting >= limits.idle.idle_heavy_from_ratio:
        return f"idle {pct(resting)} of the time; {fits}"
    spare = case.share("idle", "idle_held", "underused")
    if is_service(case, limits) and spare >= limits.idle.idle_heavy_from_ratio:
        return f"a server with nothing to do for {pct(spare)} of what is paid; {fits}"
    return None


def may_share(case: Case, limits: Limits) -> bool:
    """Whether there are several GPUs of servers or of people, each with pods of its own, and none of them fails."""
    kind = is_service(case, limits) or is_interactive(case, limits)
    other = case.words & (_training(limits) | set(limits.names.other))
    return case.gpus > 1 and case.own_pods and kind and not other and not case.health.affected


def _fits(case: Case, mean: float, limits: Limits) -> str:
    most = case.demand.memory_max_ratio
    if isinstance(most, Unknown) or most < limits.memory.two_fit_below_ratio:
        return f"at most {pct(most)} of the memory is used, so two fit on a card"
    return f"{pct(mean)} of the memory is used on average, but {pct(most)} at its peak: two peaks at once may not fit"


def need(case: Case) -> tuple[float, float] | None:
    """The share of a card one load needs, of its time or its memory, whichever is more: at its peak, and typically.

    None where memory use is not recorded: the card may be full.
    """
    most, mean = case.demand.memory_max_ratio, case.demand.memory_mean_ratio
    if isinstance(most, Unknown) or isinstance(mean, Unknown):
        return None
    return max(case.busy_ratio, most, 0.01), max(case.busy_ratio, mean, 0.01)


def shared_gain(case: Case, limits: Limits, loss: float = 0.0) -> Range | None:
    """The fraction of the bill saved by sharing cards: cautiously by the peak, in the middle and boldly by the mean."""
    wanted = need(case)
    return Range.of(*((1 - part / full) * (1 - loss) for part, full in _plans(*wanted, limits))) if wanted else None


def _plans(peak: float, mean: float, limits: Limits) -> tuple[tuple[float, float], ...]:
    """What is needed and how full a card may be: cautiously, in the middle, boldly."""
    fill = limits.fill
    return (peak, fill.cautious_ratio), (mean, fill.middle_ratio), (mean, fill.bold_ratio)


def packed(case: Case, limits: Limits) -> tuple[int, Range] | None:
    """How many GPUs the same load needs, packed; and the saving, cautious to bold.

    Copies of a server hold the same weights: with fewer of them only the load adds up, not the memory.
    """
    wanted = need(case)
    if wanted is None:
        return None
    if is_service(case, limits):
        wanted = (max(case.busy_ratio, 0.01),) * 2
    counts = [min(case.gpus, math.ceil(case.gpus * part / full)) for part, full in _plans(*wanted, limits)]
    return counts[1], Range.of(*(1 - n / case.gpus for n in counts))
