"""What did one GPU do hour by hour, what did it cost, what did it draw, and does it report faults?"""

from __future__ import annotations

from dataclasses import dataclass

from gpuledger.advice.statement import AuditStatement
from gpuledger.cost.statement import GpuCost
from gpuledger.efficiency.gpu_history import GpuHistory
from gpuledger.efficiency.health import HealthRow
from gpuledger.efficiency.statement import EfficiencyStatement, GpuRow
from gpuledger.encode import Json


@dataclass(frozen=True)
class OneGpu:
    """One GPU or MIG slice over a window, as all statements of that window show it.

    `row` and `cost` are None where no figure holds it. `health` is that of its board, None without faults or heat.
    `end_ms`: where the window ends, which its own samples may not reach.
    """

    history: GpuHistory
    row: GpuRow | None
    cost: GpuCost | None
    health: HealthRow | None
    end_ms: int

    def as_json(self) -> Json:
        """Its hours and spells first, then its figures, dollars and faults under their own names."""
        return {
            **vars(self.history),
            "figures": self.row,
            "dollars": self.cost,
            "health": self.health,
            "window_end_ms": self.end_ms,
        }


def one_gpu(history: GpuHistory, audit: AuditStatement, efficiency: EfficiencyStatement) -> OneGpu:
    """A GPU's history with its rows of the other statements of the same window."""
    device = (history.gpu_uuid, history.gpu_instance_id)
    return OneGpu(
        history,
        next((row for row in efficiency.per_gpu if (row.gpu_uuid, row.gpu_instance_id) == device), None),
        next((row for row in audit.cost.by_gpu if (row.gpu_uuid, row.gpu_instance_id) == device), None),
        next((row for row in efficiency.health.rows if row.gpu_uuid == history.gpu_uuid), None),
        efficiency.end_ms,
    )
