"""Which tables does an answer about memory fill?"""

from __future__ import annotations

from gpuledger.plan.fit.build import Fit
from gpuledger.report.documents.migrate import cell, table
from gpuledger.report.outline import Card
from gpuledger.report.tables import Cell, Table
from gpuledger.report.written import number, percent

GB = 1_000_000_000
NOT_KNOWN = "not known"


def gb(value: int, places: int = 1) -> str:
    """Bytes as GB."""
    return f"{number(value / GB, places)} GB"


def headline(fit: Fit) -> str:
    """Does it fit, in one sentence."""
    least = "at least " if fit.at_least else ""
    job = f"{fit.model} to {fit.setup.mode} on {fit.setup.count} x {fit.gpu}"
    if not fit.fits:
        return f"{job} does not fit: {least}{gb(fit.total_bytes)} a GPU, {gb(-fit.free_bytes)} too much."
    word = "what is known of it fits" if fit.at_least else "fits"
    return f"{job}: {word}, {least}{gb(fit.total_bytes)} a GPU, {gb(fit.free_bytes)} free."


def cards(fit: Fit) -> list[Card]:
    """The key figures."""
    least = "at least: a part is not known" if fit.at_least else "of the fullest GPU"
    free = "left" if fit.fits else "missing"
    return [
        Card("Need", gb(fit.total_bytes), f"{gb(fit.low_bytes)} to {gb(fit.high_bytes)}", least, False),
        Card("Card", gb(fit.capacity_bytes), "", "visible to a program", False),
        Card("Free" if fit.fits else "Too much", gb(abs(fit.free_bytes)), "", free, False),
    ]


BARELY = "fits barely: within the error of the estimate"


def parts_table(fit: Fit) -> Table:
    """Memory by part."""
    rows = [
        [cell(name), cell(number(part / GB, 2), part), cell(percent(fit.of_capacity_pct[name]), part)]
        for name, part in fit.per_gpu_bytes.items()
    ]
    rows += [[cell(name), Cell(NOT_KNOWN, None, unknown=True), cell(why)] for name, why in fit.not_known.items()]
    total = fit.of_capacity_pct["total"]
    rows.append([cell("total"), cell(number(fit.total_bytes / GB, 2), fit.total_bytes), cell(percent(total), total)])
    return table("parts", "Memory of the fullest GPU", ("Part", "GB", "Of the card"), "wnn", rows)


def remedies_table(fit: Fit) -> Table:
    """What makes it fit."""
    rows = [
        [
            cell("; ".join(remedy.changes)),
            cell(remedy.options),
            cell(number(remedy.total_bytes / GB, 1), remedy.total_bytes),
            cell(number(remedy.free_bytes / GB, 1), remedy.free_bytes),
            cell("; ".join((*remedy.costs, *((BARELY,) if remedy.close else ())))),
        ]
        for remedy in fit.remedies
    ]
    heads = ("Change", "Options", "GB a GPU", "Free GB", "What it costs")
    none = fit.nowhere or "It fits as it is."
    return table("remedies", "What makes it fit, the least change first", heads, "wwnnw", rows, empty=none)
