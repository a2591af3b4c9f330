"""Which GPUs does the synthetic fleet have, where do they stand and what does each of them do?"""

from __future__ import annotations

import csv
import datetime as dt
import math
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import msgspec
import numpy as np
import numpy.typing as npt

from gpuledger.arguments import takes_names
from gpuledger.catalog.files import convert, data_dir, load_toml
from gpuledger.errors import FactError, InputError
from gpuledger.units import MS_PER_DAY, MS_PER_S, day_start_ms

Pair = tuple[float, float]
# A stream of random words has the key (seed, number); blocks of samples count up from 0, these count down from the top.
_PLAN_STREAM = 2**64 - 1
_MAX_GPUS = 1_000_000


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a GPU behaves: pairs are the values at the low and at the high end of its power range."""

    name: str
    share: float
    util_pct: tuple[int, int]
    power_ratio: Pair
    memory_ratio: Pair
    engine_of_util_ratio: Pair
    tensor_ratio: Pair
    dram_ratio: Pair
    sm_clock_ratio: Pair
    pcie_rx_mb_per_s: Pair
    pcie_tx_mb_per_s: Pair
    nvlink_ratio: Pair
    namespaces: dict[str, float]
    workload: str
    container: str
    note: str


class Cluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One cluster and its share of the GPUs."""

    name: str
    region: str
    code: str
    share: float


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One GPU model and its share of each cluster; its figures are in the catalog."""

    name: str
    share: float
    node_group: str
    gpus_per_host: int
    mem_clock_mhz: int


class Temperature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Degrees at no power, and how many more at full power or full memory traffic."""

    gpu_c: float
    gpu_per_power_c: float
    memory_c: float
    memory_per_power_c: float
    memory_per_dram_c: float
    slot_spread_c: float


