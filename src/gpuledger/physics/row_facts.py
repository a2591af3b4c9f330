"""By which rules and facts is a sample judged?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import msgspec
import numpy as np

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.physics.pipe_facts import Thin


class _Capped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit_below_board_ratio: float
    power_from_limit_ratio: float
    exceeded_ratio: float


class _Light(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    share_below_ratio: float


class _Copies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pcie_from_bytes_per_s: float


class _Video(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    util_from_ratio: float


class _Bursts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    power_above_idle_from_ratio: float


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The power a GPU draws idle, for its tensor pipe and for its memory at full activity."""

    idle_w: float
    tensor_w: float
    dram_w: float
    vector_from_w: float


class StateRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file."""

    version: int
    capped: _Capped
    light: _Light
    bursts: _Bursts
    copies: _Copies
    video: _Video
    budgets: dict[str, Budget]


@cache
def state_rules() -> StateRules:
    """The shipped rules."""
    return load_toml(data_dir(__package__, "data", "states.toml"), StateRules)


class KindFacts(msgspec.Struct, frozen=True):
    """What the catalog says of one GPU model and tensor precision; NaN where it says nothing.

    `per_activity`: share of the dense peak for each pipe at full activity, per MHz of the SM clock (middle estimate).
    """

    board_w: float
    idle_w: float
    rated_mhz: float
    per_activity: dict[str, float]
    budget: Budget | None
    thin: Thin | None = None


class RowFacts:
    """The facts of each row's GPU, spread over the rows when they are asked for: most never are.

    `codes`: the kind of each run of rows, None where all rows are of one; `lengths`: how many rows each run has.
    """

    def __init__(self, kinds: Sequence[KindFacts], codes: np.ndarray | None, lengths: np.ndarray) -> None:
        self._kinds, self._codes, self._lengths = kinds, codes, lengths

    def _by_row(self, values: Sequence[float]) -> np.ndarray:
        if self._codes is None:
            return np.full(int(self._lengths.sum()), values[0])
        return np.repeat(np.array(values)[self._codes], self._lengths)

    @cached_property
    def board_w(self) -> np.ndarray:
        """The board's own power limit."""
        return self._by_row([k.board_w for k in self._kinds])

    @cached_property
    def idle_w(self) -> np.ndarray:
        """The power of an idle board."""
        return self._by_row([k.idle_w for k in self._kinds])

    @cached_property
    def rated_mhz(self) -> np.ndarray:
        """The clock the peak is rated at."""
        return self._by_row([k.rated_mhz for k in self._kinds])

    def per_activity(self, pipe: str) -> np.ndarray | None:
        """The worth of a pipe; None where it is known for no row."""
        if not any(pipe in k.per_activity for k in self._kinds):
            return None
        return self._by_row([k.per_activity.get(pipe, np.nan) for k in self._kinds])

    def budget(self) -> dict[str, np.ndarray]:
        """What the parts of a board draw; empty where it is known for no row."""
        return self._named([k.budget for k in self._kinds], Budget.__struct_fields__)

    def thin(self) -> dict[str, np.ndarray]:
        """When a sample decodes or is in products alone; empty where it is known for no row."""
        return self._named([k.thin for k in self._kinds], Thin.__struct_fields__)

    def _named(self, facts: Sequence[Any], names: Sequence[str]) -> dict[str, np.ndarray]:
        if not any(facts):
            return {}
        return {n: self._by_row([getattr(f, n) if f else np.nan for f in facts]) for n in names}
