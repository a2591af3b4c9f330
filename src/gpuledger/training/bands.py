"""Which MFU is usual for a kind of model, and which kind is this one?"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.models import Model, TransformerShape, VitShape
from gpuledger.catalog.models.shapes import CnnShape
from gpuledger.units import Unknown

Kind = Literal["transformer", "cnn"]
# A model with this share of its FLOPs in convolutions is a convolutional network; a transformer's patches take less.
CNN_FROM_RATIO = 0.5


class Band(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The usual MFU of a kind of model, as claimed."""

    words: str
    low_pct: float
    high_pct: float
    source: str
    as_of: str

    @property
    def target(self) -> str:
        """The band in words."""
        return f"usual for {self.words}: {self.low_pct:g} to {self.high_pct:g} % MFU, as claimed"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    band: dict[Kind, Band]


@cache
def bands() -> dict[Kind, Band]:
    """The bands by kind of model."""
    return load_toml(data_dir("gpuledger.training", "data", "mfu_bands.toml"), _File).band


def band_by_work(convolution_ratio: float) -> Band:
    """The band of a model by the share of its FLOPs in convolutions."""
    return bands()["cnn" if convolution_ratio >= CNN_FROM_RATIO else "transformer"]


def band_of(model: Model) -> Band | Unknown:
    """The band of a model of the catalog; unknown for kinds that nothing is claimed for."""
    if isinstance(model.shape, TransformerShape | VitShape):
        return bands()["transformer"]
    if isinstance(model.shape, CnnShape):
        return bands()["cnn"]
    return Unknown(f"no usual MFU is known for models like {model.name}")