class Events(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often things go wrong, in 1000 GPU-hours."""

    xid: float
    pcie_replay: float
    correctable_row: float
    uncorrectable_row: float
    xid_codes: tuple[int, ...]


class Makeup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All the synthetic fleet is made of."""

    version: int
    tensor_of_engine_max_ratio: float
    dram_of_engine_max_ratio: float
    coupling_ratio: float
    memory_steady_ratio: float
    mem_copy_per_dram: float
    sm_clock_step_mhz: int
    scenarios: tuple[Scenario, ...]
    clusters: tuple[Cluster, ...]
    models: tuple[Model, ...]
    temperature: Temperature
    events: Events


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One GPU: its identity, its place, its owner and its behavior."""

    uuid: str
    host: str
    region: str
    cluster: str
    model: str
    namespace: str
    node_group: str
    pod: str
    container: str
    scenario: str


@takes_names
@dataclass(frozen=True)
class FleetSpec:
    """What to make. The same spec gives the same figures on every machine; a longer run begins like a shorter one."""

    gpus: int = 50
    days: float = 7.0
    start: str = "2026-01-20"
    step_s: float = 60.0
    seed: int = 7
    mix_ratio: float = 0.05
    noise_ratio: float = 0.02

    def __post_init__(self) -> None:
        _require(0 < self.gpus <= _MAX_GPUS, f"{self.gpus} GPUs", f"give 1 to {_MAX_GPUS:,} GPUs")
        _require(
            math.isfinite(self.days) and self.days > 0,
            f"{self.days} days",
            "give more than 0 days; 0.5 is twelve hours",
        )
        _require(
            math.isfinite(self.step_s) and round(self.step_s * MS_PER_S) >= 1,
            f"one sample per {self.step_s} s",
            "give a step of at least 0.001 s; 60 is one sample per minute",
        )
        _require(0 <= self.seed < 2**64, f"seed {self.seed}", "give a seed from 0 to 2^64 - 1")
        _require(0 <= self.mix_ratio <= 1, f"mix {self.mix_ratio}", "give a ratio from 0 to 1; 0.05 is 5 % of samples")
        _require(0 <= self.noise_ratio <= 1, f"noise {self.noise_ratio}", "give a ratio of board power from 0 to 1")
        try:
            first = dt.date.fromisoformat(self.start)
        except ValueError:
            raise InputError(f"{self.start!r} is not a day", hint="write the start as YYYY-MM-DD") from None
        # Dates are written with two digits for the year.
        fits = first.year >= 2000 and self.days <= (dt.date(2100, 1, 1) - first).days
        _require(fits, f"{self.days:g} days from {self.start}", "stay within the years 2000 to 2099")

    @property
    def start_ms(self) -> int:
        """The instant of the first scrape."""
        return day_start_ms(self.start)

    @property
    def step_ms(self) -> int:
        """Time from one scrape to the next."""
        return round(self.step_s * MS_PER_S)

    @property
    def scrapes(self) -> int:
        """How often each GPU is read: at the start, then each step while the days last."""
        return -(-max(1, round(self.days * MS_PER_DAY)) // self.step_ms)

    @property
    def rows(self) -> int:
        """One row per GPU and scrape."""
        return self.scrapes * self.gpus


def _require(good: bool, what: str, hint: str) -> None:
    if not good:
        raise InputError(f"cannot make a fleet with {what}", hint=hint)


@cache
def makeup() -> Makeup:
    """The shipped scenarios, clusters and models."""
    file = data_dir(__package__, "data", "scenarios.toml")
    found = load_toml(file, Makeup)
    kinds: dict[str, Sequence[Scenario | Cluster | Model]] = {
        "scenarios": found.scenarios,
        "clusters": found.clusters,
        "models": found.models,
    }
    for field, things in kinds.items():
        total = sum(t.share for t in things)
        if abs(total - 1) > 1e-9:
            raise FactError(
                str(file), f"{field}.share", f"shares add up to {total:g}, not 1", hint="make them add up to 1"
            )
    return found


@cache
def demo_fleet() -> tuple[Assignment, ...]:
    """The demo's GPUs, as shipped."""
    file = data_dir(__package__, "data", "demo_fleet.csv")
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    return tuple(convert(rows, list[Assignment], str(file)))


def random_words(seed: int, stream: int, shape: int | tuple[int, int]) -> npt.NDArray[np.uint64]:
    """64-bit words of chance from a counter-based generator: the same on every machine and release."""
    words: npt.NDArray[np.uint64] = np.random.Philox(key=np.array([seed, stream], np.uint64)).random_raw(shape)
    return words


def largest_remainder(shares: Sequence[float], total: int) -> list[int]:
    """Whole counts that add up to `total`; of equal remainders the smaller share goes up, as it would lose more."""
    exact = [round(share * total, 9) for share in shares]
    counts = [int(x) for x in exact]
    order = sorted(range(len(shares)), key=lambda i: (counts[i] - exact[i], shares[i]))
    for i in order[: total - sum(counts)]:
        counts[i] += 1
    return counts


def plan_fleet(spec: FleetSpec) -> tuple[Assignment, ...]:
    """One assignment per GPU: the shipped ones for the demo's size, else the same shares with a seeded shuffle."""
    if spec.gpus == len(demo_fleet()):
        return demo_fleet()
    made = makeup()
    words = random_words(spec.seed, _PLAN_STREAM, (2, spec.gpus))
    counts = largest_remainder([s.share for s in made.scenarios], spec.gpus)
    scenarios = np.repeat(np.arange(len(counts)), counts)[np.argsort(words[0], kind="stable")].tolist()
    chances = (words[1] / 2.0**64).tolist()
    return tuple(
        _assign(spec, i, place, made.scenarios[scenario], chance)
        for i, (place, scenario, chance) in enumerate(zip(_places(made, spec.gpus), scenarios, chances, strict=True))
    )


def _places(made: Makeup, gpus: int) -> Iterator[tuple[Cluster, Model, str]]:
    """Cluster, model and host of each GPU, cluster by cluster."""
    sizes = largest_remainder([c.share for c in made.clusters], gpus)
    for cluster, size in zip(made.clusters, sizes, strict=True):
        counts = largest_remainder([m.share for m in made.models], size)
        for model, count in zip(made.models, counts, strict=True):
            for i in range(count):
                yield cluster, model, f"{model.node_group}-{cluster.code}-{i // model.gpus_per_host + 1:02d}"


def _assign(
    spec: FleetSpec, index: int, place: tuple[Cluster, Model, str], scenario: Scenario, chance: float
) -> Assignment:
    cluster, model, host = place
    total = sum(scenario.namespaces.values())
    namespace = next(iter(scenario.namespaces))
    for name, weight in scenario.namespaces.items():
        namespace = name
        chance -= weight / total
        if chance < 0:
            break
    return Assignment(
        uuid=f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{spec.seed}.fleet.gpuledger')}",
        host=host,
        region=cluster.region,
        cluster=cluster.name,
        model=model.name,
        namespace=namespace,
        node_group=model.node_group,
        pod=f"{scenario.workload}-{host}",
        container=scenario.container,
        scenario=scenario.name,
    )
