"""Which figures does the energy statement have?

Energy is that of the GPU boards, as recorded; carbon has the building's share (PUE) on top. Carbon of energy whose
place is unknown is in no figure; `unplaced_kwh` reports how much energy that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from gpuledger.encode import Json, iso
from gpuledger.ledger.read.owners import By
from gpuledger.units import Range, Unknown


@dataclass(frozen=True)
class EnergyRow:
    """One owner, or the whole fleet: dollars, energy and carbon of the same charges.

    `unpriced_gpus` are in no dollar figure, `unmetered_gpus` in no energy figure. `waste_at_least`: more may be wasted.
    """

    name: str
    gpus: int
    paid_h: float
    paid_usd: Decimal | Unknown
    waste_usd: Decimal | Unknown
    energy_kwh: float | Unknown
    carbon_kg: Range | Unknown
    unplaced_kwh: float = 0.0
    unpriced_gpus: int = 0
    unmetered_gpus: int = 0
    waste_at_least: bool = False


@dataclass(frozen=True)
class RegionEnergy:
    """One place, or one reason for which the place is unknown. `pue_own`: the cloud's own PUE, not the average.

    `factor_note`: who published the figures.
    """

    name: str
    country: str
    gpus: int
    energy_kwh: float | Unknown
    g_per_kwh: Range | Unknown
    pue: float | Unknown
    pue_own: bool
    carbon_kg: Range | Unknown
    factor_note: str


@dataclass(frozen=True)
class HourEnergy:
    """What one place drew and emitted in one hour."""

    start_ms: int
    region: str
    energy_kwh: float
    carbon_kg: Range | Unknown


@dataclass(frozen=True)
class EnergyStatement:
    """Energy and carbon of one window next to its dollars. `carbon_file`: the hourly file, where one was given.

    `by_hour_pct`: the share of the placed energy whose carbon comes from that file.
    """

    start_ms: int
    end_ms: int
    fleet: EnergyRow
    by: By
    by_owner: tuple[EnergyRow, ...]
    by_region: tuple[RegionEnergy, ...]
    assumptions: tuple[str, ...]
    by_hour: tuple[HourEnergy, ...] = ()
    carbon_file: str = ""
    by_hour_pct: float | Unknown = Unknown("no hourly file was given")  # noqa: RUF009  (frozen, so one for all is safe)

    def as_json(self) -> Json:
        """The fleet's figures first."""
        head: Json = {"start_ms": self.start_ms, "start_utc": iso(self.start_ms), "end_ms": self.end_ms}
        head |= {"end_utc": iso(self.end_ms), **{k: v for k, v in vars(self.fleet).items() if k != "name"}}
        return head | {k: v for k, v in vars(self).items() if k not in {*head, "fleet"}}
