"""What did the fleet do hour by hour, and at which utilization and power did its GPUs spend their hours?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.efficiency.accounts import worth_of_pipes
from gpuledger.efficiency.adding import distinct
from gpuledger.efficiency.columns import Names, Rows
from gpuledger.efficiency.device_hours import device_hours
from gpuledger.efficiency.evidence import ModelFacts
from gpuledger.efficiency.hour_groups import HourGrouping, HourGroups
from gpuledger.efficiency.means import NO_BOARD, NO_COUNTERS, NO_POWER, NO_UTIL
from gpuledger.efficiency.statement import Figure, HourRow, UtilPowerCell
from gpuledger.ledger.cells import classify
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, PPM, Unknown, ratio

BINS = 20


@dataclass
class HourSums:
    """What is gathered over the lines: rows by period, time by cell of the plane, and sums by period and kind."""

    periods: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)
    plane: np.ndarray = field(default_factory=lambda: np.zeros(BINS * BINS))
    groups: HourGroups = field(default_factory=HourGroups)


def gather(
    lines: Iterable[tuple[int, Rows]], names: Mapping[str, Names], device_tflops: np.ndarray, device_board: np.ndarray
) -> HourSums:
    """Add up lines. `device_tflops`: achievable by device, NaN where not known; `device_board`: its board."""
    sums, grouping = HourSums(), HourGrouping()
    for rows in device_hours(grouping.passing(lines)):
        if len(rows["device"]):
            _add_periods(sums, rows, device_tflops, device_board)
            _add_plane(sums, rows)
    sums.groups = grouping.total(names)
    return sums


def _add_periods(sums: HourSums, rows: Rows, device_tflops: np.ndarray, device_board: np.ndarray) -> None:
    code = rows["hour_ms"] // MS_PER_HOUR * 2 + (rows["grain_ms"] == MS_PER_DAY)
    low = int(code.min())
    code = code - low
    size = int(code.max()) + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        pif_ratio_ms = np.where(rows["board_mw"] > 0, rows["pif_uj"] / rows["board_mw"], 0.0)
        pif = np.where(rows["pif_ms"] > 0, pif_ratio_ms / rows["pif_ms"], np.nan)
        watts = np.where(rows["power_ms"] > 0, rows["power_uj"] / rows["power_ms"] / 1e3, 0.0)
    tflops = pif * device_tflops[rows["device"]]
    both = (rows["util_ms"] > 0) & (rows["pif_ms"] > 0)
    parts = {
        "samples": rows["samples"],
        "util_ppm_ms": rows["util_ppm_ms"],
        "util_ms": rows["util_ms"],
        "pif_ratio_ms": pif_ratio_ms,
        "pif_ms": rows["pif_ms"],
        "gap_util_ppm_ms": np.where(both, rows["util_ppm_ms"], 0),
        "gap_util_ms": np.where(both, rows["util_ms"], 0),
        "gap_pif_ratio_ms": np.where(both, pif_ratio_ms, 0.0),
        "gap_pif_ms": np.where(both, rows["pif_ms"], 0),
        "power_w": watts,
        "power_ms": rows["power_ms"],
        "tflops": np.nan_to_num(tflops),
        "tflops_known": ~np.isnan(tflops),
    }
    added = {name: np.bincount(code, values, minlength=size) for name, values in parts.items()}
    if int(device_board.max()) + 1 == len(device_board):  # every device is a board, and has one row a period
        added["gpus"] = np.bincount(code, minlength=size)
    else:
        added["gpus"] = _boards(code, device_board[rows["device"]], size, len(device_board))
    for i in np.flatnonzero(added["gpus"]).tolist():
        key = ((i + low) // 2 * MS_PER_HOUR, MS_PER_DAY if (i + low) % 2 else MS_PER_HOUR)
        sums.periods[key] = {name: float(values[i]) for name, values in added.items()}


def _boards(code: np.ndarray, board: np.ndarray, size: int, devices: int) -> np.ndarray:
    """Boards seen in each period; MIG instances of one board count once."""
    return np.bincount(distinct(code * devices + board) // devices, minlength=size)


def _add_plane(sums: HourSums, rows: Rows) -> None:
    known = (rows["util_ms"] > 0) & (rows["pif_ms"] > 0) & (rows["board_mw"] > 0)
    util = rows["util_ppm_ms"][known] / rows["util_ms"][known] / PPM
    pif = rows["pif_uj"][known] / rows["board_mw"][known] / rows["pif_ms"][known]
    place = np.minimum((util * BINS).astype(np.int64), BINS - 1) * BINS
    place += np.minimum((pif * BINS).astype(np.int64), BINS - 1)
    sums.plane += np.bincount(place, rows["observed_ms"][known], minlength=BINS * BINS)


def hour_rows(sums: HourSums, models: dict[str | None, ModelFacts], why_tflops: str) -> tuple[HourRow, ...]:
    """The fleet per period, in order of time."""
    worked = _worked(sums.groups, models)
    return tuple(_hour(key, sums.periods[key], worked.get(key), why_tflops) for key in sorted(sums.periods))


def _worked(groups: HourGroups, models: dict[str | None, ModelFacts]) -> dict[tuple[int, int], tuple[float, float]]:
    """Share of the dense peak x ms (middle), and its time, by period."""
    worth = worth_of_pipes(groups.sums, list(zip(groups.model, groups.precision, strict=True)), models)
    out: dict[tuple[int, int], tuple[float, float]] = {}
    columns = (worth["worked_middle_ratio_ms"].tolist(), worth["worked_ms"].tolist())
    for key, part, known in zip(groups.period, *columns, strict=True):
        before = out.get(key, (0.0, 0.0))
        out[key] = (before[0] + part, before[1] + known)
    return out


def _hour(key: tuple[int, int], s: dict[str, float], worked: tuple[float, float] | None, why_tflops: str) -> HourRow:
    pif = ratio(s["pif_ratio_ms"], s["pif_ms"], NO_BOARD if s["power_ms"] else NO_POWER)
    gap: Figure = Unknown("needs utilization and PIF together")
    if s["gap_util_ms"] and s["gap_pif_ms"]:
        gap = 100 * s["gap_util_ppm_ms"] / PPM / s["gap_util_ms"] - 100 * s["gap_pif_ratio_ms"] / s["gap_pif_ms"]
    return HourRow(
        start_ms=key[0],
        hours=key[1] / MS_PER_HOUR,
        gpus=round(s["gpus"]),
        samples=round(s["samples"]),
        gpu_util_pct=ratio(100 * s["util_ppm_ms"] / PPM, s["util_ms"], NO_UTIL),
        pif=pif,
        rfu_power_pct=pif if isinstance(pif, Unknown) else 100 * pif,
        rfu_counters_pct=ratio(100 * worked[0], worked[1], NO_COUNTERS) if worked else Unknown(NO_COUNTERS),
        efficiency_gap_pp=gap,
        realized_power_tflops=s["tflops"] if s["tflops_known"] else Unknown(why_tflops),
        power_kw=s["power_w"] / 1e3 if s["power_ms"] else Unknown(NO_POWER),
    )


def util_power_cells(sums: HourSums, limits: Thresholds) -> tuple[UtilPowerCell, ...]:
    """Time by 5 % steps of utilization and PIF; the class is the one of the cell's middle."""
    cells = []
    for place in np.flatnonzero(sums.plane).tolist():
        util, pif = divmod(place, BINS)
        klass = classify((util + 0.5) / BINS, (pif + 0.5) / BINS, limits)
        cells.append(UtilPowerCell(100 * util / BINS, pif / BINS, float(sums.plane[place]) / MS_PER_HOUR, klass))
    return tuple(cells)
