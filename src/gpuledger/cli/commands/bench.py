"""How do endpoints, a function or a GPU perform under load, with every request accounted for?"""

from __future__ import annotations

import datetime as dt
import re
import shlex
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from gpuledger.cli.failures import tell
from gpuledger.cli.options import PATH, hz_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import InputError
from gpuledger.units import count

if TYPE_CHECKING:
    from gpuledger.bench.crew import LocalCrew
    from gpuledger.bench.plan import Bench
    from gpuledger.bench.ray_crew import RayCrew
    from gpuledger.bench.records import Node

_FAILED, _INTERRUPTED = 1, 130
_CARDS = re.compile(r"^(?:(?P<node>[^=]+)=)?(?P<gpu>.+?)(?:\s*[x*]\s*(?P<count>\d+))?$")
# Loading a model and compiling a layer of it come before the barrier.
MODEL_OPEN_S = 600.0
OPEN_S = 120.0
Asked = SimpleNamespace  # the options of `gpuledger bench` by their names


def _targets(command: Any) -> Any:
    """The options that name what is benchmarked."""
    option = click.option
    for made in reversed((
        option("--callable", "function", metavar="MODULE:FUNCTION",
               help="Benchmark a Python function instead of an endpoint."),
        option("--local-model", metavar="NAME", help="Run a catalog model in PyTorch with random weights."),
        option("--replicas", type=int, default=1, show_default=True, help="Workers for a function or a local model."),
        option("--model", default="", help="Model to request from the endpoint; default: the first one it lists."),
        option("--api", default="completions", show_default=True, metavar="completions|chat", help="Endpoint API."),
        option("--stream/--no-stream", default=True, show_default=True, help="Stream tokens as they are generated."),
        option("--extra", metavar="JSON", help='Extra request fields, such as {"ignore_eos": true}.'),
        option("--key-env", default="OPENAI_API_KEY", show_default=True, help="Environment variable with the API key."),
        option("--torch-device", metavar="DEVICE", help="Device of a local model; default: replica i on cuda:i."),
        option("--dtype", default="bfloat16", show_default=True, help="Data type of a local model's weights."),
        option("--compile/--no-compile", "compiled", default=True, show_default=True,
               help="Try torch.compile on a local model."),
    )):  # fmt: skip
        command = made(command)
    return command


def _loads(command: Any) -> Any:
    """The options of the load."""
    option = click.option
    for made in reversed((
        option("--requests", type=int, metavar="N", help="Requests per node.  [default: 100]"),
        option("--concurrency", type=int, metavar="C", help="Concurrent requests per node.  [default: 8]"),
        option("--rate", type=float, metavar="R", help="Requests per second and node, at random times."),
        option("--trace", type=PATH, help="CSV trace of requests to replay, spread across the nodes."),
        option("--speed", type=float, default=1.0, show_default=True, help="Speedup of the trace replay."),
        option("--batches", metavar="1,2,4", help="Sweep these batch sizes, one after another."),
        option("--rounds", type=int, default=8, show_default=True, help="Batches per size in a sweep."),
        option("--input-tokens", type=int, default=128, show_default=True, help="Words per prompt."),
        option("--output-tokens", type=int, default=32, show_default=True, help="Tokens to request."),
        option("--warmup", type=int, metavar="N", help="Warmup requests, reported separately.  [default: 0]"),
        option("--timeout", "timeout_s", type=float, default=60.0, show_default=True,
               help="Seconds to wait for an answer."),
        option("--seed", type=int, default=0, show_default=True, help="Random seed for arrivals and prompts."),
        option("--ray", metavar="ADDRESS", help="Run workers on this Ray cluster; local starts one here."),
        option("--nodes", type=int, metavar="N", help="Number of Ray workers, for a function or a model."),
    )):  # fmt: skip
        command = made(command)
    return command


