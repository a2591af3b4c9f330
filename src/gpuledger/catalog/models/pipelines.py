"""Which models is an image generator made of? The folder of a diffusers pipeline, with its model_index.json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuledger.catalog.models.configs import read_config
from gpuledger.errors import FactError

INDEX = "model_index.json"
DENOISERS = ("transformer", "unet", "prior")
_ROLES = {"vae": "autoencoder", "vqvae": "autoencoder", "vqgan": "autoencoder"}


@dataclass(frozen=True)
class Part:
    """One model of a pipeline: its folder, the library and class that build it, and its configuration."""

    name: str
    library: str
    kind: str
    fields: dict[str, Any]

    @property
    def role(self) -> str:
        """What it does."""
        if self.name in DENOISERS:
            return "denoiser"
        return _ROLES.get(self.name) or ("text encoder" if self.name.startswith("text_encoder") else "other")


@dataclass(frozen=True)
class Pipeline:
    """The models of a pipeline, the one that denoises first; `left_out` are those no library builds."""

    file: Path
    kind: str
    parts: tuple[Part, ...]
    left_out: tuple[str, ...]


def find_pipeline(path: Path) -> Path | None:
    """The model_index.json this path means; None where it means the configuration of one model."""
    if path.name == INDEX:
        return path
    found = path / INDEX
    return found if path.is_dir() and not (path / "config.json").exists() and found.exists() else None


def read_pipeline(file: Path) -> Pipeline:
    """The parts of a pipeline that are models: those whose folder holds a config.json."""
    _, raw = read_config(file)
    named = {name: one for name, one in raw.items() if isinstance(one, list) and len(one) == 2 and all(one)}
    parts, left_out = [], []
    for name, (library, kind) in named.items():
        own = file.parent / name / "config.json"
        if not own.exists():
            continue
        if library not in ("diffusers", "transformers"):
            left_out.append(name)
            continue
        parts.append(Part(name, library, str(kind), read_config(own)[1]))
    parts.sort(key=lambda part: (part.role != "denoiser", part.name))
    if not parts or parts[0].role != "denoiser":
        want = next((name for name in DENOISERS if name in named), "unet")
        hint = "download the folder with the config.json of each part; weights are not needed"
        raise FactError(str(file), want, f"{want}/config.json is not there, and it names the size", hint=hint)
    return Pipeline(file, str(raw.get("_class_name", "pipeline")), tuple(parts), tuple(left_out))
