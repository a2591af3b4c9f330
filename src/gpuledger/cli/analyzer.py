"""How does GPU Fleet Optimizer's analyzer, by its own names, ask for plans and print them?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from gpuledger.cli.config_viewing import Configured, explained
from gpuledger.encode import encode
from gpuledger.plain_text import visible
from gpuledger.plan.guide.asking import Form, form_of, plan_configured, size_key
from gpuledger.plan.guide.checks import pick
from gpuledger.plan.guide.schema import ModelSize, Workload, WorkloadType
from gpuledger.plan.guide.sets import MigrationSet, members, plan_set, tagged, together, workload_named
from gpuledger.plan.guide.statement import MigrationPlan

WIDTH = 100


class MigrationReport(str):
    """The report as text; `plan` holds every figure, `as_dict` the same as JSON holds it."""

    plan: MigrationPlan
    __slots__ = ("plan",)

    @classmethod
    def of(cls, plan: MigrationPlan) -> MigrationReport:
        """The report of a plan."""
        title = f"GPU migration analysis: {plan.job.name or plan.job.model.name}"
        report = cls(f"{title}\n{'=' * len(title)}\n{_text(together([plan]), full=True)}")
        report.plan = plan
        return report

    def as_dict(self) -> dict[str, Any]:
        """Every figure by name."""
        return encode("migration_plan", self.plan)


def _text(found: MigrationSet, *, full: bool) -> str:
    from gpuledger.cli.terminal import as_text
    from gpuledger.report.documents.migrate import migrate_document
    from gpuledger.report.render.terminal import screen

    return as_text(screen(migrate_document(found), WIDTH, full=full), WIDTH)


class AWSGPUMigrationAnalyzer(Configured):
    """The three JSON files of a folder, or the shipped reference, and the questions that can be put to them."""

    def generate_migration_report(
        self,
        current_instance: str,
        current_gpu_count: int,
        workload_type: WorkloadType | str,
        model_size: ModelSize | str,
        monthly_hours: float = 720,
        use_spot: bool = False,
        precision: str = "fp16",
    ) -> MigrationReport:
        """The plan for one setup, as a text that prints."""
        form = Form(
            instance=current_instance,
            gpus=current_gpu_count,
            workload=workload_type,
            size=model_size,
            monthly_h=monthly_hours,
            spot=use_spot,
            precision=precision,
        )
        return MigrationReport.of(plan_configured(self.config, form))

    def get_model_size_gb(self, model_size: ModelSize | str, precision: str = "fp16") -> int | float:
        """The weights alone, in 10^9 bytes; a whole number where it is one."""
        size = self.config.sizes[size_key(model_size, self.config)]
        kind = self.config.precisions[pick(precision, self.config.precisions, "precision")]
        found = size.parameter_count_billion * kind.bytes_per_parameter
        return int(found) if found == int(found) else found

    def list_available_workloads(self, *tags: str) -> dict[str, Workload]:
        """Print the workloads and sets there are; returns the workloads by id. With tags: those that have them all."""
        found = {id_: self.config.workloads[id_] for id_ in tagged(self.config, tags)}
        lines = ["Workloads"]
        for key, one in found.items():
            lines += [f"  {key}: {one.name}", f"    {one.description}"]
            lines += [f"    expected: {one.expected_outcome}", f"    tags: {', '.join(one.tags)}"]
            lines += [f"    use case: {one.use_case}"] if one.use_case else []
        lines.append("Workload sets")
        for name, ids in self.config.sets.items():
            about = self.config.purposes.get(name)
            lines.append(f"  {name}: {', '.join(ids)}{f' ({about.purpose})' if about else ''}")
        _say("\n".join(lines))
        return found

    def run_workload_by_id(self, workload_id: str) -> MigrationReport:
        """Print and return the report of one workload of the configuration."""
        report = self._report(workload_named(self.config, workload_id))
        _say(report)
        return report

    def run_workload_set(self, set_name: str) -> dict[str, MigrationReport]:
        """Print and return the reports of a set, by the id of the workload; the sum is printed last."""
        reports = {id_: self._report(id_) for id_ in members(self.config, set_name)}
        for report in reports.values():
            _say(report)
        _say(_text(plan_set(self.config, set_name, lambda id_: reports[id_].plan), full=False))
        return reports

    def run_workloads_by_tag(self, *tags: str) -> dict[str, MigrationReport]:
        """Print and return the reports of the workloads that have all of these tags, by their id."""
        reports = {id_: self._report(id_) for id_ in tagged(self.config, tags)}
        for report in reports.values():
            _say(report)
        found = together([report.plan for report in reports.values()], f"tagged {', '.join(tags)}")
        _say(_text(found, full=False))
        return reports

    def _report(self, workload_id: str) -> MigrationReport:
        form = form_of(self.config.workloads[workload_id])
        return MigrationReport.of(plan_configured(self.config, form, workload_id))


def _say(text: str) -> None:
    sys.stdout.write(f"{visible(text, lines=True)}\n")


def main(kind: type[AWSGPUMigrationAnalyzer] = AWSGPUMigrationAnalyzer, arguments: Sequence[str] | None = None) -> int:
    """Run the set `basic_demos`, or the one named; with the configuration of a folder, if one is named after it."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name, folder = given[0] if given else "basic_demos", given[1] if len(given) > 1 else None
    return explained(lambda: kind(folder).run_workload_set(name))
