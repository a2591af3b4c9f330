"""How is an answer about memory or speed written as JSON?"""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from typing import Any

from gpuledger.plan.fit.build import Fit
from gpuledger.plan.setup import Setup
from gpuledger.units import Unknown

TRAINING = ("zero", "scheme", "optimizer", "sequence", "micro_batch", "recompute", "attention", "kernels", "dropout",
            "lora_rank", "frozen_precision", "sequence_parallel")  # fmt: skip
SERVING = ("context", "batch", "cache_precision")


def fit_as_data(fit: Fit) -> dict[str, Any]:
    """The whole answer."""
    data = {field.name: getattr(fit, field.name) for field in fields(fit)}
    data["setup"] = setup_as_data(fit.setup)
    data["remedies"] = [asdict(remedy) for remedy in fit.remedies]
    data["assumptions"] = list(fit.assumptions)
    return data


def setup_as_data(setup: Setup) -> dict[str, Any]:
    """What applies to this mode, and the copies that follow from it."""
    leave = SERVING if setup.mode == "train" else TRAINING
    return {**{k: v for k, v in asdict(setup).items() if k not in leave}, "data": setup.data}


def plain(value: Any) -> Any:
    """Any answer as JSON holds it: what is not known as null beside its reason."""
    if isinstance(value, Unknown):
        return {"value": None, "not_known": value.why}
    if isinstance(value, Setup):
        return setup_as_data(value)
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
