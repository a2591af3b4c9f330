"""What is the least that anyone who knew the future could have paid?

Least dollars under the condition that the work gets done by the deadline. With a price w on each hour of work instead
of the condition, the best path is found tick by tick; for every w, its value is at most the least cost (weak duality).
The highest such value over many w is given: a lower bound of the clairvoyant optimum, so regret is never understated.
The clairvoyant saves its state just before each reclaim and never loses work.
"""

from __future__ import annotations

import numpy as np

from gpuledger.plan.spot.replay import Terms, World

GRID = 48
ROUNDS = 2


def least_usd(world: World, terms: Terms) -> float:
    """A lower bound of the dollars of any schedule that meets the deadline."""
    low, high, best = 0.0, 2.0 * float(np.max(world.on_demand)), 0.0
    for _ in range(ROUNDS):
        worth = np.linspace(low, high, GRID)
        values = dual(world, terms, worth)
        at = int(np.argmax(values))
        best = max(best, float(values[at]))
        low, high = float(worth[max(at - 1, 0)]), float(worth[min(at + 1, GRID - 1)])
    return best


def dual(world: World, terms: Terms, worth: np.ndarray) -> np.ndarray:
    """For each price of an hour of work, the least of dollars + price x (work left)."""
    ticks = min(world.ticks, int(np.floor(terms.deadline_h / world.step_h + 1e-9)))
    pools = world.spot.shape[1]
    step = world.step_h
    prices = np.column_stack([np.where(world.up, world.spot, np.inf), world.on_demand])[:ticks] * step
    # Starting costs time in which no work is done; leaving one run for another costs a checkpoint.
    start, leave = worth[:, None] * terms.restart_h, worth * terms.save_h
    gain = worth[:, None] * step
    idle = np.zeros(len(worth))
    running = np.full((len(worth), pools + 1), np.inf)
    for tick in range(ticks):
        free = np.minimum(idle, running.min(axis=1) + leave)
        running = np.minimum(running, free[:, None] + start) + prices[tick] - gain
        idle = free
    # The last partial tick before the deadline, as on-demand work at best.
    rest = max(terms.deadline_h - ticks * step, 0.0)
    ends = np.minimum(idle, running.min(axis=1)) - np.maximum(worth - prices_floor(world), 0.0) * rest
    return ends + worth * terms.work_h


def prices_floor(world: World) -> float:
    """The lowest price of any hour in this world."""
    lowest = np.where(world.up, world.spot, np.inf).min(initial=np.inf)
    return float(min(lowest, world.on_demand.min()))
