"""What did the GPUs do during the run, how much of their memory was in use, and what did its tokens cost?

Utilization, energy and memory come from the samples that the header names. Memory is compared with the card that the
driver names, never with an assumed one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpuledger.bench.records import LOOPBACK, SOME_TOKENS, Node, Request, Run, present
from gpuledger.bench.summary import Level, hourly_price, levels_of, metered_j, per_million
from gpuledger.catalog.gpus import find_gpu
from gpuledger.cost.pricing import PriceChoice
from gpuledger.scaling.analysis.counting import gpus_of
from gpuledger.scaling.figures import Batches, BatchPoint, Cost, Figure, GpuPeak, NodeFigures, Telemetry, Tokens
from gpuledger.scaling.grades import Thresholds
from gpuledger.units import GIB, MIB, Unknown

if TYPE_CHECKING:
    from gpuledger.lake.layout import Lake

J_PER_KWH = 3_600_000
NO_BYTES = "the node does not report memory_used_bytes"
UNITS = {"bytes": 1, "mib": MIB, "gib": GIB, "mb": 1_000_000, "gb": 1_000_000_000}
Memory = tuple[int | Unknown, str | Unknown, float | Unknown, Figure]


def no_telemetry(why: str) -> Telemetry:
    """Every figure unknown, with the reason."""
    none = Unknown(why)
    return Telemetry(none, none, none, none, none)


def telemetry_of(run: Run) -> Telemetry:
    """Utilization, RFU and energy over the whole lake of the run; a lake that cannot be read is reported, not fatal."""
    folder = run.telemetry_dir
    if isinstance(folder, Unknown):
        return no_telemetry("no telemetry was recorded with the run")
    if away := _served_away(run):
        who = f"{', '.join(away[:4])}{', ...' if len(away) > 4 else ''}"
        return no_telemetry(f"the samples are from the client's machine, and {who} answered elsewhere: record there")
    from gpuledger.catalog.thresholds import load_thresholds
    from gpuledger.efficiency.build import efficiency_statement
    from gpuledger.errors import GpuledgerError
    from gpuledger.lake.layout import Lake
    from gpuledger.ledger.engine import post_lake

    try:
        lake = Lake(folder)
        lake.require()
        post_lake(lake, load_thresholds())
        means = efficiency_statement(lake).fleet
        peaks = _peaks(lake)
    except GpuledgerError as error:
        return no_telemetry(f"the telemetry of the run cannot be read: {error.message}")
    energy = means.energy_kwh
    return Telemetry(
        gpu_util_pct=means.gpu_util_pct,
        rfu_power_pct=means.rfu_power_pct,
        rfu_counters_pct=means.rfu_counters_pct,
        energy_j=energy if isinstance(energy, Unknown) else energy * J_PER_KWH,
        memory_peak_bytes=max((p.memory_bytes for p in peaks), default=Unknown("no sample has memory in use")),
        gpus=peaks,
    )


def _served_away(run: Run) -> Sequence[str]:
    """Endpoints on machines that were not sampled: the client's own GPUs show nothing of them."""
    urls = ((name, node.more.get("url")) for name, node in run.nodes.items())
    return [name for name, url in urls if url and urlsplit(str(url)).hostname not in LOOPBACK]


def _peaks(lake: Lake) -> tuple[GpuPeak, ...]:
    """The most memory each GPU used in any sample."""
    import pyarrow.parquet as pq

    most: dict[tuple[str, str], int] = {}
    for part in lake.manifest().parts:
        rows = pq.read_table(lake.path(part), columns=["host", "gpu_uuid", "fb_used_bytes"])
        grouped = rows.group_by(["host", "gpu_uuid"]).aggregate([("fb_used_bytes", "max")])
        for row in grouped.to_pylist():
            if row["fb_used_bytes_max"] is not None:
                key = (str(row["host"] or ""), str(row["gpu_uuid"] or ""))
                most[key] = max(most.get(key, 0), int(row["fb_used_bytes_max"]))
    return tuple(GpuPeak(host, uuid, used) for (host, uuid), used in sorted(most.items()))


def memory_of(run: Run, name: str, telemetry: Telemetry) -> Memory:
    """Bytes in use on each GPU, the card, its bytes, and the share in percent."""
    node = run.nodes.get(name, Node())
    used = stated_bytes(node.more)
    if isinstance(used, Unknown):
        used = _sampled(run, name, telemetry)
    found = node.gpu if isinstance(node.gpu, Unknown) else find_gpu(node.gpu)
    if isinstance(found, Unknown):
        return used, found, found, found if isinstance(used, int) else used
    size = found.figure("memory_bytes")
    if isinstance(used, Unknown) or isinstance(size, Unknown):
        return used, found.name, size, used if isinstance(used, Unknown) else size
    return used, found.name, size, 100 * used / size


def stated_bytes(facts: Mapping[str, Any]) -> int | Unknown:
    """What a node or a claim states itself: memory_used_bytes, or the same in another unit."""
    for unit, size in UNITS.items():
        raw = facts.get(f"memory_used_{unit}")
        if isinstance(raw, int | float) and not isinstance(raw, bool) and raw >= 0:
            return round(raw * size)
    return Unknown(NO_BYTES)


