"""How fully does an active tensor pipe issue on this architecture?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.errors import FactError
from gpuledger.units import Unknown


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One recording: FLOP/s that ran over activity x SMs x FLOP per clock per SM x SM clock."""

    workload: str
    precision: str
    ratio: float


class IssueRatio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of its FLOPs that a tensor pipe does while its counter says active, as a range."""

    low: float
    middle: float
    high: float
    source: str
    as_of: str
    note: str = ""
    measured: tuple[Measured, ...] = ()


class _Architecture(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tensor_issue_ratio: IssueRatio


def issue_ratio(architecture: str) -> IssueRatio | Unknown:
    """The measured range for an architecture by its exact name, or unknown where nobody measured it."""
    found = _ratios().get(architecture.strip().casefold())
    return found or Unknown(f"how fully an active tensor pipe issues has not been measured on {architecture}")


@cache
def _ratios() -> Mapping[str, IssueRatio]:
    file = data_dir("gpuledger.catalog", "data", "architectures.toml")
    ratios = {k.casefold(): a.tensor_issue_ratio for k, a in load_toml(file, dict[str, _Architecture]).items()}
    for name, ratio in ratios.items():
        check(ratio, str(file), name)
    return MappingProxyType(ratios)


def check(ratio: IssueRatio, path: str, architecture: str) -> None:
    """A share of the pipe is above zero, at most one, and in order."""
    if not 0 < ratio.low <= ratio.middle <= ratio.high <= 1:
        problem = f"low {ratio.low}, middle {ratio.middle}, high {ratio.high}"
        raise FactError(
            path, f"{architecture}.tensor_issue_ratio", problem, hint="make it 0 < low <= middle <= high <= 1"
        )
