"""What does a benchmark show when it ends? The run in short, each node and each batch; scaling has the whole report."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from gpuledger.bench.loadgen import LoadgenLog
from gpuledger.bench.records import Run
from gpuledger.bench.summary import Level, NodeSummary, Summary
from gpuledger.encode import encode
from gpuledger.report.document import Block, Bullets, Document, KeyFigure, Prose
from gpuledger.report.tables import Cell, make_table, styled
from gpuledger.report.written import amount, number, write
from gpuledger.units import Unknown

MS, TB, KJ = 1e3, 1e-12, 1e-3
NODE_HEADS = ("Node", "Planned", "OK", "Failed", "Lost", "TTFT, ms", "Latency, ms", "First error")
LEVEL_HEADS = ("Batch", "OK", "Tokens/s", "TTFT, ms", "Token, ms", "Read, TB/s", "kJ/Mtok", "$/Mtok")


def bench_document(run: Run, short: Summary) -> Document:
    """The run in short."""
    planned = write(short.planned, "whole")
    answered = f"{short.ok:,} of {planned} planned requests answered, {short.failed:,} failed, {short.lost:,} lost"
    nodes = map(_node, short.nodes)
    blocks: list[Block] = [make_table("nodes", "Nodes, median times", NODE_HEADS, "wnnnnnnw", nodes)]
    if short.levels:
        levels = map(_level, short.levels)
        blocks.append(make_table("batches", "Batches (TTFT: time to first token)", LEVEL_HEADS, "nnnnnnnn", levels))
        blocks.append(Prose(f"Mtok: a million output tokens. {short.price_words}".strip(), "dim"))
    problems = [f"{node}: {words}" for node, found in run.problems.items() for words in found]
    if problems:
        blocks.append(Bullets(problems, "Problems"))
    return Document(
        name="bench",
        kind="Benchmark",
        title=f"Benchmark, {run.file}",
        headline=answered,
        facts=[amount(str(len(short.nodes)), "node"), f"wall clock: {write(short.wall_s, 'factor')} s", *_client(run)],
        figures=[
            _key("Requests per second", short.ok_per_s, "answered, by wall clock"),
            _key("Output tokens per second", short.output_tokens_per_s, "by wall clock"),
        ],
        notes=[Prose(f"Telemetry: {run.telemetry}", "dim")],
        summary=blocks,
        data=lambda: _data(run, short),
    )


def _data(run: Run, short: Summary) -> dict[str, Any]:
    """The run in short as JSON holds it."""
    body = {
        "results": run.file,
        "telemetry": run.telemetry,
        **{f.name: getattr(short, f.name) for f in fields(short)},
        "client": run.client,
        "problems": run.problems,
        "interrupted": bool(run.more.get("interrupted")),
    }
    return encode("bench", body)


def _key(label: str, value: float | Unknown, note: str) -> KeyFigure:
    return KeyFigure(label, write(value, "tenth"), "", note, unknown=isinstance(value, Unknown))


def _client(run: Run) -> list[str]:
    if isinstance(run.client, Unknown):
        return []
    was = "was the bottleneck" if run.client.get("bottleneck") else "was not the bottleneck"
    return [f"the client {was}: {run.client.get('why', '')}"]


def _scaled(value: Any, times: float, places: int) -> Cell:
    """A figure in another unit; an unknown figure is marked as one."""
    if isinstance(value, Unknown):
        return styled(value, "tenth")
    scaled = float(value) * times
    return Cell(number(scaled, places), scaled)


def _node(n: NodeSummary) -> list[Cell | str]:
    counts = [styled(v, "whole") for v in (n.planned, n.ok, n.failed, n.lost)]
    return [n.node, *counts, _scaled(n.ttft_median_s, MS, 1), _scaled(n.latency_median_s, MS, 1), n.first_error]


def _level(v: Level) -> list[Cell | str]:
    return [
        styled(v.batch, "whole"),
        styled(v.ok, "whole"),
        styled(v.tokens_per_s, "whole"),
        _scaled(v.ttft_median_s, MS, 1),
        _scaled(v.per_token_median_s, MS, 2),
        _scaled(v.weights_read_bytes_per_s, TB, 2),
        _scaled(v.joules_per_million_tokens, KJ, 0),
        _scaled(v.usd_per_million_tokens, 1, 2),
    ]


def loadgen_document(log: LoadgenLog, file: str) -> Document:
    """What became of LoadGen's logs."""
    lost = sum(r.lost for r in log.requests)
    samples = amount(f"{len(log.requests):,}", "sample")
    return Document(
        name="loadgen",
        kind="LoadGen import",
        title=f"LoadGen import, {file}",
        headline=f"{samples} in {log.wall_s:.3f} s, {lost:,} lost",
        facts=[f"results: {file}"],
        summary=[Bullets(log.notes, "Notes")],
        data=lambda: {
            "results": file,
            "requests": len(log.requests),
            "lost": lost,
            "wall_s": log.wall_s,
            "scenario": log.header["load"]["scenario"],
            "notes": list(log.notes),
            "reported": log.header["reported"],
        },
    )
