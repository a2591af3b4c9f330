"""What does a page of a model server say about its requests: how many, how many tokens, how full, how fast?

Counters run since the server started, so one page gives counts and means, not rates. The last value of a series counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from gpuledger.telemetry.series.exporters import NAME
from gpuledger.units import MS_PER_S, Unknown, some


class Server(NamedTuple):
    """What a server calls its metrics. `names`: for each figure the metrics that give it; the first on the page counts.

    Means are of histograms, whose `_sum` and `_count` are read; one that ends in `_ms` is in milliseconds. `needs`:
    metrics that must be on the page, for names without a prefix of their own.
    """

    name: str
    prefixes: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]
    needs: tuple[str, ...] = ()


# vLLM: vllm/engine/metrics.py up to 0.10 (gpu_cache_usage_perc, time_per_output_token_seconds; no label engine, and the
# oldest releases count no requests), vllm/v1/metrics/loggers.py since (kv_cache_usage_perc from 0.9,
# inter_token_latency_seconds from 0.11).
_VLLM = {
    "requests_finished": ("request_success_total", "request_success", "e2e_request_latency_seconds_count"),
    "prompt_tokens": ("prompt_tokens_total", "prompt_tokens"),
    "generated_tokens": ("generation_tokens_total", "generation_tokens"),
    "running": ("num_requests_running",),
    "waiting": ("num_requests_waiting",),
    "cache_used_pct": ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
    "first_token_s": ("time_to_first_token_seconds",),
    "per_token_s": ("inter_token_latency_seconds", "time_per_output_token_seconds"),
}
SERVERS = (
    Server("vLLM", ("vllm:", "vllm_"), _VLLM),
    # vllm/v1/metrics/ray_wrappers.py: Ray puts ray_ before a name; newer releases turn the colon into _.
    Server("vLLM on Ray Serve", ("ray_vllm:", "ray_vllm_"), _VLLM),
    # docs.sglang.io/references/production_metrics, and the page of 0.5.10 in DataDog/integrations-core; older releases
    # count no requests, have time_per_output_token_seconds, and call the label of the model "name".
    Server("SGLang", ("sglang:", "sglang_"), {
        **_VLLM,
        "requests_finished": ("num_requests_total", "e2e_request_latency_seconds_count"),
        "running": ("num_running_reqs",),
        "waiting": ("num_queue_reqs",),
        "cache_used_pct": ("token_usage",),
    }),
    # huggingface.co/docs/text-generation-inference/reference/metrics; tokens are sums of histograms per request,
    # and the time per token is the mean of the means of requests.
    Server("Text Generation Inference", ("tgi_",), {
        "requests_finished": ("request_success",),
        "prompt_tokens": ("request_input_length_sum",),
        "generated_tokens": ("request_generated_tokens_sum",),
        "running": ("batch_current_size",),
        "waiting": ("queue_size",),
        "per_token_s": ("request_mean_time_per_token_duration",),
    }),
    # triton-inference-server/server, docs/user_guide/metrics.md; it counts no tokens.
    Server("Triton Inference Server", ("nv_inference_",), {
        "requests_finished": ("request_success",),
        "waiting": ("pending_request_count",),
        "first_token_s": ("first_response_histogram_ms",),
    }),
    # docs.nvidia.com/nim/large-language-models/latest/observability.html: the names of vLLM without a prefix.
    Server("NVIDIA NIM", ("",), {
        **_VLLM, "requests_finished": ("request_finish_total", "request_success_total")
    }, needs=("num_requests_running", "num_requests_waiting")),
)  # fmt: skip
FIGURES = tuple(_VLLM)
COUNTS = ("requests_finished", "prompt_tokens", "generated_tokens", "running", "waiting")
MEANS = ("first_token_s", "per_token_s")
MODEL = ("model_name", "model", "name")
# Labels that tell engines apart, each of which counts its own requests, and what they are called.
ENGINE = {"ReplicaId": "replica", "WorkerId": "worker"} | {n: n for n in ("engine", "version", "instance", "pod")}
# Labels of processes and of ranks of one engine: each repeats the figure.
COPIES = ("tp_rank", "pp_rank", "moe_ep_rank", "pid")
REASON = "finished_reason"
START = "process_start_time_seconds"
NO_MODEL = Unknown("the page does not name the model")
NO_START = Unknown("the page does not show when the server started")
RECORD = (
    "nvidia-smi --query-gpu=timestamp,name,uuid,index,utilization.gpu,memory.used,power.draw --format=csv -l 5 "
    "> gpus.csv"
)
NO_GPUS = "no reading of a GPU is on the page"
Count = int | Unknown
Figure = float | Unknown
Labels = Mapping[str, str]


@dataclass(frozen=True)
class EngineRequests:
    """One engine, or one model: requests and tokens since the server started, what it does now, and means in seconds.

    `cache_used_pct`: how much of the key-value cache is in use.
    """

    model: str | Unknown
    engine: str | None
    requests_finished: Count
    prompt_tokens: Count
    generated_tokens: Count
    running: Count
    waiting: Count
    cache_used_pct: Figure
    first_token_s: Figure
    per_token_s: Figure


@dataclass(frozen=True)
class Requests:
    """The requests of a server: of all its engines together, and of each. The cache is that of the fullest engine."""

    server: str
    models: tuple[str, ...]
    engines: int
    requests_finished: Count
    prompt_tokens: Count
    generated_tokens: Count
    running: Count
    waiting: Count
    cache_used_pct: Figure
    first_token_s: Figure
    per_token_s: Figure
    finished_by_reason: Mapping[str, int]
    since_ms: Count
    by_engine: tuple[EngineRequests, ...]
    notes: tuple[str, ...]
    gpus: Count = Unknown(NO_GPUS)  # noqa: RUF009  (frozen, so one for all is safe)
    next: str = f"to see the GPUs, record them on the host of the server: {RECORD}"


class _Meaning(NamedTuple):
    server: Server
    figure: str
    rank: int
    part: str = ""


class _Point(NamedTuple):
    """A value on the page. `row`: the engine; `one`: the series without the labels in which copies differ."""

    meaning: _Meaning
    row: tuple[tuple[str, str], ...]
    one: frozenset[tuple[str, str]]
    reason: str
    value: float


@cache
def _meanings() -> dict[str, _Meaning]:
    """What each metric means, by its name."""
    found: dict[str, _Meaning] = {}
    for server in SERVERS:
        for figure, names in server.names.items():
            for rank, name in enumerate(names):
                for part in ("_sum", "_count") if figure in MEANS else ("",):
                    meaning = _Meaning(server, figure, rank, part)
                    found |= {f"{prefix}{name}{part}": meaning for prefix in server.prefixes}
    return found


def servers_among(names: Collection[str]) -> list[Server]:
    """The servers whose metrics are among the names of a page."""
    found = {id(meaning.server) for name in names if (meaning := _meanings().get(name))}
    return [s for s in SERVERS if id(s) in found and all(need in names for need in s.needs)]


def is_of_requests(name: str) -> bool:
    """Whether a metric is one that is read here."""
    return name in _meanings()


def names_server(name: str) -> bool:
    """Whether a metric can be of nothing but a model server."""
    return name in _meanings() and not _meanings()[name].server.needs


def may_be_served(page: str) -> bool:
    """Whether a page may have metrics of a model server, by a quick look."""
    return any(mark in page for server in SERVERS for mark in server.needs or server.prefixes)


def requests_of(series: Iterable[tuple[Labels, float]], notes: Sequence[str] = ()) -> list[Requests]:
    """The requests of each server on a page, from its series and their last values."""
    points, names, starts = list[_Point](), set[str](), set[float]()
    for labels, value in series:
        name = labels.get(NAME, "")
        names.add(name)
        if name == START:
            starts.add(value)
        if (meaning := _meanings().get(name)) and math.isfinite(value) and value >= 0:
            points.append(_point(meaning, labels, value))
    since = int(starts.pop() * MS_PER_S) if len(starts) == 1 else NO_START
    of_server = {s.name: [p for p in points if p.meaning.server is s] for s in servers_among(names)}
    return [_requests(name, found, since, notes) for name, found in of_server.items() if found]


def _point(meaning: _Meaning, labels: Labels, value: float) -> _Point:
    model = next((labels[name] for name in MODEL if labels.get(name)), "")
    less = "WorkerId" if labels.get("ReplicaId") else ""
    engine = ((name, labels[name]) for name in ENGINE if labels.get(name) and name != less)
    one = frozenset((name, text) for name, text in labels.items() if name not in COPIES)
    return _Point(meaning, (("", model), *engine), one, labels.get(REASON, ""), value)


def _requests(server: str, points: list[_Point], since: Count, notes: Sequence[str]) -> Requests:
    best = {f: min((p.meaning.rank for p in points if p.meaning.figure == f), default=0) for f in FIGURES}
    points = [p for p in points if p.meaning.rank == best[p.meaning.figure]]
    rows = list(dict.fromkeys(p.row for p in points))
    engines = tuple(sorted((_engine(row, [p for p in points if p.row == row]) for row in rows), key=_busiest_first))
    models = tuple(dict.fromkeys(e.model for e in engines if not isinstance(e.model, Unknown)))
    return Requests(
        server, models, len(engines), **_figures(points), finished_by_reason=_reasons(points), since_ms=since,
        by_engine=engines, notes=(*notes, *_partial(engines)),
    )  # fmt: skip


def _engine(row: tuple[tuple[str, str], ...], points: list[_Point]) -> EngineRequests:
    (_, model), *engine = row
    named = ", ".join(f"{ENGINE[name]} {text}" for name, text in engine)
    return EngineRequests(model or NO_MODEL, named or None, **_figures(points))


def _busiest_first(engine: EngineRequests) -> float:
    return 1.0 if isinstance(engine.requests_finished, Unknown) else -engine.requests_finished


def _figures(points: list[_Point]) -> dict[str, Any]:
    of = {f: [p for p in points if p.meaning.figure == f] for f in FIGURES}
    counts = {f: n if isinstance(n := _summed(of[f]), Unknown) else round(n) for f in COUNTS}
    return {**counts, "cache_used_pct": _fullest(of["cache_used_pct"]), **{f: _mean(of[f]) for f in MEANS}}


def _summed(points: list[_Point]) -> Figure:
    """The sum over the series, each once though several ranks report it."""
    if not points:
        return Unknown("no such metric on the page")
    copies: dict[frozenset[tuple[str, str]], set[float]] = {}
    for point in points:
        copies.setdefault(point.one, set()).add(point.value)
    if any(len(values) > 1 for values in copies.values()):
        return Unknown("ranks or processes of one engine report different values")
    return sum(value for values in copies.values() for value in values)


def _fullest(points: list[_Point]) -> Figure:
    share = max((p.value for p in points), default=None)
    if share is None:
        return Unknown("no such metric on the page")
    return 100 * share if share <= 1 else Unknown(f"the page says {share:g}, which is not a share")


def _mean(points: list[_Point]) -> Figure:
    total, number = (_summed([p for p in points if p.meaning.part == part]) for part in ("_sum", "_count"))
    if isinstance(total, Unknown) or isinstance(number, Unknown):
        return total if isinstance(total, Unknown) else number
    name = points[0].meaning.server.names[points[0].meaning.figure][points[0].meaning.rank]
    if not number:
        return Unknown("nothing was counted yet")
    return total / number / (MS_PER_S if name.endswith("_ms") else 1)


def _reasons(points: list[_Point]) -> dict[str, int]:
    found = Counter[str]()
    for point in {(p.one, p.reason, p.value) for p in points if p.meaning.figure == COUNTS[0] and p.reason}:
        found[point[1]] += round(point[2])
    return dict(sorted(found.items()))


def _partial(engines: Sequence[EngineRequests]) -> Iterator[str]:
    """A note on each count that some engines lack: the total is of the others."""
    for figure in COUNTS:
        known = sum(not isinstance(getattr(e, figure), Unknown) for e in engines)
        if 0 < known < len(engines):
            yield f"{figure.replace('_', ' ')}: on the page for {known} of {len(engines)} engines; the total is theirs"


def requests_note(series: Callable[[], Iterable[tuple[Labels, float]]], names: Collection[str]) -> list[str]:
    """The requests of the servers whose metrics stand next to readings of GPUs, a line for each server."""
    return [_line(found) for found in requests_of(series())] if servers_among(names) else []


def _line(found: Requests) -> str:
    counts = Counter[str]()
    for e in found.by_engine:
        if not isinstance(e.requests_finished, Unknown):
            counts["no model name" if isinstance(e.model, Unknown) else e.model] += e.requests_finished
    by_model = some([f"{model} {number:,}" for model, number in counts.most_common()])
    return f"requests that {found.server} finished since it started, by model: {by_model or 'not on the page'}"
