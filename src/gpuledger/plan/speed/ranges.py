"""Between which bounds does a rate lie, and which measured runs say so?"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model
from gpuledger.catalog.models.shapes import autoencodes, denoising
from gpuledger.plan.measured_types import RangeFrom, range_from, speed_errors
from gpuledger.plan.setup import Setup
from gpuledger.plan.speed.facts import ErrorSpread, factors, spread
from gpuledger.plan.tracing import is_traced
from gpuledger.training.flops import unit_of

_ERRORS_OF = {"moe": "models with experts in plain torch", "unchecked": "families whose formula was not checked",
              "denoisers": "denoisers", "autoencoders": "an autoencoder",
              "images_or_sound": "models that read images or sound"}  # fmt: skip


@dataclass(frozen=True)
class Rate:
    """A rate per second; eight of ten measured ones lay between low and high.

    `range_from`: which runs set the range of a traced step; None for one by formula.
    """

    per_s: float
    low_per_s: float
    high_per_s: float
    errors_of: str
    error_rows: int
    range_from: RangeFrom | None = None


def ranged(per_s: float, errors: ErrorSpread, rests_on: RangeFrom | None = None) -> Rate:
    """A rate with its range."""
    low, high = errors.range_of(per_s)
    return Rate(per_s, low, high, errors.of, errors.rows, rests_on)


def train_errors(model: Model, setup: Setup) -> ErrorSpread:
    """The errors of models like this one, traced or by formula; else of all."""
    if is_traced(model, setup):
        return traced_errors(model)
    kind = "moe" if getattr(model.shape, "experts", 0) else "all" if model.by_formula else "unchecked"
    return speed_errors(spread(factors().train.errors, kind, "all"), train_range_from(model, setup))


def train_range_from(model: Model, setup: Setup) -> RangeFrom | None:
    """Which runs set the range of a training step."""
    return range_from(model, traced=is_traced(model, setup))


def traced_errors(model: Model) -> ErrorSpread:
    """Those of models that make or read images come before those of all; wider for a type that was not measured."""
    makes = "autoencoders" if autoencodes(model.shape) else "denoisers" if denoising(model.shape) else ""
    reads = "all" if unit_of(model.shape) == "token" else "images_or_sound"
    return speed_errors(spread(factors().traced.errors, makes or reads, "all"), range_from(model, traced=True))


def decode_errors(model: Model, gpu: Gpu) -> ErrorSpread:
    """The errors of models and GPUs like these, else of models like this, else of all."""
    kind = "moe" if getattr(model.shape, "experts", 0) else "dense"
    return spread(factors().decode.errors, f"{kind}, {gpu.architecture}", kind, "all")


def range_words(errors: ErrorSpread, rests_on: RangeFrom | None) -> list[str]:
    """Which runs the range is from, where it is not that of all measured ones."""
    if rests_on == "first_plans":
        return [f"range: from the first plans of {errors.rows} other types, made before any run of theirs"]
    return [f"range: from {errors.rows} runs of {_ERRORS_OF[errors.of]}"] if errors.of in _ERRORS_OF else []
