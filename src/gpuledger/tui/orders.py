"""In which order do GPUs come, and which does a filter leave?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from gpuledger.units import Unknown, point_of

if TYPE_CHECKING:
    from decimal import Decimal

    from gpuledger.tui.fleet import GpuNow

Sort = Literal["waste", "cost", "util", "realized", "power", "memory", "name", "state", "owner"]
SORTS: tuple[Sort, ...] = ("waste", "cost", "util", "realized", "power", "memory", "name", "state", "owner")
NO_OWNER = "-"


def ordered(gpus: Sequence[GpuNow], sort: Sort, text: str = "") -> list[GpuNow]:
    """The GPUs a filter leaves: figures largest first, words by letter, unknown ones last, equal ones by place."""
    return sorted((g for g in gpus if matches(g, text)), key=lambda gpu: (_key(gpu, sort), gpu.place))


def matches(gpu: GpuNow, text: str) -> bool:
    """Whether every word of a filter is in one of the names, the state, the owners or the processes of a GPU."""
    running = () if isinstance(gpu.processes, Unknown) else gpu.processes
    words = [w for p in running for w in (p.program, p.user) if not isinstance(w, Unknown)]
    here = " ".join([gpu.name, gpu.device, gpu.gpu_model or "", gpu.state, *gpu.owners, *words]).casefold()
    return all(word in here for word in text.casefold().split())


def owner_text(gpu: GpuNow) -> str:
    """The owner with the most time, and how many more there are."""
    if not gpu.owners:
        return NO_OWNER
    return gpu.owners[0] if len(gpu.owners) == 1 else f"{gpu.owners[0]} +{len(gpu.owners) - 1}"


def _key(gpu: GpuNow, sort: Sort) -> tuple[bool, Any]:
    if sort in ("name", "state", "owner"):
        return False, {"name": gpu.place, "state": gpu.state, "owner": owner_text(gpu)}[sort]
    realized, waste = gpu.realized_pct, gpu.waste
    figures: dict[str, float | Decimal | Unknown] = {
        "util": gpu.util_pct, "power": gpu.power_w, "memory": gpu.memory_used_bytes, "cost": gpu.usd_per_h,
        "realized": point_of(realized),
        "waste": waste if isinstance(waste, Unknown) else waste.usd_per_h,
    }  # fmt: skip
    value = figures[sort]
    return (True, 0) if isinstance(value, Unknown) else (False, -value)
