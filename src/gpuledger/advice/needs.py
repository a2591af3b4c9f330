"""How much work must another GPU do, pipe by pipe, and how full would its pipes be?

A GPU has one peak per pipe and precision: 43 TFLOPS on the fp32 vector pipe do not fit into a GPU with 19.5 there,
however fast its tensor pipe is. Precisions of the tensor pipe share it, so their shares add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.gpus.facts import VECTOR_PRECISIONS
from gpuledger.units import Unknown

Pipe = Literal["tensor", "fp32", "fp64"]
# A pipe that is active for less of its time than this does not decide where a job can run.
MATTERS_FROM_RATIO = 0.01
PIPES_NOT_RECORDED = Unknown(
    "which pipes are busy is not recorded; enable DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, DCGM_FI_PROF_PIPE_FP32_ACTIVE, "
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE and DCGM_FI_PROF_PIPE_FP16_ACTIVE, with DCGM_FI_DEV_SM_CLOCK"
)


@dataclass(frozen=True)
class Need:
    """TFLOPS of one precision while working. Not `known`: the precision is the present GPU's reference precision."""

    precision: str
    tflops: float
    known: bool = True

    @property
    def pipe(self) -> Pipe:
        """The pipe that does it."""
        if self.precision not in VECTOR_PRECISIONS:
            return "tensor"
        return "fp64" if self.precision == "fp64" else "fp32"


@dataclass(frozen=True)
class Filled:
    """How full one pipe of a GPU would be."""

    pipe: Pipe
    ratio: float
    words: str


def filled(needs: Iterable[Need], gpu: Gpu) -> tuple[Filled, ...] | Unknown:
    """Each needed pipe of a GPU, the fullest first; Unknown where the catalog has no peak for it."""
    parts: dict[Pipe, list[tuple[float, str]]] = {}
    for need in needs:
        precision = need.precision if need.known else gpu.reference_precision()
        peak = gpu.peak(precision)
        if isinstance(peak, Unknown):
            return Unknown(f"{gpu.name} has no {precision} peak in the catalog, and the job does {precision}")
        words = f"{_figure(need.tflops)} of {_figure(peak)} {precision} TFLOPS"
        parts.setdefault(need.pipe, []).append((need.tflops / peak, words))
    found = [
        Filled(pipe, sum(r for r, _ in members), " + ".join(w for _, w in sorted(members, reverse=True)))
        for pipe, members in parts.items()
    ]
    return tuple(sorted(found, key=lambda f: (-f.ratio, f.pipe)))


def _figure(tflops: float) -> str:
    return f"{tflops:,.0f}" if tflops >= 100 else f"{tflops:.1f}"
