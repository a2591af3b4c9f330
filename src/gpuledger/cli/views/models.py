"""How does the list of models look?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from rich.table import Table

from gpuledger.catalog.models import Model, TransformerShape
from gpuledger.cli.figures import number
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import plain_table

_BILLION = 1e9
_HEADS = ("name", "all", "active", "published", "context", "as of")
_SOURCE_LEAST, _SOURCE_MOST = 12, 26


def as_data(model: Model) -> dict[str, Any]:
    """The model as JSON holds it: its shape, what follows from it, and every published figure with source and date."""
    raw: dict[str, Any] = msgspec.to_builtins(model)
    return {**raw, "params_total": model.params_total, "params_active": model.params_active}


def model_list(models: Iterable[Model], width: int) -> Table:
    """One row per model; the source gets what is left of `width` columns, so that no figure is cut."""
    rows = [_row(model) for model in models]
    table = plain_table("Models in the catalog: parameters in billions, by shape")
    taken = 0
    for i, title in enumerate(_HEADS):
        right = 0 < i < len(_HEADS) - 1
        taken += max([len(title), *(len(row[i]) for row in rows)]) + 1
        table.add_column(title, justify="right" if right else "left", no_wrap=True)
    room = min(width - taken - 1, _SOURCE_MOST)
    shown = room >= _SOURCE_LEAST
    if shown:
        table.add_column("source", no_wrap=True, overflow="ellipsis", max_width=room)
    else:
        table.caption, table.caption_justify = "sources: --json, or a wider terminal", "left"
    for row in rows:
        table.add_row(*map(escape, row if shown else row[:-1]))
    return table


def _row(model: Model) -> tuple[str, ...]:
    published = model.params_published
    context = model.shape.max_context if isinstance(model.shape, TransformerShape) else None
    return (
        model.name,
        _billions(model.params_total),
        _billions(model.params_active),
        _billions(published.value) if published else "",
        number(context, 0) if context else "",
        model.as_of,
        model.source.removeprefix("https://"),
    )


def _billions(params: float) -> str:
    return number(params / _BILLION, 3 if params < 10 * _BILLION else 1)
