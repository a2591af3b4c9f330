"""Which benchmark do the options describe, and with which workers?"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuledger.errors import InputError
from gpuledger.units import count

if TYPE_CHECKING:
    from gpuledger.bench.crew import Crew
    from gpuledger.bench.plan import Bench, Gpus
    from gpuledger.cli.screen import Screen

_CARDS = re.compile(r"^(?:(?P<node>[^=]+)=)?(?P<gpu>.+?)(?:\s*[x*]\s*(?P<count>\d+))?$")
# Loading a model and compiling a layer of it come before the barrier.
MODEL_OPEN_S = 600.0
OPEN_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of `gpuledger bench`."""

    endpoints: tuple[str, ...]
    function: str | None
    local_model: str | None
    replicas: int
    model: str
    api: str
    stream: bool
    extra: str | None
    key_env: str
    requests: int | None
    concurrency: int | None
    rate: float | None
    trace: Path | None
    speed: float
    batches: str | None
    rounds: int
    input_tokens: int
    output_tokens: int
    warmup: int | None
    timeout_s: float
    gpus: tuple[str, ...]
    baseline: Path | None
    out: Path | None
    device: str
    hz: float
    seed: int
    torch_device: str | None
    dtype: str
    compiled: bool
    ray: str | None
    nodes: int | None


def bench_of(asked: Asked) -> Bench:
    """The benchmark, checked as far as it can be before it runs."""
    from gpuledger.bench.load import check_load
    from gpuledger.bench.plan import Bench, Station, check_bench

    chosen = [bool(asked.endpoints), asked.function is not None, asked.local_model is not None]
    if sum(chosen) != 1:
        fault = "nothing to benchmark was named" if not any(chosen) else "several things to benchmark were named"
        hint = "give endpoints (http://HOST:PORT), --callable MODULE:FUNCTION or --local-model NAME"
        raise InputError(fault, hint=hint)
    if asked.nodes is not None and asked.ray is None:
        raise InputError("--nodes is for a cluster", hint="add --ray ADDRESS, or use --replicas N on this machine")
    target, nodes = _named(asked)
    cards = _cards(asked.gpus, [name for name, _ in nodes])
    load = _load(asked)
    check_load(load)
    bench = Bench(
        target=target,
        stations=tuple(Station(name, settings, cards.get(name)) for name, settings in nodes),
        load=load,
        out=asked.out or Path(f"bench-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}.jsonl"),
        timeout_s=asked.timeout_s,
        baseline=str(asked.baseline) if asked.baseline else None,
        device="" if asked.device == "none" else asked.device,
        hz=asked.hz,
        elsewhere=asked.ray is not None,
        open_s=MODEL_OPEN_S if asked.local_model else OPEN_S,
    )
    check_bench(bench)
    return bench


def _load(asked: Asked) -> Any:
    from gpuledger.bench.load import Load

    local = asked.local_model is not None
    batches = _numbers(asked.batches) if asked.batches else (1,) if local else ()
    if batches and (asked.requests is not None or asked.concurrency is not None):
        hint = "a sweep sends --rounds times each batch: leave --requests and --concurrency out"
        raise InputError("--batches says how many requests there are", hint=hint)
    return Load(
        requests=100 if asked.requests is None else asked.requests,
        concurrency=8 if asked.concurrency is None else asked.concurrency,
        rate_per_s=asked.rate,
        trace=str(asked.trace) if asked.trace else None,
        speed=asked.speed,
        batches=batches,
        rounds=asked.rounds,
        input_tokens=asked.input_tokens,
        output_tokens=asked.output_tokens,
        warmup=(1 if local else 0) if asked.warmup is None else asked.warmup,
        seed=asked.seed,
    )


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        hint = "write whole numbers with commas: --batches 1,2,4,8"
        raise InputError(f"--batches {text!r} is not a list of numbers", hint=hint) from None


