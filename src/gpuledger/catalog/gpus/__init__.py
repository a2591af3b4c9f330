"""Which GPUs do we know, which of them is meant by this name, and which may these figures be of?"""

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
from gpuledger.catalog.gpus import names
from gpuledger.catalog.gpus.facts import PEAK_TOLERANCE_RATIO, Achievable, Gpu, Link, Precision
from gpuledger.errors import FactError, InputError
from gpuledger.units import Unknown

__all__ = ["Achievable", "Gpu", "Link", "Precision", "find_gpu", "get_gpu", "gpus_like", "load_gpus", "proposed_gpus"]

FOLDER = data_dir("gpuledger.catalog", "data", "gpus")
POWER_TOLERANCE_W = 0.5
# Labels are in GiB, and drivers keep a part: 24,564 MiB of 24 GB, 81,559 of 80, 20,475 of 20; ECC in GDDR6 takes 1/16.
MEMORY_SEEN_RATIO = (0.90, 1.005)


@cache
def _by_text(plain: str) -> Gpu | None:
    """The GPU of the shipped file that spells this name out: reading one file takes a thirtieth of reading all."""
    wanted = names.squeezed(plain)
    for file, text in _texts().items():
        if any(f"{wanted}{end}" in text for end in ('"', "]", "=")):  # an alias, or the name of a family's table
            for gpu in _read_gpus(FOLDER / file):
                if plain in map(names.plain, gpu.spellings()):
                    return gpu
    return None


@cache
def _texts() -> dict[str, str]:
    """The shipped files by name, without what tools spell in different ways."""
    shipped = files.toml_files(FOLDER, "read GPU files")
    return {f.name: names.squeezed(f.read_text(encoding="utf-8")) for f in shipped}


class _Gpus(files.Catalog[Gpu]):
    @takes()
    def find(self, name: str, extra_dir: Path | None = None) -> Gpu | Unknown:
        """The GPU with exactly this key, name or alias (letter case, separators, maker aside), never a part of one."""
        quick = None if extra_dir or not name.strip() else _by_text(names.plain(name))
        found = quick or super().find(name, extra_dir)
        return Unknown(why) if isinstance(found, Unknown) and (why := names.not_one_board(name)) else found

    @takes()
    def get(self, name: str, extra_dir: Path | None = None) -> Gpu:
        """As `find`, for a name a person typed: an error with what to try instead where there is none."""
        if isinstance(found := self.find(name, extra_dir), Unknown) and names.not_one_board(name):
            raise InputError(found.why, hint="name the board: gpuledger catalog gpus lists them")
        return super().get(name, extra_dir)

    def suggest(self, name: str, extra_dir: Path | None = None) -> list[str]:
        """As in any catalog, whether or not the name begins with the maker's."""
        return super().suggest(names.without_brand(name), extra_dir)


def _read(file: Path) -> Iterator[tuple[str, str, Gpu]]:
    yield from (("key", gpu.key, gpu) for gpu in _read_gpus(file))


def _alike(name: str, gpu: Gpu) -> bool:
    """Another model is never a misspelling."""
    return names.same_model(name, gpu.spellings(), _words())


_CATALOG = _Gpus("GPU", FOLDER, _read, "is the key of two files", folded=names.plain, alike=_alike)
load_gpus, find_gpu, get_gpu = _CATALOG.load, _CATALOG.find, _CATALOG.get


@cache
def _words() -> frozenset[str]:
    """Every word that is in the name of some GPU."""
    return frozenset(w for gpu in load_gpus().values() for s in gpu.spellings() for w in names.words_of(s.casefold()))


@cache
def proposed_gpus() -> tuple[Gpu, ...]:
    """Those that advice and plans may propose instead of another."""
    return tuple(gpu for gpu in load_gpus().values() if gpu.proposed)


def gpus_like(default_limit_w: float, memory_mib: float) -> tuple[str, ...]:
    """Names of the GPUs with this default power limit and this total memory, as a driver reports them.

    Where the catalog has only one of the two figures of a GPU, that one decides; a GPU without both is left out.
    """
    return tuple(gpu.name for gpu in load_gpus().values() if _may_be(gpu, default_limit_w, memory_mib))


def _may_be(gpu: Gpu, default_limit_w: float, memory_mib: float) -> bool:
    fits = []
    if gpu.board_power_w:
        fits.append(abs(gpu.board_power_w.value - default_limit_w) <= POWER_TOLERANCE_W)
    if gpu.memory_bytes:
        low, high = MEMORY_SEEN_RATIO
        fits.append(low <= memory_mib / (gpu.memory_bytes.value / 1e9 * 1024) <= high)
    return bool(fits) and all(fits)


@cache
def _read_gpus(file: Path) -> tuple[Gpu, ...]:
    """The GPU of a file, or those of a family: [gpus] by name, and before them what they share."""
    path = str(file)
    raw = load_toml(file, dict[str, Any])
    legend = convert(raw.pop("sources", {}), dict[str, str], path)
    family = convert(raw.pop("gpus", {}), dict[str, dict[str, Any]], path)
    called = [{"key": name.casefold(), "name": name, **own} for name, own in family.items()]
    return tuple(_gpu_of(raw | own, legend, path) for own in called or [{}])


def _gpu_of(raw: dict[str, Any], legend: Mapping[str, str], path: str) -> Gpu:
    gpu = convert(_spell_out(_dated(raw), legend), Gpu, path)
    _check_names(gpu, path)
    _check_figures(gpu, path)
    reference = gpu.reference_precision()
    _check_peak(gpu, path, reference, gpu.tensor_flop_per_clk_sm.get(reference), gpu.tensor_rated_mhz)
    _check_peak(gpu, path, "fp32", gpu.fp32_flop_per_clk_sm, gpu.fp32_rated_mhz)
    return gpu


def _dated(raw: dict[str, Any]) -> dict[str, Any]:
    """The same data with each plain number as a figure of the GPU's own `source`, `as_of` and `verified`."""
    mark = {key: raw.pop(key) for key in ("source", "as_of", "verified") if isinstance(raw.get(key), str | bool)}

    def marked(key: str, value: Any) -> Any:
        if isinstance(value, dict) and key in ("peak_tflops", "tensor_flop_per_clk_sm"):
            return {precision: marked("", figure) for precision, figure in value.items()}
        if isinstance(value, dict) and "value" in value:
            return {**mark, **value}
        plain = isinstance(value, int | float) and key not in ("dies", "proposed")
        return {**mark, "value": value} if plain and mark else value

    return {key: marked(key, value) for key, value in raw.items()}


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
