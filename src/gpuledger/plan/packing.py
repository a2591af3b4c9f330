"""How many GPUs do these loads need, put together as far as memory and time allow?

A load is moved whole: it needs its peak memory at all times and its busy time in its busiest hours. Alone on a GPU it
may fill it; together loads may fill it as far as is planned, since their busy hours may meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Parcel:
    """What one load needs of one GPU: shares of its memory and of its time. `alone`: it shares with nobody."""

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
    room: list[tuple[float, float, bool]] = []
    for i in order:
        one = parcels[i]
        place = next((n for n, r in enumerate(room) if _takes(r, one, full_ratio)), None)
        if place is None:
            out.append([i])
            room.append((one.memory_ratio, one.time_ratio, one.alone))
        else:
            out[place].append(i)
            memory, time, _ = room[place]
            room[place] = (memory + one.memory_ratio, time + one.time_ratio, False)
    return out


def _takes(used: tuple[float, float, bool], one: Parcel, full_ratio: float) -> bool:
    memory, time, alone = used
    if alone or one.alone:
        return False
    return memory + one.memory_ratio <= 1 and time + one.time_ratio <= full_ratio
