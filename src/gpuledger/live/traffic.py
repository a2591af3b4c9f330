"""How much memory did each device use, and how many bytes did it move? What the statements do not show by device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpuledger.lake.layout import Lake
from gpuledger.ledger.read.adding import Accumulator
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.scope import Scope
from gpuledger.telemetry import schema
from gpuledger.units import MIB

Device = tuple[str, str | None]
_SUMS = ("fb_ms", "fb_mib_ms", "pcie_rx_ms", "pcie_rx_bytes", "pcie_tx_ms", "pcie_tx_bytes")


@dataclass(frozen=True)
class Traffic:
    """Of one device over a window; None where it is not recorded."""

    memory_used_bytes: float | None
    memory_size_bytes: int | None
    received_bytes: int | None
    transmitted_bytes: int | None


def read_traffic(lake: Lake, scope: Scope) -> Mapping[Device, Traffic]:
    """All devices of a window."""
    books, sums = Books(lake, scope), Accumulator(most=("card_bytes",))
    for _, rows in books.blocks((), _SUMS, ("card_bytes",)):
        card = np.nan_to_num(rows["card_bytes"], nan=0.0).astype(np.int64)
        sums.add([rows[c] for c in schema.DEVICE], {c: rows[c] for c in _SUMS} | {"card_bytes": card})
    keys, columns = sums.total()
    if not keys:
        return {}
    uuids, instances = (books.names[c].text(k) for c, k in zip(schema.DEVICE, keys, strict=True))
    found = {name: values.tolist() for name, values in columns.items()}
    return {(uuid or "", part): _traffic(found, i) for i, (uuid, part) in enumerate(zip(uuids, instances, strict=True))}


def _traffic(found: Mapping[str, list[float]], i: int) -> Traffic:
    def moved(way: str) -> int | None:
        return int(found[f"pcie_{way}_bytes"][i]) if found[f"pcie_{way}_ms"][i] else None

    known = found["fb_ms"][i]
    used = found["fb_mib_ms"][i] / known * MIB if known else None
    return Traffic(used, int(found["card_bytes"][i]) or None, moved("rx"), moved("tx"))
