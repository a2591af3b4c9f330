"""How do the few figures of a benchmark look?"""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from gpuledger.bench.records import Run
from gpuledger.bench.summary import Summary
from gpuledger.cli.figures import NOT_KNOWN, number
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.units import Unknown

_MS = 1000
_TB = 1e12


def parts(run: Run, short: Summary) -> list[RenderableType]:
    """The whole run, each node, each batch, and what to know about them."""
    out: list[RenderableType] = [_whole(run, short), "", _nodes(short)]
    if short.levels:
        out += ["", _levels(short)]
        if short.price_words:
            out.append(f"[dim]{escape(short.price_words)}[/]")
    for node, words in run.problems.items():
        out += [f"[yellow]{escape(node)}[/]: {escape(w)}" for w in words]
    return [*out, ""]


def _whole(run: Run, short: Summary) -> Table:
    table = pairs()
    planned = NOT_KNOWN if isinstance(short.planned, Unknown) else f"{short.planned:,}"
    table.add_row("answered", f"{short.ok:,} of {planned} planned, {short.failed:,} failed, {short.lost:,} lost")
    table.add_row("wall clock", f"{number(short.wall_s, 2)} s")
    table.add_row(
        "throughput", f"{number(short.ok_per_s, 1)} requests/s, {number(short.output_tokens_per_s, 0)} tokens/s"
    )
    if not isinstance(run.client, Unknown):
        was = "was the bottleneck" if run.client.get("bottleneck") else "was not the bottleneck"
        table.add_row("client", f"{was}: {escape(str(run.client.get('why', '')))}")
    table.add_row("telemetry", escape(str(run.telemetry)))
    return table


def _ms(value: float | Unknown) -> str:
    return NOT_KNOWN if isinstance(value, Unknown) else number(_MS * value, 1)


def _nodes(short: Summary) -> Table:
    table = plain_table("Nodes")
    table.add_column("node")
    for head in ("planned", "ok", "failed", "lost", "first, ms", "all, ms"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("first error", min_width=24, overflow="fold")
    for n in short.nodes:
        planned = NOT_KNOWN if isinstance(n.planned, Unknown) else f"{n.planned:,}"
        counts = (planned, f"{n.ok:,}", f"{n.failed:,}", f"{n.lost:,}")
        table.add_row(escape(n.node), *counts, _ms(n.ttft_median_s), _ms(n.latency_median_s), escape(n.first_error))
    return table


def _levels(short: Summary) -> Table:
    table = plain_table("Batches")
    for head in ("batch", "ok", "tokens/s", "first, ms", "a token, ms", "TB/s read", "kJ/Mtok", "$/Mtok"):
        table.add_column(head, justify="right", no_wrap=True)
    for v in short.levels:
        read = v.weights_read_bytes_per_s
        joules = v.joules_per_million_tokens
        usd = v.usd_per_million_tokens
        table.add_row(
            str(v.batch), f"{v.ok:,}", number(v.tokens_per_s, 0), _ms(v.ttft_median_s),
            NOT_KNOWN if isinstance(v.per_token_median_s, Unknown) else number(_MS * v.per_token_median_s, 2),
            NOT_KNOWN if isinstance(read, Unknown) else number(read / _TB, 2),
            NOT_KNOWN if isinstance(joules, Unknown) else number(joules / 1000, 0),
            NOT_KNOWN if isinstance(usd, Unknown) else f"{usd:.2f}",
        )  # fmt: skip
    return table