@click.command("bench")
@click.argument("endpoints", nargs=-1, metavar="[[NAME=]URL...]")
@_targets
@_loads
@click.option("--gpu", "gpus", multiple=True, metavar="[NODE=]CARD[xN]", help="GPUs of a node; repeatable.")
@click.option("--price", type=Decimal, metavar="USD", help="Dollars per GPU-hour; default: the market median.")
@click.option("--baseline", type=PATH, help="Measured single-node results, named in the header for scaling.")
@click.option("--out", type=PATH, metavar="FILE", help="Results file; default: bench-TIME.jsonl.")
@click.option(
    "--device",
    default="nvml",
    show_default=True,
    metavar="nvml|amd|replay:FILE|none",
    help="Telemetry source.",
)
@hz_option
@click.option("--fail-on", type=click.Choice(["failures"]), help="Exit 1 if any planned request was not answered.")
@screen_options
def command(screen: Screen, price: Decimal | None, fail_on: str | None, **options: Any) -> int:
    """Benchmark endpoints, a function or a local model.

    All workers start together. Every planned request gets one line of JSON in the results, answered or not. Telemetry
    of this machine's GPUs is stored next to the results. gpuledger scaling reads both.
    """
    from gpuledger.bench.runner import run_bench
    from gpuledger.bench.summary import summary_of
    from gpuledger.cli.showing import give
    from gpuledger.cost.pricing import PriceChoice
    from gpuledger.cost.user_settings import with_set_prices
    from gpuledger.report.documents.bench import bench_document

    asked = Asked(**options)
    choice = PriceChoice(price=with_set_prices(price))
    bench = _bench_of(asked)
    with screen.stages() as stages:
        run = run_bench(bench, _crew_of(asked), _watch_of(screen, stages, bench))
    short = summary_of(run, choice)
    document = bench_document(run, short)
    give(document, screen)
    screen.say(f"results: {run.file}", f"next: gpuledger scaling {shlex.quote(str(bench.out))}")
    if run.more.get("interrupted"):
        return _INTERRUPTED
    if not short.ok:
        first = next((n for n in short.nodes if n.first_error), None)
        why = f": {first.node}: {first.first_error}" if first else ""
        tell(f"no request was answered{why}", "check the server and the options of the request; the results are kept")
        return _FAILED
    return _FAILED if fail_on and (short.failed or short.lost) else 0


def _bench_of(asked: Asked) -> Bench:
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
    target, named = _named(asked)
    cards, load = _cards(asked.gpus, [name for name, _ in named]), _load(asked)
    check_load(load)
    bench = Bench(
        target=target,
        stations=tuple(Station(name, settings, cards.get(name)) for name, settings in named),
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


def _cards(given: tuple[str, ...], names: list[str]) -> dict[str, Node]:
    """The cards of each node by --gpu; one without a node's name is for all nodes."""
    from gpuledger.bench.records import Node

    found: dict[str, Node] = {}
    for text in given:
        match = _CARDS.match(text.strip())
        if match is None or not match["gpu"].strip():
            raise InputError(f"--gpu {text!r} is not [NODE=]CARD[xCOUNT]", hint='for example --gpu "a=NVIDIA A30 x2"')
        if match["node"] and match["node"] not in names:
            raise InputError(f"--gpu {text!r}: no node is called {match['node']!r}", hint=f"nodes: {', '.join(names)}")
        cards = Node(match["gpu"].strip(), int(match["count"] or 1))
        found |= dict.fromkeys([match["node"]] if match["node"] else names, cards)
    return found


def _crew_of(asked: Asked) -> LocalCrew | RayCrew:
    """Workers on this machine, or on the machines of a cluster."""
    if asked.ray is None:
        from gpuledger.bench.crew import LocalCrew

        return LocalCrew()
    from gpuledger.bench.ray_crew import RayCrew, connect

    ray = connect(asked.ray)
    return RayCrew(ray, gpus=1.0 if asked.local_model and (asked.torch_device or "cuda").startswith("cuda") else 0.0)


def _watch_of(screen: Screen, stages: Any, bench: Bench) -> Any:
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
