"""What do all plans show in the same way? Dollars with their range, what was refused, assumptions, what is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from gpuledger.plan.outcome import Plan, Refused, UsdRange
from gpuledger.report.document import Block, Bullets, KeyFigure, Section
from gpuledger.report.documents.efficiency import unknown_section
from gpuledger.report.tables import Table, make_table
from gpuledger.report.written import usd
from gpuledger.units import Unknown

NONE_REFUSED = "Nothing was refused."
SCREEN_REFUSED = 3


def dollar_figure(label: str, value: UsdRange | Decimal | Unknown, note: str = "") -> KeyFigure:
    """Dollars at the top of a plan, with their range where they have one."""
    if isinstance(value, Unknown):
        return KeyFigure(label, "unknown", "", value.why, unknown=True)
    if isinstance(value, Decimal):
        return KeyFigure(label, usd(value), "", note)
    return KeyFigure(label, usd(value.middle_usd), f"{usd(value.low_usd)} to {usd(value.high_usd)}", note)


def refused_table(refused: Sequence[Refused], caption: str = "What was refused, and why") -> Table:
    """Options that were not taken, why, and what would change that."""
    rows = [[r.what, r.why, r.instead] for r in refused]
    heads = ("Option", "Why not", "What would change that")
    return make_table("refused", caption, heads, "www", rows, empty=NONE_REFUSED)


def closing_sections(plan: Plan, data: Mapping[str, Any]) -> list[Section]:
    """The sections every plan ends with: refused, assumptions, unknown. `data`: the plan's JSON."""
    gaps = [(str(gap["figure"]), str(gap["why"])) for gap in data.get("not_known", ())]
    return [
        Section("refused", "What was refused", [refused_table(plan.refused)]),
        Section("assumptions", "Assumptions", [Bullets(plan.assumptions)]),
        unknown_section(gaps),
    ]


def refused_few(refused: Sequence[Refused]) -> list[Block]:
    """The first refusals, for a terminal."""
    if not refused:
        return []
    more = len(refused) - SCREEN_REFUSED
    shown = [f"{r.what}: {r.why}" for r in refused[:SCREEN_REFUSED]]
    return [Bullets([*shown, *([f"and {more} more (--full)"] if more > 0 else [])], "Refused")]
