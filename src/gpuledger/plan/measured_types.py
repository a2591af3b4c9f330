"""Was a type of model measured on a GPU, and if not, which range holds for the first plan of it?

The file is made by benchmarks/measured_types.py from the runs in benchmarks/data.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.models import Model
from gpuledger.plan.memory.facts import Measured
from gpuledger.plan.speed.facts import ErrorSpread, spread

FILE = "measured_types.toml"
RangeFrom = Literal["measured_type", "first_plans"]


class First(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Errors of plans made before any run of their type was measured."""

    memory: Measured
    speed: tuple[ErrorSpread, ...]


class MeasuredTypes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The types with at least one run on a GPU: `model_type`, or the class of a model of diffusers."""

    version: Literal[1]
    types: frozenset[str]
    first: First


@cache
def measured_types() -> MeasuredTypes:
    """The shipped list, and the errors of first plans."""
    return load_toml(data_dir("gpuledger.plan", "data", FILE), MeasuredTypes)


def range_from(model: Model, *, traced: bool) -> RangeFrom | None:
    """Which runs set the range: those of measured types, or first plans of others; None: those of its formula."""
    fields = json.loads(model.config) if model.config else {}
    named = fields.get("model_type") or fields.get("_class_name") or model.family
    if named in measured_types().types:
        return "measured_type" if traced else None
    return "first_plans" if traced or fields else None


def memory_errors(usual: Measured, rests_on: RangeFrom | None) -> Measured:
    """The usual errors, or those of first plans, which are never narrower."""
    if rests_on != "first_plans":
        return usual
    first = measured_types().first.memory
    return msgspec.structs.replace(
        first,
        p10=min(first.p10, usual.p10),
        p90=max(first.p90, usual.p90),
        gaps_bytes=max(first.gaps_bytes, usual.gaps_bytes),
    )


def speed_errors(usual: ErrorSpread, rests_on: RangeFrom | None) -> ErrorSpread:
    """The usual errors, or those of first plans, which are never narrower."""
    if rests_on != "first_plans":
        return usual
    first = spread(measured_types().first.speed, usual.of, "all")
    return msgspec.structs.replace(usual, rows=first.rows, p10=min(first.p10, usual.p10), p90=max(first.p90, usual.p90))
