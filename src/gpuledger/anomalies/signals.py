"""What is compared, and from when on is a difference worth naming?"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from gpuledger.catalog.files import data_dir, load_toml

Form = Literal["ratio", "points", "level"]
SignalName = Literal[
    "clock", "work", "memory", "power", "limit", "util", "working", "heat", "throttled", "capped"
]  # fmt: skip
CountName = Literal["xid_events", "pcie_replays", "rows_remapped", "row_remap_failures"]


class Signal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reading that is compared hour by hour. `names`: whether it can name a GPU; others explain why one is named."""

    name: SignalName
    title: str
    unit: str
    form: Form
    worse: Literal["low", "high"]
    least: float
    noise: float
    hardware: bool
    names: bool = True

    @property
    def sign(self) -> int:
        """1 where more is worse, -1 where less is."""
        return 1 if self.worse == "high" else -1


class CountKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events that are counted."""

    name: CountName
    title: str
    least: int
    floor_per_1000_h: float
    burst: float


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is compared and how sure a finding must be.

    `false_findings_ratio`: the share of believed changes that may be chance; `false_levels_ratio`: the same of
    differences that last from the first sample on. `peers_from`: fewest other GPUs on the same work in an hour.
    `blocks_from`: fewest periods a change is looked for in. `own_days_from`: the same in days, for a GPU without peers.
    `level_freedom`: how many GPUs more than its peers the usual distance between GPUs is known from. `seen_from_ms`:
    least time of an hour that counts. `still_ratio`: the part of a change that must last to the end.
    """

    version: int
    false_findings_ratio: float
    false_levels_ratio: float
    peers_from: int
    blocks_from: int
    own_days_from: int
    level_freedom: int
    seen_from_ms: int
    blocks_most: int
    still_ratio: float
    signals: tuple[Signal, ...]
    counts: tuple[CountKind, ...]

    def signal(self, name: SignalName) -> Signal:
        """One of them."""
        return next(s for s in self.signals if s.name == name)


@cache
def rules() -> Rules:
    """The rules as shipped."""
    return load_toml(data_dir(__package__, "data", "signals.toml"), Rules)
