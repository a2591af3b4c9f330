"""How is a statement shown by the dimension of ownership that was asked for?"""

from __future__ import annotations

from dataclasses import replace

from gpuledger.ledger.read.owners import By
from gpuledger.report.document import Block
from gpuledger.report.outline import load_outline
from gpuledger.report.tables import Table

TABLE = "asked"
SCREEN_ROWS = 20
_NOT_RECORDED = "Time without that label has a row of its own: no {by} was recorded for it."


def owner_table(document: str, statement: object, by: By | None, places: int | None = None) -> list[Table]:
    """The table by that dimension; nothing where none was asked for."""
    if by is None:
        return []
    made = load_outline(document).table(TABLE, statement, places)
    heads = (by.value.capitalize(), *made.heads[1:])
    note = f"{made.note} {_NOT_RECORDED.format(by=by.value)}".strip()
    return [replace(made, caption=f"By {by.value}", heads=heads, note=note, screen_rows=SCREEN_ROWS)]


def owner_blocks(document: str, statement: object, by: By | None, shown: frozenset[By]) -> list[Block]:
    """The same for a section that shows some dimensions anyway."""
    return [] if by in shown else [*owner_table(document, statement, by)]