def _named(asked: Asked) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """The kind of target, and each node with its settings."""
    workers = asked.nodes or asked.replicas
    if workers < 1:
        raise InputError(f"{workers} workers were asked for", hint="give a number from 1 up")
    if asked.function is not None:
        from gpuledger.bench.targets.python_callable import load_callable

        load_callable(asked.function)
        return "python_callable", [(f"worker-{i}", {"callable": asked.function}) for i in range(workers)]
    if asked.local_model is not None:
        from gpuledger.training.local_model import check_model
        from gpuledger.training.runtime import need_torch

        model, _ = check_model(asked.local_model, asked.dtype)
        # Looked for, not loaded: that takes seconds, and the workers do it.
        if asked.ray is None and find_spec("torch") is None:
            need_torch("gpuledger bench --local-model")
        how = {"model": model, "dtype": asked.dtype, "compiled": asked.compiled}
        # On a cluster each worker sees its own first GPU; on one machine replica i takes GPU i.
        places = [asked.torch_device or f"cuda:{0 if asked.ray else i}" for i in range(workers)]
        return "local_model", [(f"gpu-{i}", {**how, "device": places[i]}) for i in range(workers)]
    return "openai_http", [_endpoint(asked, text) for text in asked.endpoints]


def _endpoint(asked: Asked, text: str) -> tuple[str, dict[str, Any]]:
    import json

    from gpuledger.bench.targets.openai_http import APIS, address_of, authorization

    name, equals, url = text.partition("=")
    if not equals or "/" in name:
        name, url = "", text
    at = address_of(url)
    authorization(at, asked.key_env)  # a key that cannot be sent is refused before anything runs
    if asked.api not in APIS:
        raise InputError(f"--api {asked.api!r} is not known", hint=f"one of {', '.join(APIS)}")
    try:
        extra = json.loads(asked.extra) if asked.extra else {}
    except (ValueError, RecursionError) as error:
        raise InputError(f"--extra is not JSON: {error}", hint="""write --extra '{"ignore_eos": true}'""") from error
    if not isinstance(extra, dict):
        raise InputError("--extra is not a JSON object", hint="""write --extra '{"ignore_eos": true}'""")
    settings = {"url": url, "model": asked.model, "api": asked.api, "stream": asked.stream, "extra": extra}
    return name or at.host, settings | {"key_env": asked.key_env}


def _cards(given: tuple[str, ...], names: list[str]) -> dict[str, Gpus]:
    """The cards of each node by --gpu; one without a node's name is for all nodes."""
    from gpuledger.bench.plan import Gpus

    found: dict[str, Gpus] = {}
    for text in given:
        match = _CARDS.match(text.strip())
        if match is None or not match["gpu"].strip():
            raise InputError(f"--gpu {text!r} is not [NODE=]CARD[xCOUNT]", hint='for example --gpu "a=NVIDIA A30 x2"')
        if match["node"] and match["node"] not in names:
            raise InputError(f"--gpu {text!r}: no node is called {match['node']!r}", hint=f"nodes: {', '.join(names)}")
        cards = Gpus(match["gpu"].strip(), int(match["count"] or 1))
        found |= dict.fromkeys([match["node"]] if match["node"] else names, cards)
    return found


def crew_of(asked: Asked) -> Crew:
    """Workers on this machine, or on the machines of a cluster."""
    if asked.ray is None:
        from gpuledger.bench.crew import LocalCrew

        return LocalCrew()
    from gpuledger.bench.ray_crew import RayCrew, connect

    ray = connect(asked.ray)
    return RayCrew(ray, gpus=1.0 if asked.local_model and (asked.torch_device or "cuda").startswith("cuda") else 0.0)


def watch_of(screen: Screen, stages: Any, bench: Bench) -> Any:
    """Progress on stderr."""
    from gpuledger.bench.load import plan
    from gpuledger.bench.runner import Watch

    class Bars(Watch):
        def started(self) -> None:
            orders = [p for phases in plan(bench.load, len(bench.stations)) for p in phases]
            self._tick = stages.start("requests", sum(len(p.orders) + len(p.warmup) for p in orders))

        def answered(self, requests: int) -> None:
            self._tick(requests)

    if screen.talks:
        screen.say(f"waiting for {count(len(bench.stations), 'worker')} to be ready", err=True)
    return Bars()
