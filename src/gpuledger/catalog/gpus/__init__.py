"""Which GPUs do we know, and which of them is meant by this name?"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from gpuledger.catalog.files import Fact, convert, data_dir, load_toml
from gpuledger.catalog.gpus.facts import PEAK_TOLERANCE_RATIO, Achievable, Gpu, Link, Precision
from gpuledger.errors import FactError, UnknownName, map_os_error, nearest
from gpuledger.units import Unknown

__all__ = ["Achievable", "Gpu", "Link", "Precision", "find_gpu", "get_gpu", "load_gpus"]

SUGGESTIONS = 4


def load_gpus(extra_dir: Path | None = None) -> Mapping[str, Gpu]:
    """All GPUs by key; a file in `extra_dir` adds a GPU, or replaces the shipped one of the same key."""
    return _catalog(extra_dir)[0]


def find_gpu(name: str, extra_dir: Path | None = None) -> Gpu | Unknown:
    """The GPU with exactly this key, name or alias (case and outer blanks aside), never a part of one."""
    folded = _fold(name)
    gpu = (None if extra_dir else _by_text(folded)) or _catalog(extra_dir)[1].get(folded)
    if gpu is not None:
        return gpu
    near = _suggest(name, load_gpus(extra_dir))
    return Unknown(f"{name!r} is not in the catalog; nearest: {', '.join(near) or 'none'}")


def get_gpu(name: str, extra_dir: Path | None = None) -> Gpu:
    """As find_gpu, for a name a person typed: an error with suggestions where there is none."""
    found = find_gpu(name, extra_dir)
    if not isinstance(found, Unknown):
        return found
    gpus = load_gpus(extra_dir)
    error = UnknownName("GPU", name, gpus)
    if near := _suggest(name, gpus):
        error.nearest, error.hint = near, f"did you mean {' or '.join(near)}?"
    raise error


@cache
def _by_text(folded: str) -> Gpu | None:
    """The GPU of the shipped file that spells this name out: reading one file takes a thirtieth of reading all."""
    for file, text in _texts().items():
        if f'"{folded}"' in text:
            gpu = _shipped(file)
            if folded in map(_fold, gpu.spellings()):
                return gpu
    return None


@cache
def _texts() -> dict[str, str]:
    """The shipped files by name, folded as the names of GPUs are."""
    return {file.name: file.read_text(encoding="utf-8").casefold() for file in _files(_folder())}


@cache
def _shipped(file_name: str) -> Gpu:
    return _read_gpu(_folder().joinpath(file_name))


def _folder() -> Traversable:
    return data_dir("gpuledger.catalog", "data", "gpus")


@cache
def _catalog(extra_dir: Path | None) -> tuple[Mapping[str, Gpu], Mapping[str, Gpu]]:
    """GPUs by key, and GPUs by every folded spelling."""
    gpus: dict[str, Gpu] = {}
    paths: dict[str, str] = {}
    shipped = _read_folder(_folder(), lambda file: _shipped(file.name))
    for folder in (shipped, _read_folder(extra_dir, _read_gpu) if extra_dir else {}):
        for path, gpu in folder.items():
            gpus[gpu.key], paths[gpu.key] = gpu, path
    return MappingProxyType(dict(sorted(gpus.items()))), MappingProxyType(_by_spelling(gpus, paths))


def _by_spelling(gpus: Mapping[str, Gpu], paths: Mapping[str, str]) -> dict[str, Gpu]:
    index: dict[str, Gpu] = {}
    for gpu in gpus.values():
        for spelling in gpu.spellings():
            other = index.setdefault(_fold(spelling), gpu)
            if other is not gpu:
                problem = f"{spelling!r} already means {other.key}"
                raise FactError(paths[gpu.key], "aliases", problem, hint="keep the name in one of the two files")
    return index


def _suggest(name: str, gpus: Mapping[str, Gpu]) -> list[str]:
    """Names to try instead: GPUs whose names hold this text first ("h100"), then those spelled like it."""
    wanted = _fold(name)
    owner = {s: gpu.name for gpu in gpus.values() for s in gpu.spellings()}
    holding = [s for s in owner if wanted and wanted in _fold(s)]
    near = [owner[s] for s in (*holding, *nearest(wanted, owner, limit=12))]
    return list(dict.fromkeys(near))[:SUGGESTIONS]


def _fold(name: str) -> str:
    return name.strip().casefold()


def _files(folder: Traversable | Path) -> list[Traversable | Path]:
    """The *.toml files of a folder."""
    try:
        return sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    except OSError as error:
        raise map_os_error(error, str(folder), "read GPU files") from error


def _read_folder(folder: Traversable | Path, read: Callable[[Traversable | Path], Gpu]) -> dict[str, Gpu]:
    """The GPUs of a folder's files by path."""
    gpus: dict[str, Gpu] = {}
    for file in _files(folder):
        gpu = read(file)
        if any(gpu.key == other.key for other in gpus.values()):
            raise FactError(str(file), "key", f"{gpu.key!r} is the key of two files", hint="give one another key")
        gpus[str(file)] = gpu
    return gpus


