"""What does a batch plan state? Where and when each job runs, dollars, deadlines, and what queues would do."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from gpuledger.plan.outcome import Refused, UsdRange
from gpuledger.units import Unknown


class Proof(StrEnum):
    """How good the plan is known to be."""

    OPTIMAL = "optimal"
    GAP = "gap"
    NONE = "none"


@dataclass(frozen=True)
class Piece:
    """A stretch of time a job runs without a break."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class Placement:
    """Where and when a job runs. `wait_h`: from when it may start; `usd`: what its hours cost, 0 on reserved pools."""

    job: str
    pool: str
    gpu: str
    gpus: int
    start_ms: int
    end_ms: int
    deadline_ms: int | None
    run_h: float
    wait_h: float
    late_h: float
    usd: Decimal
    preemptible: bool
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class PoolUse:
    """What a pool is used for: `usd` of the hours used, or on a reserved pool of all hours."""

    pool: str
    gpu: str
    gpus: int
    terms: str
    usd_per_gpu_h: Decimal
    jobs: int
    gpu_h: float
    used_pct: float
    usd: Decimal
    dated: str


@dataclass(frozen=True)
class Outcome:
    """What one way to run the jobs comes to. `more_usd`: compared with the plan."""

    name: str
    usd: Decimal
    jobs: int
    met: int
    missed: int
    late_h: float
    mean_wait_h: float
    more_usd: Decimal


@dataclass(frozen=True)
class Load:
    """GPUs of a pool in use in one step of the plan, and the price then."""

    pool: str
    start_ms: int
    gpus: int
    usd_per_gpu_h: float


@dataclass(frozen=True)
class BatchPlan:
    """A whole plan. `bound_usd`: no plan that meets all deadlines costs less; `gap_pct`: of the plan's dollars."""

    headline: str
    start_ms: int
    end_ms: int
    step_min: float
    chosen: Outcome
    runners_up: tuple[Outcome, ...]
    usd: UsdRange | Decimal
    bound_usd: Decimal | Unknown
    gap_pct: float | Unknown
    proof: Proof
    windows: int
    pools: tuple[PoolUse, ...]
    placements: tuple[Placement, ...]
    loads: tuple[Load, ...]
    refused: tuple[Refused, ...]
    assumptions: tuple[str, ...]
    prices_dated: str
    read_as: tuple[str, ...]

    @property
    def fifo(self) -> Outcome:
        """What first come, first served would do."""
        return self.runners_up[0]

    @property
    def proof_words(self) -> str:
        """How near the plan is to the cheapest there can be."""
        if self.proof is Proof.OPTIMAL:
            return "Proven: no plan on this grid of time steps costs less"
        if isinstance(self.gap_pct, Unknown):
            return f"How near it is to the cheapest plan is {self.gap_pct}"
        return f"At most {self.gap_pct:.1f} % above the cheapest plan there can be"


def dollars(value: Decimal) -> str:
    """Dollars, without cents from a hundred on."""
    return f"${value:,.0f}" if abs(value) >= 100 else f"${value:,.2f}"
