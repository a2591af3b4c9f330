"""When did each owner's share of a device draw its energy, and how busy was it then?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuledger.cost.charges import Charge
from gpuledger.cost.pieces import OWNER
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, PPM, Unknown

# Board, MIG instance, cluster, namespace, workload.
Holder = tuple[str | None, ...]
_NUMBERS = ("util_ms", "util_ppm_ms", "energy_mj")
NO_UTIL = Unknown("utilization is not recorded")


@dataclass(frozen=True)
class Readings:
    """Sums by holder and start of the step (an hour or a day)."""

    step_ms: int
    util_ms: Mapping[tuple[Holder, int], int] = field(default_factory=dict)
    util_ppm_ms: Mapping[tuple[Holder, int], int] = field(default_factory=dict)
    energy_mj: Mapping[Holder, Mapping[int, int]] = field(default_factory=dict)

    def util_pct(self, holder: Holder, at_ms: int) -> float | Unknown:
        """Mean utilization in one step."""
        known = self.util_ms.get((holder, at_ms), 0)
        return 100 * self.util_ppm_ms[holder, at_ms] / PPM / known if known else NO_UTIL

    def drawn(self, charge: Charge) -> Mapping[int, int] | None:
        """The energy of a charge's holder by step; of a die that another one reports for, its steps weigh alike."""
        found = self.energy_mj.get(holder_of(charge))
        if found and charge.sums.get("energy_mj", 0) and not any(found.values()):
            return dict.fromkeys(found, 1)
        return found


def holder_of(charge: Charge) -> Holder:
    """Whose readings a charge is about."""
    device = charge.device
    return device.gpu_uuid, device.gpu_instance_id, charge.cluster, charge.namespace, charge.workload


def read_readings(books: Books, *, hourly: bool) -> Readings:
    """The sums of a window, by hour or by day."""
    step, sums = MS_PER_HOUR if hourly else MS_PER_DAY, Accumulator()
    for _, rows in books.blocks(OWNER, _NUMBERS, hourly=hourly):
        keys = [*(rows[c] for c in (*schema.DEVICE, *OWNER)), rows["hour_ms"] // step]
        sums.add(keys, {c: rows[c] for c in _NUMBERS})
    keys, columns = sums.total()
    if not keys:
        return Readings(step)
    texts = [books.names[c].text(k) for c, k in zip((*schema.DEVICE, *OWNER), keys[:-1], strict=True)]
    holders, starts = list(zip(*texts, strict=True)), (keys[-1] * step).tolist()
    whole = {c: v.tolist() for c, v in columns.items()}
    energy: dict[Holder, dict[int, int]] = {}
    for holder, start, drawn in zip(holders, starts, whole["energy_mj"], strict=True):
        energy.setdefault(holder, {})[start] = int(drawn)
    util = {
        name: {(h, s): int(v) for h, s, v in zip(holders, starts, whole[name], strict=True)}
        for name in ("util_ms", "util_ppm_ms")
    }
    return Readings(step, util["util_ms"], util["util_ppm_ms"], energy)
