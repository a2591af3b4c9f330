"""How do a GPU's figures, sources and dates look?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.table import Table

from gpuledger.catalog.gpus import Gpu
from gpuledger.cli.figures import number
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.units import known

_GB = 1_000_000_000
_TB = 1000 * _GB


def as_data(gpu: Gpu) -> dict[str, Any]:
    """The GPU as JSON holds it: every fact with value, source and date."""
    raw: dict[str, Any] = msgspec.to_builtins(gpu)
    return {**raw, "reference_precision": gpu.reference_precision()}


def gpu_list(gpus: Iterable[Gpu]) -> Table:
    """One row a GPU."""
    table = plain_table("GPUs in the catalog: dense peak, board and idle power, memory, bandwidth")
    table.add_column("key", no_wrap=True)
    table.add_column("architecture", no_wrap=True)
    for title in ("TFLOPS", "W", "idle W", "GB", "TB/s"):
        table.add_column(title, justify="right", no_wrap=True)
    for gpu in gpus:
        precision = gpu.reference_precision()
        table.add_row(
            gpu.key,
            gpu.architecture,
            f"{number(known(gpu.peak(precision)), 0)} {precision}",
            _short(gpu.board_power_w.value),
            _short(gpu.idle_power_w.value) if gpu.idle_power_w else "not known",
            number(gpu.memory_bytes.value / _GB, 0),
            number(gpu.memory_bandwidth_bytes_per_s.value / _TB, 1),
        )
    return table


def gpu_page(gpu: Gpu) -> list[RenderableType]:
    """Everything about one GPU."""
    head = pairs()
    head.add_row("name", f"[bold]{escape(gpu.name)}[/]")
    head.add_row("made by", f"{gpu.vendor}, {gpu.architecture}, {gpu.form_factor}")
    head.add_row("also called", escape(", ".join(gpu.aliases)) or "nothing else")
    if gpu.notes:
        head.add_row("notes", escape(gpu.notes))
    sources = list(dict.fromkeys(fact.source for _, fact in gpu.facts()))
    table = plain_table("Figures")
    table.add_column("figure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("as of", no_wrap=True)
    table.add_column("source", no_wrap=True)
    for name, fact in gpu.facts():
        place = f"\\[{sources.index(fact.source) + 1}]{'' if fact.verified else ' second-hand'}"
        table.add_row(name, _short(fact.value), fact.as_of, place)
    legend, notes = pairs(), pairs()
    for i, source in enumerate(sources, 1):
        legend.add_row(f"\\[{i}]", escape(source))
    for name, fact in gpu.facts():
        if fact.note:
            notes.add_row(name, escape(fact.note))
    page: list[RenderableType] = [head, "", table, "", legend]
    return [*page, "", notes] if notes.row_count else page


def _short(value: float | None) -> str:
    """Whole numbers without a point, others with one digit."""
    return number(value, 0 if value is not None and value == int(value) else 1)
