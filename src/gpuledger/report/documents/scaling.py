"""What do scaling and the trend of stored runs show? The result first, then what it rests on and which claims hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuledger import __version__
from gpuledger.encode import encode
from gpuledger.report.document import Block, Bullets, Document, Figures, Fold, Prose, Section, Terms
from gpuledger.report.documents import document_for
from gpuledger.report.documents.scaling_rows import Row, in_words, scaling_view
from gpuledger.report.outline import charts_of, load_outline
from gpuledger.report.tables import Table, make_table, styled
from gpuledger.report.written import amount, capital, gpus, loose
from gpuledger.scaling.figures import Facts, Ranged
from gpuledger.scaling.statement import Comparison, ScalingStatement
from gpuledger.scaling.trend import Slope, Trend, TrendPoint
from gpuledger.units import Unknown

NAME = "scaling"
FAULTS = 50
SHORT = 5


@document_for(ScalingStatement)
def scaling_document(s: ScalingStatement) -> Document:
    """The document of a scaling report."""
    view, facts = scaling_view(s), _facts(s.facts)
    figures = load_outline(NAME).key_figures(view)
    return Document(
        name=NAME,
        kind="Scaling report",
        title=f"Scaling report, {facts[0]}",
        headline=s.headline,
        notes=[Prose(s.second, "lead")],
        facts=facts,
        figures=figures,
        summary=[Bullets(s.summary, "Executive summary", strong=True)],
        sections=[*_sections(s, view), *_back(s, view)],
        screen=[Prose(s.second), Figures(figures), *_screen(s, view)],
        data=lambda: {"made_by": f"gpuledger {__version__}", **encode("scaling", s)},
    )


def _facts(f: Facts) -> list[str]:
    """The file, how much ran, and for how long."""
    started = next((x.started for x in f.sources if x.started), None)
    wall = "wall clock unknown" if isinstance(f.wall_s, Unknown) else f"{loose(f.wall_s)} s of wall clock"
    size = "GPUs unknown" if isinstance(f.gpus, Unknown) else gpus(f.gpus)
    return [
        Path(f.file).name, amount(str(f.nodes_n), "node"), size, wall, *([f"started {started}"] if started else [])
    ]  # fmt: skip


def _sections(s: ScalingStatement, view: Row) -> list[Section]:
    """Those that have something to show: comparison and sweep only where there is one."""
    outline, problems = load_outline(NAME), [f"{n.node}: {p}" for n in s.facts.nodes for p in n.problems]
    skip = {"comparison": not isinstance(s.comparison, Comparison), "batches": not s.facts.batches.points}
    after: dict[str, list[Block]] = {
        "scorecard": [Prose(s.overall_words)],
        "scaling": [Prose(_curve(s))],
        "nodes": [Bullets(problems, "Problems")] if problems else [],
        "batches": [Bullets(_knee(s))],
        "public": [Prose(s.public_words)],
        "comparison": [Bullets(_settings(s))],
        "readiness": [Bullets(_readiness(s), strong=True)],
        "recommendations": [Bullets(lines, horizon.capitalize()) for horizon, lines in s.recommendations],
    }
    return [
        outline.section(kind, view, charts_of(NAME, kind.id, s), after.get(kind.id, ()))
        for kind in outline.sections
        if not skip.get(kind.id)
    ]


def _back(s: ScalingStatement, view: Row) -> list[Section]:
    """Glossary, assumptions, faults, what is unknown, and the files it comes from."""
    outline, f = load_outline(NAME), s.facts
    gaps = [(n["figure"], n["why"]) for n in encode("scaling", s)["not_known"]]
    unknown = Fold(amount(str(len(gaps)), "figure"), [Terms(gaps)]) if gaps else Prose("Every figure is known.")
    seed = f"Seed of every interval: {f.seed}. The same files and seed give the same figures."
    return [
        Section("words", "What each number means", [outline.terms()]),
        Section("assumptions", "Assumptions", [Bullets(f.assumptions)]),
        Section(
            "faults",
            "Faults in the results",
            [Bullets(faults(s, FAULTS), empty="No line was at fault.")],
        ),
        Section("unknown", "Unknown", [unknown]),
        Section("provenance", "Provenance", [outline.table("sources", view), Prose(seed)]),
    ]


def _screen(s: ScalingStatement, view: Row) -> list[Block]:
    """The scorecard, what contradicts the run, what holds it back, and whether it is ready."""
    outline = load_outline(NAME)
    card = outline.table("scorecard", view)
    letter = "not graded" if isinstance(s.overall, Unknown) else s.overall
    out: list[Block] = [_columns(card, 3), Prose(f"Overall: {letter}. {s.overall_words}", "strong")]
    wrong = [f"{c['claim']} {c['value']}: {c['why']}" for c in view["claims"] if c["verdict"] == "contradicted"]
    if s.claims:
        title = f"Claims contradicted: {len(wrong)} of {len(s.claims)}"
        out.append(Bullets(_first(wrong, SHORT), title) if wrong else Prose(f"{title}."))
    caught = [c.title.lower() for c in s.checks if c.caught]
    if caught:
        looked = f"Mistakes caught ({len(caught)} of {len(s.checks)} looked for)"
        out.append(Prose(f"{looked}: {', '.join(caught)}.", "warning"))
    if isinstance(s.comparison, Comparison):
        out += [outline.table("changes", view), Bullets(_settings(s))]
    out += [outline.table("predictions", view), replace(outline.table("bottlenecks", view), screen_rows=SHORT)]
    if s.facts.faults:
        out.append(Bullets(faults(s, SHORT), "Faults in the results"))
    return [*out, Bullets(_readiness(s), "Readiness")]


def _columns(table: Table, most: int) -> Table:
    """The first columns of a table, without its note."""
    return replace(
        table, heads=table.heads[:most], words=table.words[:most], below=(), wide=(), note="",
        rows=tuple(row[:most] for row in table.rows),
    )  # fmt: skip


def _first(lines: Sequence[str], most: int, where: str = "") -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - most
    return [*lines[:most], *([f"and {more:,} more{where}"] if more > 0 else [])]


def faults(s: ScalingStatement, most: int) -> list[str]:
    """The first faults of the results, and how many more there are."""
    return _first(s.facts.faults, most, "; the JSON has them all")


def _curve(s: ScalingStatement) -> str:
    curve = s.facts.scaling.curve
    return f"No prediction for other sizes: {curve.refused}." if curve.refused else f"The law is {curve.note}."


def _knee(s: ScalingStatement) -> list[str]:
    found = s.facts.batches
    knee = in_words(found.knee, lambda n: f"batch {n}; beyond it, doubling gives less than 1.41 times as much")
    return [f"Knee: {knee}.", *([f"{capital(found.note)}."] if found.note else [])]


def _readiness(s: ScalingStatement) -> list[str]:
    r = s.readiness
    kinds = (("Against", r.against), ("Unknown", r.unknown), ("For", r.passed))
    return [f"Verdict: {r.verdict}.", *(f"{kind}: {words}." for kind, found in kinds for words in found)]


def _settings(s: ScalingStatement) -> list[str]:
    if not isinstance(s.comparison, Comparison):
        return []
    return [f"Before: {s.comparison.before_file}.", *(s.comparison.settings or ("No setting differs.",))]


HEADS = ("Run", "Started", "Nodes", "Success", "Answers/s", "Warm mean, s")


@document_for(Trend)
def trend_document(trend: Trend) -> Document:
    """The runs in order, then what changed from one to the next."""
    points = trend.points
    rows = [
        (
            Path(p.file).name, _started(p.started), str(p.nodes), styled(_value(p.success_pct), "percent"),
            styled(_value(p.throughput_per_s), "factor"), styled(_value(p.warm_latency_mean_s), "factor"),
        )
        for p in points
    ]  # fmt: skip
    changes = [words for p in points if p.changes for words in _since(p)]
    summary: list[Block] = [make_table("runs", "Runs", HEADS, "wwnnnn", rows, screen_rows=len(rows))]
    return Document(
        name="trend",
        kind="Trend",
        title=f"Trend of {amount(str(len(points)), 'run')}",
        headline=_headline(points),
        facts=[amount(str(len(points)), "run"), f"order: {trend.order}"],
        summary=[
            *summary,
            Bullets([f"{s.figure}: {_direction(s)}" for s in trend.slopes], "Slope over the runs"),
            Bullets(changes, "Changes beyond noise, from run to run"),
        ],
        data=lambda: encode("scaling_trend", trend),
    )


def _headline(points: tuple[TrendPoint, ...]) -> str:
    runs = amount(str(len(points)), "run")
    first, last = points[0].throughput_per_s, points[-1].throughput_per_s
    if isinstance(first, Unknown) or isinstance(last, Unknown):
        return runs
    return f"{runs}: {loose(first.value)} answers per second in the first, {loose(last.value)} in the last"


def _direction(s: Slope) -> str:
    slope = "" if isinstance(s.per_run_pct, Unknown) else f" ({s.per_run_pct:+.2f} % of the mean per run)"
    return f"{s.direction}{slope}"


def _started(instant: str | None) -> str:
    """To the minute, as in the other tables."""
    return "not given" if instant is None else instant[:16].replace("T", " ")


def _since(point: TrendPoint) -> list[str]:
    """A change of settings first: then the figures are not a trend of the same thing."""
    name = Path(point.file).name
    settings = [f"{name}: settings changed: {'; '.join(point.settings)}"] if point.settings else []
    moved = [
        f"{c.figure} {c.words if isinstance(c.change_pct, Unknown) else f'{c.change_pct.value:+.1f} %'}"
        for c in point.changes
        if c.beyond_noise is True
    ]
    return [*settings, f"{name}: {', '.join(moved) or 'nothing'}"]


def _value(found: Ranged) -> float | Unknown:
    return found if isinstance(found, Unknown) else found.value
