"""What does the cost audit show? The money first, the first things to do second, then what both rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuledger.advice.statement import AuditStatement, Recommendation, to_json
from gpuledger.cost.build import FEW_SAMPLES
from gpuledger.cost.statement import NOT_ASKED, CostStatement
from gpuledger.cost.teams import NO_TEAM
from gpuledger.ledger.read.owners import By
from gpuledger.ledger.read.scope import UNALLOCATED
from gpuledger.report.buckets import bucket_kinds
from gpuledger.report.document import (
    Article,
    Block,
    Bullets,
    Code,
    Document,
    Fold,
    Heading,
    Later,
    Prose,
    Section,
    Terms,
)
from gpuledger.report.documents import document_for
from gpuledger.report.documents.audit_rows import (
    Row,
    audit_view,
    devices_named,
    energy_saved,
    files,
    mark,
    rests_on,
    unknown_buckets,
    where,
    worth,
)
from gpuledger.report.documents.efficiency import unknown_section
from gpuledger.report.documents.inventory import inventory_sections, inventory_warnings
from gpuledger.report.outline import TABLE, charts_of, load_outline, owner_blocks, owner_table
from gpuledger.report.tables import Table
from gpuledger.report.written import amount, capital, gpus, loose, number, period
from gpuledger.units import MS_PER_S, Unknown

NAME = "audit"
FIRST = 3
# From this bill on, columns of dollars side by side show whole dollars; the JSON has every digit.
WHOLE_FROM_USD = 1000
# Dimensions of ownership that the section of owners shows anyway.
IN_WHO = frozenset({By.NAMESPACE})
IN_COLUMNS = ("who", "before", "devices")
# The plans that work out a recommendation; another GPU is always one.
OTHER_GPUS = "Other GPUs: gpuledger plan migrate --lake DIR."
PLANS_OF = {
    "spot": "Spot, with its reclaims and a deadline: gpuledger plan spot.",
    "reserved": "Commitments, compared with owning: gpuledger plan tco --lake DIR.",
}
# Always named on the first page: a failing GPU cannot wait, and what is unrated may hide the largest saving.
ALWAYS = ("health", "record-pipes")


def has_teams(cost: CostStatement) -> bool:
    """Whether any time is of a team that has a name."""
    return not {row.name for row in cost.by_team} <= {NO_TEAM, UNALLOCATED}


def repeated(cost: CostStatement) -> frozenset[str]:
    """Tables that would show the same again, or nothing."""
    again = {row.name for row in cost.by_owner} == {row.name for row in cost.by_namespace}
    no_teams = cost.by is By.TEAM or not has_teams(cost)
    return frozenset(name for name, left_out in (("owners", again), ("teams", no_teams)) if left_out)


@document_for(AuditStatement)
def audit_document(audit: AuditStatement, name: str = NAME) -> Document:
    """The document of an audit."""
    view, outline = audit_view(audit), load_outline(NAME)
    money, first = audit.headline
    notes = [Prose(first, "lead"), *_warnings(audit), *_next_to_plans(audit)]
    return Document(
        name=name,
        kind="Cost audit",
        title=f"Cost audit, {period(audit.cost.start_ms, audit.cost.end_ms)}",
        headline=money,
        notes=[*inventory_warnings(audit.cost.inventory), *notes],
        facts=_facts(audit.cost),
        figures=outline.key_figures(view),
        summary=Later(lambda: [_small_bill(view), *first_steps(audit)]),
        sections=_sections(audit, view),
        screen=Later(lambda: _screen(audit, view)),
        screen_notes=False,
        data=lambda: to_json(audit),
        files=files(audit),
        main_table=f"by_{audit.cost.by or 'owner'}",
    )


def _warnings(audit: AuditStatement) -> list[Prose]:
    """What cannot be rated, and too few samples to judge by."""
    c = audit.cost
    out = [Prose(f"Over budget: {b.words}.", "warning") for b in audit.budgets if b.over]
    out += [Prose(audit.unrated_note, "warning")] if audit.unrated_note else []
    if c.samples < FEW_SAMPLES * max(1, len(c.by_gpu)):
        few = f"Only {amount(number(c.samples), 'sample')} in this window: too few to judge."
        out.append(Prose(f"{few} Record for longer, or widen the window.", "warning"))
    return out


def _next_to_plans(audit: AuditStatement) -> list[Prose]:
    """Which plans go on from here, and how the saving relates to theirs, where there is one."""
    found = audit.savings
    if isinstance(found, Unknown) or not (found.combined_pct or found.with_rate_pct):
        return []
    advised = {r.id for r in audit.recommendations}
    plans = [OTHER_GPUS, *(words for id_, words in PLANS_OF.items() if id_ in advised)]
    overlap = "Its saving and this one overlap" if len(plans) == 1 else "Their savings and this one overlap"
    return [Prose(f"{' '.join(plans)} {overlap}: do not add them.", "dim")]


def _facts(c: CostStatement) -> list[str]:
    owners = sum(row.name != UNALLOCATED for row in c.by_owner)
    length = [f"{(c.end_ms - c.start_ms) / MS_PER_S:,.1f} s"] if c.wall_h < 1 else []
    sizes = amount(loose(c.times.paid_h), "paid GPU-hour"), amount(str(owners), "owner")
    return [period(c.start_ms, c.end_ms), *length, gpus(c.gpus), *sizes, amount(number(c.samples), "sample")]


def _small_bill(view: Row) -> Table:
    """The seven buckets without their meanings; why one is unknown is below."""
    made = load_outline(NAME).table("bill", view)
    return replace(
        made, name="bill-summary", heads=made.heads[:-1], words=made.words[:-1], below=(),
        note=unknown_buckets(view["cost"]),
        rows=tuple(row[:-1] for row in made.rows), total=made.total and made.total[:-1],
    )  # fmt: skip


def _screen(audit: AuditStatement, view: Row) -> list[Block]:
    """One screen: the bill without empty buckets, the first three things to do, what cannot wait."""
    bill = _small_bill(view)
    used = tuple(row for row in bill.rows if row[1].key or row[1].unknown)
    out: list[Block] = [*inventory_warnings(audit.cost.inventory), replace(bill, rows=used)]
    out += [*owner_table(NAME, view, audit.cost.by), *first_steps(audit, ())]
    urgent = [r for i, r in enumerate(audit.recommendations) if r.id in ALWAYS and i not in _order(audit)[:FIRST]]
    lines = [f"{r.title}: {gpus(r.gpus)}." for r in urgent]
    lines += [note.text for note in _warnings(audit) if note.text != audit.unrated_note]
    if audit.not_known:
        lines.append(f"{amount(str(len(audit.not_known)), 'figure')} unknown.")
    return [*out, *([Prose(" ".join(lines), "warning")] if lines else []), *_next_to_plans(audit)]


def first_steps(audit: AuditStatement, always: Sequence[str] = ALWAYS) -> list[Block]:
    """The first three things to do and the GPUs they name; those in `always` whatever they save."""
    found = audit.recommendations
    if not found:
        return [Prose("Nothing to change: no rule finds waste it can act on.")]
    shown = [i for at, i in enumerate(_order(audit)) if at < FIRST or found[i].id in always]
    rest = len(found) - len(shown)
    more = f" ({rest} more below, with evidence and text to paste)" if rest > 0 and always else ""
    paid = audit.cost.paid_usd
    steps = [devices_named(found[i], audit).within(f"{found[i].title}: {worth(found[i], paid)}. ", ".") for i in shown]
    return [Heading(f"Do first{more}"), Bullets(steps, strong=True)]


def _order(audit: AuditStatement) -> list[int]:
    """The recommendations as they should be done: the marked one, then by rank."""
    return sorted(range(len(audit.recommendations)), key=lambda i: (not mark(audit.recommendations[i], audit), i))


def _sections(audit: AuditStatement, view: Row) -> list[Section]:
    outline, before = load_outline(NAME), audit.cost.previous
    asked = not (isinstance(before, Unknown) and before.why == NOT_ASKED)
    after: dict[str, Sequence[Block]] = {
        "how": Later(
            lambda: [_recommendation(i, r, mark(r, audit), audit) for i, r in enumerate(audit.recommendations, 1)]
        ),
        "savings": [Prose(str(audit.savings))]
        if isinstance(audit.savings, Unknown)
        else [Bullets(audit.savings.words, "Which overlap, which add up, which compound")],
        "who": Later(lambda: owner_blocks(NAME, view, audit.cost.by, IN_WHO)),
        "before": [Prose(str(before))] if isinstance(before, Unknown) else [Bullets(before.words)],
    }
    paid = audit.cost.paid_usd
    whole = None if isinstance(paid, Unknown) or paid < WHOLE_FROM_USD else 0
    out = [
        outline.section(
            kind, view, charts_of(NAME, kind.id, audit), after.get(kind.id, ()), repeated(audit.cost) | {TABLE},
            whole if kind.id in IN_COLUMNS else None,
        )
        for kind in outline.sections
        if asked or kind.id != "before"
    ]  # fmt: skip
    buckets = [(f"Bucket: {k.title.lower()}", k.meaning) for k in bucket_kinds()]
    return [
        *out,
        *inventory_sections(audit.cost.inventory),
        Section("words", "What each number means", [Terms([*buckets, *outline.terms().pairs])]),
        Section("assumptions", "Assumptions", [Bullets(audit.assumptions)]),
        unknown_section([(n.figure, n.why) for n in audit.not_known]),
    ]


def _recommendation(rank: int, r: Recommendation, marked: str, audit: AuditStatement) -> Article:
    """What it saves, for which owners, why, what to paste, what the range rests on."""
    meta = f"{where(r)}; {gpus(r.gpus)}; effort {r.effort.words}"
    if r.exclusive:
        meta += f"; excludes others ({r.exclusive})"
    blocks: list[Block] = [
        Heading(r.title, rank, marked),
        Prose(f"{capital(worth(r, audit.cost.paid_usd))}.", "strong"),
        Prose(devices_named(r, audit).within(f"{meta}. ", "."), "dim"),
        Prose(f"Why: {r.why}."),
        Code(r.change.text.rstrip(), r.change.language),
    ]
    if len(r.targets) > 1 or not all(t.counted for t in r.targets):
        items = [
            f"{t.owner}, {t.gpu_model or 'no model name'}, {gpus(t.gpus)}, {t.klass}: {t.why}; {t.words}"
            for t in r.targets
        ]
        blocks.append(Fold(f"By group of GPUs ({len(items)}): what was found, and whether it counts", [Bullets(items)]))
    blocks.append(Prose(f"{rests_on(r)}{energy_saved(r)}", "note"))
    return Article(f"advice-{r.id}", blocks)
