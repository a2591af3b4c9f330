"""Which models do we know, what shape are they, and which of them is meant by this name?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

import msgspec

from gpuledger.catalog.files import Fact, data_dir, load_toml
from gpuledger.catalog.models.params import active_params, total_params
from gpuledger.catalog.models.shapes import (
    CnnShape,
    Component,
    DiffusionShape,
    MlaShape,
    Shape,
    TransformerShape,
    VitShape,
    shape_problem,
)
from gpuledger.errors import FactError, UnknownName, map_os_error, nearest
from gpuledger.units import Unknown

__all__ = [
    "CnnShape",
    "Component",
    "DiffusionShape",
    "MlaShape",
    "Model",
    "Shape",
    "TransformerShape",
    "VitShape",
    "find_model",
    "get_model",
    "load_models",
]

SUGGESTIONS = 4
# Published totals are rounded, and some leave out a part: further apart than this needs a word of explanation.
PARAMS_TOLERANCE_RATIO = 0.01


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model; `beside` are parts the shape does not hold, such as a vision encoder in front of a decoder."""

    name: str
    family: str = ""
    aliases: tuple[str, ...] = ()
    shape: Shape
    beside: tuple[Component, ...] = ()
    dtype: str | None = None  # of the published weights
    params_published: Fact | None = None
    params_active_published: Fact | None = None
    differs: str = ""  # why the published figures are not those of the shape, where they are not
    source: str = ""
    as_of: str = ""

    @property
    def params_total(self) -> int:
        """All parameters that rest in memory: those of the shape and those beside it."""
        return total_params(self.shape) + sum(round(part.params.value) for part in self.beside)

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
            *((f"beside.{part.name}", part.params) for part in self.beside),
        ]
        return [(name, fact) for name, fact in named if fact is not None]


class _Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file: the models of a family."""

    family: str
    models: tuple[Model, ...]


def load_models(extra_dir: Path | None = None) -> Mapping[str, Model]:
    """All models by name; a file in `extra_dir` adds models, or replaces shipped ones of the same name."""
    return _catalog(extra_dir)[0]


def find_model(name: str, extra_dir: Path | None = None) -> Model | Unknown:
    """The model with exactly this name or alias (case and outer blanks aside), never a part of one."""
    model = _catalog(extra_dir)[1].get(_fold(name))
    if model is not None:
        return model
    near = _suggest(name, load_models(extra_dir))
    return Unknown(f"{name!r} is not in the catalog; nearest: {', '.join(near) or 'none'}")


def get_model(name: str, extra_dir: Path | None = None) -> Model:
    """As find_model, for a name a person typed: an error with suggestions where there is none."""
    found = find_model(name, extra_dir)
    if not isinstance(found, Unknown):
        return found
    models = load_models(extra_dir)
    error = UnknownName("model", name, models)
    if near := _suggest(name, models):
        error.nearest, error.hint = near, f"did you mean {' or '.join(near)}? a config.json works as well"
    raise error


@cache
def _catalog(extra_dir: Path | None) -> tuple[Mapping[str, Model], Mapping[str, Model]]:
    """Models by name, and models by every folded spelling."""
    models: dict[str, Model] = {}
    paths: dict[str, str] = {}
    for folder in (data_dir("gpuledger.catalog", "data", "models"), *([extra_dir] if extra_dir else [])):
        for path, model in _read_folder(folder):
            models[model.name], paths[model.name] = model, path
    index: dict[str, Model] = {}
    for model in models.values():
        for spelling in model.spellings():
            other = index.setdefault(_fold(spelling), model)
            if other is not model:
                problem = f"{spelling!r} already means {other.name}"
                raise FactError(paths[model.name], "aliases", problem, hint="keep the name in one of the two places")
    return MappingProxyType(dict(sorted(models.items()))), MappingProxyType(index)


def _suggest(name: str, models: Mapping[str, Model]) -> list[str]:
    """Names to try instead: models whose names hold this text first ("llama-3"), then those spelled like it."""
    wanted = _fold(name)
    owner = {s: model.name for model in models.values() for s in model.spellings()}
    holding = [s for s in owner if wanted and wanted in _fold(s)]
    near = [owner[s] for s in (*holding, *nearest(wanted, owner, limit=12))]
    return list(dict.fromkeys(near))[:SUGGESTIONS]


def _fold(name: str) -> str:
    return name.strip().casefold()


def _read_folder(folder: Traversable | Path) -> list[tuple[str, Model]]:
    """The models of a folder's *.toml files, each with the path of its file."""
    try:
        files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    except OSError as error:
        raise map_os_error(error, str(folder), "read model files") from error
    found: list[tuple[str, Model]] = []
    for file in files:
        family = load_toml(file, _Family)
        for at, model in enumerate(family.models):
            _check(model, str(file), f"models[{at}]")
            if any(model.name == other.name for _, other in found):
                raise FactError(str(file), f"models[{at}].name", f"{model.name!r} is there twice", hint="rename one")
            found.append((str(file), msgspec.structs.replace(model, family=family.family)))
    return found


def _check(model: Model, path: str, at: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*", model.name):
        hint = "use small letters, digits, single hyphens and points"
        raise FactError(path, f"{at}.name", f"{model.name!r} is not written like llama-3.1-8b", hint=hint)
    if not model.source.strip():
        raise FactError(path, f"{at}.source", "empty", hint="say where the shape comes from")
    for field, as_of in (("as_of", model.as_of), *((n, f.as_of) for n, f in model.facts())):
        if not re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", as_of):
            problem = f"dated {as_of!r}"
            raise FactError(path, f"{at}.{field}", problem, hint="give the date as YYYY-MM or YYYY-MM-DD")
    if wrong := shape_problem(model.shape):
        field, words = wrong
        raise FactError(path, f"{at}.shape.{field}", words, hint="compare with the model's own config.json")
    published, made = model.params_published, model.params_total
    if published and not model.differs and abs(made / published.value - 1) > PARAMS_TOLERANCE_RATIO:
        problem = f"{published.value:,.0f}, but the shape makes {made:,}"
        raise FactError(path, f"{at}.params_published", problem, hint="mend one of them, or say why in `differs`")
