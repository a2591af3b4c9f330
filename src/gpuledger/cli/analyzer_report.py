"""What does a caller of the analyzer get: a text that prints, with the plan behind it?"""

from __future__ import annotations

from typing import Any

from gpuledger.encode import encode
from gpuledger.plan.guide.statement import MigrationPlan


class MigrationReport(str):
    """The report as text; `plan` holds every figure, `as_dict` the same as JSON holds it."""

    plan: MigrationPlan
    __slots__ = ("plan",)

    @classmethod
    def of(cls, plan: MigrationPlan) -> MigrationReport:
        """The report of a plan."""
        from gpuledger.cli.views.migrate import as_text, parts

        title = f"GPU migration analysis: {plan.job.name or plan.job.model.name}"
        report = cls(f"{title}\n{'=' * len(title)}\n{as_text(parts(plan, 100))}")
        report.plan = plan
        return report

    def as_dict(self) -> dict[str, Any]:
        """Every figure by name."""
        return encode("migration_plan", self.plan)
