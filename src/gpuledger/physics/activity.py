"""What of a line's pipe activity counts as which kind of work?

The kinds of tensor work are counted apart where the source tells them apart for all of the line.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

# Kinds of work: matrix products in floating point, in integers and in fp64, and vector work.
PIPES = ("matrix", "imma", "dfma", "fp32", "fp16", "fp64")
_SELDOM = ("hmma", "imma", "dfma", "fp32", "fp16", "fp64")
COLUMNS = tuple(f"{pipe}_{unit}" for pipe in ("tensor", *_SELDOM) for unit in ("ms", "ppm_mhz_ms"))
# What decides how much an active pipe does.
CONDITIONS = (
    "engine_ms", "engine_ppm_ms", "sm_ms", "sm_ppm_ms", "occupancy_ms", "occupancy_ppm_ms", "dram_ms", "dram_ppm_ms",
    "tensor_ms", "tensor_ppm_ms", "tensor_capped_ppm_ms", "throttle_ms", "clock_ms", "clock_mhz_ms", "unclocked_ms",
    "busy_ppm_ms", "integer_ms", "integer_ppm_ms", "fp32_ppm_ms",
)  # fmt: skip


def recorded(rows: Mapping[str, np.ndarray]) -> frozenset[str]:
    """The columns of pipes and conditions that hold anything in some of these lines."""
    return frozenset(c for c in (*COLUMNS, *CONDITIONS) if rows[c].any())


def pipe_sums(rows: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Activity x clock x ms by kind of work, and the time each covers. Columns that were not read count as 0."""
    zero = np.zeros(len(next(iter(rows.values()))), dtype=np.int64)

    def of(name: str) -> np.ndarray:
        return rows.get(name, zero)

    tensor_ms, hmma_ms = of("tensor_ms"), of("hmma_ms")
    vector_ms = of("fp32_ms")
    pipes = {p: of(f"{p}_ppm_mhz_ms") for p in ("fp32", "fp16", "fp64")}
    if "hmma_ms" not in rows:
        matrix = {"matrix": of("tensor_ppm_mhz_ms"), "imma": zero, "dfma": zero}
        matrix_ms = tensor_ms
    else:
        # One kind that is not recorded may be the one that works: the pipe as a whole shows it.
        apart = (hmma_ms > 0) & (np.minimum(np.minimum(hmma_ms, of("imma_ms")), of("dfma_ms")) >= tensor_ms)
        matrix = {"matrix": np.where(apart, of("hmma_ppm_mhz_ms"), of("tensor_ppm_mhz_ms"))}
        matrix |= {p: np.where(apart, of(f"{p}_ppm_mhz_ms"), 0) for p in ("imma", "dfma")}
        matrix_ms = np.where(apart, hmma_ms, tensor_ms)
    without = np.maximum(np.maximum(vector_ms, of("fp16_ms")), of("fp64_ms"))
    counters_ms = np.where(matrix_ms > 0, matrix_ms, without)
    return {"counters_ms": counters_ms, "matrix_ms": matrix_ms, "vector_ms": vector_ms, **matrix, **pipes}
