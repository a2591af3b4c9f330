"""Which document does each page show? Those of the reports, cut to what the page is about."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyarrow.csv import ParseOptions, read_csv

from gpuledger.advice.one_gpu import OneGpu
from gpuledger.advice.statement import AuditStatement
from gpuledger.cost.emissions.statement import EnergyStatement
from gpuledger.cost.judged import NOTHING_RATIO, known_productive
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.encode import encode
from gpuledger.errors import NothingFound
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.owners import By
from gpuledger.ledger.store import Ledger
from gpuledger.plan.move.statement import LakePlan
from gpuledger.plan.planners import PLANNERS
from gpuledger.report.adding import shares_adding_up
from gpuledger.report.document import Block, Bullets, Document, Fold, KeyFigure, Prose, Section
from gpuledger.report.documents import document_of
from gpuledger.report.documents.audit import audit_document, first_steps
from gpuledger.report.documents.audit_rows import price_fact
from gpuledger.report.documents.efficiency import efficiency_document
from gpuledger.report.documents.energy import kwh
from gpuledger.report.plan_sections import dollar_figure
from gpuledger.report.tables import Row, Table, cell, make_table
from gpuledger.report.written import amount, capital, instant, number, percent, round_percent
from gpuledger.units import MS_PER_HOUR, Unknown

REJECT_FILES, REJECT_ROWS = 20, 50
# What a share of the time rests on, in words.
EVIDENCE = {
    "counters": "by activity counters", "power": "by power alone",
    "none": "by neither: its busy part is unrated",
}  # fmt: skip
SKEW_MS = 60_000
UNPLACED = (
    "of energy have no known place, and no carbon figure holds them. Label the samples with a region, or give an "
    "inventory that names regions; or start gpuledger serve with --cloud and --at."
)


def overview(audit: AuditStatement) -> Document:
    """Money first: paid, productive, wasted, and the first three things to do."""
    whole = audit_document(audit)
    bill = [s for s in whole.sections if s.id == "bill"]
    paid, waste, rate, _quarter, *more = whole.figures
    figures = [paid, _productive(audit), waste, rate, *more, _energy(audit.cost.energy_kwh)]
    summary = [*first_steps(audit, ())]
    return replace(_dated(whole, audit), kind="Overview", figures=figures, summary=summary, sections=bill)


def _dated(document: Document, audit: AuditStatement) -> Document:
    """A document of dollars, with what its prices are and of when."""
    found = price_fact(audit.cost)
    return replace(document, facts=[*document.facts, found]) if found else document


def _energy(drawn: float | Unknown) -> KeyFigure:
    if isinstance(drawn, Unknown):
        return KeyFigure("Energy", "unknown", "", drawn.why, unknown=True)
    return KeyFigure("Energy", f"{kwh(drawn)} kWh", "", "GPU boards that record it; carbon is on the Energy page")


def _productive(audit: AuditStatement) -> KeyFigure:
    label, note, dollars = "Productive", "time that did work, as far as the evidence shows", audit.cost.dollars
    known = known_productive(dollars)
    if isinstance(known, Unknown) or isinstance(dollars, Unknown):
        return dollar_figure(label, known)
    shares = shares_adding_up({bucket: dollars.pct(usd) for bucket, usd in dollars.each().items()})  # as in the table
    least, unrated = "", ""
    if dollars.unrated_usd > NOTHING_RATIO * dollars.paid_usd:
        least, unrated = "at least ", f"; {percent(shares['unrated'])} is unrated"
    share = f"{least}{percent(shares['productive'])} of the bill{unrated}"
    return replace(dollar_figure(label, known, note), range=share)


def nothing(kind: str, error: NothingFound) -> Document:
    """A page whose filters leave nothing to show."""
    return Document(
        name="empty",
        kind=kind,
        title=kind,
        headline="No data for these filters",
        notes=[Prose(f"{capital(error.message)}."), Prose(f"{capital(error.hint)}.", "dim")],
    )


def timeline(statement: EfficiencyStatement) -> Document:
    """The fleet over time, and how busy time compares with power."""
    found = _only(efficiency_document(statement), "Timeline", {"time", "active", "models", "capacity"})
    return replace(found, sections=sorted(found.sections, key=lambda section: section.id != "time"))


def savings(audit: AuditStatement) -> Document:
    """Where the waste is, and what to change, one by one."""
    return _only(
        _dated(audit_document(audit), audit), "Waste and savings", {"changes", "savings", "how", "behavior", "roi"}
    )


def owners(audit: AuditStatement) -> Document:
    """What each owner paid for, and what of it was wasted."""
    found = _only(_dated(audit_document(audit), audit), "Owners", {"who"})
    paid, waste, *_ = found.figures
    sections = [replace(section, blocks=_chosen_first(section, audit.cost.by)) for section in found.sections]
    return replace(found, figures=[paid, _productive(audit), waste], sections=sections)


def _chosen_first(section: Section, by: By | None) -> list[Block]:
    """The chart, the table of the dimension asked for, that of namespaces, and the others on demand."""
    tables = [block for block in section.blocks if isinstance(block, Table)]
    rest: list[Block] = [block for block in section.blocks if not isinstance(block, Table)]
    if not tables:
        return rest
    spaces, chosen = tables[0], tables[0 if by is None or by is By.NAMESPACE else -1]
    shown = [chosen, *([spaces] if spaces is not chosen else [])]
    return [*rest, *shown, *(Fold(t.caption, [t]) for t in tables if all(t is not one for one in shown))]


def one_gpu(gpu: OneGpu) -> Document:
    """One GPU's hours as a chart, its dollars and its stretches without work; the hours as a table on demand."""
    document = document_of(gpu)
    hours, *rest = document.sections
    return replace(document, sections=[_on_demand(hours), *rest])


