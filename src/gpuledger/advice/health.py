"""Is a GPU of the case failing, hot or held down?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuledger.units import Unknown

NOT_RECORDED = Unknown("the reasons for held-down clocks are not recorded")


@dataclass(frozen=True)
class Health:
    """Faults counted over the window, and the share of the time clocks were held down."""

    xid_events: int = 0
    rows_remapped: int = 0
    row_remap_failures: int = 0
    pcie_replays: int = 0
    thermal_ratio: float | Unknown = NOT_RECORDED
    power_capped_ratio: float | Unknown = NOT_RECORDED


def health_of(sums: Mapping[str, Any]) -> Health:
    """From sums over all of the time."""
    known = sums["throttle_ms"]
    return Health(
        int(sums["xid_events"]),
        int(sums["rows_remapped"]),
        int(sums["row_remap_failures"]),
        int(sums["pcie_replays"]),
        sums["thermal_ms"] / known if known else NOT_RECORDED,
        sums["power_capped_ms"] / known if known else NOT_RECORDED,
    )
