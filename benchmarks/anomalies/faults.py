"""How does a GPU break? Each fault changes the readings of one GPU from one hour on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from world import CLOCK, DRAM, ENGINE, LOAD, POWER, TEMP, UTIL, XID, Break, World, scale

TRAFFIC = ("DCGM_FI_PROF_PCIE_RX_BYTES", "DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL")
POWER_BY_CLOCK = 1.4  # of the recording the synthetic fleet follows


def _from(world: World, hour: int) -> slice:
    return slice(int(np.searchsorted(world.hour, hour)), None)


def _ramp(world: World, hour: int) -> np.ndarray:
    """From 0 at the hour to 1 at the end."""
    rest = world.hour[_from(world, hour)]
    return (rest - rest[0]) / max(rest[-1] - rest[0], 1e-9)


def _slow_clock(world: World, rows: slice, gpu: int, factor: np.ndarray | float) -> None:
    power, idle = world.columns[POWER], world.idle_w[gpu]
    world.columns[CLOCK][rows, gpu] *= factor
    power[rows, gpu] = idle + (power[rows, gpu] - idle) * np.asarray(factor) ** POWER_BY_CLOCK


def heat(world: World, gpu: int, hour: int, size: float, _: np.random.Generator) -> None:
    """A fan fails slowly: hotter, and a lower clock, more and more."""
    rows, ramp = _from(world, hour), _ramp(world, hour)
    world.columns[TEMP][rows, gpu] += ramp * 80 * size
    _slow_clock(world, rows, gpu, 1 - ramp * size)


def hot(world: World, gpu: int, hour: int, size: float, _: np.random.Generator) -> None:
    """Bad cooling: hotter by so many degrees, at the same clock."""
    world.columns[TEMP][_from(world, hour), gpu] += size


def power_cap(world: World, gpu: int, hour: int, size: float, _: np.random.Generator) -> None:
    """A power limit is set below what the work draws: the clock gives way sample by sample."""
    rows = _from(world, hour)
    power = world.columns[POWER][rows, gpu]
    cap = np.median(power) * (1 - size) ** POWER_BY_CLOCK
    over = np.maximum(power / cap, 1)
    world.columns[CLOCK][rows, gpu] *= over ** (-1 / POWER_BY_CLOCK)
    world.columns[POWER][rows, gpu] = np.minimum(power, cap)


def low_clock(world: World, gpu: int, hour: int, size: float, _: np.random.Generator) -> None:
    """The clock is locked."""
    rows = _from(world, hour)
    clock = world.columns[CLOCK][rows, gpu]
    _slow_clock(world, rows, gpu, np.minimum(1, np.median(clock) * (1 - size) / np.maximum(clock, 1)))


def slow_memory(world: World, gpu: int, hour: int, size: float, _: np.random.Generator) -> None:
    """Memory answers slowly: its interface is active for longer while less gets done."""
    rows = _from(world, hour)
    dram = world.columns[DRAM][rows, gpu] * (1 + size)
    scale(world, rows, gpu, 1 - size, power_follows=0.5)
    world.columns[DRAM][rows, gpu] = np.minimum(dram, 0.99)
    world.columns[ENGINE][rows, gpu] = np.clip(world.columns[ENGINE][rows, gpu] / (1 - size), 0, 0.99)


def noisy_neighbor(world: World, gpu: int, hour: int, size: float, chance: np.random.Generator) -> None:
    """Someone else takes the host's CPUs in four hours of ten."""
    rows = _from(world, hour)
    hit = chance.random(int(world.hour[-1]) + 1) < 0.4
    factor = np.where(hit[world.hour[rows].astype(int)], 1 - size, 1.0)
    scale(world, rows, gpu, factor, power_follows=0.7)
    world.columns[UTIL][rows, gpu] = world.columns[UTIL][rows, gpu] * (1 + factor) / 2  # it waits for its input


def stuck_idle(world: World, gpu: int, hour: int, size: float, chance: np.random.Generator) -> None:
    """Its process hangs for a share of the hours."""
    rows = _from(world, hour)
    hit = (chance.random(int(world.hour[-1]) + 1) < size)[world.hour[rows].astype(int)]
    for name in (*LOAD, UTIL, *TRAFFIC):
        world.columns[name][rows, gpu] = np.where(hit, 0, world.columns[name][rows, gpu])
    world.columns[POWER][rows, gpu] = np.where(hit, world.idle_w[gpu] * 1.2, world.columns[POWER][rows, gpu])


def xid_storm(world: World, gpu: int, hour: int, size: float, chance: np.random.Generator) -> None:
    """Driver errors, so many an hour."""
    rows = _from(world, hour)
    per_scrape = size * (world.hour[1] - world.hour[0])
    codes = world.columns[XID][rows, gpu]
    world.columns[XID][rows, gpu] = np.where(chance.random(len(codes)) < per_scrape, 94, codes)


def slowdown(world: World, gpu: int, hour: int, size: float, _: np.random.Generator) -> None:
    """From one hour on it does less, at the same clock and utilization."""
    scale(world, _from(world, hour), gpu, 1 - size, power_follows=0.7)


def drift(world: World, gpu: int, hour: int, size: float, _: np.random.Generator) -> None:
    """It does less and less."""
    scale(world, _from(world, hour), gpu, 1 - _ramp(world, hour) * size, power_follows=0.7)


@dataclass(frozen=True)
class Fault:
    """A way to break, its sizes, and the kinds a finding of it may have."""

    name: str
    apply: Break
    sizes: tuple[float, ...]
    kinds: frozenset[str]


_SLOWER = (0.05, 0.1, 0.2, 0.3)
FAULTS = (
    Fault("thermal throttling, growing", heat, (0.1, 0.2, 0.3), frozenset({"heat", "clock"})),
    Fault("power cap set", power_cap, _SLOWER, frozenset({"power limit", "clock"})),
    Fault("clock stuck low", low_clock, _SLOWER, frozenset({"clock", "power limit"})),
    Fault("memory bandwidth loss", slow_memory, (0.1, 0.2, 0.3), frozenset({"memory", "slow"})),
    Fault("noisy neighbor", noisy_neighbor, (0.1, 0.2, 0.3), frozenset({"slow", "starved"})),
    Fault("stuck idle", stuck_idle, (0.2, 0.5, 1.0), frozenset({"idle"})),
    Fault("XID storm, per hour", xid_storm, (0.05, 0.2, 1.0), frozenset({"driver errors"})),
    Fault("sudden slowdown", slowdown, _SLOWER, frozenset({"slow", "memory"})),
    Fault("slow drift", drift, (0.1, 0.2, 0.3), frozenset({"slow", "memory"})),
)
# What a GPU may have had for longer than its readings reach back: it neither grows nor comes and goes.
_OLD = (0.05, 0.07, 0.1, 0.2)
OLDER = (
    Fault("power cap set", power_cap, _OLD, frozenset({"power limit", "clock"})),
    Fault("clock stuck low", low_clock, _OLD, frozenset({"clock", "power limit"})),
    Fault("slow at the same work", slowdown, _OLD, frozenset({"slow", "memory"})),
    Fault("badly cooled, °C", hot, (10.0, 14.0, 20.0), frozenset({"heat"})),
)
