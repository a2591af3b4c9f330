"""Which rows of a file of the inventory were not used, why, and for how many dollars?"""

from __future__ import annotations

from decimal import Decimal

from gpuledger.cost.inventories.findings import ZERO, FileUse, InventoryUse, Skipped, Why

_WORDS = {
    Skipped.NO_GPU: ("is for a machine without GPUs", "are for machines without GPUs"),
    Skipped.NOT_COMPUTE: ("is not for running a machine", "are not for running a machine"),
    Skipped.NO_MACHINE: ("names no machine", "name no machine"),
    Skipped.NO_COST: ("has no cost", "have no cost"),
}
_NO_GPU_OF_LAKE = ("fits no GPU of the lake", "fit no GPU of the lake")
_TIME = "for time before the first or after the last sample"
_OUTSIDE = (f"is {_TIME}", f"are {_TIME}")
_OTHER_BILL = "give the bill that has the machines with GPUs"
_NEXT = {
    Skipped.NO_GPU: _OTHER_BILL,
    Skipped.NOT_COMPUTE: _OTHER_BILL,
    Skipped.NO_MACHINE: "export it with the names of the machines (resource IDs)",
    Skipped.NO_COST: "export it with costs",
}


def not_used(file: FileUse, use: InventoryUse) -> str:
    """The rows that were not used, by reason, the most dollars first; that rows fit no GPU, only where none did."""
    parts = [
        (rows, file.skipped_usd.get(why, ZERO), _WORDS[why], file.skipped_unread.get(why, 0))
        for why, rows in file.passed_over.items()
    ]
    outside = [u for u in use.unmatched if u.file == file.path and u.why is Why.OUTSIDE_LAKE]
    missed = [] if file.used else [u for u in use.missed if u.file == file.path]
    for found, words in ((missed, _NO_GPU_OF_LAKE), (outside, _OUTSIDE)):
        if found:
            parts.append((sum(u.rows for u in found), sum((u.usd for u in found if u.usd is not None), ZERO), words, 0))
    parts.sort(key=lambda part: (-part[1], -part[0]))
    out: list[str] = []
    for rows, usd, (one, many), unread in parts:
        of = f" of {file.rows:,} row{'s' * (file.rows != 1)}" if not out else ""
        costs = [_dollars(usd)] * bool(usd)
        costs += [f"the cost of {unread:,} cannot be read"] * bool(unread)
        worth = f" ({', '.join(costs)})" if costs else ""
        out.append(f"{rows:,}{of} {one if rows == 1 else many}{worth}")
    return ", ".join(out)


def has_dollars_left(file: FileUse, use: InventoryUse) -> bool:
    """Whether rows that were passed over, or are for other times, cost anything, or may."""
    outside = (u.usd for u in use.unmatched if u.file == file.path and u.why is Why.OUTSIDE_LAKE)
    return any(file.skipped_usd.values()) or any(file.skipped_unread.values()) or any(outside)


def _dollars(usd: Decimal) -> str:
    return f"{'-' * (usd < 0)}${abs(usd):,.2f}"


def next_file(file: FileUse, use: InventoryUse) -> str:
    """What to do about a file of which no row was used; empty where rows that fit no GPU have a step of their own."""
    if not file.passed_over or any(u.file == file.path for u in use.missed):
        return ""
    return _NEXT[max(file.passed_over, key=lambda why: file.passed_over[why])]
