"""Which GPUs does the table show, in which order, and what is in a row?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpuledger.advice.statement import AuditStatement
from gpuledger.cost.statement import GpuCost
from gpuledger.efficiency.naming import gpu_name, sort_name
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow
from gpuledger.lake.batch import device_name
from gpuledger.units import Unknown, count, known

PER_PAGE = 100
SORTS = {
    "waste": "wasted", "paid": "paid", "util": "utilization", "realized": "realized", "idle": "idle", "power": "power",
    "name": "name",
}  # fmt: skip


def order_of(asked: str) -> str:
    """The order asked for; by waste if the name is unknown."""
    return asked if asked in SORTS else "waste"


@dataclass(frozen=True)
class GpuLine:
    """One GPU of the table: what it did, what it cost, how busy it was in the last hours."""

    device: str
    name: str
    place: str
    gpu_model: str
    namespace: str
    klass: str
    util_pct: float | None
    realized_pct: float | None
    power_w: float | None
    idle_h: float
    paid_usd: float | None
    waste_usd: float | None
    recent: tuple[float | None, ...]

    def key(self, sort: str) -> tuple[bool, Any]:
        """What it sorts by: the largest first, names by letter, unknown figures last."""
        if sort == "name":
            return False, self.place
        fields = {
            "waste": self.waste_usd, "util": self.util_pct, "realized": self.realized_pct, "power": self.power_w,
            "idle": self.idle_h, "paid": self.paid_usd,
        }  # fmt: skip
        value = fields[sort]
        return value is None, -(value or 0.0)

    def matches(self, text: str) -> bool:
        """Whether a filter's text is in one of its names."""
        here = (self.name, self.device, self.gpu_model, self.namespace, self.klass)
        return any(text.casefold() in word.casefold() for word in here)

    def points(self, wide: float = 96.0, tall: float = 22.0) -> list[str]:
        """Its last hours as lines of a small picture; a new one after each hole."""
        step = wide / max(len(self.recent) - 1, 1)
        lines: list[list[str]] = [[]]
        for i, value in enumerate(self.recent):
            if value is None:
                lines.append([])
            else:
                lines[-1].append(f"{i * step:.1f},{tall - 1 - value / 100 * (tall - 2):.1f}")
        return [" ".join(line) for line in lines if line]


def gpu_lines(
    audit: AuditStatement, efficiency: EfficiencyStatement, recent: dict[str, list[float | None]]
) -> list[GpuLine]:
    """All GPUs of the scope."""
    costs = {(c.gpu_uuid, c.gpu_instance_id): c for c in audit.cost.by_gpu}
    return [_gpu_line(row, costs.get((row.gpu_uuid, row.gpu_instance_id)), recent) for row in efficiency.per_gpu]


def _gpu_line(row: GpuRow, cost: GpuCost | None, recent: dict[str, list[float | None]]) -> GpuLine:
    device, dollars = device_name(row.gpu_uuid, row.gpu_instance_id), None if cost is None else known(cost.dollars)
    counters = row.means.rfu_counters_pct
    return GpuLine(
        device, gpu_name(row, row.gpu_instance_id), sort_name(row), row.gpu_model or "", row.namespace or "",
        row.klass, known(row.means.gpu_util_pct), None if isinstance(counters, Unknown) else counters.middle,
        known(row.means.power_w), row.idle_h + row.idle_held_h,
        None if dollars is None else float(dollars.paid_usd), None if dollars is None else float(dollars.waste_usd),
        tuple(recent.get(device, ())),
    )  # fmt: skip


def chosen_lines(lines: Iterable[GpuLine], text: str, sort: str) -> list[GpuLine]:
    """The GPUs a filter leaves, in order."""
    return sorted((line for line in lines if line.matches(text)), key=lambda line: (line.key(sort), line.place))


def headline(found: Sequence[GpuLine]) -> str:
    """The GPU that wastes the most."""
    top = max(found, key=lambda line: line.waste_usd or 0.0, default=None)
    if top is None or not top.waste_usd:
        return count(len(found), "GPU")
    return f"{top.name} wastes the most: ${top.waste_usd:,.2f} of ${top.paid_usd:,.2f}"
