"""What does the statement of degrading GPUs show?"""

from __future__ import annotations

from collections import Counter

from gpuledger.anomalies.signals import SignalName
from gpuledger.anomalies.statement import REASONS, AnomalyStatement, Dollars, Finding, Slowdown
from gpuledger.anomalies.words import WHAT, next_step, reading_words
from gpuledger.encode import encode
from gpuledger.report.document import Article, Block, Bullets, Document, Heading, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.outline import charts_of
from gpuledger.report.tables import Cell, Row, Table, cell, make_table
from gpuledger.report.written import gpus, instant, number, percent, period, tenth, usd
from gpuledger.units import Unknown

NAME = "anomalies"
MOST = 50  # findings with all of their evidence on the page


@document_for(AnomalyStatement)
def anomalies_document(found: AnomalyStatement) -> Document:
    """The GPUs, what shows it, what to do, and those that cannot be judged."""
    table = findings_table(found)
    details: list[Block] = [_article(f) for f in found.findings[:MOST]]
    if len(found.findings) > MOST:
        details.append(Prose(f"{number(len(found.findings) - MOST)} more are in the table and in {NAME}.json.", "note"))
    sections = [Section("findings", "GPU by GPU", [*charts_of(NAME, "findings", found), *details])]
    if found.not_judged:
        sections.append(Section("not-judged", "GPUs that cannot be judged", [_not_judged(found)]))
    return Document(
        name=NAME,
        kind="Degrading GPUs",
        title=f"Degrading GPUs, {period(found.start_ms, found.end_ms)}",
        headline=headline(found),
        facts=[
            period(found.start_ms, found.end_ms),
            devices(found, found.gpus),
            f"periods of {tenth(found.period_h)} h",
        ],
        notes=_notes(found),
        figures=_figures(found),
        summary=[table],
        sections=[*sections, Section("assumptions", "Assumptions", [Bullets(_assumptions(found))])],
        screen=[table, *_first_step(found)],
        data=lambda: encode(NAME, found),
        main_table="findings",
    )


_SMALLEST: dict[SignalName, str] = {"clock": "clock lower", "work": "work less", "heat": "hotter"}


def named(found: AnomalyStatement) -> int:
    """How many GPUs are named; one may have several findings."""
    return len({(f.gpu_uuid, f.gpu_instance_id) for f in found.findings})


def devices(found: AnomalyStatement, count: int) -> str:
    """GPUs; with MIG slices, which are judged one by one, where there are any."""
    return f"{gpus(count)} and MIG slices" if found.slices else gpus(count)


def headline(found: AnomalyStatement) -> str:
    """How many GPUs, and what they cost."""
    judged = found.by_peers + found.by_own_past
    if not found.findings:
        if not judged:
            return f"None of {devices(found, found.gpus)} can be judged: {_reasons(found)}."
        return f"No degrading GPU among {devices(found, judged)} that can be judged.{_visible(found)}"
    some = f"{named(found)} of {devices(found, found.gpus)} degrading"
    dollars = found.usd_per_month
    if isinstance(dollars, Unknown):
        return f"{some}; what that costs is unknown: {dollars.why}."
    return f"{some}: {usd(dollars.middle_usd, 0)} per month paid for work not done ({_range(dollars)})."


def _visible(found: AnomalyStatement) -> str:
    """From which size on a lasting difference to peers is named in this fleet."""
    shown = ", ".join(f"{words} by {abs(s.change):.0f} {s.change_unit}" for s in found.smallest
                      if (words := _SMALLEST.get(s.signal)))  # fmt: skip
    return f" A GPU that was worse all along would be named from: {shown}." if shown else ""


def _range(dollars: Dollars) -> str:
    return f"{usd(dollars.low_usd, 0)} to {usd(dollars.high_usd, 0)}"


def _reasons(found: AnomalyStatement) -> str:
    counts = Counter(row.reason for row in found.not_judged)
    if len(counts) == 1:
        return REASONS[found.not_judged[0].reason]
    return "; ".join(f"{number(n)}: {REASONS[reason]}" for reason, n in counts.most_common())


def _notes(found: AnomalyStatement) -> list[Prose]:
    out = []
    if found.not_judged and found.by_peers + found.by_own_past:
        out.append(Prose(f"{devices(found, len(found.not_judged))} cannot be judged ({_reasons(found)}).", "warning"))
    if found.by_own_past:
        text = f"{gpus(found.by_own_past)} have no peers and are compared with their own past only"
        out.append(Prose(f"{text}: another job can look like a slower GPU there.", "note"))
    return out


