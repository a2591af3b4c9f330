"""Which models do we know, what shape are they, and which of them is meant by this name?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpuledger.catalog import files
from gpuledger.catalog.files import Fact, data_dir, load_toml
from gpuledger.catalog.models.params import active_params, total_params
from gpuledger.catalog.models.shapes import (
    CnnShape,
    Component,
    CountedShape,
    Denoising,
    DiffusionShape,
    MlaShape,
    Shape,
    TransformerShape,
    VitShape,
    shape_problem,
)
from gpuledger.errors import FactError

__all__ = [
    "CnnShape", "Component", "CountedShape", "Denoising", "DiffusionShape", "MlaShape", "Model", "Shape",
    "TransformerShape", "VitShape",
    "find_model", "get_model", "load_models",
]  # fmt: skip

# Published totals are rounded, and some leave out a part: further apart than this needs a word of explanation.
PARAMS_TOLERANCE_RATIO = 0.01


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model; `extra` are parts the shape does not hold, such as a vision encoder in front of a decoder."""

    name: str
    family: str = ""
    aliases: tuple[str, ...] = ()
    shape: Shape
    extra: tuple[Component, ...] = ()
    dtype: str | None = None  # of the published weights
    config: str = ""  # the configuration it was read from, as JSON
    kept: dict[str, float] = {}  # how a plain step of this type differs in what it keeps from the usual table
    by_formula: bool = True  # whether formulas say what a step keeps; else it is traced where that is possible
    params_published: Fact | None = None
    params_active_published: Fact | None = None
    differs: str = ""  # why the published figures are not those of the shape, where they are not
    source: str = ""
    as_of: str = ""

    @property
    def params_total(self) -> int:
        """All parameters that rest in memory: those of the shape and of the extra parts."""
        return total_params(self.shape) + sum(round(part.params.value) for part in self.extra)

    @property
    def params_active(self) -> int:
        """Parameters one token or image goes through: fewer than all only where there are experts."""
        return self.params_total - total_params(self.shape) + active_params(self.shape)

    def spellings(self) -> tuple[str, ...]:
        """Everything this model is called."""
        return (self.name, *self.aliases)

    def facts(self) -> list[tuple[str, Fact]]:
        """Every published figure with the name of its field."""
        parts = self.shape.components if isinstance(self.shape, DiffusionShape) else ()
        named: list[tuple[str, Fact | None]] = [
            ("params_published", self.params_published),
            ("params_active_published", self.params_active_published),
            *((f"components.{part.name}", part.params) for part in parts),
            *((f"extra.{part.name}", part.params) for part in self.extra),
        ]
        return [(name, fact) for name, fact in named if fact is not None]


class _Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file: the models of a family."""

    family: str
    models: tuple[Model, ...]


def _read(file: Path) -> Iterator[tuple[str, str, Model]]:
    family = load_toml(file, _Family)
    for at, model in enumerate(family.models):
        _check(model, str(file), f"models[{at}]")
        yield f"models[{at}].name", model.name, msgspec.structs.replace(model, family=family.family)


def _check(model: Model, path: str, at: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*", model.name):
        hint = "use small letters, digits, single hyphens and points"
        raise FactError(path, f"{at}.name", f"{model.name!r} is not written like llama-3.1-8b", hint=hint)
    if not model.source.strip():
        raise FactError(path, f"{at}.source", "empty", hint="say where the shape comes from")
    for field, as_of in (("as_of", model.as_of), *((n, f.as_of) for n, f in model.facts())):
        files.check_date(as_of, path, f"{at}.{field}")
    if wrong := shape_problem(model.shape):
        field, words = wrong
        raise FactError(path, f"{at}.shape.{field}", words, hint="compare with the model's own config.json")
    published, made = model.params_published, model.params_total
    if published and not model.differs and abs(made / published.value - 1) > PARAMS_TOLERANCE_RATIO:
        problem = f"{published.value:,.0f}, but the shape makes {made:,}"
        raise FactError(path, f"{at}.params_published", problem, hint="fix one of them, or say why in `differs`")


_FOLDER, _MORE = data_dir("gpuledger.catalog", "data", "models"), " a config.json works as well"
_CATALOG = files.Catalog("model", _FOLDER, _read, "is there twice", _MORE)
load_models, find_model, get_model = _CATALOG.load, _CATALOG.find, _CATALOG.get
