"""What do all documents show of an audit: its own figures, and the rows made of them?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuledger.advice.statement import AuditSavings, AuditStatement, RoiPriced
from gpuledger.cost.showback import NO_TEAM
from gpuledger.cost.statement import NOT_ASKED, CostStatement
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.report.adding import shares_adding_up
from gpuledger.report.audit_rows import (
    AdviceRow,
    BehaviourRow,
    BillRow,
    ChangeRow,
    Over,
    SavingsRow,
    advice_row,
    behaviour_row,
    change_row,
    savings_rows,
)
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.outline import Card, Outline, Section, card, load_outline
from gpuledger.report.written import amount, gpus, loose, percent, period
from gpuledger.units import MS_PER_HOUR, Unknown

OUTLINE = "audit_outline.toml"
TABLES = "audit_tables.toml"


@dataclass(frozen=True)
class AuditView:
    """An audit with the rows its tables show beside its own."""

    audit: AuditStatement

    @property
    def cost(self) -> CostStatement:
        """What it cost."""
        return self.audit.cost

    @property
    def savings(self) -> AuditSavings | Unknown:
        """All changes together."""
        return self.audit.savings

    @property
    def phases_pct(self) -> Mapping[str, float] | Unknown:
        """The four utilization bands, to the tenth, adding up."""
        shares = self.audit.phases_pct
        return shares if isinstance(shares, Unknown) else shares_adding_up(shares)

    @property
    def roi_priced(self) -> tuple[RoiPriced, ...]:
        """The published ROI with prices."""
        return self.audit.roi_priced

    @property
    def waste_share(self) -> str | Unknown:
        """The share of what was seen not to be put to use."""
        dollars = self.cost.dollars
        return dollars if isinstance(dollars, Unknown) else f"{percent(dollars.pct(dollars.waste_usd))} of the bill"

    @property
    def bill(self) -> tuple[BillRow, ...]:
        """The seven buckets."""
        times, dollars = self.cost.times.each(), self.cost.dollars
        hours = {kind.name: times[kind.name] / MS_PER_HOUR for kind in bucket_kinds()}
        if isinstance(dollars, Unknown):
            return tuple(BillRow(k.title, hours[k.name], dollars, dollars, k.meaning) for k in bucket_kinds())
        paid = dollars.each()
        shares = shares_adding_up({bucket: dollars.pct(amount) for bucket, amount in paid.items()})
        return tuple(BillRow(k.title, hours[k.name], shares[k.name], paid[k.name], k.meaning) for k in bucket_kinds())

    @property
    def bill_total(self) -> BillRow:
        """The whole bill."""
        paid = self.cost.paid_usd
        return BillRow("Paid", self.cost.times.paid_h, paid if isinstance(paid, Unknown) else 100.0, paid)

    @property
    def projections(self) -> tuple[Over, ...]:
        """The rate of spending over longer times."""
        rate = self.cost.projection
        if isinstance(rate, Unknown):
            return ()
        q = rate.quarter
        quarter = f"Next quarter after {q.as_of}: {q.name} ({q.days} days)"
        amounts = (rate.hourly_usd, rate.monthly_usd, rate.quarter.usd, rate.yearly_usd)
        return tuple(Over(*pair) for pair in zip(("An hour", "A month", quarter, "A year"), amounts, strict=True))

    @property
    def behaviours(self) -> tuple[BehaviourRow, ...]:
        """What each owner's GPUs did."""
        return tuple(behaviour_row(b) for b in self.audit.behaviours)

    @property
    def advice(self) -> tuple[AdviceRow, ...]:
        """The recommendations by rank."""
        return tuple(advice_row(rank, r) for rank, r in enumerate(self.audit.recommendations, 1))

    @property
    def savings_rows(self) -> tuple[SavingsRow, ...]:
        """The naive sum, what there is to act on, the honest figures."""
        s = self.audit.savings
        return () if isinstance(s, Unknown) else savings_rows(s)

    @property
    def changes(self) -> tuple[ChangeRow, ...]:
        """Each bucket against the last period."""
        found = self.cost.previous
        if isinstance(found, Unknown):
            return ()
        effects = {e.bucket: e for e in found.by_bucket}
        return tuple(change_row(kind.title, effects[kind.name]) for kind in bucket_kinds())

    @property
    def change_total(self) -> ChangeRow | Unknown:
        """The whole bill against the last period."""
        found = self.cost.previous
        return found if isinstance(found, Unknown) else change_row("Paid", found.total)

    @property
    def outline(self) -> Outline:
        """The order of the documents."""
        return load_outline(OUTLINE)

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections that have something to say; the last period only where it was asked for."""
        before = self.cost.previous
        asked = not (isinstance(before, Unknown) and before.why == NOT_ASKED)
        return tuple(s for s in self.outline.sections if asked or s.block != "previous")

    def tables(self, section: Section) -> list[str]:
        """The tables of a section, without those that would say the same again or nothing at all."""
        cost = self.cost
        again = {row.name for row in cost.by_owner} == {row.name for row in cost.by_namespace}
        nobody = {row.name for row in cost.by_team} <= {NO_TEAM, UNALLOCATED}
        left_out = {"owners": again, "teams": nobody}
        return [name for name in section.tables if not left_out.get(name)]

    @property
    def cards(self) -> list[Card]:
        """The key figures."""
        return [card(kind, self) for kind in self.outline.cards]

    @property
    def facts(self) -> list[str]:
        """The size of what was looked at."""
        c = self.cost
        owners = sum(row.name != UNALLOCATED for row in c.by_owner)
        paid = amount(loose(c.times.paid_h), "paid GPU-hour")
        return [period(c.start_ms, c.end_ms), gpus(c.gpus), paid, amount(str(owners), "owner")]
