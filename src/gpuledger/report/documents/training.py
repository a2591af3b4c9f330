"""What does a training meter's report show? Where the step's time goes, MFU, cost, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpuledger.lake.counted import CountedRun
from gpuledger.report.document import Article, Block, Code, Document, Figures, Heading, KeyFigure, Prose, Section
from gpuledger.report.tables import Cell, make_table
from gpuledger.report.written import amount
from gpuledger.training.meter.rank import Ranks, compare, times_in
from gpuledger.training.meter.shown import PHASES, Json, figures, rank_words, steps_words, unknown


def training_document(counted: Sequence[CountedRun], run_id: str | None = None) -> Document:
    """The measured runs, each as its first rank reports it; `run_id` chooses one."""
    runs = {name: ranks for name, ranks in by_run(counted).items() if run_id in (None, name)}
    return Document(
        name="training",
        kind="Training meter",
        title="Training meter",
        headline=f"{amount(str(len(runs)), 'training run')} measured",
        facts=[amount(str(sum(map(len, runs.values()))), "rank")],
        sections=[Section(name, _title(ranks[0].report), _run(ranks)) for name, ranks in runs.items()],
        data=lambda: {"runs": [run_data(name, ranks) for name, ranks in runs.items()]},
    )


def by_run(counted: Sequence[CountedRun]) -> dict[str, list[CountedRun]]:
    """The ranks of each run, in order; one without a report was cut off before its first."""
    runs: dict[str, list[CountedRun]] = {}
    for one in sorted(counted, key=lambda r: r.rank):
        if one.report:
            runs.setdefault(one.run_id, []).append(one)
    return runs


def run_data(run_id: str, ranks: Sequence[CountedRun]) -> dict[str, Any]:
    """A run as JSON holds it: each rank's whole report, and the ranks compared."""
    return {"run_id": run_id, "ranks": [r.report for r in ranks], "compared": asdict(_compared(ranks))}


def _compared(ranks: Sequence[CountedRun]) -> Ranks:
    return compare([times_in(r.report) for r in ranks])


def _title(report: Json) -> str:
    seen = report["seen"]
    return f"{seen['who']['run_id']}{rank_words(report)} on {seen['place']['name']}"


def _run(ranks: Sequence[CountedRun]) -> list[Block]:
    """Phases, figures, the slowest rank, findings, notes, and what is unknown."""
    report: Json = ranks[0].report
    seen = report["seen"]
    out: list[Block] = [Prose(steps_words(report), "dim")]
    if seen["timed_steps"]:
        out += [_phases(report), Figures([KeyFigure(label, text, "", note) for label, text, note in figures(report)])]
    if len(ranks) > 1:
        out.append(Prose(_compared(ranks).words))
    out += [_finding(i, found) for i, found in enumerate(report["findings"], 1)]
    out += [Prose(note, "warning") for note in seen["notes"]]
    return [*out, *(Prose(f"Unknown: {missing}", "dim") for missing in unknown(report))]


def _phases(report: Json) -> Block:
    rows = [
        [PHASES.get(name, name), f"{ms:,.2f}", Cell(f"{pct:.1f} %", pct, bar=pct)]
        for (name, ms), pct in zip(report["phases_ms"].items(), report["phases_pct"].values(), strict=True)
    ]
    total = (Cell("step"), Cell(f"{report['step_ms']:,.2f}"), Cell(""))
    return make_table("phases", "Where the step's time goes", ("Phase", "ms", "Share"), "wnn", rows, total=total)


def _finding(rank: int, found: Json) -> Article:
    """One finding with its evidence, what it saves and the change."""
    source = f" ({found['source']})" if found.get("source") else ""
    blocks: list[Block] = [Heading(found["title"], rank), Prose(found["why"]), Prose(f"{found['gain_words']}{source}")]
    return Article(f"finding-{rank}", [*blocks, Code(found["change"].rstrip(), "python")])
