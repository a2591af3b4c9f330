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


def as_data(model: Model) -> dict[str, Any]:
    """The model as JSON holds it: its shape, what follows from it, and every published figure with source and date."""
    raw: dict[str, Any] = msgspec.to_builtins(model)
    return {**raw, "params_total": model.params_total, "params_active": model.params_active}


def model_list(models: Iterable[Model]) -> Table:
    """One row a model."""
    table = plain_table("Models in the catalog: parameters in thousand millions, by shape")
    table.add_column("name", no_wrap=True)
    for title in ("all", "active", "published", "context"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("as of", no_wrap=True)
    table.add_column("source", no_wrap=True, overflow="ellipsis", max_width=26)
    for model in models:
        published = model.params_published
        context = model.shape.max_context if isinstance(model.shape, TransformerShape) else None
        table.add_row(
            model.name,
            _billions(model.params_total),
            _billions(model.params_active),
            _billions(published.value) if published else "",
            number(context, 0) if context else "",
            model.as_of,
            escape(model.source.removeprefix("https://")),
        )
    return table


def _billions(params: float) -> str:
    return number(params / _BILLION, 3 if params < 10 * _BILLION else 1)
