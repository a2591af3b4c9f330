"""What do the lookups in the catalog show? GPUs and models, each figure with its source and date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gpuledger.catalog.gpus import Gpu
from gpuledger.catalog.models import Model, TransformerShape
from gpuledger.report.document import Block, Document, Terms
from gpuledger.report.tables import Cell, Row, figure, make_table
from gpuledger.report.written import amount, number

GB, TB, BILLION = 1_000_000_000, 1_000_000_000_000, 1e9


def gpus_document(gpus: Sequence[Gpu]) -> Document:
    """One row per GPU."""
    heads = ("Key", "Architecture", "TFLOPS", "W", "Idle W", "GB", "TB/s")
    rows: list[Row] = [
        [
            gpu.key, gpu.architecture, _peak(gpu), figure(gpu.figure("board_power_w"), _short),
            _short(gpu.idle_power_w.value) if gpu.idle_power_w else "unknown",
            figure(gpu.figure("memory_bytes"), lambda size: number(size / GB)),
            figure(gpu.figure("memory_bandwidth_bytes_per_s"), lambda wide: number(wide / TB, 1)),
        ]
        for gpu in gpus
    ]  # fmt: skip
    table = make_table("gpus", "", heads, "wwnnnnn", rows, screen_rows=len(rows))
    title = f"{amount(str(len(rows)), 'GPU')} in the catalog: dense peak, board and idle power, memory, bandwidth"
    return _lookup("gpus", title, [table], {"gpus": [gpu_data(gpu) for gpu in gpus]})


def gpu_document(gpu: Gpu) -> Document:
    """Every figure of one GPU."""
    facts = list(gpu.facts())
    sources = list(dict.fromkeys(fact.source for _, fact in facts))
    rows = [
        [
            name,
            _short(fact.value),
            fact.as_of,
            f"[{sources.index(fact.source) + 1}]{' second-hand' * (not fact.verified)}",
        ]
        for name, fact in facts
    ]
    about = [("made by", f"{gpu.vendor}, {gpu.architecture}, {gpu.form_factor}")]
    about += [("also called", ", ".join(gpu.aliases))] if gpu.aliases else []
    about += [("notes", gpu.notes)] if gpu.notes else []
    blocks: list[Block] = [
        Terms(about),
        make_table("figures", "", ("Figure", "Value", "As of", "Source"), "wnww", rows, screen_rows=len(rows)),
        Terms([(f"[{i}]", source) for i, source in enumerate(sources, 1)]),
        Terms([(name, fact.note) for name, fact in facts if fact.note]),
    ]
    return _lookup("gpu", gpu.name, blocks, gpu_data(gpu))


def models_document(models: Sequence[Model]) -> Document:
    """One row per model; parameters in billions."""
    heads = ("Name", "All", "Active", "Published", "Context", "As of", "Source")
    rows: list[Row] = []
    for model in models:
        published, shape = model.params_published, model.shape
        context = shape.max_context if isinstance(shape, TransformerShape) else None
        rows.append(
            [model.name, _billions(model.params_total), _billions(model.params_active),
             _billions(published.value) if published else "", number(context) if context else "", model.as_of,
             model.source.removeprefix("https://")]
        )  # fmt: skip
    table = make_table("models", "", heads, "wnnnnnW", rows, screen_rows=len(rows))
    title = f"{amount(str(len(rows)), 'model')} in the catalog: parameters in billions, by shape"
    data = [
        {**msgspec.to_builtins(m), "params_total": m.params_total, "params_active": m.params_active} for m in models
    ]
    return _lookup("models", title, [table], {"models": data})


def _lookup(name: str, headline: str, blocks: Sequence[Block], data: dict[str, Any]) -> Document:
    return Document(name, "Catalog", headline, headline, summary=blocks, data=lambda: data)


def gpu_data(gpu: Gpu) -> dict[str, Any]:
    """A GPU as JSON holds it: every fact with value, source and date."""
    return {**msgspec.to_builtins(gpu), "reference_precision": gpu.reference_precision()}


def _billions(params: float) -> str:
    return number(params / BILLION, 3 if params < 10 * BILLION else 1)


def _peak(gpu: Gpu) -> Cell:
    precision = gpu.reference_precision()
    return figure(gpu.peak(precision), lambda tflops: f"{number(tflops)} {precision}")


def _short(value: float) -> str:
    """Whole numbers without a point, others with one digit."""
    return number(value, 0 if value == int(value) else 1)
