"""What is to be benchmarked, and what is said of it in the first line of its results?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpuledger.bench.load import Load, Phase
from gpuledger.bench.machine import machine_facts
from gpuledger.devices.device import find_driver
from gpuledger.devices.sampler import check_rates
from gpuledger.errors import InputError

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Gpus:
    """Cards of a node, as the user told them."""

    gpu: str
    gpus: int


@dataclass(frozen=True)
class Station:
    """One node or replica: its name, what is asked there, and its cards where the user told them."""

    name: str
    settings: Mapping[str, Any]
    told: Gpus | None = None


@dataclass(frozen=True)
class Bench:
    """One benchmark. `device`: whom to ask for telemetry, empty for nobody. `elsewhere`: workers run on a cluster.

    A worker that is not at the barrier within `open_s`, or says nothing for `silent_s`, is given up.
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
        """Where the telemetry of the run rests: beside its results."""
        return self.out.with_name(f"{self.out.name.removesuffix('.jsonl')}.lake")


def check_bench(bench: Bench) -> None:
    """Refuse what cannot be run, by name."""
    names = [s.name for s in bench.stations]
    if not names:
        raise InputError(
            "nothing to benchmark was named", hint="gpuledger bench http://HOST:PORT, or --callable MOD:FUN"
        )
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise InputError(f"two nodes are called {twice!r}", hint="name them: a=http://HOST:PORT b=http://HOST:PORT")
    if not 0 < bench.timeout_s < math.inf:
        raise InputError(f"--timeout is {bench.timeout_s:g}", hint="give a number of seconds above 0; 60 is usual")
    if bench.device:
        _check_sampling(bench)
    if bench.out.exists():
        hint = "name another file with --out, or move this one away: results are never overwritten"
        raise InputError(f"{bench.out} exists already", hint=hint)
    if bench.baseline and not Path(bench.baseline).is_file():
        raise InputError(f"--baseline {bench.baseline}: there is no such file", hint="measure it first, with one node")


def _check_sampling(bench: Bench) -> None:
    """Who is to be asked and how often: a machine without a GPU is no reason to stop, a name nobody knows is."""
    check_rates(bench.hz, 1.0)
    driver, path = find_driver(bench.device)
    if driver.takes == "FILE" and not bench.elsewhere and not Path(path).is_file():
        raise InputError(f"--device {bench.device}: there is no such file", hint="check the path, or --device none")


def header(
    bench: Bench,
    plans: Mapping[str, tuple[Phase, ...]],
    ready: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]],
    here: Mapping[str, Any],
    started: str,
    run: str,
) -> dict[str, Any]:
    """The first line. `ready`: what each node's target and machine said; `here`: driver and cards of this machine."""
    apart = {"closed": (), "poisson": ("concurrency",), "trace": ("concurrency",), "sweep": ("concurrency", "requests")}
    silent = {*apart[bench.load.kind], *(() if bench.load.trace else ("speed",))}
    silent |= set() if bench.load.batches else {"rounds", "batches"}
    load = {k: v for k, v in dataclasses.asdict(bench.load).items() if k not in silent and v is not None}
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
    rest = {k: v for k, v in facts.items() if k not in ("gpu", "gpus")}
    host = {"machine": dict(machine)} if bench.elsewhere and machine else {}
    if station.told is not None:
        return {"gpu": station.told.gpu, "gpus": station.told.gpus, "gpu_from": "told", **rest, **host}
    if facts.get("gpu"):
        return {"gpu": facts["gpu"], "gpus": facts.get("gpus", 1), "gpu_from": "torch", **rest, **host}
    cards: list[str] = list((machine if bench.elsewhere else here).get("gpus") or ())
    why = _why_unknown(bench, station, cards)
    if why:
        return {"gpu": None, "gpus": None, "unknown": {"gpu": why, "gpus": why}, **rest, **host}
    return {"gpu": cards[0], "gpus": len(cards), "gpu_from": "driver", **rest, **host}


def _why_unknown(bench: Bench, station: Station, cards: Sequence[str]) -> str:
    """Why the cards of a node are not simply those of the machine; empty where they are."""
    url = station.settings.get("url")
    if url and urlsplit(str(url)).hostname not in LOOPBACK:
        return "the endpoint is on another machine; tell its cards with --gpu"
    if not cards:
        return "no driver told its cards on this machine; tell them with --gpu"
    if len(set(cards)) > 1:
        return "the machine has cards of several kinds; tell them with --gpu"
    if len(bench.stations) > 1 and not bench.elsewhere:
        return f"{len(bench.stations)} nodes share the {len(cards)} cards of this machine; tell them with --gpu"
    return ""
