"""Which measured factors turn a roofline into tokens per second, how far off are they, and how fast are the links?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

import msgspec

from gpuledger.catalog.files import Fact, data_dir, load_toml
from gpuledger.catalog.gpus import Gpu

GIGABIT = 1e9 / 8
Ratio = Annotated[float, msgspec.Meta(gt=0, le=1)]
AtLeastZero = Annotated[float, msgspec.Meta(ge=0)]


class ErrorSpread(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Predicted over measured tokens per second, of rows that were not used for calibration."""

    of: str
    rows: int
    p10: float
    p50: float
    p90: float

    def range_of(self, predicted: float) -> tuple[float, float]:
        """The range that was measured for a prediction, eight times out of ten."""
        return predicted / self.p90, predicted / self.p10


class _Calibrated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: str
    as_of: str
    calibrated_on: str
    held_out: str
    errors: tuple[ErrorSpread, ...]


class Decode(_Calibrated, frozen=True, kw_only=True):
    """What a decoding step loses."""

    memory_ratio: Ratio
    expert_memory_ratio: Ratio
    spread_experts: AtLeastZero
    compute_ratio: Ratio
    per_layer_s: AtLeastZero
    per_moe_layer_s: AtLeastZero
    per_collective_s: AtLeastZero
    per_sequence_s: AtLeastZero
    per_step_s: AtLeastZero


class Products(_Calibrated, frozen=True, kw_only=True):
    """What training or reading prompts loses: products below the peak, other traffic, launching a layer's kernels."""

    compute_ratio: Ratio
    memory_ratio: Ratio
    traffic_per_kept: AtLeastZero
    per_layer_s: AtLeastZero


class TracedFactors(_Calibrated, frozen=True, kw_only=True):
    """What a traced step loses: below the peaks, and in launching kernels and optimizer steps one by one."""

    compute_ratio: Ratio
    memory_ratio: Ratio
    depthwise_ratio: Ratio
    per_kernel_s: AtLeastZero
    per_tensor_s: AtLeastZero
    per_master_s: AtLeastZero


class Factors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All factors."""

    version: Literal[1]
    decode: Decode
    train: Products
    prefill: Products
    traced: TracedFactors


@cache
def factors() -> Factors:
    """The shipped factors."""
    return load_toml(data_dir("gpuledger.plan", "data", "efficiency_factors.toml"), Factors)


def spread(errors: tuple[ErrorSpread, ...], *names: str) -> ErrorSpread:
    """The first of these groups there is; the last name must be there."""
    by_name = {error.of: error for error in errors}
    return next(by_name[name] for name in names if name in by_name)


class LinkKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a collective reaches over one kind of link."""

    kind: str
    ratio: float
    source: str
    as_of: str
    verified: bool = True
    pairs_only: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    version: Literal[1]
    gpus_per_node: int
    link: tuple[LinkKind, ...]
    beyond_pairs: Fact
    node: Fact
    node_ratio: Fact


@dataclass(frozen=True)
class Way:
    """The way between the GPUs of a group: bytes per second that a collective reaches in one direction."""

    words: str
    bytes_per_s: float


@cache
def links() -> _File:
    """The shipped facts about links."""
    return load_toml(data_dir("gpuledger.plan", "data", "links.toml"), _File)


def way(gpu: Gpu, group: int, *, across: bool = False, in_node: int = 1, node_gbps: float | None = None) -> Way:
    """The way within a group of GPUs; `across` where it spans nodes, with `in_node` members in each.

    A ring enters and leaves a node once: members in one node share the bytes among their network adapters, and are
    then held up by the links within the node at most.
    """
    facts = links()
    if across or group > facts.gpus_per_node:
        out = _node_bytes_per_s(node_gbps) * facts.node_ratio.value * in_node
        return Way(network(node_gbps), min(out, _inside(gpu, in_node).bytes_per_s) if in_node > 1 else out)
    return _inside(gpu, group)


def network(node_gbps: float | None = None) -> str:
    """The network between nodes, in words."""
    return f"the network, {_node_bytes_per_s(node_gbps) / GIGABIT:g} Gb/s per GPU" + ("" if node_gbps else " assumed")


def _node_bytes_per_s(node_gbps: float | None) -> float:
    return node_gbps * GIGABIT if node_gbps else links().node.value / 2


def _inside(gpu: Gpu, group: int) -> Way:
    """The way within a node."""
    facts = links()
    kinds = {kind.kind: kind for kind in facts.link}
    link = gpu.link
    known = kinds.get(link.kind) if link else None
    if link is None or known is None or (known.pairs_only and group > 2):
        return Way("PCIe4 x16", facts.beyond_pairs.value / 2 * kinds["PCIe4 x16"].ratio)
    return Way(link.kind, link.bytes_per_s.value / 2 * known.ratio)


def all_reduce_s(bytes_each: float, group: int, over: Way) -> float:
    """A ring: each GPU sends and receives 2 (n - 1) / n of the bytes."""
    return 2 * (group - 1) / group * bytes_each / over.bytes_per_s if group > 1 else 0.0


def gather_s(bytes_whole: float, group: int, over: Way) -> float:
    """All-gather or reduce-scatter of the whole: (n - 1) / n of it passes each GPU."""
    return (group - 1) / group * bytes_whole / over.bytes_per_s if group > 1 else 0.0
