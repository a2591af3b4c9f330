"""How many TFLOPS are installed, achievable and realized, and what would reaching a target be worth in GPUs?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from gpuledger.efficiency.means import LEVELS, Accounts, Groups, in_order
from gpuledger.efficiency.statement import Capacity, CapacityAnalysis, Figure, NotKnown, RoiRow
from gpuledger.ledger.read.adding import distinct
from gpuledger.ledger.read.columns import sliced_wall_ms
from gpuledger.physics.calibration import Calibration
from gpuledger.physics.evidence import LOOSE_RATIO
from gpuledger.times import too_short_for_a_month
from gpuledger.units import Bounds, Range, Unknown

_NO_SHARE = Unknown("the share of the board this MIG instance holds is unknown")
_ROUNDING = 1e-5  # shares are recorded in whole ppm


class Column(msgspec.Struct, frozen=True):
    """A figure by device: NaN and a reason where it is unknown."""

    values: np.ndarray
    unknown: Mapping[int, Unknown]


class Capacities(msgspec.Struct, frozen=True):
    """By device what it is, and its TFLOPS. Realized figures are means over the window; counters low, middle, high.

    `share` is the share of the board a device holds while it is seen, and `seen_tflops` what it can achieve then.
    `loose`: devices whose work by counters is known as a range only.
    """

    board: np.ndarray
    model: list[str]
    cluster: list[str]
    peak: Column
    achievable: Column
    by_power: Column
    by_counters: tuple[Column, Column, Column]
    notes: list[str]
    loose: np.ndarray
    share: np.ndarray
    seen_tflops: np.ndarray

    def figures(self) -> dict[str, Column]:
        """The figures by the name they have in a `Capacity`."""
        return {
            "peak_tflops": self.peak,
            "achievable_tflops": self.achievable,
            "realized_power_tflops": self.by_power,
            "realized_counters_tflops": self.by_counters[1],
        }


def main_rows(accounts: Accounts) -> list[int]:
    """For each device the account that holds most of its time: it names the device's owner, model and cluster."""
    starts = np.flatnonzero(np.diff(accounts.device, prepend=-1))
    if len(starts) == len(accounts):
        rows: list[int] = starts.tolist()
        return rows
    best: dict[int, int] = {}
    observed = accounts.sums["observed_ms"]
    for row, device in enumerate(accounts.device.tolist()):
        if device not in best or observed[row] > observed[best[device]]:
            best[device] = row
    return [best[d] for d in range(accounts.devices)]


def device_capacities(
    accounts: Accounts, devices: Groups, main: Sequence[int], source: str, calibration: Calibration | None
) -> Capacities:
    """Every device's TFLOPS; a MIG instance has its share of the board's, and no board counts more than once."""
    labels, models = accounts.labels, [accounts.labels["gpu_model"][row] for row in main]
    share = device_shares(accounts, main)
    counted = share * _board_weights(accounts, main, share)
    peaks = {name: facts.peak_tflops for name, facts in accounts.models.items()}
    listed: list[Figure] = [
        *map({name: facts.achievable_tflops(source) for name, facts in accounts.models.items()}.__getitem__, models)
    ]
    if calibration and source == "measured":
        for i, row in enumerate(main):
            measured = calibration.of(labels["gpu_uuid"][row] or "")
            if measured and measured.achievable_tflops is not None:
                listed[i] = measured.achievable_tflops
    peak, achievable = _shared([peaks[m] for m in models], counted), _shared(listed, counted)
    ranges, pif = devices.counters_pct, _column(devices.pif)
    levels = [_column([r if isinstance(r, Unknown) else getattr(r, k) for r in ranges]) for k in LEVELS]
    of_peak = [Column(c.values * peak.values / 100, {**c.unknown, **peak.unknown}) for c in levels]
    return Capacities(
        accounts.board[main],
        [name or "no model name" for name in models],
        [labels["cluster"][row] or "no cluster" for row in main],
        peak,
        achievable,
        Column(pif.values * achievable.values, {**achievable.unknown, **pif.unknown}),
        (of_peak[0], of_peak[1], of_peak[2]),
        ["" if isinstance(r, Unknown) else r.note for r in ranges],
        np.array([isinstance(r, Bounds) for r in ranges], dtype=bool),
        share,
        _shared(listed, share).values,
    )


def device_shares(accounts: Accounts, main: Sequence[int]) -> np.ndarray:
    """By device the share of its board it held, the mean over its time; NaN where no account knows it."""
    share, device, n = accounts.slice_ratio, accounts.device, accounts.devices
    known = ~np.isnan(share)
    ms = np.where(known, accounts.sums["observed_ms"], 0.0)
    held, observed = (np.bincount(device, v, minlength=n) for v in (np.nan_to_num(share) * ms, ms))
    return np.divide(held, observed, out=share[list(main)], where=observed > 0)


def _board_weights(accounts: Accounts, main: Sequence[int], share: np.ndarray) -> np.ndarray:
    """1; on boards seen in several forms (whole by night, sliced by day) the part of its time a device was seen."""
    board = accounts.board[list(main)]
    boards = int(board.max(initial=-1)) + 1
    total = np.bincount(board, np.nan_to_num(share), minlength=boards)
    several = (total > 1 + _ROUNDING)[board]
    if not several.any():
        return np.ones(len(board))
    observed = np.bincount(accounts.device, accounts.sums["observed_ms"], minlength=len(board))
    whole = np.array([accounts.labels["gpu_instance_id"][row] is None for row in main], dtype=bool)
    sliced, _ = sliced_wall_ms(board, np.arange(len(board)), np.where(whole, np.nan, share), observed, boards)
    wall = (np.bincount(board, np.where(whole, observed, 0.0), minlength=boards) + sliced)[board]
    # Single samples stand for no time: then each form counts alike.
    part = np.divide(observed, wall, out=1 / np.maximum(total, 1.0)[board], where=wall > 0)
    return np.where(several, part, 1.0)