def energy(found: EnergyStatement, audit: AuditStatement) -> Document:
    """kWh and CO2e next to dollars; the hours as a chart, and as a table on demand."""
    document = _dated(document_of(found, unplaced=UNPLACED), audit)
    sections = [_on_demand(s) if s.id == "hours" else s for s in document.sections]
    return replace(document, kind="Energy", title="Energy", sections=sections)


# Those with commands of their own; the others register themselves.
_OWN_COMMANDS = (
    ("fit", "Check whether a model fits, and what would make it fit."),
    ("migrate", "Propose a better place for a job: cost, speed, risk, effort."),
    ("throughput", "Estimate tokens per second, as a range."),
)


def plans(plan: LakePlan) -> Document:
    """Where each namespace should move, and which other plans there are."""
    found = sorted((*_OWN_COMMANDS, *((name, one.summary) for name, one in PLANNERS)))
    rows: list[Row] = [[name, what, f"gpuledger plan {name} --help"] for name, what in found]
    table = make_table("planners", "Each asks for what only you know", ("Plan", "What it does", "Command"), "www", rows)
    document = document_of(plan)
    first, *rest = [_on_demand(s) if s.id == "refused" else s for s in document.sections]
    return replace(document, sections=[first, Section("planners", "Other plans", [table]), *rest])


def _on_demand(section: Section) -> Section:
    """The same section, with its tables folded."""
    blocks = [Fold(block.caption, [block]) if isinstance(block, Table) else block for block in section.blocks]
    return replace(section, blocks=blocks)


def _only(document: Document, title: str, sections: Collection[str]) -> Document:
    shown = [s for s in document.sections if s.id in sections]
    return replace(document, kind=title, title=title, notes=(), summary=(), sections=shown)