def _figures(found: AnomalyStatement) -> list[KeyFigure]:
    dollars = found.usd_per_month
    name = "Paid for work not done"
    lost = (
        KeyFigure(name, str(dollars), unknown=True)
        if isinstance(dollars, Unknown)
        else KeyFigure(name, f"{usd(dollars.middle_usd, 0)}/month", _range(dollars), "of the GPUs named")
    )
    return [
        KeyFigure("Degrading GPUs", number(named(found)), "", f"of {devices(found, found.gpus)}"),
        lost,
        KeyFigure("Compared with peers", number(found.by_peers), "", "GPUs of the same model on the same work"),
        KeyFigure("Tests", number(found.tests), "", f"at most {_chance(found)} by chance"),
    ]


def _slower(slower: Slowdown | Unknown) -> Cell:
    if isinstance(slower, Unknown):
        return cell("unknown", slower)
    low, high = f"{slower.low_pct:.0f}", f"{slower.high_pct:.0f}"
    span = low if low == high else f"{low}-{high}"
    return cell(f"{slower.middle_pct:.0f} % ({span})", slower.middle_pct)


def _dollars(dollars: Dollars | Unknown) -> Cell:
    if isinstance(dollars, Unknown):
        return cell("unknown", dollars)
    return cell(usd(dollars.middle_usd, 0), dollars.middle_usd)


def since_words(f: Finding) -> str:
    """When it began."""
    return "start of the window" if f.from_start else instant(f.since_ms)


def findings_table(found: AnomalyStatement) -> Table:
    """One row per GPU and kind of trouble."""
    rows: list[Row] = [
        [
            Cell(f.gpu, f.gpu, full=f.gpu_uuid), WHAT[f.kind] + (", growing" if f.drifting else ""),
            cell(since_words(f), float(f.since_ms)), _slower(f.slowdown), _dollars(f.usd_per_month),
            f.gpu_model or "no model name", f.work or "no name", _gang(f),
        ]
        for f in found.findings
    ]  # fmt: skip
    heads = ("GPU", "What", "Since (UTC)", "Slower (range)", "$/month", "Model", "Work", "Gang, up to")
    note = (
        "Slower: work lost of its working time, or working time lost. Gang: what the other GPUs on the same work lose "
        "besides, if they wait for this one."
    )
    return make_table(
        "findings", "Degrading GPUs, the most dollars first", heads, "wwwnnWWN", rows, note=note, empty="None."
    )


def _gang(f: Finding) -> Cell:
    gang = f.gang_usd_per_month
    return cell("unknown", gang) if isinstance(gang, Unknown) else cell(usd(gang.high_usd, 0), gang.high_usd)


def _first_step(found: AnomalyStatement) -> list[Block]:
    if not found.findings:
        return []
    first = found.findings[0]
    return [Prose(f"First: {first.gpu}, {WHAT[first.kind]}. {next_step(first)}")]


def _article(f: Finding) -> Article:
    """All that is known of one finding."""
    lines = [reading_words(e) for e in f.evidence]
    gang = f.gang_usd_per_month
    blocks: list[Block] = [
        Heading(f"{f.gpu}: {WHAT[f.kind]}, since {since_words(f)}"),
        Bullets(lines),
    ]
    if isinstance(f.usd_per_month, Unknown):
        blocks.append(Prose(f"Cost unknown: {f.usd_per_month.why}.", "note"))
    else:
        blocks.append(Prose(f"Costs {usd(f.usd_per_month.middle_usd, 0)} per month ({_range(f.usd_per_month)})."))
    if not isinstance(gang, Unknown) and gang.high_usd:
        words = (
            f"If the {gpus(f.gang_gpus)} on {f.work} wait for each other, up to {usd(gang.high_usd, 0)} per month more."
        )
        blocks.append(Prose(words, "note"))
    blocks.append(Prose(f"Next: {next_step(f)}", "strong"))
    return Article(f"{f.gpu_uuid}-{f.kind}".replace(" ", "-").replace("/", "-"), blocks)


def _not_judged(found: AnomalyStatement) -> Table:
    rows: list[Row] = [[Cell(n.gpu, n.gpu, full=n.gpu_uuid), REASONS[n.reason]] for n in found.not_judged]
    return make_table("not-judged", "GPUs whose state is unknown", ("GPU", "Why"), "ww", rows)


def _chance(found: AnomalyStatement) -> str:
    levels = percent(found.false_levels_pct)
    return f"{percent(found.false_findings_pct)} of changes and {levels} of differences that were there from the start"


def _assumptions(found: AnomalyStatement) -> list[str]:
    return [
        *found.assumptions,
        "Peers: at least 4 other GPUs of the same model on the same work in the same hour.",
        f"{number(found.tests)} tests; of what is believed, at most {_chance(found)} are chance.",
    ]
