"""Which figures does the answer have to "which GPUs should be given back first"?"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from gpuledger.cost.inventories.findings import InventoryUse
from gpuledger.encode import Json
from gpuledger.units import Unknown

Figure = float | Unknown
# Why a GPU cannot be judged.
Reason = Literal["not sampled", "silent", "mostly unobserved", "activity not recorded"]
REASONS: dict[Reason, str] = {
    "not sampled": "paid for, but in no sample of the window",
    "silent": "no samples for the last hour of the window or longer: it may be gone already",
    "mostly unobserved": "no samples for half of the paid time or more",
    "activity not recorded": "its samples have neither activity nor utilization",
}


@dataclass(frozen=True)
class IdleGpu:
    """One GPU that hardly works, or has stopped working, and what shows it.

    `since_ms`: the start of the idle stretch that lasts to the end of the window, which may lie before the window; None
    where it worked at the end. `since_unobserved_h`: the part of that stretch without samples. `longest_*`: its longest
    stretch within the window. `idle_usd_per_month` is what is paid for its idle time (`idle_usd`: in the window),
    `usd_per_month` for all of its time. `rules`: the rules of advice that apply. `memory_known`: whether the samples
    say if memory was held. `gpu` is what people call it: host and index.
    """

    gpu: str
    gpu_uuid: str
    host: str | None
    gpu_index: str | None
    gpu_model: str | None
    cluster: str | None
    owner: str
    other_owners: int
    idle_usd_per_month: Decimal | Unknown
    usd_per_month: Decimal | Unknown
    since_ms: int | None
    since_unobserved_h: float
    from_first_sample: bool
    longest_start_ms: int | None
    longest_end_ms: int | None
    idle_h: float
    idle_held_h: float
    worked_h: float
    unobserved_h: float
    util_pct: Figure
    power_w: Figure
    memory_known: bool
    confidence: str
    rules: tuple[str, ...]
    why: str
    idle_usd: Decimal | Unknown

    @property
    def quiet_h(self) -> float:
        """All idle time, with memory held or not."""
        return self.idle_h + self.idle_held_h


@dataclass(frozen=True)
class NotJudged:
    """A GPU whose idleness is unknown."""

    gpu: str
    gpu_uuid: str
    host: str | None
    gpu_index: str | None
    reason: Reason
    paid_h: float
    unobserved_h: float

    def as_json(self) -> Json:
        """With the reason in words."""
        return {**vars(self), "why": REASONS[self.reason]}


@dataclass(frozen=True)
class Left:
    """GPUs that idle but are not proposed: how many, and what is paid per month for their idle time."""

    gpus: int
    idle_usd_per_month: Decimal | Unknown


@dataclass(frozen=True)
class GiveBack:
    """The GPUs to give back first, the most dollars for idle time first.

    `found` is how many there are in all, `give_back` the first of them. `in_use`: idle for much of the time, but at
    work in between. `committed`: idle too, but reserved or owned, so that giving them back saves nothing. `unmatched`:
    what the inventory lists and no sample of the lake is of. `idle_usd`: of the window, for the GPUs listed.
    """

    start_ms: int
    end_ms: int
    gpus: int
    asked: int
    found: int
    idle_usd_per_month: Decimal | Unknown
    usd_per_month: Decimal | Unknown
    all_idle_usd_per_month: Decimal | Unknown
    give_back: tuple[IdleGpu, ...]
    in_use: Left
    committed: Left
    not_judged: tuple[NotJudged, ...]
    unmatched: tuple[str, ...]
    assumptions: tuple[str, ...]
    idle_usd: Decimal | Unknown
    inventory: InventoryUse | None = None
