"""Which models have no formula, and what does a step of such a model take? Built and run on torch's meta device.

A configuration of a type that formulas do not cover is built by transformers where that is installed; its weights are
exact, and one training step is traced operator by operator (`training/blueprint`).
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from gpuledger.catalog.files import Fact
from gpuledger.catalog.models import Component, CountedShape, Model
from gpuledger.catalog.models.configs import TEXT_ONLY, UnreadType, config_name, model_from_config, read_config
from gpuledger.errors import InputError
from gpuledger.plan.memory.facts import FP32_BITS, get_precision
from gpuledger.plan.setup import Setup
from gpuledger.training.blueprint import step
from gpuledger.training.blueprint.modules import installed
from gpuledger.training.blueprint.step import Asked, Served, Traced
from gpuledger.units import Unknown

INSTALL = "install torch and transformers (pip install torch transformers) and any type they know is built and counted"


def configured_model(path: Path) -> Model:
    """The model of a config.json: by formula, or built by transformers where no formula is known."""
    try:
        return _whole(model_from_config(path))
    except UnreadType as unread:
        if "model_type" not in read_config(path)[1]:
            raise
        if not installed():
            unread.hint = f"{INSTALL}. {unread.hint}"
            raise
    file, raw = read_config(path)
    config = json.dumps(raw)
    found = step.weights(config)
    return Model(
        name=config_name(file),
        family=str(raw["model_type"]),
        shape=CountedShape(
            built_as=found.name, built_by=f"transformers {found.version}", matrices=found.matrices, rest=found.rest,
            block=found.block, edges=found.edges, text=found.text, longest=found.longest,
        ),
        source=str(file),
        as_of="not dated",
        config=config,
        by_formula=False,
    )  # fmt: skip


def _whole(model: Model) -> Model:
    """A model read from its text_config only, with the parameters of its other parts where they can be counted."""
    if model.differs != TEXT_ONLY or not installed():
        return model
    try:
        found = step.weights(model.config)
    except InputError:
        return model
    others = found.matrices + found.rest - model.params_total
    if others <= 0:
        return model
    fact = Fact(
        value=others, source=f"counted after transformers {found.version} built {found.name}", as_of=model.as_of
    )
    words = f"{others / 1e6:,.0f} M parameters outside text_config are counted, their activations are not"
    return msgspec.structs.replace(model, extra=(Component(name="other", role="encoder", params=fact),), differs=words)


def is_traced(model: Model, setup: Setup) -> bool:
    """Whether a training step of this setup is traced: a whole model in plain torch, of a type without a formula."""
    if isinstance(model.shape, CountedShape):
        return True
    if not model.config or setup.trace == "never" or (setup.trace == "auto" and model.by_formula):
        return False
    split = setup.tensor > 1 or setup.pipeline > 1 or setup.lora_rank > 0
    return not split and setup.kernels == "eager" and installed()


def traced_step(model: Model, setup: Setup) -> Traced | Unknown:
    """One micro-batch of this setup, forward and backward; unknown where it cannot run without values."""
    fp32 = get_precision(get_precision(setup.precision).train_as).bits >= FP32_BITS
    asked = Asked(
        micro_batch=setup.micro_batch,
        sequence=setup.sequence,
        fp32=fp32,
        autocast=setup.scheme == "autocast" and not fp32,
        full_attention=setup.attention == "full",
        recompute=setup.recompute,
        accumulate=setup.accumulate,
    )
    try:
        return step.traced(model.config, asked)
    except InputError as error:
        return Unknown(str(error))


def traced_tensors(model: Model) -> int:
    """How many separate weights an optimizer steps through."""
    return step.weights(model.config).tensors


def served_pass(model: Model, batch: int, context: int) -> Served:
    """A forward pass over prompts, and the cache it leaves."""
    return step.served(model.config, batch, context)
