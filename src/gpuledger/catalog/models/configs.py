"""What shape does a Hugging Face config.json describe?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from gpuledger.catalog.files import convert, data_dir, load_toml, parse_json, read_text
from gpuledger.catalog.models import Model
from gpuledger.catalog.models.shapes import CnnShape, MlaShape, Shape, TransformerShape, VitShape, shape_problem
from gpuledger.errors import FactError, FileFault, nearest

T = TypeVar("T")
MOST = 10**9
_NOT: dict[Any, str] = {
    bool: "neither true nor false", str: "not a word", list[int]: "not a list of whole numbers",
    list[str]: "not a list of words",
}  # fmt: skip
_OWN = "give the config.json the model came with, or add the field to it"


@dataclass(frozen=True)
class Fields:
    """The fields of one file; `names`: how files spell ours ("a|b": either), `defaults` what they omit."""

    path: str
    nested: str
    raw: Mapping[str, Any]
    names: Mapping[str, str]
    defaults: Mapping[str, Any]

    def spelled(self, name: str) -> str:
        """The field as the file spells it, with the part of the file it is in."""
        return f"{self.nested}{self._spellings(name)[0]}"

    def has(self, name: str) -> bool:
        """Whether the file, or its type's defaults, hold anything under this name."""
        return self._given(name) is not None

    def whole(self, name: str, default: int | None = None, *, least: int = 1, most: int = MOST) -> int:
        """A whole number from `least` to `most`."""
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, f"{value!r} is not a whole number")
        if value < least:
            raise self._wrong(name, f"{value} is less than {least}")
        if value > most:
            shown = str(value) if value < 10**20 else "a number of more than 20 digits"
            raise self._wrong(name, f"{shown} is more than any model has; at most {most:,} is read")
        return value

    def typed(self, name: str, kind: type[T], default: T | None = None) -> T:
        """A value of a kind other than a whole number."""
        value = self._value(name, default)
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError:
            raise self._wrong(name, f"{value!r} is {_NOT[kind]}") from None

    def classes(self) -> int:
        """How many classes a picture may be of: 0 where the file names none, a model without a head."""
        labels = self.raw.get("id2label")
        return len(labels) if isinstance(labels, dict) else self.whole("num_labels", 0, least=0)

    def _value(self, name: str, default: Any = None) -> Any:
        value = self._given(name)
        value = default if value is None else value
        if value is None:
            raise self._wrong(name, "is missing")
        return value

    def _given(self, name: str) -> Any:
        spellings = self._spellings(name)
        found = (held.get(spelled) for held in (self.raw, self.defaults) for spelled in spellings)
        return next((value for value in found if value is not None), None)

    def _spellings(self, name: str) -> list[str]:
        return self.names.get(name, name).split("|")

    def _wrong(self, name: str, words: str) -> FactError:
        return FactError(self.path, self.spelled(name), words, hint=_OWN)


# A residual network's file does not say for which images it is.
USUAL_IMAGE = 224
TEXT_ONLY = "text_config only: what else the file describes, such as a vision encoder, is not in it"
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


