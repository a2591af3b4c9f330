"""What is the agent of a host doing at this moment?

status.json has what the agent wrote last. What waits, was shipped and was lost since is in the spool itself: another
process may have shipped it. Whether the agent still runs is known from its lock, whatever it wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gpuledger.agent.notes import AgentNotes, read_status
from gpuledger.agent.spool import Spool


def counted(spool: Spool) -> dict[str, Any]:
    """What a spool holds, and what became of the samples so far, as fields of `AgentNotes`."""
    state, waiting = spool.state(), spool.batches()
    parts = spool.live.manifest().parts if spool.live.exists() else ()
    return {
        "spool": state.id,
        "last_ship_ms": state.last_ship_ms,
        "spool_bytes": spool.size_bytes(),
        "waiting_rows": sum(b.rows for b in waiting) + sum(p.rows for p in parts),
        "waiting_batches": len(waiting),
        "shipped_rows": state.shipped_rows,
        "shipped_batches": state.shipped_batches,
        "rejected_rows": state.rejected_rows,
        "failures": state.failures,
        "losses": state.losses,
        "problem": state.problem,
    }


def status_of(root: Path) -> AgentNotes | None:
    """The agent of a spool as it is now; None where none ever ran with it."""
    left = read_status(root)
    if left is None:
        return None
    spool = Spool(root, left.spool_max_bytes)
    now = counted(spool)
    shipped_since = (now["last_ship_ms"] or 0) > left.at_ms
    now["problem"] = now["problem"] or ("" if shipped_since else left.problem)
    killed = left.state == "running" and spool.is_owned() is False
    return replace(left, **now, state="killed" if killed else left.state)
