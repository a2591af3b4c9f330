"""Which GPUs do we know, and which of them is meant by this name?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from gpuledger.arguments import takes
from gpuledger.catalog import files
from gpuledger.catalog.files import Fact, convert, data_dir, load_toml
from gpuledger.catalog.gpus.facts import PEAK_TOLERANCE_RATIO, Achievable, Gpu, Link, Precision
from gpuledger.errors import FactError
from gpuledger.units import Unknown

__all__ = ["Achievable", "Gpu", "Link", "Precision", "find_gpu", "get_gpu", "load_gpus"]

FOLDER = data_dir("gpuledger.catalog", "data", "gpus")


@cache
def _by_text(folded: str) -> Gpu | None:
    """The GPU of the shipped file that spells this name out: reading one file takes a thirtieth of reading all."""
    for file, text in _texts().items():
        if f'"{folded}"' in text:
            gpu = _read_gpu(FOLDER / file)
            if folded in map(files.fold, gpu.spellings()):
                return gpu
    return None


@cache
def _texts() -> dict[str, str]:
    """The shipped files by name, folded as the names of GPUs are."""
    return {f.name: f.read_text(encoding="utf-8").casefold() for f in files.toml_files(FOLDER, "read GPU files")}


class _Gpus(files.Catalog[Gpu]):
    @takes()
    def find(self, name: str, extra_dir: Path | None = None) -> Gpu | Unknown:
        """The GPU with exactly this key, name or alias (case and outer blanks aside), never a part of one."""
        quick = None if extra_dir else _by_text(files.fold(name))
        return quick or super().find(name, extra_dir)


def _read(file: Path) -> Iterator[tuple[str, str, Gpu]]:
    gpu = _read_gpu(file)
    yield "key", gpu.key, gpu


_CATALOG = _Gpus("GPU", FOLDER, _read, "is the key of two files")
load_gpus, find_gpu, get_gpu = _CATALOG.load, _CATALOG.find, _CATALOG.get


@cache
def _read_gpu(file: Path) -> Gpu:
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
    folded = [files.fold(alias) for alias in gpu.aliases]
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
            raise FactError(path, field, f"{fact.value} is not above zero", hint="leave out what is unknown")
        if not fact.source.strip():
            raise FactError(path, field, f"source is {fact.source!r}", hint="say where the figure comes from")
        files.check_date(fact.as_of, path, field)


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
