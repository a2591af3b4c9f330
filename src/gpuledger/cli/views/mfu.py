"""How do MFU, HFU and their denominators look?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.figures import number, percent
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table

_GIGA = 1e9


def parts(data: Mapping[str, Any]) -> list[RenderableType]:
    """A headline, the shares with their denominators, the FLOP by part, what was assumed."""
    unit = data["unit"]
    gpus = f"{data['count']:,} {data['gpu_name']}"
    rate = number(data[f"{unit}s_per_s"], 0)
    head = f"[bold]{escape(data['model'])}[/] on {escape(gpus)}: {rate} {unit}s/s in {escape(data['precision'])}"
    out: list[RenderableType] = [head, "", _shares(data), "", _by_part(data)]
    notes = pairs()
    for text in data["warnings"]:
        notes.add_row("[bold]look[/]", f"[bold]{escape(text)}[/]")
    for missing in data["not_known"]:
        if missing["figure"].endswith("_pct"):
            notes.add_row(missing["figure"], escape(f"not known: {missing['why']}"))
    for text in data["assumptions"]:
        notes.add_row("assumed", escape(text))
    return [*out, "", notes]


def _shares(data: Mapping[str, Any]) -> Table:
    table = plain_table()
    table.add_column("share", no_wrap=True)
    table.add_column("%", justify="right", no_wrap=True)
    table.add_column("over")
    rows = (
        ("MFU", "mfu_pct", data["denominator"]),
        ("of the peak in use", "mfu_in_use_pct", data["in_use_denominator"]),
        ("of the achievable", "mfu_achievable_pct", data["achievable_denominator"]),
        ("HFU", "hfu_pct", f"the same peak as MFU; {data['hfu_counts']}"),
        ("MFU, causal half", "mfu_causal_pct", "the same peak as MFU"),
    )
    for title, name, over in rows:
        if name != "mfu_causal_pct" or data["unit"] == "token":
            table.add_row(title, percent(data[name]), escape(over))
    table.add_row("achieved", number(data["achieved_tflops"]), "TFLOPS a GPU of the model's own work")
    return table


def _by_part(data: Mapping[str, Any]) -> Table:
    unit = data["unit"]
    whole = data[f"flop_per_{unit}"]
    table = plain_table(f"Training FLOP per {unit}")
    table.add_column("part", no_wrap=True)
    table.add_column("GFLOP", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    for part, flop in data[f"flop_per_{unit}_by_part"].items():
        table.add_row(part.replace("_", " "), number(flop / _GIGA, 3), percent(data["part_pct"][part]))
    table.add_row("all", number(whole / _GIGA, 3), "")
    return table
