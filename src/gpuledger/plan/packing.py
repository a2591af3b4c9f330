"""How many GPUs do these loads need, put together as far as memory and time allow?

A load is moved whole: it needs its peak memory at all times and its busy time in its busiest hours. Alone on a GPU it
may fill it; together loads may fill it as far as is planned, since their busy hours may meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Only the last begun GPUs are tried for the next load: a fleet of thousands is packed in time, hardly worse.
TRIED = 32
HAIR = 1e-9


@dataclass(frozen=True)
class Parcel:
    """What one load needs of one GPU: shares of its memory and of its time. `alone`: it shares with no other."""

    memory_ratio: float
    time_ratio: float
    alone: bool = False

    @property
    def fits(self) -> bool:
        """Whether a whole GPU holds it at all."""
        return self.memory_ratio <= 1 and self.time_ratio <= 1


def bins(parcels: Sequence[Parcel], full_ratio: float) -> list[list[int]]:
    """The loads of each GPU, by number: largest first, each on the first GPU with room. All must fit by themselves."""
    order = sorted(range(len(parcels)), key=lambda i: (-max(parcels[i].memory_ratio, parcels[i].time_ratio), i))
    out: list[list[int]] = []
    begun: list[tuple[int, float, float]] = []  # GPU, and what is left of its memory and its time
    for i in order:
        one = parcels[i]
        memory, time = one.memory_ratio, one.time_ratio
        shares = not one.alone and time < full_ratio and memory < 1
        # What is left is compared with a hair's breadth, so that three thirds are one.
        fits = (n for n, (_, m, t) in enumerate(begun) if memory <= m + HAIR and time <= t + HAIR)
        at = next(fits, -1) if shares else -1
        if at >= 0:
            place, m, t = begun[at]
            out[place].append(i)
            begun[at] = (place, m - memory, t - time)
            continue
        out.append([i])
        if shares:
            begun = [*begun[-TRIED + 1 :], (len(out) - 1, 1 - memory, full_ratio - time)]
    return out
