"""Where is a calibration kept, and how do statements read it?

LAKE/calibration/<gpu_uuid>.json holds what was measured on one board; measuring again replaces it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpuledger.catalog.gpus import find_gpu
from gpuledger.lake.json_files import file_name, read_json, write_json
from gpuledger.lake.layout import Lake
from gpuledger.physics.calibration import Calibration, MeasuredGpu
from gpuledger.units import Unknown

FILE_VERSION = 1
FOLDER = "calibration"


class Spread(msgspec.Struct, frozen=True):
    """The median of repeated measurements, the lowest and the highest of them."""

    median: float
    low: float
    high: float
    repeats: int


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """What matrix products of one precision reached; `n` rows and columns. Peak: the catalog's, dense."""

    tflops: Spread
    n: int
    power_w: Spread | None = None
    peak_tflops: float | None = None
    of_peak_pct: float | None = None


class BoardCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured on one board; `not_measured` has the reason for each missing figure."""

    version: int = FILE_VERSION
    gpu_uuid: str
    gpu_model: str
    as_of: str
    made_with: dict[str, str] = {}
    seconds: float
    tflops: dict[str, Product] = {}
    bandwidth_bytes_per_s: Spread | None = None
    bandwidth_peak_bytes_per_s: float | None = None
    bandwidth_of_peak_pct: float | None = None
    idle_power_w: Spread | None = None
    idle_held_power_w: Spread | None = None
    busy_power_w: Spread | None = None
    not_measured: dict[str, str] = {}


def calibration_file(lake: Lake, gpu_uuid: str) -> Path:
    """The file with the calibration of a board."""
    return lake.root / FOLDER / f"{file_name(gpu_uuid)}.json"


def write_board(file: Path, board: BoardCalibration) -> Path:
    """Write or replace a calibration, whole or not at all."""
    return write_json(file, board, "the calibration")


def read_board(file: Path) -> BoardCalibration:
    """One calibration, checked whole."""
    again = "run gpuledger calibrate again, or delete the file"
    return read_json(file, BoardCalibration, FILE_VERSION, "a calibration", again)


def read_boards(lake: Lake) -> list[BoardCalibration]:
    """Everything measured for a lake, board by board; empty where nothing was."""
    return [read_board(file) for file in sorted((lake.root / FOLDER).glob("*.json"))]


def load_calibration(lake: Lake) -> Calibration | None:
    """All boards measured for a lake; None where none was."""
    boards = read_boards(lake)
    return Calibration({b.gpu_uuid: measured(b) for b in boards}) if boards else None


def measured(board: BoardCalibration) -> MeasuredGpu:
    """The part of a calibration that statements use: TFLOPS at the GPU's reference precision, bandwidth, idle power."""
    gpu = find_gpu(board.gpu_model)
    precision = "bf16" if isinstance(gpu, Unknown) else gpu.reference_precision()
    product = board.tflops.get(precision)
    return MeasuredGpu(
        gpu_uuid=board.gpu_uuid,
        as_of=board.as_of,
        achievable_tflops=product.tflops.median if product else None,
        precision=precision if product else None,
        bandwidth_bytes_per_s=board.bandwidth_bytes_per_s.median if board.bandwidth_bytes_per_s else None,
        idle_power_w=board.idle_power_w.median if board.idle_power_w else None,
    )
