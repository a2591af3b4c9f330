"""How do endpoints, a function or a GPU perform under load, with every request accounted for?"""

from __future__ import annotations

import shlex
from decimal import Decimal
from typing import Any

import click

from gpuledger.cli.failures import tell
from gpuledger.cli.options import PATH, hz_option, screen_options
from gpuledger.cli.screen import Screen

_FAILED, _INTERRUPTED = 1, 130


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
    from gpuledger.cli.benching import Asked, bench_of, crew_of, watch_of
    from gpuledger.cli.showing import give
    from gpuledger.cost.pricing import PriceChoice
    from gpuledger.cost.user_settings import with_set_prices
    from gpuledger.report.documents.bench import bench_document

    asked = Asked(**options)
    choice = PriceChoice(price=with_set_prices(price))
    bench = bench_of(asked)
    with screen.stages() as stages:
        run = run_bench(bench, crew_of(asked), watch_of(screen, stages, bench))
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
