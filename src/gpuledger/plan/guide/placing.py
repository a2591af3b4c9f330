"""Does this job run on a number of GPUs, split how, and how fast; and where not, what would make it run?

Ways to place a job are tried from the plainest to the most thrifty, and the fastest that fits is taken, so that more
memory can only add ways. Training and fine-tuning: plain data parallel, then recomputation, then sharding (FSDP), then
both. Serving: copies of the model on 1, 2, 4, ... GPUs of one instance, with as many requests at a time as fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.errors import InputError
from gpuledger.plan.guide.placed_job import CANNOT_FIT, Job, Misfit, Placement, Rate
from gpuledger.plan.guide.schema import WorkloadType, migrate_facts
from gpuledger.plan.memory.facts import capacity, get_precision, precisions
from gpuledger.plan.memory.parts import Memory, memory
from gpuledger.plan.setup import Setup, split_problem
from gpuledger.plan.speed.ranges import decode_errors
from gpuledger.plan.speed.throughput import MICRO_BATCHES, decode_step_s, train_rate
from gpuledger.units import Unknown

LORA_RANK = 16
NARROWER = ("int8", "fp8")
MOST_GPUS_TO_FIT = 1024


@dataclass(frozen=True)
class Way:
    """One way to place a job."""

    setup: Setup
    copies: int
    words: str


def place(job: Job, gpu: Gpu, gpus: int, gpus_per_instance: int) -> Placement | Misfit:
    """The fastest way that fits, or why there is none."""
    if refused := precision_refusal(job, gpu):
        return refused
    room, _ = capacity(gpu)
    best: Placement | None = None
    least: Memory | None = None
    for way in ways(job, gpus, gpus_per_instance):
        need = memory(job.model, way.setup)
        if least is None or need.total_bytes < least.total_bytes:
            least = need
        if need.total_bytes <= room:
            full = _filled(job, way, room)
            found = _placement(job, gpu, full, memory(job.model, full.setup), room, gpus_per_instance)
            best = found if best is None or (found.speed or 0.0) > (best.speed or 0.0) else best
    if best is not None:
        return best
    if least is None:
        why = f"{gpus} GPUs do not divide {job.model.name} evenly, or not over instances of {gpus_per_instance}"
        return Misfit("SPLIT", why, ("use 1, 2, 4 or 8 GPUs, or whole instances",))
    short, each = least.total_bytes, "each GPU" if gpus > 1 else "the GPU"
    why = f"{CANNOT_FIT}: {each} needs {short / 1e9:.1f} GB of {room / 1e9:.1f} GB, split as thriftily as it can be"
    return Misfit(CANNOT_FIT, why, remedies(job, gpu, gpus, gpus_per_instance), short, room)


def _filled(job: Job, way: Way, room: int) -> Way:
    """The same way with as many requests at a time as fit, up to the limit, a little memory left free.

    Training stays as it is.
    """
    if way.setup.mode == "train":
        return way
    limits = migrate_facts().limits
    low, high, room = 1, limits.serving_batch, int(room * (1 - limits.headroom_thin_ratio))
    while low < high:
        middle = (low + high + 1) // 2
        enough = memory(job.model, replace(way.setup, batch=middle)).total_bytes <= room
        low, high = (middle, high) if enough else (low, middle - 1)
    return replace(way, setup=replace(way.setup, batch=low))


def ways(job: Job, gpus: int, gpus_per_instance: int) -> Iterator[Way]:
    """Every way to try."""
    if job.workload is WorkloadType.INFERENCE:
        yield from _serving(job, gpus, gpus_per_instance)
        return
    plain = _training(job, gpus)
    spread = f"data parallel over {gpus}" if gpus > 1 else "on one GPU"
    yield Way(plain, 1, spread)
    yield Way(replace(plain, recompute=True), 1, f"{spread}, activations recomputed")
    if gpus > 1:
        yield Way(replace(plain, zero=3), 1, f"sharded over {gpus} (FSDP)")
        yield Way(replace(plain, zero=3, recompute=True), 1, f"sharded over {gpus} (FSDP), activations recomputed")


def _training(job: Job, gpus: int) -> Setup:
    """AdamW in mixed precision; fine-tuning trains adapters unless the whole model is asked for."""
    setup = Setup(mode="train", count=gpus, precision=job.precision)
    if not job.adapts:
        return setup
    frozen = "nf4" if job.method == "qlora" else ""
    if not get_precision(job.precision).train_as:
        return replace(setup, precision="fp16", lora_rank=LORA_RANK, frozen_precision=frozen or job.precision)
    return replace(setup, lora_rank=LORA_RANK, frozen_precision=frozen)


def _serving(job: Job, gpus: int, gpus_per_instance: int) -> Iterator[Way]:
    """Copies on 1, 2, 4, ... GPUs, with one request at a time."""
    context, together = migrate_facts().limits.serving_context, 1
    while together <= min(gpus, gpus_per_instance):
        if gpus % together == 0 and split_problem(job.model, together) is None:
            setup = Setup(mode="serve", count=together, tensor=together, precision=job.precision, context=context)
            copies = gpus // together
            split = f"split over {together} GPUs" if together > 1 else "on one GPU"
            yield Way(setup, copies, f"one copy {split}" if copies == 1 else f"{copies} copies, each {split}")
        together *= 2


def _placement(job: Job, gpu: Gpu, way: Way, need: Memory, room: int, gpus_per_instance: int) -> Placement:
    serving = way.setup.mode == "serve"
    speed = work_rate(job.model, way.setup, gpu, gpus_per_instance)
    at_a_time = f", {way.setup.batch} request{'s' if way.setup.batch > 1 else ''} at a time" if serving else ""
    return Placement(
        words=way.words + at_a_time,
        copies=way.copies,
        gpus_per_copy=way.setup.count,
        batch=way.setup.batch if serving else way.setup.micro_batch,
        parts=dict(need.parts),
        per_gpu_bytes=need.total_bytes,
        capacity_bytes=room,
        rate=speed if isinstance(speed, Unknown) else speed.rate.times(way.copies),
        unit="generated token" if serving else "trained token",
        slow_network=None if isinstance(speed, Unknown) else speed.slow_network,
    )


def precision_refusal(job: Job, gpu: Gpu) -> Misfit | None:
    """Why this GPU or this workload cannot do the precision asked for, if so."""
    asked = get_precision(job.precision)
    able = [p.name for p in precisions().values() if p.runs_on(gpu)]
    if not asked.runs_on(gpu):
        why = f"{gpu.name} ({gpu.architecture}) has no {asked.needs} units in the catalog"
        return Misfit("PRECISION", why, (f"use one of {', '.join(able)}",))
    if job.workload is not WorkloadType.INFERENCE and not asked.train_as and not job.adapts:
        trains = ", ".join(p.name for p in precisions().values() if p.train_as and p.name in able)
        why = f"{asked.name} is for stored weights, not for training"
        return Misfit("PRECISION", why, (f"train in one of {trains}",))
    return None


def require_precision(job: Job, gpu: Gpu | Unknown) -> None:
    """Refuse a question about a present setup that cannot be: a precision its GPU or its work does not have."""
    if not isinstance(gpu, Unknown) and (found := precision_refusal(job, gpu)):
        raise InputError(f"precision {job.precision!r}: {found.why}", hint=found.remedies[0])


def fits(job: Job, gpu: Gpu, gpus: int, gpus_per_instance: int) -> bool:
    """Whether any way fits."""
    if precision_refusal(job, gpu):
        return False
    if gpu.memory_bytes is None:
        return False  # that it fits cannot be said; `placed` says why
    room, _ = capacity(gpu)
    return any(memory(job.model, w.setup).total_bytes <= room for w in ways(job, gpus, gpus_per_instance))


def sizes(gpus_per_instance: int, most: int) -> list[int]:
    """GPU counts to choose from: 1, 2, 4, ... of an instance, then 1, 2, 4, ... whole ones, and the most allowed."""
    part = [2**i for i in range(gpus_per_instance.bit_length()) if 2**i < gpus_per_instance]
    whole = [gpus_per_instance * 2**i for i in range(most.bit_length())]
    return sorted(n for n in {*part, *whole, most // gpus_per_instance * gpus_per_instance} if 0 < n <= most)


def smallest_count(job: Job, gpu: Gpu, gpus_per_instance: int, above: int = 0, most: int = 0) -> int | None:
    """The fewest GPUs the job fits on, within the limit: 1, 2, 4, ... of one instance, or whole instances."""
    for gpus in sizes(gpus_per_instance, most or migrate_facts().limits.most_gpus):
        if gpus > above and fits(job, gpu, gpus, gpus_per_instance):
            return _fewest_instances(job, gpu, gpus, gpus_per_instance)
    return None


def _fewest_instances(job: Job, gpu: Gpu, gpus: int, gpus_per_instance: int) -> int:
    """Where `gpus` fit: the fewest whole instances that do.

    Sharding takes less of each GPU the more there are, so halving the interval finds them.
    """
    if gpus <= gpus_per_instance:
        return gpus
    low, high = 0, gpus // gpus_per_instance  # none does not fit, the high end does
    while low + 1 < high:
        middle = (low + high) // 2
        enough = fits(job, gpu, middle * gpus_per_instance, gpus_per_instance)
        low, high = (low, middle) if enough else (middle, high)
    return high * gpus_per_instance


def remedies(job: Job, gpu: Gpu, gpus: int, gpus_per_instance: int) -> tuple[str, ...]:
    """What would make it fit on this GPU: a narrower precision, more GPUs, adapters; each one tried."""
    found: list[str] = []
    for name in NARROWER:
        narrower = replace(job, precision=name)
        is_narrower = get_precision(name).bits < get_precision(job.precision).bits
        if is_narrower and fits(narrower, gpu, gpus, gpus_per_instance):
            found.append(f"{name.upper()} precision: fits on the same {gpus} x {gpu.name}")
            break
    if enough := smallest_count(job, gpu, gpus_per_instance, above=gpus, most=MOST_GPUS_TO_FIT):
        found.append(f"{enough} GPUs of {gpu.name} instead of {gpus}")
    found += _adapters(job, gpu, gpus, gpus_per_instance)
    if not found:
        found.append(f"a GPU with more memory than {gpu.name}: nothing tried makes it fit here")
    return tuple(found)


def _adapters(job: Job, gpu: Gpu, gpus: int, gpus_per_instance: int) -> list[str]:
    """Training fewer parameters, where that makes it fit."""
    if job.workload is WorkloadType.INFERENCE:
        return []
    tuning = replace(job, workload=WorkloadType.FINE_TUNING)
    now = job.method if job.workload is WorkloadType.FINE_TUNING else "full"
    instead = f"LoRA over {job.precision} weights" if now == "lora" else "training every weight"
    for method, words in (("lora", "LoRA adapters"), ("qlora", "QLoRA: 4-bit weights and adapters")):
        same = now in {method, "qlora"}
        if not same and fits(replace(tuning, method=method), gpu, gpus, gpus_per_instance):
            return [f"{words} instead of {instead}: fits on the same {gpus} x {gpu.name}"]
    return []


@dataclass(frozen=True)
class Speed:
    """Tokens per second of one copy; `slow_network`: over the slower network, where it spans instances."""

    rate: Rate
    slow_network: float | None = None


def work_rate(model: Model, setup: Setup, gpu: Gpu, gpus_per_instance: int) -> Speed | Unknown:
    """Tokens per second of one copy: trained, or written with all its requests at a time, half full on average.

    The range of the measured errors is widened to hold the estimate itself where all of them lie on one side, and over
    several instances down to what a slower network leaves of it.
    """
    if setup.mode == "train":
        return _train_speed(model, setup, gpu, gpus_per_instance)
    step = decode_step_s(model, gpu, setup, setup.context / 2)
    if isinstance(step, Unknown):
        return step
    middle = setup.data * setup.batch / step
    low, high = decode_errors(model, gpu).range_of(middle)
    return Speed(Rate(min(low, middle), middle, max(high, middle)))


def _train_speed(model: Model, setup: Setup, gpu: Gpu, gpus_per_instance: int) -> Speed | Unknown:
    found = train_rate(model, gpu, setup, MICRO_BATCHES, per_node=gpus_per_instance)
    if isinstance(found, Unknown):
        return found
    middle, low, high = found.rate.per_s, found.rate.low_per_s, found.rate.high_per_s
    slow = None
    if setup.count > gpus_per_instance:
        over = migrate_facts().limits.slow_network_gbps
        slower = train_rate(model, gpu, setup, MICRO_BATCHES, node_gbps=over, per_node=gpus_per_instance)
        if not isinstance(slower, Unknown):
            low, slow = min(low, slower.rate.low_per_s), slower.rate.per_s
    return Speed(Rate(min(low, middle), middle, max(high, middle)), slow)
