"""What is to be benchmarked, and what does the first line of its results report?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpuledger.bench.client import machine_facts
from gpuledger.bench.load import Load, Phase
from gpuledger.bench.records import LOOPBACK, Node
from gpuledger.bench.results import EXISTS
from gpuledger.devices.device import find_driver
from gpuledger.devices.sampler import check_rates
from gpuledger.errors import InputError

# Settings that a kind of load does not use.
UNUSED = {"closed": (), "poisson": ("concurrency",), "trace": ("concurrency",), "sweep": ("concurrency", "requests")}


@dataclass(frozen=True)
class Station:
    """One node or replica: its name, the settings of its target, and its GPUs where the user gave them."""

    name: str
    settings: Mapping[str, Any]
    gpus: Node | None = None


@dataclass(frozen=True)
class Bench:
    """One benchmark. `device`: the telemetry source; empty: none. `elsewhere`: workers run on a cluster.

    A worker that is not at the barrier within `open_s`, or silent for `silent_s`, is given up.
    """

    target: str
    stations: tuple[Station, ...]
    load: Load
    out: Path
    timeout_s: float = 60.0
    baseline: str | None = None
    device: str = "nvml"
    hz: float = 10.0
    elsewhere: bool = False
    open_s: float = 120.0
    silent_s: float = 30.0
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lake(self) -> Path:
        """The lake for the telemetry of the run, next to its results."""
        return self.out.with_name(f"{self.out.name.removesuffix('.jsonl')}.lake")


def check_bench(bench: Bench) -> None:
    """Refuse what cannot be run, by name."""
    names = [s.name for s in bench.stations]
    if not names:
        raise InputError("nothing to benchmark was named", hint="name an endpoint (http://HOST:PORT) or a function")
    if twice := next((n for n in names if names.count(n) > 1), None):
        raise InputError(f"two nodes are called {twice!r}", hint="name them: a=http://HOST:PORT b=http://HOST:PORT")
    if not 0 < bench.timeout_s < math.inf:
        raise InputError(f"the timeout is {bench.timeout_s:g} s", hint="give seconds above 0; 60 is usual")
    if bench.device:
        _check_sampling(bench)
    if bench.out.exists():
        raise InputError(f"{bench.out} exists already", hint=EXISTS)
    if bench.baseline and not Path(bench.baseline).is_file():
        raise InputError(f"baseline {bench.baseline}: no such file", hint="measure it first, with one node")


def _check_sampling(bench: Bench) -> None:
    """A machine without a GPU does not stop the run; an unknown telemetry source does."""
    check_rates(bench.hz, 1.0)
    driver, path = find_driver(bench.device)
    if driver.takes == "FILE" and not bench.elsewhere and not Path(path).is_file():
        raise InputError(f"device {bench.device}: no such file", hint="check the path, or record no telemetry (none)")


def header(
    bench: Bench,
    plans: Mapping[str, tuple[Phase, ...]],
    ready: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]],
    here: Mapping[str, Any],
    started: str,
    run: str,
) -> dict[str, Any]:
    """The first line. `ready`: facts of each node's target and machine; `here`: driver and GPUs of this machine."""
    unused = {*UNUSED[bench.load.kind], *(() if bench.load.trace else ("speed",))}
    unused |= set() if bench.load.batches else {"rounds", "batches"}
    load = {k: v for k, v in dataclasses.asdict(bench.load).items() if k not in unused and v is not None}
    return {
        "planned": {node: sum(len(p.orders) for p in phases) for node, phases in plans.items()},
        "nodes": {s.name: _node(bench, s, *ready.get(s.name, ({}, {})), here) for s in bench.stations},
        "baseline": bench.baseline,
        "wall_s": None,
        "run": run,
        "started": started,
        "target": bench.target,
        "load": {"kind": bench.load.kind, **load},
        "timeout_s": bench.timeout_s,
        "warmup": {node: sum(len(p.warmup) for p in phases) for node, phases in plans.items()},
        "machine": {**machine_facts(), **here},
        **bench.more,
    }


def _node(
    bench: Bench, station: Station, facts: Mapping[str, Any], machine: Mapping[str, Any], here: Mapping[str, Any]
) -> dict[str, Any]:
    cards: list[str] = list((machine if bench.elsewhere else here).get("gpus") or ())
    if station.gpus is not None:
        found: dict[str, Any] = {"gpu": station.gpus.gpu, "gpus": station.gpus.gpus, "gpu_from": "user"}
    elif facts.get("gpu"):
        found = {"gpu": facts["gpu"], "gpus": facts.get("gpus", 1), "gpu_from": "torch"}
    elif why := _why_unknown(bench, station, cards):
        found = {"gpu": None, "gpus": None, "unknown": {"gpu": why, "gpus": why}}
    else:
        found = {"gpu": cards[0], "gpus": len(cards), "gpu_from": "driver"}
    rest = {k: v for k, v in facts.items() if k not in ("gpu", "gpus")}
    return {**found, **rest, **({"machine": dict(machine)} if bench.elsewhere and machine else {})}


def _why_unknown(bench: Bench, station: Station, cards: Sequence[str]) -> str:
    """Why the GPUs of a node are not simply those of the machine; empty where they are."""
    url = station.settings.get("url")
    if url and urlsplit(str(url)).hostname not in LOOPBACK:
        return "the endpoint is on another machine; name its GPUs"
    if not cards:
        return "no driver reported GPUs on this machine; name them"
    if len(set(cards)) > 1:
        return "the machine has GPUs of several kinds; name those of the node"
    if len(bench.stations) > 1 and not bench.elsewhere:
        shared = f"the {len(cards)} GPUs" if len(cards) > 1 else "the 1 GPU"
        return f"{len(bench.stations)} nodes share {shared} of this machine; name those of each node"
    return ""
