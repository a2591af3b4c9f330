"""What can this GPU reach? Measured once, used by every statement from then on."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpuledger.cli.options import PATH, lake_option, screen_options
from gpuledger.cli.screen import Screen
from gpuledger.errors import DeviceError, InputError

if TYPE_CHECKING:
    from gpuledger.efficiency.calibration_files import BoardCalibration
    from gpuledger.training.torch_bench import TorchBench


@click.command("calibrate")
@lake_option
@click.option("--out", type=PATH, help="Write the figures to this file instead of the lake; one GPU only.")
@click.option("--seconds", type=float, default=5.0, show_default=True, help="Seconds to measure each figure.")
@screen_options
def command(screen: Screen, lake_dir: Path, out: Path | None, seconds: float) -> None:
    """Measure achievable throughput and idle power of these GPUs.

    Times matrix products in every precision PyTorch supports and a copy in GPU memory, and measures idle and busy
    power. Needs PyTorch with CUDA. Clocks and power limits are not changed. Takes about a minute per GPU; keep other
    work off the GPUs meanwhile.
    """
    from gpuledger.cli.showing import give
    from gpuledger.devices.device import TRY_REPLAY
    from gpuledger.devices.nvml import NvmlSource
    from gpuledger.efficiency.calibration_files import calibration_file, write_board
    from gpuledger.lake.layout import Lake
    from gpuledger.report.documents.calibration import calibration_document
    from gpuledger.training.runtime import need_torch
    from gpuledger.training.torch_bench import open_benches

    if seconds <= 0:
        raise InputError(f"cannot measure for {seconds:g} s", hint="give a number of seconds above 0; 5 is usual")
    torch = need_torch("gpuledger calibrate")
    try:
        source = NvmlSource()
    except DeviceError as error:
        error.hint = error.hint.replace(f"; {TRY_REPLAY}", "")  # a recording cannot be measured
        raise
    try:
        benches = open_benches(source, torch)
        if out and len(benches) > 1:
            hint = "omit --out, or choose one GPU with CUDA_VISIBLE_DEVICES=0"
            raise InputError(f"{out} would hold one GPU and there are {len(benches)}", hint=hint)
        boards = [_measure(bench, seconds, screen) for bench in benches]
    finally:
        source.close()
    files = {write_board(out or calibration_file(Lake(lake_dir), b.gpu_uuid), b): b for b in boards}
    document = calibration_document(files, None if out else str(lake_dir))
    give(document, screen)
    if not out:
        screen.say(f"next: gpuledger analyze --lake {lake_dir} --achievable measured")


def _measure(bench: TorchBench, seconds: float, screen: Screen) -> BoardCalibration:
    from gpuledger.training.calibrate import calibrate, precisions

    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    with screen.stages() as stages:
        tick = stages.start(f"GPU {bench.gpu_model}"[:18], len(precisions()) + 2)
        return calibrate(bench, seconds, now, lambda _step: tick(1))
