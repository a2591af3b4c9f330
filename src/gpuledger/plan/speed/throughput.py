"""How many tokens per second will this give, and between which bounds?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import CountedShape, Model, TransformerShape
from gpuledger.catalog.models.shapes import denoising, longest_sequence
from gpuledger.plan.fitting.sources import clips, counted_by
from gpuledger.plan.measured_types import range_from
from gpuledger.plan.memory.paged import room_bytes
from gpuledger.plan.memory.parts import memory
from gpuledger.plan.setup import Setup, check
from gpuledger.plan.speed.facts import Decode, Way, all_reduce_s, factors, links, spread, way
from gpuledger.plan.speed.images import denoised_s
from gpuledger.plan.speed.ranges import (
    Rate,
    decode_errors,
    range_words,
    ranged,
    traced_errors,
    train_errors,
    train_range_from,
)
from gpuledger.plan.speed.steps import StepLoad, compute_peak, data_way, exchange_s, optimizer_s, step_load, work
from gpuledger.plan.speed.traced import traced_flop, traced_optimizer_s, traced_work
from gpuledger.plan.tracing import is_traced
from gpuledger.training.flops import training_flop, unit_of
from gpuledger.units import Unknown

# The share of a micro-batch's work that is backward: gradients travel while it runs.
BACKWARD_SHARE = 2 / 3
MICRO_BATCHES = 8
STAGE_FILLS = 4  # micro-batches for each pipeline stage, by default


@dataclass(frozen=True)
class TrainRate:
    """A training run: all GPUs together, and where the time of a step goes on one of them."""

    unit: str
    rate: Rate
    step_s: float
    step_parts_s: dict[str, float]
    micro_batches: int
    per_step: int
    mfu_pct: float | Unknown


@dataclass(frozen=True)
class DecodeRate:
    """Writing tokens with `batch` sequences at a time in each copy."""

    batch: int
    rate: Rate
    step_ms: float
    fits: bool


@dataclass(frozen=True)
class ImageRate:
    """Making images, all copies together; `batch_s` are the seconds of one batch with all its steps."""

    rate: Rate
    steps: int
    step_s: float
    pixels_s: float
    batch_s: float


@dataclass(frozen=True)
class Throughput:
    """The answer; what does not apply to the mode is None."""

    model: str
    gpu: str
    setup: Setup
    fits: bool
    train: TrainRate | Unknown | None
    prefill: Rate | Unknown | None
    decode: tuple[DecodeRate, ...] | Unknown | None
    assumptions: tuple[str, ...]
    images: ImageRate | Unknown | None = None


def throughput(
    model: Model, gpu: Gpu, setup: Setup, *, micro_batches: int | None = None, node_gbps: float | None = None
) -> Throughput:
    """Rates of a setup, whether it fits or not."""
    check(setup, model, gpu)
    differs = [f"{model.name}: {model.differs}"] if model.differs else []
    if setup.mode == "train":
        many = micro_batches or max(MICRO_BATCHES, STAGE_FILLS * setup.pipeline if setup.pipeline > 1 else 0)
        train = train_rate(model, gpu, setup, many, node_gbps)
        return Throughput(
            model.name, gpu.key, setup, _fits(model, gpu, setup), train, None, None,
            (*_train_words(model, gpu, setup, many, node_gbps), *differs),
        )  # fmt: skip
    if denoising(model.shape):
        words = (*_image_words(model, setup), *differs)
        images = image_rate(model, gpu, setup)
        return Throughput(model.name, gpu.key, setup, _fits(model, gpu, setup), None, None, None, words, images)
    return Throughput(
        model.name, gpu.key, setup, _fits(model, gpu, setup), None, prefill_rate(model, gpu, setup),
        decode_rates(model, gpu, setup), (*_serve_words(gpu, setup), *differs),
    )  # fmt: skip


def _fits(model: Model, gpu: Gpu, setup: Setup) -> bool:
    return memory(model, setup).total_bytes <= room_bytes(gpu, setup)


def train_rate(
    model: Model,
    gpu: Gpu,
    setup: Setup,
    micro_batches: int,
    node_gbps: float | None = None,
    per_node: int | None = None,
) -> TrainRate | Unknown:
    """One optimizer step of `micro_batches` in each copy. `per_node`: GPUs of a node, where it is known."""
    facts, traced = factors().train, factors().traced if is_traced(model, setup) else None
    each = traced_work(model, gpu, setup, traced) if traced else work(model, gpu, setup, facts)
    if isinstance(each, Unknown):
        return each
    bubble = (setup.pipeline - 1) * each.total_s
    apart = exchange_s(model, setup, data_way(gpu, setup, node_gbps, per_node), micro_batches)
    hidden = BACKWARD_SHARE * each.total_s * (micro_batches if setup.zero >= 3 else 1)
    parts = {
        "products": micro_batches * each.compute_s,
        "other_traffic": micro_batches * each.traffic_s,
        "launches": micro_batches * each.launch_s,
        "tensor_parallel": micro_batches * each.tensor_link_s,
        "pipeline_bubble": bubble,
        "data_parallel": max(0.0, apart - hidden),
        "optimizer": traced_optimizer_s(model, gpu, setup, traced, facts.memory_ratio)
        if traced
        else optimizer_s(model, gpu, setup, facts.memory_ratio),
    }
    step = sum(parts.values())
    length = setup.sequence if longest_sequence(model.shape) else 1
    per_step = micro_batches * setup.micro_batch * length * setup.data
    return TrainRate(
        unit=unit_of(model.shape),
        rate=ranged(per_step / step, train_errors(model, setup), train_range_from(model, setup)),
        step_s=step,
        step_parts_s=parts,
        micro_batches=micro_batches,
        per_step=per_step,
        mfu_pct=_mfu(model, gpu, setup, per_step / length / step),
    )


def image_rate(model: Model, gpu: Gpu, setup: Setup) -> ImageRate | Unknown:
    """Images per second with all their steps, in every copy a batch at a time."""
    facts = factors().traced
    made = denoised_s(model, gpu, setup, facts)
    if isinstance(made, Unknown):
        return made
    rate = ranged(setup.data * setup.batch / made.total_s, traced_errors(model), range_from(model, traced=True))
    return ImageRate(rate, made.steps, made.step_s, made.pixels_s, made.total_s)


def _mfu(model: Model, gpu: Gpu, setup: Setup, sequences_per_s: float) -> float | Unknown:
    """Model FLOP/s, attention counted over the whole square, over the dense bf16 peak of all GPUs."""
    length = setup.sequence if isinstance(model.shape, TransformerShape) else None
    flop, peak = training_flop(model.shape, 1, length), compute_peak(gpu, gpu.reference_precision())
    if isinstance(flop, Unknown) and is_traced(model, setup):
        whole = traced_flop(model, setup)
        flop = whole if isinstance(whole, Unknown) else round(whole / setup.micro_batch)
    if isinstance(flop, Unknown):
        return flop
    return peak if isinstance(peak, Unknown) else 100 * sequences_per_s * flop / (peak * setup.count)


def prefill_rate(model: Model, gpu: Gpu, setup: Setup) -> Rate | Unknown:
    """Prompt tokens per second, all copies together, while nothing is written."""
    if not isinstance(model.shape, TransformerShape):
        known = isinstance(model.shape, CountedShape)
        return Unknown(
            f"no formula for reading prompts with {model.name}" if known else f"{model.name} reads no prompts"
        )
    facts = factors().prefill
    done = work(model, gpu, replace(setup, pipeline=1), facts)
    if isinstance(done, Unknown):
        return done
    return ranged(setup.data * setup.batch * setup.context / done.total_s, spread(facts.errors, "all"))


def decode_rates(model: Model, gpu: Gpu, setup: Setup) -> tuple[DecodeRate, ...] | Unknown:
    """Rates by batch: doubling up to the one asked for, sequences half full on average."""
    sizes = [1]
    while sizes[-1] * 2 < setup.batch:
        sizes.append(sizes[-1] * 2)
    found = []
    for batch in dict.fromkeys((*sizes, setup.batch)):
        asked = replace(setup, batch=batch)
        step = decode_step_s(model, gpu, asked, setup.context / 2)
        if isinstance(step, Unknown):
            return step
        rate = ranged(setup.data * batch / step, decode_errors(model, gpu))
        found.append(DecodeRate(batch, rate, 1000 * step, _fits(model, gpu, asked)))
    return tuple(found)


def decode_step_s(model: Model, gpu: Gpu, setup: Setup, context: float) -> float | Unknown:
    """Seconds of one step that writes a token of each sequence."""
    load = step_load(model, gpu, setup, context)
    if isinstance(load, Unknown):
        return load
    return step_s(load, factors().decode, way(gpu, setup.tensor), setup.tensor)


def step_s(load: StepLoad, lost: Decode, over: Way, group: int) -> float:
    """The load with its losses."""
    experts = load.experts_s * (1 / lost.expert_memory_ratio + (lost.spread_experts if group > 1 else 0.0))
    return (
        load.memory_s / lost.memory_ratio
        + experts
        + load.compute_s / lost.compute_ratio
        + load.layers * lost.per_layer_s
        + load.moe_layers * lost.per_moe_layer_s
        + load.collectives * (lost.per_collective_s + all_reduce_s(load.collective_bytes, group, over))
        + load.sequences * lost.per_sequence_s
        + lost.per_step_s
    )


def _train_words(model: Model, gpu: Gpu, setup: Setup, micro_batches: int, node_gbps: float | None) -> list[str]:
    where = f"each of {setup.data} copies" if setup.data > 1 else "one copy of the model"
    words = [f"{micro_batches} micro-batches of {setup.micro_batch} per step in {where}"]
    if setup.tensor > 1:
        words.append(f"tensor parallel {setup.tensor} over {way(gpu, setup.tensor).words}, nothing hidden behind work")
    if setup.data > 1:
        words.append(f"copies exchange over {data_way(gpu, setup, node_gbps).words}, hidden behind the backward pass")
    if setup.count > (per_node := links().gpus_per_node):
        words.append(f"{per_node} GPUs per node")
    facts = factors().traced if is_traced(model, setup) else factors().train
    if made := denoising(model.shape):
        high, wide = (setup.image, setup.image) if setup.image else made.pixels
        words.append(f"images of {high} x {wide} pixels; encoding images and prompts is not counted")
    return [*words, *clips(model), f"factors: {facts.source} ({facts.as_of})", f"checked on: {facts.held_out}",
            *range_words(train_errors(model, setup), train_range_from(model, setup))]  # fmt: skip


def _image_words(model: Model, setup: Setup) -> list[str]:
    words = [f"{setup.data} copies of the model" if setup.data > 1 else "one copy of the model"]
    words += [*counted_by(model, setup), "encoding prompts is not counted; no compiled or cached steps"]
    facts = factors().traced
    words.append(f"factors: {facts.source} ({facts.as_of}); none of them was fitted to passes without gradients")
    return [*words, *range_words(traced_errors(model), range_from(model, traced=True))]


def _serve_words(gpu: Gpu, setup: Setup) -> list[str]:
    words = [f"{setup.data} copies of the model" if setup.data > 1 else "one copy of the model"]
    if setup.tensor > 1:
        words.append(f"tensor parallel {setup.tensor} over {way(gpu, setup.tensor).words}")
    words.append(f"sequences half full on average: {setup.context / 2:g} tokens; prompts read apart from writing")
    words.append("prompts as plain torch reads them: fused kernels are faster")
    facts = factors().decode
    return [*words, f"factors: {facts.source} ({facts.as_of})", f"checked on: {facts.held_out}"]
