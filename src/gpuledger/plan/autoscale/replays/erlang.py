"""How long do requests wait for one of many servers? Closed forms (Erlang B and C, M/M/c) over whole arrays.

Arrivals are Poisson, service times exponential, one queue in order of arrival. `offered` is the mean number of busy
servers: rate x service time.
"""

from __future__ import annotations

import numpy as np

# Servers that exceed the load by this number of standard deviations are never all busy; this far below it, always.
_FAR = 9.0


def erlang_b(offered: np.ndarray, servers: np.ndarray) -> np.ndarray:
    """The share of arrivals that would find all servers busy if none could wait.

    1/B(n) = 1 + n/offered / B(n-1), for all pairs at once. It starts where servers are so few that they are all busy
    (B = 1 - n/offered): what that leaves out shrinks at every step.
    """
    offered, servers = np.asarray(offered, float), np.asarray(servers, np.int64)
    out = np.where(servers > 0, 0.0, 1.0)
    used = np.flatnonzero((offered > 0) & (servers > 0) & (servers - offered <= _FAR * np.sqrt(offered) + 200))
    load, n = offered[used], servers[used]
    first = np.minimum(np.maximum(np.floor(load - _FAR * np.sqrt(load) - 20), 0).astype(np.int64), n)
    order = np.argsort(n - first, kind="stable")
    load, n, first, used = load[order], n[order], first[order], used[order]
    inverse = 1.0 / (1.0 - first / load)
    steps = n - first
    ends = np.searchsorted(steps, np.arange(int(steps.max(initial=0)) + 1))
    with np.errstate(over="ignore"):  # infinite: never blocked
        for step in range(1, len(ends)):
            left = ends[step]  # pairs before it have their servers already
            inverse[left:] = 1.0 + inverse[left:] * ((first[left:] + step) / load[left:])
    out[used] = 1.0 / inverse
    return out


def erlang_c(offered: np.ndarray, servers: np.ndarray) -> np.ndarray:
    """The share of arrivals that wait; 1 where the servers cannot keep up."""
    offered, servers = np.asarray(offered, float), np.asarray(servers, np.int64)
    stable = offered < servers
    out = np.ones(len(offered))
    if stable.any():
        blocked, load = erlang_b(offered[stable], servers[stable]), offered[stable] / servers[stable]
        out[stable] = blocked / (1.0 - load * (1.0 - blocked))
    return out


def wait_tail(offered: np.ndarray, servers: np.ndarray, service_s: float, beyond_s: float) -> np.ndarray:
    """The share of arrivals that wait longer than `beyond_s`; 1 where the servers cannot keep up."""
    offered, servers = np.asarray(offered, float), np.asarray(servers, np.int64)
    spare = np.maximum(servers - offered, 0.0)
    return erlang_c(offered, servers) * np.exp(-spare * beyond_s / service_s)


def mean_wait_s(offered: np.ndarray, servers: np.ndarray, service_s: float, at_most_s: float = np.inf) -> np.ndarray:
    """The mean wait of all arrivals, each counted up to `at_most_s`; infinite where the servers cannot keep up."""
    offered, servers = np.asarray(offered, float), np.asarray(servers, np.int64)
    spare_per_s = np.maximum(servers - offered, 0.0) / service_s
    with np.errstate(divide="ignore", invalid="ignore"):
        longest = 1.0 if np.isinf(at_most_s) else -np.expm1(-spare_per_s * at_most_s)
        waits = erlang_c(offered, servers) * longest / spare_per_s
    return np.where(spare_per_s > 0, waits, at_most_s)


def least_servers(
    offered: np.ndarray, service_s: float, beyond_s: float, missed_ratio: float, lot: int = 1
) -> np.ndarray:
    """The fewest lots of `lot` servers with which at most `missed_ratio` wait longer than `beyond_s`."""
    offered = np.asarray(offered, float)
    low = np.floor(offered / lot).astype(np.int64)  # too few: they cannot keep up
    high = low + 1
    busy = offered > 0
    while (short := busy & (wait_tail(offered, high * lot, service_s, beyond_s) > missed_ratio)).any():
        low = np.where(short, high, low)
        high = np.where(short, 2 * high - np.floor(offered / lot).astype(np.int64), high)
    while (open_ := busy & (high - low > 1)).any():
        middle = (low + high) // 2
        enough = wait_tail(offered, middle * lot, service_s, beyond_s) <= missed_ratio
        high = np.where(open_ & enough, middle, high)
        low = np.where(open_ & ~enough, middle, low)
    return np.where(busy, high, 0)
