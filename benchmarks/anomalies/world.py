"""What does a fleet read that does its work with the usual ups and downs, before anything is broken?

The readings are those of the synthetic fleet, made less even: jobs of all GPUs of a work rise and fall together, change
their settings now and then, and follow the time of day where they serve users; each GPU is a little faster or slower
than the next one, and wanders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gpuledger.telemetry.fleet import Assignment, FleetSpec
from gpuledger.telemetry.fleet_values import FleetValues, block_scrapes

# Scenario, GPU model, namespace, workload, GPUs: four groups of peers.
WORKS = (
    ("efficient_training", "NVIDIA H100 80GB HBM3", "ml-training", "llm-pretrain", 16),
    ("moderate_load", "NVIDIA A100-SXM4-40GB", "research", "finetune", 12),
    ("inference", "NVIDIA A10G", "ml-inference", "serving", 12),
    ("network_bottleneck", "NVIDIA A100-SXM4-40GB", "ml-training", "moe-train", 8),
)
# A small fleet: two groups, each with just enough peers to be judged.
SMALL = (
    ("efficient_training", "NVIDIA H100 80GB HBM3", "ml-training", "llm-pretrain", 8),
    ("moderate_load", "NVIDIA A100-SXM4-40GB", "research", "finetune", 8),
)
Work = tuple[str, str, str, str, int]
IDLE_W = {"NVIDIA H100 80GB HBM3": 70.0, "NVIDIA A100-SXM4-40GB": 50.0, "NVIDIA A10G": 20.0}
GPUS = sum(work[-1] for work in WORKS)
LOAD = ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")
TENSOR, DRAM, ENGINE = LOAD
CLOCK, POWER, UTIL = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL"
TEMP, XID = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"


@dataclass
class World:
    """Readings as arrays of scrape x GPU."""

    fleet: list[Assignment]
    at_ms: np.ndarray
    columns: dict[str, np.ndarray]
    idle_w: np.ndarray
    labels: dict[str, list[str]] = field(default_factory=dict)

    @property
    def hour(self) -> np.ndarray:
        """Hours since the start, by scrape."""
        return (self.at_ms - self.at_ms[0]) / 3_600_000


def make(seed: int, days: float = 14.0, step_s: float = 300.0, works: Sequence[Work] = WORKS) -> World:
    """A fleet without faults."""
    fleet = [_gpu(seed, work, i) for work in works for i in range(work[-1])]
    spec = FleetSpec(gpus=len(fleet), days=days, step_s=step_s, seed=seed)
    values, blocks = FleetValues(spec, tuple(fleet)), -(-spec.scrapes // block_scrapes(len(fleet)))
    parts = [values.block(i) for i in range(blocks)]
    columns = {name: np.concatenate([p[name] for p in parts]).reshape(-1, len(fleet)) for name in parts[0]}
    at = spec.start_ms + np.arange(spec.scrapes, dtype=np.int64) * spec.step_ms
    world = World(fleet, at, columns, np.array([IDLE_W[a.model] for a in fleet]))
    _liven(world, np.random.default_rng([seed, 1]), works)
    return world


def _gpu(seed: int, work: Work, number: int) -> Assignment:
    scenario, model, namespace, name, _ = work
    host = f"{name}-{number // 8:02d}"
    return Assignment(
        uuid=f"GPU-{seed:04d}-{name}-{number:03d}", host=host, region="r1", cluster="c1", model=model,
        namespace=namespace, node_group="n", pod=f"{name}-{number}", container="main", scenario=scenario,
    )  # fmt: skip


def _liven(world: World, chance: np.random.Generator, works: Sequence[Work]) -> None:
    hours, gpus = int(world.hour[-1]) + 1, len(world.fleet)
    at = world.hour.astype(int)
    load, first = np.ones((hours, gpus)), 0
    for scenario, *_, count in works:
        common = 1 + _wander(chance, hours, 0.06)
        for place in chance.integers(hours // 8, hours, 2):  # another batch size, another model
            common[place:] *= chance.uniform(0.82, 1.15)
        if scenario == "inference":
            common *= 0.75 + 0.25 * np.sin(2 * np.pi * (np.arange(hours) % 24) / 24)
        load[:, first : first + count] = common[:, None]
        first += count
    load *= 1 + np.stack([_wander(chance, hours, 0.02) for _ in range(gpus)], axis=1)
    load *= 1 + chance.normal(0, 0.015, gpus)
    scale(world, slice(None), slice(None), load[at], power_follows=0.6)
    serving = np.array([a.scenario == "inference" for a in world.fleet])  # users come by day: fewer kernels run
    world.columns[UTIL] = np.where(serving, np.clip(world.columns[UTIL] * load[at], 1, 100), world.columns[UTIL])
    world.columns[CLOCK] = world.columns[CLOCK] * (1 + chance.normal(0, 0.008, gpus))
    world.columns[POWER] = world.columns[POWER] * (1 + chance.normal(0, 0.025, gpus))
    world.columns[TEMP] = world.columns[TEMP] + 3 * np.sin(2 * np.pi * world.hour / 24)[:, None]


def _wander(chance: np.random.Generator, hours: int, size: float, keep: float = 0.8) -> np.ndarray:
    """A walk that is drawn back to 0, hour by hour."""
    out, steps = np.zeros(hours), chance.normal(0, size * np.sqrt(1 - keep**2), hours)
    for i in range(1, hours):
        out[i] = keep * out[i - 1] + steps[i]
    return out


def scale(
    world: World, rows: slice | np.ndarray, gpu: slice | int, factor: np.ndarray | float, *, power_follows: float
) -> None:
    """Do `factor` times the work: activity follows, and power by a part of it."""
    for name in LOAD:
        world.columns[name][rows, gpu] = np.clip(world.columns[name][rows, gpu] * factor, 0, 0.99)
    idle = world.idle_w[gpu] if isinstance(gpu, int) else world.idle_w
    power = world.columns[POWER]
    power[rows, gpu] = idle + (power[rows, gpu] - idle) * (1 + power_follows * (np.asarray(factor) - 1))


def write(world: World, path: Path) -> Path:
    """The world as a 36-column export with the columns it needs."""
    scrapes, texts = len(world.at_ms), {"UUID": "uuid", "HOSTNAME": "host", "MODELNAME": "model", "POD": "pod"}
    texts |= {"NAMESPACE": "namespace", "CLUSTERNAME": "cluster"}
    table = {"SCRAPETIME": pa.array(np.repeat(world.at_ms, len(world.fleet)), pa.timestamp("ms", "UTC"))}
    for name, of in texts.items():
        coded = pa.array([getattr(a, of) for a in world.fleet]).dictionary_encode()
        table[name] = pa.DictionaryArray.from_arrays(np.tile(coded.indices.to_numpy(), scrapes), coded.dictionary)
    whole = {UTIL, XID, TEMP, CLOCK}
    for name, values in world.columns.items():
        if name != "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION":
            flat = values.reshape(-1)
            table[name] = pa.array(np.rint(flat).astype(np.int64) if name in whole else flat)
    pq.write_table(pa.table(table), path)
    return path


Break = Callable[[World, int, int, float, np.random.Generator], None]