class _Type(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How files of one model_type are read."""

    reads: Literal["decoder", "vit", "resnet"] = "decoder"
    fields: dict[str, str] = {}
    defaults: dict[str, int | bool | str] = {}
    fixed: dict[str, int | bool] = {}
    flags: dict[str, str] = {}
    sliding: str = ""
    latent: bool = False
    learned_positions: bool = False
    more_positions: int = 0  # rows of the table beyond the longest sequence
    only_if: dict[str, bool] = {}  # flags a file may not set otherwise: no formula covers that
    same: dict[str, str] = {}  # fields that must equal another: no formula covers a projection between them
    mlp_over_hidden: int = 0
    kept: dict[str, float] = {}
    formula: bool = False  # whether our formulas for what a training step keeps were checked for this type


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    as_of: str
    usual: dict[str, str]
    types: dict[str, _Type]


@cache
def _rules() -> _File:
    return load_toml(data_dir("gpuledger.catalog", "data", "model_configs.toml"), _File)


_MOST = {"layers": 10_000, "hidden": MOST, "heads": MOST}


class UnreadType(FactError):
    """A configuration of a model_type that no formula is known for."""


def read_config(path: Path) -> tuple[Path, dict[str, Any]]:
    """The fields of a config.json, or of the folder that holds one, and the file itself."""
    file = path / "config.json" if path.is_dir() else path
    raw = parse_json(read_text(file, "read the model's configuration"), str(file))
    if not isinstance(raw, dict):
        raise FileFault(file, "does not hold a JSON object", hint="give the model's config.json")
    return file, raw


def config_name(file: Path) -> str:
    """What a model is called that has nothing but a file."""
    return file.parent.name if file.name == "config.json" and file.parent.name else file.stem


def model_from_config(path: Path) -> Model:
    """The model a config.json (or the folder that holds one) describes."""
    file, raw = read_config(path)
    inner, nested = raw, ""
    if isinstance(raw.get("text_config"), dict):
        inner, nested = dict(raw["text_config"]), "text_config."
        inner.setdefault("model_type", f"{raw.get('model_type')}_text")
        inner.setdefault("tie_word_embeddings", raw.get("tie_word_embeddings"))
    named, known = inner.get("model_type"), _rules().types
    if not isinstance(named, str) or named not in known:
        near = nearest(str(named), known)
        problem = "is missing" if named is None else f"{named!r} is not a type we can read"
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        if "_class_name" in raw:
            problem, hint = f"{raw['_class_name']!r} has no formula", "or name one of the catalog: stable-diffusion-xl"
            raise UnreadType(str(file), "_class_name", problem, hint=hint)
        raise UnreadType(str(file), f"{nested}model_type", problem, hint=f"{hint}known: {', '.join(sorted(known))}")
    kind = known[named]
    if other := _uncovered(kind, inner):
        hint = "formulas cover the usual variant of this type only"
        raise UnreadType(str(file), f"{nested}{other}", f"{inner[other]!r} is a variant we cannot read", hint=hint)
    fields = Fields(str(file), nested, inner, _rules().usual | kind.fields, dict(kind.defaults))
    shape = _READERS[kind.reads](fields, kind)
    if wrong := shape_problem(shape):
        field, words = wrong
        raise FactError(str(file), fields.spelled(field), words, hint="compare with the file the model came with")
    return Model(
        name=config_name(file),
        family=named,
        shape=shape,
        dtype=_DTYPES.get(str(inner.get("dtype") or inner.get("torch_dtype") or raw.get("torch_dtype"))),
        differs=TEXT_ONLY if nested else "",
        source=str(file),
        as_of="not dated",
        config=json.dumps(raw),
        by_formula=kind.formula,
        kept=kind.kept,
    )


def _uncovered(kind: _Type, inner: Mapping[str, Any]) -> str | None:
    """The field that makes a file a variant of its type that formulas do not cover."""
    flagged = (name for name, usual in kind.only_if.items() if inner.get(name, usual) != usual)
    apart = (name for name, other in kind.same.items() if inner.get(name) not in (None, inner.get(other)))
    return next(chain(flagged, apart), None)


def _decoder(fields: Fields, kind: _Type) -> Shape:
    layers, hidden, heads = (fields.whole(name, most=most) for name, most in _MOST.items())
    moe = _moe(fields, kind, layers)
    window, sliding = _windows(fields, kind, layers)
    mla = _latent(fields) if kind.latent else None
    context = fields.whole("max_context")
    usual_mlp = kind.mlp_over_hidden * hidden or None
    made = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads if mla else fields.whole("kv_heads", heads),
        "head_dim": mla.v_dim if mla else fields.whole("head_dim", hidden // heads),
        "mlp_hidden": 0 if moe.get("moe_layers") == layers else fields.whole("mlp_hidden", usual_mlp),
        "mlp_gated": True,
        "vocab": fields.whole("vocab"),
        "tied_embeddings": fields.typed("tied_embeddings", bool),
        "max_context": context,
        "learned_positions": context + kind.more_positions if kind.learned_positions else 0,
        "sliding_window": window,
        "sliding_layers": sliding,
        **moe,
        **{flag: fields.typed(name, bool, False) for flag, name in kind.flags.items()},
        **kind.fixed,
    }
    return msgspec.structs.replace(convert({"type": "transformer", **made}, TransformerShape, fields.path), mla=mla)


def _latent(fields: Fields) -> MlaShape:
    return MlaShape(
        q_lora_rank=fields.whole("q_lora_rank", 0, least=0),
        kv_lora_rank=fields.whole("kv_lora_rank"),
        qk_nope_dim=fields.whole("qk_nope_head_dim"),
        qk_rope_dim=fields.whole("qk_rope_head_dim"),
        v_dim=fields.whole("v_head_dim"),
    )


def _moe(fields: Fields, kind: _Type, layers: int) -> dict[str, int]:
    """Experts, and how many layers have them: those after the first dense ones, every nth, but for those listed."""
    if "experts" not in kind.fields and not fields.has("experts"):
        return {}
    first = fields.whole("first_k_dense_replace", 0, least=0)
    steps = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq")
    step = next((fields.whole(name) for name in steps if fields.has(name)), 1)
    dense = set(fields.typed("mlp_only_layers", list[int], []))
    return {
        "experts": fields.whole("experts"),
        "experts_per_token": fields.whole("experts_per_token"),
        "expert_hidden": fields.whole("expert_hidden"),
        "shared_experts": fields.whole("shared_experts", 0, least=0),
        "moe_layers": sum(i >= first and (i + 1) % step == 0 and i not in dense for i in range(layers)),
    }


def _windows(fields: Fields, kind: _Type, layers: int) -> tuple[int | None, int]:
    """How far windowed layers look back, and how many there are."""
    off = fields.has("use_sliding_window") and not fields.typed("use_sliding_window", bool)
    if not kind.sliding or off or not fields.has("sliding_window"):
        return None, 0
    window = fields.whole("sliding_window")
    listed = fields.typed("layer_types", list[str], [])
    if listed:
        count = sum(word in ("sliding_attention", "chunked_attention") for word in listed)
    elif kind.sliding == "all":
        count = layers
    elif kind.sliding == "every second":
        count = (layers + 1) // 2
    elif kind.sliding.startswith("after "):
        count = max(0, layers - fields.whole(kind.sliding.removeprefix("after "), layers, least=0))
    else:
        count = layers - layers // fields.whole(kind.sliding.removeprefix("all but every "))
    return (window, count) if count else (None, 0)


def _vit(fields: Fields, _kind: _Type) -> Shape:
    names = ("layers", "hidden", "heads", "mlp_hidden", "image", "patch", "channels")
    return VitShape(**{name: fields.whole(name) for name in names}, classes=fields.classes())


def _resnet(fields: Fields, _kind: _Type) -> Shape:
    made = {
        "type": "cnn",
        "block": fields.typed("block", str),
        "depths": fields.typed("depths", list[int]),
        "widths": fields.typed("widths", list[int]),
        "stem": fields.whole("stem"),
        "channels": fields.whole("channels"),
        "stride_in_first": fields.typed("stride_in_first", bool),
        "image": USUAL_IMAGE,
        "classes": fields.classes(),
    }
    return convert(made, CnnShape, fields.path)


_READERS = {"decoder": _decoder, "vit": _vit, "resnet": _resnet}