def data_page(lake: Lake, audit: AuditStatement, now_ms: int) -> Document:
    """What came in, what was rejected, and how old the newest sample is."""
    manifest = lake.manifest()
    newest, samples = max((p.last_ms for p in manifest.parts), default=0), sum(p.rows for p in manifest.parts)
    days = sorted(manifest.days(), reverse=True)
    rejected = sorted((lake.root / "rejects").glob("*.csv"), key=lambda f: -f.stat().st_mtime)[:REJECT_FILES]
    evidence = audit.cost.evidence_pct
    shares = {} if isinstance(evidence, Unknown) else evidence
    rests_on = [f"{round_percent(share)} of the time {EVIDENCE[kind]}" for kind, share in shares.items()]
    came_in, refused = _days(lake, days), _rejects(lake.store.local(rejected))
    return Document(
        name="data",
        kind="Data and evidence",
        title="Data and evidence",
        headline=f"{amount(number(samples), 'sample')}, the newest of {instant(newest)} UTC",
        figures=[
            _newest(newest, now_ms),
            KeyFigure("Days", number(len(days)), "", f"{days[-1]} to {days[0]}" if days else ""),
            dollar_figure("Paid", audit.cost.paid_usd, "in this window"),
        ],
        sections=[
            Section("came-in", "What came in", [came_in, refused]),
            *(s for s in audit_document(audit).sections if s.id == "prices"),
            Section("evidence", "What the figures rest on", [Bullets(rests_on), Bullets(audit.assumptions)]),
        ],
        data=lambda: encode(
            "data",
            {"samples": samples, "newest_ms": newest, "days": days, "rejected_files": [f.name for f in rejected]},
        ),
    )


def _newest(newest: int, now_ms: int) -> KeyFigure:
    """How old the newest sample is; one from the future means that clocks differ."""
    apart_h, when = abs(now_ms - newest) / MS_PER_HOUR, f"{instant(newest)} UTC"
    length = (
        f"{apart_h * 60:,.0f} min"
        if apart_h < 2
        else f"{apart_h:,.1f} h"
        if apart_h < 48
        else f"{apart_h / 24:,.0f} days"
    )
    if newest > now_ms + SKEW_MS:
        return KeyFigure(
            "Newest sample", f"{length} ahead", "", f"{when}; check the clocks of its host and this machine"
        )
    return KeyFigure("Newest sample", f"{length} ago", "", when)


def _days(lake: Lake, days: Collection[str]) -> Table:
    manifest, posted = lake.manifest(), {d.day: d for d in Ledger(lake).manifest().days}
    rows: list[Row] = []
    for day in days:
        parts, found = manifest.of_day(day), posted.get(day)
        figures = (sum(p.rows for p in parts), len(parts), found.conflicts if found else 0)
        rows.append([day, *(cell(number(value), value) for value in figures), "yes" if found else "no"])
    heads = ("Day", "Samples", "Files", "Contradicting rows", "Posted")
    return make_table("days", "Samples by day, the newest first", heads, "wnnnw", rows, empty="No samples.")


def _rejects(files: Collection[Path]) -> Table:
    """What was rejected and why, the newest import first; each row is in a file of the lake."""
    rows: list[Row] = [row for file in files for row in _reasons(file)]
    heads = ("File", "Reason", "Column", "Rows", "First row", "Listed in")
    caption = "Rejected rows, the newest import first"
    return make_table("rejects", caption, heads, "wwwnnw", rows[:REJECT_ROWS], empty="None.")


def _reasons(file: Path) -> list[Row]:
    """The rows of a file of rejects, added up by where they came from and why they were rejected."""
    try:
        found = read_csv(file, parse_options=ParseOptions(newlines_in_values=True))
        by = found.group_by(["file", "reason", "column"]).aggregate([("row", "count"), ("row", "min")]).to_pylist()
    except (pa.ArrowException, OSError):
        return [[file.name, "cannot be read", "", "", "", file.name]]
    by.sort(key=lambda one: (-one["row_count"], str(one["file"])))
    return [
        [one["file"], str(one["reason"]).replace("_", " "), one["column"] or "", cell(number(n), n),
         cell(number(first), first), file.name]
        for one in by
        for n, first in ((one["row_count"], one["row_min"]),)
    ]  # fmt: skip
