"""Which GPUs does the table show, in which order, and what is in a row?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuledger.advice.statement import AuditStatement
from gpuledger.cost.judged import at_least, known_waste
from gpuledger.cost.statement import GpuCost
from gpuledger.efficiency.naming import gpu_name, sort_name
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow
from gpuledger.errors import UnknownName
from gpuledger.lake.batch import device_name
from gpuledger.units import Unknown, count, known, point_of
from gpuledger.web.contract import SORTS

PER_PAGE = 100


def order_of(asked: str) -> str:
    """The order asked for, by waste where none is."""
    if asked and asked not in SORTS:
        raise UnknownName("order", asked, SORTS)
    return asked or "waste"


@dataclass(frozen=True)
class GpuLine:
    """One row of the table: what a GPU or a MIG slice did, what it cost, how busy it was in the last hours.

    `observed`: whether a sample shows it. What no slice of a board pays for and a GPU that only a bill names have none.
    """

    device: str
    name: str
    place: str
    gpu_model: str
    namespace: str
    klass: str
    util_pct: float | None
    realized_pct: float | None
    power_w: float | None
    idle_h: float | None
    paid_usd: float | None
    waste_usd: float | None
    waste_at_least: bool
    recent: tuple[float | None, ...]
    owners: tuple[str, ...] = ()
    observed: bool = True
    slice: str = ""

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
        here = (self.name, self.device, self.gpu_model, self.namespace, self.klass, *self.owners)
        return any(text.casefold() in word.casefold() for word in here)

    @property
    def board(self) -> str:
        """The GPU it is, or is a slice of."""
        return self.device.removesuffix(f"/{self.slice}") if self.slice else self.device

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


@dataclass(frozen=True)
class Around:
    """What is known of GPUs from elsewhere, by device: how busy each was lately, and all of its owners."""

    recent: Mapping[str, Sequence[float | None]]
    owners: Mapping[str, Sequence[str]]


def gpu_lines(audit: AuditStatement, efficiency: EfficiencyStatement, around: Around) -> list[GpuLine]:
    """All GPUs of the scope: those with samples, then what is paid for without any."""
    costs = {(c.gpu_uuid, c.gpu_instance_id): c for c in audit.cost.by_gpu}
    seen = {(row.gpu_uuid, row.gpu_instance_id) for row in efficiency.per_gpu}
    boards = {uuid for uuid, _ in seen}
    lines = [_gpu_line(row, costs.get((row.gpu_uuid, row.gpu_instance_id)), around) for row in efficiency.per_gpu]
    return lines + [_unobserved(cost, cost.gpu_uuid in boards) for key, cost in costs.items() if key not in seen]


def _gpu_line(row: GpuRow, cost: GpuCost | None, around: Around) -> GpuLine:
    device, counters = device_name(row.gpu_uuid, row.gpu_instance_id), row.means.rfu_counters_pct
    idle, held = known(row.idle_h), known(row.idle_held_h)
    return GpuLine(
        device, gpu_name(row, row.gpu_instance_id), sort_name(row), row.gpu_model or "", row.namespace or "",
        row.klass, known(row.means.gpu_util_pct), known(point_of(counters)),
        known(row.means.power_w), None if idle is None or held is None else idle + held, *_dollars(cost),
        tuple(around.recent.get(device, ())), tuple(around.owners.get(device, ())), slice=row.gpu_instance_id or "",
    )  # fmt: skip


def _unobserved(cost: GpuCost, sliced: bool) -> GpuLine:
    """Time that is paid for and that no sample shows: the rest of a board cut into slices, or a whole GPU."""
    name = gpu_name(cost, cost.gpu_instance_id)
    return GpuLine(
        device_name(cost.gpu_uuid, cost.gpu_instance_id), f"{name}, not in a slice" if sliced else name,
        sort_name(cost), cost.gpu_model or "", "", "unobserved", None, None, None, None, *_dollars(cost), (),
        observed=False, slice=cost.gpu_instance_id or "",
    )  # fmt: skip


def _dollars(cost: GpuCost | None) -> tuple[float | None, float | None, bool]:
    """Paid, wasted, and whether more may be wasted than is known."""
    if cost is None or isinstance(cost.dollars, Unknown):
        return None, None, False
    waste = known(known_waste(cost.dollars))
    return float(cost.dollars.paid_usd), None if waste is None else float(waste), at_least(cost.dollars)


def chosen_lines(lines: Iterable[GpuLine], text: str, sort: str) -> list[GpuLine]:
    """The GPUs a filter leaves, in order."""
    return sorted((line for line in lines if line.matches(text)), key=lambda line: (line.key(sort), line.place))


def headline(found: Sequence[GpuLine]) -> str:
    """The GPU that wastes the most."""
    top = max(found, key=lambda line: line.waste_usd or 0.0, default=None)
    if top is None or not top.waste_usd:
        return count(boards(found), "GPU")
    least = "at least " if top.waste_at_least else ""
    return f"{top.name} wastes the most: {least}${top.waste_usd:,.2f} of ${top.paid_usd:,.2f}"


def boards(lines: Iterable[GpuLine]) -> int:
    """How many GPUs; the slices of one board are one GPU, as everywhere."""
    return len({line.board for line in lines})


def caption(found: Sequence[GpuLine], whole: Sequence[GpuLine]) -> str:
    """How many GPUs the table shows, and how many rows where some are slices."""
    gpus, rows = count(boards(whole), "GPU"), ""
    part = f"{boards(found):,} of {gpus}" if len(found) < len(whole) else gpus
    if len(found) != boards(found):
        rows = f", {count(len(found), 'row')}: each MIG slice has its own"
    return f"{part}{rows}"