def _column(figures: Sequence[Figure]) -> Column:
    unknown = {i: f for i, f in enumerate(figures) if isinstance(f, Unknown)}
    if not unknown:
        return Column(np.array(figures, dtype=np.float64), unknown)
    return Column(np.array([np.nan if isinstance(f, Unknown) else f for f in figures], dtype=np.float64), unknown)


def _shared(figures: Sequence[Figure], share: np.ndarray) -> Column:
    """Figures of boards for the share of each that a device holds."""
    whole = _column(figures)
    lost = dict.fromkeys(np.flatnonzero(np.isnan(share)).tolist(), _NO_SHARE)
    return Column(whole.values * share, {**lost, **whole.unknown})


def capacity_analysis(devices: Capacities, source: str) -> CapacityAnalysis:
    """Analysis 1. A total covers the GPUs whose figures are known, with their number."""

    def each(texts: Sequence[str]) -> tuple[Capacity, ...]:
        names, code = in_order(texts)
        return tuple(_capacity(name, devices, np.flatnonzero(code == i), source) for i, name in enumerate(names))

    fleet = _capacity("fleet", devices, np.arange(len(devices.board)), source)
    return CapacityAnalysis(fleet, each(devices.model), each(devices.cluster))


def _capacity(name: str, devices: Capacities, rows: np.ndarray, source: str) -> Capacity:
    gpus = len(distinct(devices.board[rows]))
    over = {figure: len(distinct(devices.board[_known(c, rows)])) for figure, c in devices.figures().items()}
    words = ("peak", "achievable", "realized by power", "realized by counters")
    parts = [f"{what} over {n} of {gpus} GPUs" for what, n in zip(words, over.values(), strict=True) if 0 < n < gpus]
    return Capacity(
        name=name,
        gpus=gpus,
        peak_tflops=_total(devices.peak, rows),
        achievable_tflops=_total(devices.achievable, rows),
        achievable_source=source,
        realized_power_tflops=_total(devices.by_power, rows),
        realized_counters_tflops=_total_range(devices, rows),
        achievable_gpus=over["achievable_tflops"],
        note="; ".join(parts),
    )


def _known(column: Column, rows: np.ndarray) -> np.ndarray:
    return rows if not column.unknown else rows[~np.isnan(column.values[rows])]


def _total(column: Column, rows: np.ndarray) -> Figure:
    known = _known(column, rows)
    # Exactly rounded, so that the order of devices cannot change a digit.
    return math.fsum(column.values[known].tolist()) if len(known) else _first_reason(column, rows)


def _total_range(devices: Capacities, rows: np.ndarray) -> Range | Unknown:
    low, middle, high = (_total(column, rows) for column in devices.by_counters)
    if isinstance(low, Unknown) or isinstance(middle, Unknown) or isinstance(high, Unknown):
        return _first_reason(devices.by_counters[0], rows)
    over = _known(devices.by_counters[0], rows)
    notes = sorted({n for i in over.tolist() for n in devices.notes[i].split("; ") if n})
    ranges = over[devices.loose[over]]
    loose = float(devices.by_counters[1].values[ranges].sum())
    kind = Bounds if loose > LOOSE_RATIO * middle or (len(ranges) and not middle) else Range
    return kind(low, middle, high, "counters", "; ".join(notes))


def _first_reason(column: Column, rows: np.ndarray) -> Unknown:
    return next((column.unknown[i] for i in rows.tolist() if i in column.unknown), Unknown("no GPU"))


def unknown_capacity(devices: Capacities) -> list[NotKnown]:
    """What is unknown, once per model and reason, with the number of GPUs."""
    found: dict[tuple[str, str, str], set[int]] = {}
    boards = devices.board.tolist()
    for figure, column in devices.figures().items():
        for i, unknown in column.unknown.items():
            found.setdefault((devices.model[i], figure, unknown.why), set()).add(boards[i])
    return [
        NotKnown(f"capacity.{figure} of {model} ({len(boards)} GPU{'s' * (len(boards) != 1)})", why)
        for (model, figure, why), boards in sorted(found.items())
    ]


HOURS_PER_DAY = 24
DAYS_PER_MONTH = 30


BRIEFLY_SEEN = Unknown("its GPUs were seen for less than 24 h; a month needs 24 h or more")


def roi(
    gpus: int, rfu_pct: Figure, target_ratios: Sequence[float], window_ms: int, lasting: int | None = None
) -> tuple[RoiRow, ...]:
    """Each target above the current RFU: N x (target / current - 1) more GPUs' worth of the same work.

    Empty where the current RFU is unknown or zero: nothing can be scaled from it. Per month only from a day on, and
    over the GPUs that were seen for that long: `lasting` of them, else all.
    """
    counted, short = gpus if lasting is None else lasting, too_short_for_a_month(window_ms)
    short = BRIEFLY_SEEN if short is None and not counted else short
    if isinstance(rfu_pct, Unknown) or rfu_pct <= 0:
        return ()
    rows = []
    for target_pct in sorted({round(100 * t, 9) for t in target_ratios}):
        if target_pct > rfu_pct:
            more, month_h = target_pct / rfu_pct - 1, HOURS_PER_DAY * DAYS_PER_MONTH
            month = counted * more * month_h if short is None else short
            rows.append(RoiRow(target_pct, gpus * more, gpus * more * HOURS_PER_DAY, month))
    return tuple(rows)


def shows(row: RoiRow) -> bool:
    """Whether reaching a target is worth a tenth of a GPU, the least a reader sees."""
    return row.equivalent_gpus >= 0.05
