"""In which precision do the matrix products of a step run, as torch's dispatcher shows them?

The weights do not tell: autocast converts operands on the way to each product, wherever it is switched on (in the loop,
in the model's own forward pass, by accelerate or Lightning). The dispatcher shows the operands as the kernel gets them.
For fp32 operands on a GPU, torch's own switches say whether the kernel may round them to TF32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuledger.units import Unknown

# What torch calls a type of number, and what the catalog does.
_NAMES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64", "int8": "int8"}
_SHORT_NAMES = {"float8": "fp8", "float4": "fp4"}
# These add their product to their first argument: the operands come after it.
_ADDED_TO_FIRST = frozenset({"addmm", "baddbmm", "addbmm", "_addmm_activation"})
# Less than this of the FLOPs is left out: positions of rotary embeddings are multiplied in fp32 by most models.
NEGLIGIBLE_RATIO = 1e-4
# TF32 needs tensor cores of this generation.
_TF32_FROM = (8, 0)


class Precisions:
    """FLOPs of the products by the precision they ran in."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._flop: dict[str, float] = {}
        self._has_tf32: dict[Any, bool] = {}

    def saw(self, name: str, args: Sequence[Any], flop: float) -> None:
        """A product with its arguments, as dispatched."""
        place = 1 if name in _ADDED_TO_FIRST else 0
        operand = args[place] if place < len(args) else None
        dtype = getattr(operand, "dtype", None)
        if dtype is None or operand is None:
            return
        found = name_of(dtype)
        if found == "fp32" and operand.device.type == "cuda" and self._in_tf32(name, operand.device):
            found = "tf32"
        self._flop[found] = self._flop.get(found, 0.0) + flop

    def _in_tf32(self, name: str, device: Any) -> bool:
        if "attention" in name:
            return False  # fused attention of fp32 operands keeps their precision, whatever the switches say
        if device not in self._has_tf32:
            self._has_tf32[device] = self._torch.cuda.get_device_capability(device) >= _TF32_FROM
        return self._has_tf32[device] and tf32_allowed(self._torch, convolution="conv" in name)

    def ratios(self) -> dict[str, float] | Unknown:
        """The share of the FLOPs by precision, largest first."""
        whole = sum(self._flop.values())
        if not whole:
            return Unknown("the counted step held no matrix product that torch knows")
        kept = {name: flop for name, flop in self._flop.items() if flop >= NEGLIGIBLE_RATIO * whole}
        return {name: kept[name] / sum(kept.values()) for name in sorted(kept, key=lambda name: -kept[name])}


def most_of(ratios: Mapping[str, float] | Unknown) -> str | Unknown:
    """The precision of most FLOPs."""
    return ratios if isinstance(ratios, Unknown) else max(ratios, key=lambda name: ratios[name])


def tf32_allowed(torch: Any, *, convolution: bool = False) -> bool:
    """Whether torch lets products of fp32 operands, or convolutions, run in TF32 on a GPU that has it."""
    backends = torch.backends
    by_cudnn = convolution and backends.cudnn.enabled
    try:
        # From torch 2.9 on. The older switch cannot be read once this one has been set.
        newer = backends.cudnn.conv if by_cudnn else backends.cuda.matmul
        return bool(newer.fp32_precision == "tf32")
    except AttributeError:
        older = backends.cudnn if by_cudnn else backends.cuda.matmul
        return bool(older.allow_tf32)


def name_of(dtype: Any) -> str:
    """The catalog's name of torch's type; torch's own where the catalog has none."""
    text = str(dtype).removeprefix("torch.")
    return _NAMES.get(text) or next((name for start, name in _SHORT_NAMES.items() if text.startswith(start)), text)
