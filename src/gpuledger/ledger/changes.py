"""What did the counters gain between one sample and the next, and whose was it?

A gain belongs to the span of the sample before it. Energy comes from the counter where it runs on without a hole, else
from power; a counter that stands still all day does not count, as every GPU that is on draws some. Energy is shared
among owners and cut at hour edges in proportion to time, whole mJ, nothing lost.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpuledger.lake.batch import Batch
from gpuledger.ledger.grouping import Grouped
from gpuledger.ledger.measures import Sums
from gpuledger.ledger.spans import Edge, Stamps, share_out
from gpuledger.native.line_sums import whole

ERRORS = {
    "pcie_replays": "pcie_replays",
    "remapped_correctable_rows": "rows_remapped",
    "remapped_uncorrectable_rows": "rows_remapped",
    "row_remap_failures": "row_remap_failures",
    "xid": "xid_events",
}
# A counter that moves in steps may stand still for less than this.
STILL_FROM_MS = 60_000


def add_errors(sums: Sums, batch: Batch, stamps: Stamps, edges: Mapping[str, Edge], grouped: Grouped) -> None:
    """Add what the error counters gained, and the driver errors that appeared."""
    last = stamps.last()
    ahead = [edges.get(d) for d in batch.devices] if edges else []
    for name, column in ERRORS.items():
        if name in batch.steady:  # most often: counters of faults stand still
            ends = np.full(len(last), batch.steady[name])
        elif (values := batch.numbers(name)) is not None:
            now = stamps.of(values)
            ends = now[last]
            if (differs := now[1:] != now[:-1]).any():
                moved = np.flatnonzero(differs)
                rows = moved if stamps.row is None else stamps.row[moved]
                after = moved + 1 if stamps.row is None else stamps.row[moved + 1]
                moved = moved[batch.devices_at(rows) == batch.devices_at(after)]
                _count(sums, column, moved, _gain(name, now[moved], now[moved + 1]), stamps, grouped)
        else:
            continue
        if ahead:
            then = np.array([np.nan if e is None else e.counters.get(name, np.nan) for e in ahead])
            gain = _gain(name, ends, then)
            if gain.any():
                _count(sums, column, last, gain, stamps, grouped)


def _gain(name: str, now: np.ndarray, then: np.ndarray) -> np.ndarray:
    """What came between two readings; a counter that fell was restarted and says nothing."""
    if name == "xid":
        return np.where((then > 0) & (then != now) & ~np.isnan(now), 1.0, 0.0)
    return np.nan_to_num(np.maximum(then - now.astype(np.float64), 0.0))


def _count(sums: Sums, column: str, at: np.ndarray, gain: np.ndarray, stamps: Stamps, grouped: Grouped) -> None:
    """Add gains at a few instants to the line of the first piece of their first row."""
    out = sums.out.setdefault(column, np.zeros(len(sums.observed)))
    at, gain = at[gain > 0], gain[gain > 0]
    if len(at):
        line = grouped.lines_opened(at if stamps.row is None else stamps.row[at])
        np.add.at(out, line[line >= 0], gain[line >= 0])


def add_energy(
    sums: Sums,
    batch: Batch,
    stamps: Stamps,
    edges: Mapping[str, Edge],
    grouped: Grouped,
    start: np.ndarray,
    full: np.ndarray,
) -> None:
    """Add energy: counted where the counter ran on, else power x time; and the time it is known for."""
    rows, ms = sums.lines, sums.lines.ms
    now = batch.numbers("energy_mj")
    power = sums.rows.get("power_w")
    if now is None:
        rest = np.arange(len(ms))
        energy = np.full(len(ms), np.nan)
    else:
        gain, good = _counted(stamps.of(now), stamps, edges, batch.devices)
        if stamps.owners is not None:
            place, n = stamps.place()
            whole_gain, good = stamps.per_row(gain).astype(np.int64), stamps.per_row(good)
            gain = whole_gain * (place + 1) // n - whole_gain * place // n
        if grouped.pieces.opens is None:
            gain = grouped.of(gain)
        else:
            gain = share_out(gain.astype(np.int64), start, full, grouped.pieces)
        energy = gain.astype(np.float64, copy=False)
        rest = np.flatnonzero(~grouped.of(good)) if not good.all() else np.zeros(0, dtype=np.int64)
    if len(rest):
        sample = rest if rows.row is None else rows.row[rest]
        energy[rest] = np.nan if power is None else whole(whole(power[sample], 1e3) * ms[rest], 1e-3)
    silent = rest[np.isnan(energy[rest])]
    energy[silent] = 0.0
    sums.put("energy_mj", energy)
    sums.out["energy_ms"] = sums.observed
    if len(silent):
        lost = np.bincount(grouped.line_of(silent), ms[silent], len(sums.observed))
        sums.out["energy_ms"] = np.asarray(sums.observed - lost)


def _counted(
    now: np.ndarray, stamps: Stamps, edges: Mapping[str, Edge], devices: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Each instant's whole gain of the energy counter, and whether to trust it: no hole, no restart, both read."""
    last = stamps.last()
    gain = np.empty(len(now), dtype=np.float64)
    np.subtract(now[1:], now[:-1], out=gain[:-1])
    then = [e.counters.get("energy_mj", np.nan) if (e := edges.get(d)) else np.nan for d in devices]
    gain[last] = np.array(then) - now[last]
    good = (gain >= 0) & (stamps.next_ms - stamps.at_ms == stamps.span_ms)
    good &= ~_still(gain, stamps)
    if not good.all():
        gain[~good] = 0.0
    return gain, good


def _still(gain: np.ndarray, stamps: Stamps) -> np.ndarray:
    """The instants of devices whose counter never moves: another die of the board counts for them, or none does."""
    starts = stamps.device_starts
    moves = np.logical_or.reduceat((gain > 0) | (gain < 0), starts)
    short = np.add.reduceat(stamps.span_ms, starts) < STILL_FROM_MS
    return np.repeat(~(moves | short), np.diff(starts, append=len(gain)))
