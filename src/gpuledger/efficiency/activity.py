"""What of a line's pipe activity counts as which kind of work, in SQL and in plain arrays?

The kinds of tensor work are counted apart where the source tells them apart for all of the line.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

_SPLIT = "hmma_ms > 0 AND hmma_ms >= tensor_ms"
PIPES = {
    "matrix": f"CASE WHEN {_SPLIT} THEN hmma_ppm_mhz_ms ELSE tensor_ppm_mhz_ms END",
    "imma": f"CASE WHEN {_SPLIT} THEN imma_ppm_mhz_ms ELSE 0 END",
    "dfma": f"CASE WHEN {_SPLIT} THEN dfma_ppm_mhz_ms ELSE 0 END",
    "fp32": "fp32_ppm_mhz_ms",
    "fp16": "fp16_ppm_mhz_ms",
    "fp64": "fp64_ppm_mhz_ms",
}
_SELDOM = ("hmma", "imma", "dfma", "fp32", "fp16", "fp64")
COLUMNS = tuple(f"{pipe}_{unit}" for pipe in ("tensor", *_SELDOM) for unit in ("ms", "ppm_mhz_ms"))


def recorded(rows: Mapping[str, np.ndarray]) -> frozenset[str]:
    """The pipes that are recorded in some of these lines; the tensor pipe is always counted among them."""
    return frozenset(("tensor", *(pipe for pipe in _SELDOM if rows[f"{pipe}_ms"].any())))


def columns_of(pipes: frozenset[str]) -> tuple[str, ...]:
    """The columns of some pipes: those nobody recorded would cost a quarter of reading the lines."""
    return tuple(c for c in COLUMNS if c.split("_")[0] in pipes)


def pipe_sums(rows: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Activity x clock x ms by kind of work, and the time each stands on. Columns that were not read count as 0."""
    zero = np.zeros(len(rows["tensor_ms"]), dtype=np.int64)

    def of(name: str) -> np.ndarray:
        return rows.get(name, zero)

    tensor_ms, hmma_ms = rows["tensor_ms"], of("hmma_ms")
    vector_ms = of("fp32_ms")
    pipes = {p: of(f"{p}_ppm_mhz_ms") for p in ("fp32", "fp16", "fp64")}
    if "hmma_ms" not in rows:
        matrix = {"matrix": rows["tensor_ppm_mhz_ms"], "imma": zero, "dfma": zero}
        matrix_ms = tensor_ms
    else:
        apart = (hmma_ms > 0) & (hmma_ms >= tensor_ms)
        matrix = {"matrix": np.where(apart, of("hmma_ppm_mhz_ms"), rows["tensor_ppm_mhz_ms"])}
        matrix |= {p: np.where(apart, of(f"{p}_ppm_mhz_ms"), 0) for p in ("imma", "dfma")}
        matrix_ms = np.where(apart, hmma_ms, tensor_ms)
    without = np.maximum(np.maximum(vector_ms, of("fp16_ms")), of("fp64_ms"))
    counters_ms = np.where(matrix_ms > 0, matrix_ms, without)
    return {"counters_ms": counters_ms, "matrix_ms": matrix_ms, "vector_ms": vector_ms, **matrix, **pipes}