def _read_gpu(file: Traversable | Path) -> Gpu:
    path = str(file)
    raw = load_toml(file, dict[str, Any])
    legend = convert(raw.pop("sources", {}), dict[str, str], path)
    gpu = convert(_spell_out(raw, legend), Gpu, path)
    _check_names(gpu, path)
    _check_figures(gpu, path)
    reference = gpu.reference_precision()
    _check_peak(gpu, path, reference, gpu.tensor_flop_per_clk_sm.get(reference), gpu.tensor_rated_mhz)
    _check_peak(gpu, path, "fp32", gpu.fp32_flop_per_clk_sm, gpu.fp32_rated_mhz)
    return gpu


def _spell_out(raw: Any, legend: Mapping[str, str]) -> Any:
    """The same data with each short source replaced by the text the file's own [sources] gives it."""
    if isinstance(raw, list):
        return [_spell_out(item, legend) for item in raw]
    if not isinstance(raw, dict):
        return raw
    spelled = {key: _spell_out(value, legend) for key, value in raw.items()}
    source = spelled.get("source")
    return spelled | {"source": legend.get(source, source)} if isinstance(source, str) else spelled


def _check_names(gpu: Gpu, path: str) -> None:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", gpu.key):
        raise FactError(path, "key", f"{gpu.key!r} is not kebab-case", hint="use small letters, digits, single hyphens")
    folded = [_fold(alias) for alias in gpu.aliases]
    for alias in folded:
        if not alias or folded.count(alias) > 1:
            raise FactError(path, "aliases", f"{alias!r} is empty or given twice", hint="give each alias once")
    for table in ("peak_tflops", "tensor_flop_per_clk_sm"):
        for precision in getattr(gpu, table):
            if precision not in get_args(Precision):
                known = ", ".join(get_args(Precision))
                raise FactError(path, table, f"{precision!r} is not a precision we know", hint=f"use one of {known}")
    if not {"bf16", "fp16"} & set(gpu.peak_tflops):
        raise FactError(path, "peak_tflops", "neither bf16 nor fp16 is given", hint="give the dense peak of one")


def _check_figures(gpu: Gpu, path: str) -> None:
    for field, fact in gpu.facts():
        if not (math.isfinite(fact.value) and fact.value > 0):
            raise FactError(path, field, f"{fact.value} is not above zero", hint="leave out what is not known")
        if not fact.source.strip():
            raise FactError(path, field, f"source is {fact.source!r}", hint="say where the figure comes from")
        if not re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", fact.as_of):
            raise FactError(path, field, f"as_of is {fact.as_of!r}", hint="give the date as YYYY-MM or YYYY-MM-DD")


def _check_peak(gpu: Gpu, path: str, precision: str, flop: Fact | None, mhz: Fact | None) -> None:
    """SMs x FLOP per clock per SM x rated clock must be the printed peak: a sparse peak is caught here."""
    peak = gpu.peak(precision)
    if gpu.sm_count is None or flop is None or mhz is None or isinstance(peak, Unknown):
        return
    made = gpu.sm_count.value * flop.value * mhz.value / 1e6
    if abs(made / peak - 1) > PEAK_TOLERANCE_RATIO:
        problem = f"{peak} TFLOPS, but SMs x FLOP per clock per SM x rated clock makes {made:.1f}"
        raise FactError(
            path, f"peak_tflops.{precision}", problem, hint="give the dense peak; the sparse one is twice it"
        )
