"""Where and when should a job run?

setup     how a model is run: precision, batch, parallelism, optimizer
tracing   models without a formula: built and run on torch's meta device
memory/   how much memory it takes, part by part
fitting/  does it fit, and what is the least change that makes it fit
speed/    how fast it can run, as a range
market, packing    what the market offers, and how loads pack on GPUs
move/     what each namespace should move to, from the ledger
guide/    which instance to take, from the configuration a user edits (reference/)
planners/ the options of each further planner and how it is run; one file each, also from other packages
outcome   what every plan has: what was refused and why, dollars with their range
data/     precisions, optimizers, kept tensors, overheads, links, efficiency factors, efforts: each with its source

    gpuledger.plan.fit("llama-3.1-70b", "h100-sxm5-80gb", count=8)
    gpuledger.plan.throughput("llama-3.1-8b", "l4", mode="serve", batch=8)
    gpuledger.plan.migrate(instance="P5", workload="inference", size="small")
    gpuledger.plan.tco(gpu="h100-sxm5-80gb", gpus=64)     # any planner by its name
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from gpuledger.arguments import names_of, refuse_unknown

if TYPE_CHECKING:
    from gpuledger.answers import Answer
    from gpuledger.catalog.gpus import Gpu
    from gpuledger.catalog.models import Model
    from gpuledger.plan.fitting.build import Fit
    from gpuledger.plan.guide.sets import MigrationSet
    from gpuledger.plan.setup import Setup
    from gpuledger.plan.speed.throughput import Throughput

USUAL_TOKENS = 4096


def fit(model: str | Path, gpu: str, **setup: Any) -> Answer[Fit]:
    """Whether a model fits, what takes the memory, and the least change that makes it fit.

    `model`: a name of the catalog, or the path of a Hugging Face config.json, or of the folder of a diffusers pipeline.
    `setup`: count, mode, precision, tensor, pipeline, zero, optimizer, sequence, micro_batch, recompute, lora_rank,
    context, batch, image, denoising_steps, ...
    """
    from gpuledger.answers import Answer
    from gpuledger.plan.fitting.build import fit as fitted

    return Answer(fitted(*asked(model, gpu, **setup)))


def throughput(
    model: str | Path, gpu: str, *, micro_batches: int | None = None, node_gbps: float | None = None, **setup: Any
) -> Answer[Throughput]:
    """Tokens (images) per second as a range; `setup` as for `fit`."""
    from gpuledger.answers import Answer
    from gpuledger.plan.speed.throughput import throughput as rated

    _check_names("throughput", setup, names_of(throughput))
    return Answer(rated(*asked(model, gpu, **setup), micro_batches=micro_batches, node_gbps=node_gbps))


def migrate(**asked: Any) -> Answer[MigrationSet]:
    """Where a job should run instead: cost, speed, risk, effort, what was refused and why.

    `asked`: instance or gpu, gpus, workload, model or size, monthly_h, spot, precision, priority, use_case, method,
    keep_gpus, busy_pct, clouds, regions, whole; or config with workload_id, set_name or tags.
    """
    from gpuledger.answers import Answer
    from gpuledger.plan.guide.question import answer as planned

    return Answer(planned(asked))


def run(name: str, **options: Any) -> Any:
    """The answer of a planner by its name: fit, throughput, migrate, or one that registered itself.

    A statement with a document of its own comes as an `Answer`; that of another package as it is.
    """
    from gpuledger.answers import answer
    from gpuledger.plan.planners import PLANNERS

    built_in: dict[str, Callable[..., object]] = {"fit": fit, "throughput": throughput, "migrate": migrate}
    return built_in[name](**options) if name in built_in else answer(PLANNERS.get(name).state(options))


def __getattr__(name: str) -> Callable[..., Any]:
    """A registered planner as a function: `plan.spot(...)` is `plan.run("spot", ...)`."""
    from gpuledger.plan.planners import PLANNERS

    known = name.replace("_", "-")
    if name.startswith("_") or known not in PLANNERS.names():
        raise AttributeError(f"gpuledger.plan has no planner {name!r}")
    return partial(run, known)


def asked(
    model: str | Path,
    gpu: str,
    *,
    mode: Literal["train", "serve"] = "train",
    precision: str | None = None,
    tensor: int | None = None,
    sequence: int | None = None,
    context: int | None = None,
    **how: Any,
) -> tuple[Model, Gpu, Setup]:
    """A model, a GPU and how the one is run on the other, with the usual choices where none was made."""
    from gpuledger.catalog.gpus import get_gpu
    from gpuledger.catalog.models import get_model
    from gpuledger.catalog.models.shapes import denoising, longest_sequence
    from gpuledger.plan.setup import Setup, with_defaults
    from gpuledger.plan.tracing import configured_model

    _check_names("fit", how)
    of_file = isinstance(model, Path) or str(model).endswith(".json")
    found, card = configured_model(Path(model)) if of_file else get_model(str(model)), get_gpu(gpu)
    usual = min(USUAL_TOKENS, longest_sequence(found.shape) or USUAL_TOKENS)
    if made := denoising(found.shape):
        usual, (high, wide) = max(1, made.prompt), made.pixels
        how["image"] = how.get("image") or (high if high == wide else 0)
        how["denoising_steps"] = how.get("denoising_steps") or made.steps
    setup = Setup(
        mode=mode,
        precision=precision or card.reference_precision(),
        sequence=usual if sequence is None else sequence,
        context=usual if context is None else context,
        **how,
    )
    return found, card, with_defaults(setup, found, tensor=tensor)


def _check_names(call: str, setup: Iterable[str], more: Iterable[str] = ()) -> None:
    """Refuse what is no part of a setup."""
    from gpuledger.plan.setup import Setup

    refuse_unknown(f"plan.{call}", setup, (*names_of(asked), *(f.name for f in fields(Setup)), *more))


class _Plan(ModuleType):
    """Python makes a package that was imported an attribute of its parent: `plan.tco` must stay the planner."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and (Path(__file__).parent / "planners" / f"{name}.py").exists()):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Plan
