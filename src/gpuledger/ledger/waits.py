"""Which pauses are waits between two pieces of work, and how long are they?

A pause shorter than the limit, with work right before and right after it, is a wait: the GPU starves. A longer one is
idle time, and so is one at the edge of what was observed: whether work went on there is not known. Days are judged
apart: a pause over midnight is two pauses at an edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpuledger.ledger.spans import Stamps
from gpuledger.physics.states import RESTING, State

# Lengths: up to 1 s, up to 10 s, and the rest.
EDGES_MS = (1_000, 10_000)
COLUMNS = ("wait_1s_ms", "wait_10s_ms", "wait_30s_ms")


@dataclass(frozen=True)
class Waits:
    """By instant whether it is part of a wait, the place of its length in COLUMNS, and whether it opens one."""

    waiting: np.ndarray
    length: np.ndarray
    opens: np.ndarray


def find_waits(stamps: Stamps, state: np.ndarray, below_ms: int) -> Waits | None:
    """The waits among instants; None where there are none."""
    still = state == State.IDLE
    if not still.any() or stamps.span_ms[still].min() >= below_ms:
        return None
    first, last, after_hole = runs(stamps, state)
    end = stamps.at_ms + stamps.span_ms
    length = end[last] - stamps.at_ms[first]
    works = ~np.isin(state[first], RESTING)
    before = np.append(False, works[:-1]) & ~after_hole
    after = np.append(works[1:] & ~after_hole[1:], False)
    wait = (state[first] == State.IDLE) & before & after & (length < below_ms)
    if not wait.any():
        return None
    counts = last - first + 1
    place = np.searchsorted(EDGES_MS, length, side="right").astype(np.int8)
    opens = np.zeros(len(state), dtype=bool)
    opens[first[wait]] = True
    return Waits(np.repeat(wait, counts), np.repeat(place, counts), opens)


def runs(stamps: Stamps, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where runs of equal state without a hole begin and end, and which begin a device or follow a hole."""
    breaks = np.zeros(len(state), dtype=bool)
    breaks[stamps.device_starts] = True
    hole = np.flatnonzero((stamps.at_ms + stamps.span_ms < stamps.next_ms) & (stamps.next_ms >= 0)) + 1
    breaks[hole[hole < len(state)]] = True
    opens = breaks.copy()
    opens[1:] |= state[1:] != state[:-1]
    first = np.flatnonzero(opens)
    return first, np.append(first[1:], len(state)) - 1, breaks[first]