def _sampled(run: Run, name: str, telemetry: Telemetry) -> int | Unknown:
    """The peak of the GPU that served the node, or of the busiest of its machine where no other node shares them."""
    if not telemetry.gpus:
        return Unknown(f"{NO_BYTES}, and its GPUs were not sampled")
    uuid, host = run.nodes.get(name, Node()).more.get("gpu_uuid"), _host(run, name)
    there = [g for g in telemetry.gpus if not host or g.host == host]
    if own := [g.memory_bytes for g in there if g.gpu_uuid == uuid]:
        return max(own)
    sharing = sum(_host(run, n) == host for n in run.names)
    if sharing > 1:
        return Unknown(f"{sharing} nodes share a machine, and the samples do not name the GPU of each")
    return max((g.memory_bytes for g in there), default=Unknown(f"the GPUs of {host} were not sampled"))


def _host(run: Run, name: str) -> str:
    """The machine of a node where the run had several; empty where all ran on one."""
    machine = run.nodes.get(name, Node()).more.get("machine")
    return str(machine.get("host") or "") if isinstance(machine, Mapping) else ""


def memory_pct(nodes: tuple[NodeFigures, ...], peak_bytes: int | Unknown) -> Figure:
    """The mean over the nodes whose share is known; else the peak of the telemetry, of the one card all nodes have."""
    cards = set(present(n.card_bytes for n in nodes))
    if not present(n.memory_used_bytes for n in nodes) and len(cards) == 1 and not isinstance(peak_bytes, Unknown):
        return 100 * peak_bytes / cards.pop()
    known = present(n.memory_pct for n in nodes)
    return sum(known) / len(known) if known else next((n.memory_pct for n in nodes), Unknown("the run has no node"))


def cost_of(run: Run, wall_s: Figure, tokens: Tokens, telemetry: Telemetry, choice: PriceChoice) -> Cost:
    """Every GPU of the run is paid for from its start to its end, busy or not."""
    made, energy = tokens.output_tokens, telemetry.energy_j
    if isinstance(energy, Unknown) and not isinstance(metered := metered_j(run.answered), Unknown):
        energy = metered
    joules = made if isinstance(made, Unknown) else per_million(energy, made)
    price, gpus = hourly_price(run, choice), gpus_of(run)
    if isinstance(wall_s, Unknown) or isinstance(price, Unknown) or isinstance(gpus, Unknown) or not gpus:
        none = next((p for p in (wall_s, price) if isinstance(p, Unknown)), Unknown("the run has no GPU"))
        return Cost(none, str(none), none, none, none, none, joules)
    hours = Decimal(repr(wall_s)) / 3600
    usd, low, high = (v * hours for v in (price.usd_per_h, price.low_usd, price.high_usd))
    each, least, most = (per_million(v, made) for v in (usd, low, high))
    return Cost(price.usd_per_h / gpus, price.words, usd, each, least, most, joules)


def batches_of(runs: Sequence[Run], limits: Thresholds, choice: PriceChoice) -> Batches:
    """The curve over every batch size that the runs swept; of several runs with the same batch the last counts."""
    found: dict[int, BatchPoint] = {}
    for run in runs:
        for level in levels_of(run, hourly_price(run, choice)):
            if (point := _point([r for r in run.answered if r.batch == level.batch], level)) is not None:
                found[level.batch] = point
    points = tuple(point for _, point in sorted(found.items()))
    if len(points) < 2:
        return Batches(points, Unknown("no sweep: the requests name fewer than two batch sizes"), "")
    return Batches(points, _knee(points, limits.batches.knee_below_ratio), _note(points))


def _point(members: Sequence[Request], level: Level) -> BatchPoint | None:
    spans, latencies = present(r.span_s for r in members), present(r.latency_s for r in members)
    if len(spans) < len(members) or not latencies:
        return None
    seconds = max(e for _, e in spans) - min(s for s, _ in spans)
    if seconds <= 0:
        return None
    tokens = present(r.output_tokens for r in members)
    return BatchPoint(
        batch=level.batch,
        requests=len(members),
        throughput_per_s=len(members) / seconds,
        tokens_per_s=sum(tokens) / seconds if len(tokens) == len(members) else Unknown(SOME_TOKENS),
        mean_latency_s=sum(latencies) / len(latencies),
        ttft_median_s=level.ttft_median_s,
        per_token_median_s=level.per_token_median_s,
        usd_per_million_tokens=level.usd_per_million_tokens,
        joules_per_million_tokens=level.joules_per_million_tokens,
    )


def _knee(points: Sequence[BatchPoint], below: float) -> int | Unknown:
    """The last batch before growth falls under that share of being proportional."""
    for first, second in itertools.pairwise(points):
        if first.batch <= 0 or second.batch <= first.batch:
            continue
        growth = math.log(_rate(second) / _rate(first)) / math.log(second.batch / first.batch)
        if growth < below:
            return first.batch
    return Unknown(f"throughput still grew at the largest batch, {points[-1].batch}: sweep further")


def _rate(point: BatchPoint) -> float:
    return point.throughput_per_s if isinstance(point.tokens_per_s, Unknown) else max(point.tokens_per_s, 1e-12)


def _note(points: Sequence[BatchPoint]) -> str:
    gain = max(_rate(p) for p in points) / _rate(points[0])
    top = max(points, key=_rate).batch
    return f"batch {top} has {gain:.1f} times the throughput of batch {points[0].batch}"
