"""How does what was measured on a GPU look?"""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from gpuledger.cli.figures import number, percent
from gpuledger.cli.terminal import escape
from gpuledger.cli.views.look import pairs, plain_table
from gpuledger.efficiency.calibration_files import BoardCalibration, Spread

_TB = 1e12


def parts(board: BoardCalibration) -> list[RenderableType]:
    """TFLOPS by precision, bandwidth, power, and what could not be measured."""
    made_with = ", ".join(f"{name} {value}" for name, value in board.made_with.items())
    out: list[RenderableType] = [
        f"[bold]{escape(board.gpu_model)}[/] {escape(board.gpu_uuid)}",
        f"[dim]measured {escape(board.as_of)}, {board.seconds:g} s each; {escape(made_with)}[/]",
        "",
    ]
    if board.tflops:
        out += [_products(board), ""]
    out.append(_rest(board))
    if board.not_measured:
        missing = pairs()
        missing.title, missing.title_style, missing.title_justify = "Not measured", "bold", "left"
        for figure, why in board.not_measured.items():
            missing.add_row(escape(figure), escape(why))
        out += ["", missing]
    return [*out, ""]


def _products(board: BoardCalibration) -> Table:
    table = plain_table("Matrix products")
    table.add_column("precision")
    for head in ("TFLOPS", "lowest", "highest", "repeats", "dense peak", "of peak", "W"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, p in board.tflops.items():
        reached = [number(v, 1) for v in (p.tflops.median, p.tflops.low, p.tflops.high)]
        watts = number(p.power_w.median if p.power_w else None, 0)
        peak = number(p.peak_tflops, 0)
        table.add_row(name, *reached, str(p.tflops.repeats), peak, percent(p.of_peak_pct), watts)
    return table


def _rest(board: BoardCalibration) -> Table:
    table = plain_table("Memory and power")
    table.add_column("")
    for head in ("median", "lowest", "highest", "of peak"):
        table.add_column(head, justify="right", no_wrap=True)
    of_peak = percent(board.bandwidth_of_peak_pct)
    _row(table, "memory bandwidth, TB/s", board.bandwidth_bytes_per_s, 1 / _TB, 2, of_peak)
    _row(table, "power at rest, W", board.idle_power_w, 1, 0, "")
    _row(table, "power at rest with memory held, W", board.idle_held_power_w, 1, 0, "")
    _row(table, "power at work, W", board.busy_power_w, 1, 0, "")
    return table


def _row(table: Table, name: str, value: Spread | None, unit: float, digits: int, last: str) -> None:
    if value is None:
        table.add_row(name, number(None), "", "", "")
        return
    table.add_row(name, *(number(v * unit, digits) for v in (value.median, value.low, value.high)), last)
