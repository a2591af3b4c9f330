"""What does an answer about memory show? Whether it fits, what takes the memory, and what would make it fit."""

from __future__ import annotations

from collections.abc import Callable

from gpuledger.encode import encode
from gpuledger.plan.fitting.build import Fit
from gpuledger.plan.measured_types import RangeFrom
from gpuledger.plan.memory.paged import Paged, is_paged
from gpuledger.report.document import Block, Bullets, Document, KeyFigure, Prose, Section, Terms
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Cell, Row, Table, cell, make_table
from gpuledger.report.written import number, percent
from gpuledger.units import Unknown

GB = 1_000_000_000
BARELY = "fits barely: within the error of the estimate"
RANGE_FROM: dict[RangeFrom, str] = {
    "measured_type": "type measured on a GPU",
    "first_plans": "type not measured on a GPU; range of first predictions",
}


@document_for(Fit)
def fit_document(fit: Fit) -> Document:
    """The document of an answer about memory."""
    unknown: list[Block] = [Terms([(part, f"unknown: {why}") for part, why in fit.not_known.items()])]
    memory: list[Block] = [parts_table(fit), *range_note(fit.range_from), *(unknown if fit.not_known else [])]
    if fit.paged:
        most = f"{fit.paged.sequences:,} sequences {_held(fit, fit.paged)}; {fit.paged.asked:,} asked for."
        blocks = f"{fit.paged.blocks:,} blocks of {fit.paged.block_tokens} tokens: {fit.paged.tokens:,} tokens in all."
        memory.append(Prose(f"Paged cache: {most} {blocks}"))
    remedies: list[Block] = [] if fit.fits else [remedies_table(fit)]
    if any(remedy.close for remedy in fit.remedies):
        remedies.append(Prose(f"! {BARELY}.", "note"))
    return Document(
        name="fit",
        kind="Memory fit",
        title=f"Memory of {fit.model}",
        headline=headline(fit),
        facts=[fit.setup.precision, f"{gb(fit.capacity_bytes)} per GPU {_room(fit)}"],
        figures=key_figures(fit),
        sections=[
            Section("memory", "Memory", memory),
            Section("remedies", "Remedies", remedies or [Prose("It fits as it is.")]),
            Section("assumptions", "Assumptions", [Bullets([*fit.assumptions, f"memory: {fit.capacity_from}"])]),
        ],
        screen=[*memory, *remedies],
        data=lambda: encode("fit", fit),
    )


def gb(value: int, places: int = 1) -> str:
    """Bytes as GB."""
    return f"{number(value / GB, places)} GB"


def headline(fit: Fit) -> str:
    """Does it fit, and by how much, in one sentence."""
    params = f"{fit.params_total / 1e9:,.1f} B" if fit.params_total >= 1e9 else f"{fit.params_total / 1e6:,.1f} M"
    job = f"{fit.model} ({params}) to {fit.setup.mode} on {fit.setup.count} x {fit.gpu}"
    need = f"{'at least ' if fit.at_least else ''}{gb(fit.total_bytes)} per GPU"
    if not fit.fits:
        return f"Does not fit: {job}: {need}, {gb(-fit.free_bytes)} too much."
    word = "What is known fits" if fit.at_least else "Fits, barely" if fit.close else "Fits"
    return f"{word}: {job}: {need}, {'at most ' if fit.at_least else ''}{gb(fit.free_bytes)} free."


def key_figures(fit: Fit) -> list[KeyFigure]:
    """What it needs, what the card has, and what is left or missing."""
    least = "at least: a part is unknown" if fit.at_least else "of the fullest GPU"
    label, note = ("Free", "left") if fit.fits else ("Too much", "missing")
    return [
        KeyFigure("Need", gb(fit.total_bytes), _range(fit, gb), least),
        KeyFigure("Card", gb(fit.capacity_bytes), "", _room(fit)),
        KeyFigure(label, gb(abs(fit.free_bytes)), "", note),
        *([KeyFigure("Sequences", f"{fit.paged.sequences:,}", "", _held(fit, fit.paged))] if fit.paged else []),
    ]


def range_note(rests_on: RangeFrom | None) -> list[Block]:
    """Which runs set the range of a traced plan, where it is one."""
    return [Prose(f"Range: {RANGE_FROM[rests_on]}.", "note")] if rests_on else []


def _range(fit: Fit, words: Callable[[int], str]) -> str:
    """From the least to the most it may need."""
    high = fit.high_bytes
    return f"from {words(fit.low_bytes)}" if isinstance(high, Unknown) else f"{words(fit.low_bytes)} to {words(high)}"


def _room(fit: Fit) -> str:
    """What the memory of a card means."""
    if is_paged(fit.setup):
        return f"taken by the server: {100 * fit.setup.memory_share:g} % of the card"
    return "visible to a program"


def _held(fit: Fit, paged: Paged) -> str:
    """What the figure of sequences means."""
    each = f"{number(paged.sequence_bytes / GB, 2)} GB each in a pool of {gb(paged.pool_bytes)}"
    return f"of {fit.setup.context:,} tokens fit per copy, {each}"


def parts_table(fit: Fit) -> Table:
    """Memory by part, their total and its range."""

    def row(name: str, size: int) -> Row:
        share = fit.of_capacity_pct[name]
        return [name, cell(number(size / GB, 2), size), cell(percent(share), share)]

    rows = [row(name, size) for name, size in fit.per_gpu_bytes.items()]
    rows += [[name, Cell("unknown", unknown=True), ""] for name in fit.not_known]
    rows.append(["range of the total", _range(fit, lambda size: number(size / GB, 1)), ""])
    named = "total of what is known" if fit.at_least else "total"
    total = tuple(c if isinstance(c, Cell) else cell(c) for c in (named, *row("total", fit.total_bytes)[1:]))
    heads = ("Part", "GB", "Of the card")
    return make_table("parts", "Memory of the fullest GPU", heads, "wnn", rows, total=total)


def remedies_table(fit: Fit) -> Table:
    """What makes it fit; an exclamation mark where it does so barely."""
    barely = any(remedy.close for remedy in fit.remedies)
    rows: list[Row] = [
        [
            "; ".join(remedy.changes),
            remedy.options,
            cell(f"{'at least ' if remedy.at_least else ''}{number(remedy.total_bytes / GB, 1)}", remedy.total_bytes),
            cell(number(remedy.free_bytes / GB, 1) + (" !" if remedy.close else "  " if barely else ""),
                 remedy.free_bytes),
            "; ".join(remedy.costs),
        ]
        for remedy in fit.remedies
    ]  # fmt: skip
    heads = ("Change", "Options", "GB per GPU", "Free GB", "What it costs")
    caption = "What makes it fit, the least change first"
    empty = f"It fits nowhere: {fit.nowhere}." if fit.nowhere else ""
    return make_table("remedies", caption, heads, "wwnnW", rows, empty=empty)
