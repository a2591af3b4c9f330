"""Does the ledger know its devices from single samples only, which stand for no time?"""

from __future__ import annotations

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.lake.batch import device_name
from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.telemetry import schema


def devices_without_time(lake: Lake, scope: Scope, limits: Thresholds) -> set[str]:
    """The devices in scope where no sample of theirs stands for any time; none as soon as one does."""
    books, found = Books(lake, scope, limits), set[str]()
    for _, rows in books.blocks((), ("observed_ms",)):
        if rows["observed_ms"].any():
            return set()
        texts = (books.names[name].text(rows[name]) for name in schema.DEVICE)
        found |= {device_name(board, instance) for board, instance in zip(*texts, strict=True)}
    return found
