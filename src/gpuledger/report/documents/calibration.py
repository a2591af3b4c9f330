"""What does a calibration show? What was measured on each GPU, and what could not be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from gpuledger.efficiency.calibration_files import BoardCalibration, Spread
from gpuledger.report.document import Block, Document, Section, Terms
from gpuledger.report.tables import Cell, make_table, styled
from gpuledger.report.written import gpus, number, percent
from gpuledger.units import Unknown

TB = 1e12
PRODUCT_HEADS = ("Precision", "TFLOPS", "Lowest", "Highest", "Repeats", "Dense peak", "Of peak", "W")
REST_HEADS = ("Figure", "Median", "Lowest", "Highest", "Of peak")
NOT_MEASURED = Unknown("not measured")


def calibration_document(boards: Mapping[Path, BoardCalibration], lake: str | None) -> Document:
    """The document of one or more boards by the file that keeps each; `lake` where they are kept in one."""
    first = next(iter(boards.values()))
    made_with = ", ".join(f"{name} {value}" for name, value in first.made_with.items())
    return Document(
        name="calibration",
        kind="Calibration",
        title=f"Calibration, {first.as_of}",
        headline=f"{gpus(len(boards))} measured",
        facts=[first.as_of, f"{first.seconds:g} s per figure", *([made_with] if made_with else [])],
        sections=[
            Section(b.gpu_uuid, f"{b.gpu_model} {b.gpu_uuid}", [*_tables(b), Terms([("Kept in", str(file))])])
            for file, b in boards.items()
        ],
        data=lambda: {
            "gpus": [{**msgspec.to_builtins(b), "file": str(file)} for file, b in boards.items()],
            "lake": lake,
        },
    )


def _tables(board: BoardCalibration) -> list[Block]:
    products: list[list[Cell | str]] = [
        [name, *_spread(p.tflops, 1, 1), str(p.tflops.repeats), _figure(p.peak_tflops), _figure(p.of_peak_pct, percent),
         _figure(p.power_w.median if p.power_w else None)]
        for name, p in board.tflops.items()
    ]  # fmt: skip
    rest: list[list[Cell | str]] = [
        ["memory bandwidth, TB/s", *_spread(board.bandwidth_bytes_per_s, 1 / TB, 2),
         _figure(board.bandwidth_of_peak_pct, percent)],
        ["power at rest, W", *_spread(board.idle_power_w, 1, 0), ""],
        ["power at rest with memory held, W", *_spread(board.idle_held_power_w, 1, 0), ""],
        ["power at work, W", *_spread(board.busy_power_w, 1, 0), ""],
    ]  # fmt: skip
    out: list[Block] = [make_table("products", "Matrix products", PRODUCT_HEADS, "wnnnnnnn", products)]
    out.append(make_table("rest", "Memory and power", REST_HEADS, "wnnnn", rest))
    return [*out, Terms(list(board.not_measured.items()), "Not measured")] if board.not_measured else out


def _spread(found: Spread | None, unit: float, places: int) -> list[Cell]:
    if found is None:
        return [styled(NOT_MEASURED, "plain"), Cell(""), Cell("")]
    return [_figure(v * unit, partial(number, places=places)) for v in (found.median, found.low, found.high)]


def _figure(value: float | None, form: Callable[[float], str] = number) -> Cell:
    return styled(NOT_MEASURED, "plain") if value is None else Cell(form(value), value)
