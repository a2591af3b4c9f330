"""How is gpuledger used from Python? Open a lake, take data in, ask for statements.

import gpuledger

lake = gpuledger.open("books")
lake.ingest("export.parquet")
lake.analyze(last="7d", namespace="ml").findings
lake.audit(prices=2.5).save("report")
gpuledger.read("export.parquet").audit()
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from gpuledger.answers import Answer, Rows
from gpuledger.arguments import takes
from gpuledger.lake.engines.choosing import on_its_engine
from gpuledger.lake.intake import Intake
from gpuledger.ledger.read.scope import Scope
from gpuledger.ledger.read.window import Window, scope_of
from gpuledger.times import Instant, Length, today

if TYPE_CHECKING:
    from gpuledger.advice.asking import Asked
    from gpuledger.advice.change import Change
    from gpuledger.advice.idle_gpus import GiveBack
    from gpuledger.advice.statement import AuditStatement
    from gpuledger.anomalies.statement import AnomalyStatement
    from gpuledger.catalog.thresholds import Thresholds
    from gpuledger.cost.month_budget import MonthBudget
    from gpuledger.efficiency.statement import EfficiencyStatement
    from gpuledger.lake.layout import Lake
    from gpuledger.plan.move.statement import LakePlan
    from gpuledger.plan.move.target import TargetPlan

Prices = float | int | str | Decimal | Mapping[str, float | int | str | Decimal] | None
File = str | Path


class OpenLake(Intake):
    """A lake and its ledger; new samples are posted before a statement is made."""

    @takes(Window, achievable="text", thresholds="file", by="word")
    @on_its_engine
    def analyze(
        self,
        *,
        achievable: str = "published",
        thresholds: File | None = None,
        by: str | None = None,
        **window: Unpack[Window],
    ) -> Answer[EfficiencyStatement]:
        """The efficiency statement: what the hardware did, and what improving it is worth.

        Where every GPU has a single sample: a snapshot, with readings and states at that instant.
        The window: `since`, `until`, `last`; the owners: `cluster`, `namespace`, `owner`. `by`: break the means down by
        cluster, namespace, team, user, account, job or pod too.
        """
        from gpuledger.cost.teams import Config, set_teams
        from gpuledger.efficiency.calibration_files import load_calibration
        from gpuledger.efficiency.snapshot import Snapshot, statement_or_snapshot

        limits = self._posted(thresholds)
        made = statement_or_snapshot(
            self.lake,
            scope_of(self.lake, **window),
            limits,
            achievable=achievable,
            calibration=load_calibration(self.lake),
            by=by,
            team_of=(set_teams() or Config()).set_team,
        )
        answer = Answer(made) if isinstance(made, Snapshot) else Answer(made, limits=limits)
        return cast("Answer[EfficiencyStatement]", answer)  # typed for what nearly every lake holds

    @takes(
        Window, inventory="files", instance="word", region="word", teams="file", limits="file", previous="flag",
        by="word",
    )  # fmt: skip
    @on_its_engine
    def audit(
        self,
        *,
        prices: Prices = None,
        price: Prices = None,
        inventory: File | Sequence[File] | None = None,
        instance: str | None = None,
        region: str | None = None,
        teams: File | None = None,
        limits: File | None = None,
        usd_per_kwh: float | str | Decimal | None = None,
        previous: bool = False,
        by: str | None = None,
        **window: Unpack[Window],
    ) -> Answer[AuditStatement]:
        """The cost audit: what it cost, what of it was wasted, what to change first.

        `prices`, or `price`: dollars per GPU-hour, for all GPUs or by name; without it those of the inventory, of the
        settings, else market prices. `inventory`: one file or several, of any kind the command takes. Teams and
        budgets of the settings apply too. `by`: break the bill down by cluster, namespace, team, user, account, job
        or pod; the rows are `.statement.cost.by_asked`. Where every GPU has a single sample: a snapshot, with dollars
        per hour.
        """
        from gpuledger.advice.asking import audit_or_snapshot

        terms = self._asked(
            price=price, prices=prices, inventory=inventory, instance=instance, region=region, teams=teams,
            limits=limits, usd_per_kwh=usd_per_kwh, previous=previous, by=by,
        )  # fmt: skip
        answer = Answer(audit_or_snapshot(self.lake, scope_of(self.lake, **window), terms))
        return cast("Answer[AuditStatement]", answer)

    @takes(Window, inventory="files")
    @on_its_engine
    def give_back(
        self,
        n: int = 10,
        *,
        prices: Prices = None,
        price: Prices = None,
        inventory: File | Sequence[File] | None = None,
        **window: Unpack[Window],
    ) -> Answer[GiveBack]:
        """The `n` GPUs to give back first, with dollars, since when and the evidence; arguments as for `audit`."""
        from gpuledger.advice.give_back import give_back

        terms = self._asked(price=price, prices=prices, inventory=inventory)
        return Answer(give_back(self.lake, scope_of(self.lake, **window), terms, n))

    @takes(month="word", inventory="files", teams="file")
    @on_its_engine
    def budget(
        self,
        budget: float | str | Decimal | Mapping[str, float | int | str | Decimal] | None = None,
        *,
        month: str | None = None,
        prices: Prices = None,
        price: Prices = None,
        inventory: File | Sequence[File] | None = None,
        teams: File | None = None,
    ) -> Answer[MonthBudget]:
        """A month's spending and its forecast against the budget: dollars for all GPUs, or by team or namespace.

        Without a budget those of the settings; without a month ("2026-01") that of the newest sample.
        """
        from gpuledger.cost.month_budget import budgets_of, month_budget
        from gpuledger.cost.user_settings import set_budgets

        terms = self._asked(price=price, prices=prices, inventory=inventory, teams=teams)
        budgets = set_budgets() if budget is None else budgets_of(budget)
        return Answer(month_budget(self.lake, budgets, month, **terms.terms))

    @takes(Window, inventory="files")
    @on_its_engine
    def change(
        self,
        *,
        prices: Prices = None,
        price: Prices = None,
        inventory: File | Sequence[File] | None = None,
        **window: Unpack[Window],
    ) -> Answer[Change]:
        """The last seven days, or the window, against the period before it; arguments as for `audit`."""
        from gpuledger.advice.change import change

        terms = self._asked(price=price, prices=prices, inventory=inventory)
        return Answer(change(self.lake, scope_of(self.lake, **window), terms))

    @takes(Window, instance="word", region="word")
    @on_its_engine
    def anomalies(
        self,
        *,
        prices: Prices = None,
        price: Prices = None,
        instance: str | None = None,
        region: str | None = None,
        **window: Unpack[Window],
    ) -> Answer[AnomalyStatement]:
        """The GPUs that do worse than their own past or than peers on the same work, since when, and at what cost.

        `prices`, `instance`, `region`: as for `audit`; an inventory is not used.
        """
        from gpuledger.advice.asking import paying
        from gpuledger.anomalies.build import anomaly_statement

        terms = paying(self.lake.root, price=price, prices=prices, instance=instance, region=region)
        limits = self._posted(None)
        return Answer(anomaly_statement(self.lake, scope_of(self.lake, **window), thresholds=limits, **terms))

    @takes(Window, inventory="files", clouds="texts", to="word")
    @on_its_engine
    def moves(
        self,
        *,
        prices: Prices = None,
        price: Prices = None,
        inventory: File | Sequence[File] | None = None,
        clouds: Sequence[str] = (),
        to: str | None = None,
        **window: Unpack[Window],
    ) -> Answer[LakePlan | TargetPlan]:
        """What each namespace should move to, by what its GPUs did; arguments as for `audit`.

        `to`: the cost of the same work on that GPU instead, such as "h200-sxm".
        """
        from gpuledger.advice.asking import paying
        from gpuledger.plan.move.build import migrate_from_lake
        from gpuledger.plan.move.target import migrate_to

        terms = paying(self.lake.root, price=price, prices=prices, inventory=inventory)
        self._posted(None)
        scope = scope_of(self.lake, **window)
        if to is not None:
            return Answer(migrate_to(self.lake, scope, to, today=today(), clouds=clouds, **terms))
        return Answer(migrate_from_lake(self.lake, scope, today=today(), clouds=clouds, **terms))

    def record(self, **given: Any) -> Any:
        """Record this machine's GPUs into the lake while a `with` block runs; see `gpuledger.record`."""
        from gpuledger.recording.record import record

        return record(lake=self.lake.root, **given)

    @takes(Window)
    def samples(self, **window: Unpack[Window]) -> Rows:
        """The samples of a window and of some owners, as they were imported."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from gpuledger.lake.parts import samples_table

        self.lake.require()
        scope = scope_of(self.lake, **window)
        table = samples_table(self.lake, scope.since_ms, scope.until_ms)
        wanted = (("cluster", scope.clusters), ("namespace", scope.namespaces), ("workload", scope.owners))
        for column, names in wanted:
            if names:
                table = table.filter(pc.is_in(table[column].cast(pa.string()), pa.array(names, pa.string())))
        return Rows("samples", table)

    @takes(Window)
    @on_its_engine
    def lines(self, **window: Unpack[Window]) -> Rows:
        """The lines of the ledger: one per device, hour, owner and state."""
        from gpuledger.ledger.read.lines_table import lines_table

        limits = self._posted(None)
        scope = scope_of(self.lake, **window)
        return Rows("lines", lines_table(self.lake, scope, limits))

    def _asked(self, **given: Any) -> Asked:
        """What an audit is made with, checked before anything runs; new samples are posted."""
        from gpuledger.advice.asking import asked

        terms = asked(self.lake.root, **given)
        self._posted(None)
        return terms

    @takes()
    @on_its_engine
    def posted(self, limits: Thresholds | None = None) -> Lake:
        """The lake with new samples posted; calls such as `gpuledger.cost_report` ask for it themselves."""
        from gpuledger.catalog.thresholds import load_thresholds
        from gpuledger.ledger.engine import post_lake

        self.lake.require()
        post_lake(self.lake, limits or load_thresholds())
        return self.lake

    def _posted(self, thresholds: File | None) -> Thresholds:
        from gpuledger.catalog.thresholds import load_thresholds

        limits = load_thresholds(Path(thresholds) if thresholds else None)
        self.posted(limits)
        return limits

    def __repr__(self) -> str:
        if not self.lake.exists():
            return f"<gpuledger lake {str(self.lake.root)!r}: empty; .ingest(file)>"
        parts = self.lake.manifest().parts
        days = sorted({p.day for p in parts})
        span = f"{days[0]} to {days[-1]}" if days else "no samples"
        return f"<gpuledger lake {str(self.lake.root)!r}: {sum(p.rows for p in parts):,} samples, {span}>"


class ReadFiles(OpenLake):
    """Files to ask without a lake of your own: everything an open lake answers, until this is let go.

    `jobs`: tables of who held which GPU when; `jobs_tz`: the zone of their times, where these have none. `engine`: as
    for `gpuledger.open`. What else there is, `ingest` describes.
    """

    @takes(jobs="files", jobs_tz="text", engine="text")
    def __init__(
        self,
        *data: Any,
        jobs: File | Sequence[File] = (),
        jobs_tz: str | None = None,
        engine: str | None = None,
        tz: str = "UTC",
        mapping: File | None = None,
        at: Instant | None = None,
        every: Length | None = None,
        host: str | None = None,
        gpu_model: str | None = None,
    ) -> None:
        folder = tempfile.mkdtemp(prefix="gpuledger-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(folder, engine)
        self.found = self.ingest(*data, tz=tz, mapping=mapping, at=at, every=every, host=host, gpu_model=gpu_model)
        if jobs:
            self.jobs(*([jobs] if isinstance(jobs, str | Path) else jobs), tz=jobs_tz)

    def __repr__(self) -> str:
        return f"<gpuledger files: {self.found.rows_added:,} samples of {self.found.files} files; .analyze(), .audit()>"


@takes()
def open_lake(root: File = "gpuledger-data", *, engine: str | None = None) -> OpenLake:
    """Open a lake; opening touches nothing, the first import makes it.

    `engine`: where imports, posting and statements run: "local", "ray" (a Ray cluster on this machine or at
    RAY_ADDRESS) or "ray://HOST:PORT"; by default as the environment variable GPULEDGER_ENGINE says, else "local".
    """
    return OpenLake(root, engine)


__all__ = ["Answer", "OpenLake", "ReadFiles", "Rows", "Scope", "open_lake"]
