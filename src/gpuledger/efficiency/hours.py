"""What did the fleet do hour by hour, and at which utilization and power did its GPUs spend their hours?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import numpy as np

from gpuledger.catalog.thresholds import Thresholds
from gpuledger.efficiency.means import NO_BOARD, NO_COUNTERS, NO_POWER, NO_SHARE, NO_TIME, NO_UTIL
from gpuledger.efficiency.statement import Figure, HourRow, UtilPowerCell
from gpuledger.lake.names import Names
from gpuledger.ledger.cells import classify
from gpuledger.ledger.fleet_hours import SUMS
from gpuledger.ledger.gpu_hours import SUMS as _SUMS
from gpuledger.ledger.read.adding import apart, distinct
from gpuledger.ledger.read.columns import Rows, joined, kept
from gpuledger.ledger.read.key_sums import Sums
from gpuledger.ledger.read.rollup import state_codes
from gpuledger.physics.evidence import LOOSE_RATIO, ModelFacts, kinds_of, work
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR, NO_POINT, PPM, Unknown, ratio

BINS = 20
Period = tuple[int, int]  # start and length
_KEYS = ("device", "hour_ms", "grain_ms")
_HALF_HOUR_MS = 1_800_000
_LABELS = ("gpu_model", "tensor_precision", "namespace", "state")


class HourGroups(msgspec.Struct, frozen=True):
    """One place for each period, model, precision, namespace and state, in that order. `period`: see `_codes`."""

    period: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    model: list[str | None] = msgspec.field(default_factory=list)
    precision: list[str | None] = msgspec.field(default_factory=list)
    namespace: list[str | None] = msgspec.field(default_factory=list)
    sums: dict[str, np.ndarray] = msgspec.field(default_factory=dict)

    @property
    def hour(self) -> np.ndarray:
        """The start of each period, in hours since 1970."""
        return self.period // 2

    @property
    def folded(self) -> np.ndarray:
        """Whether a period is a day whose hours were added up."""
        return self.period % 2 > 0


def _groups(fleet: Iterable[Rows], names: Mapping[str, Names]) -> HourGroups:
    """Lines added up by period and kind, in order."""
    added = Sums()
    for rows in fleet:
        if len(rows["hour_ms"]):
            zero = np.zeros(len(rows["hour_ms"]), dtype=np.int64)
            added.add([_codes(rows), *(rows[c] for c in _LABELS)], {c: rows.get(c, zero) for c in SUMS})
    keys, sums = added.total()
    if not keys:
        return HourGroups()
    places = [names[c].places()[codes] for c, codes in zip(_LABELS, keys[1:], strict=True)]
    order = np.lexsort([*reversed(places), keys[0]])
    period, *labels = (key[order] for key in keys)
    model, precision, owner = (names[c].text(codes) for c, codes in zip(_LABELS[:3], labels[:3], strict=True))
    found = {c: v[order] for c, v in sums.items()} | {"state": state_codes(names["state"], labels[-1])}
    return HourGroups(period, model, precision, owner, found)


def device_hours(lines: Iterable[tuple[int, Rows]], device_board: np.ndarray) -> Iterator[Rows]:
    """One row per device and period, from the lines of one file after the other, each with the start of its day.

    The files of a day have its boards in order, each in one of them: so the rows of a period come in order of device,
    however many files its day was posted to, and those of a board (`device_board`: by device) come together.
    """
    later: Rows = {}
    for day_ms, found in lines:
        rows = {c: found[c] for c in (*_KEYS, "limit_mw", *_SUMS)}
        # A span over midnight is posted with the day before: what is of the next day waits for its device's file.
        over, later = _apart(later, day_ms)
        if over:
            yield _one_row_each(over)
        last = int(rows["device"].max(initial=-1))
        if last >= 0:  # a slice that this day no longer has belongs to the same file as the rest of its board
            last = int(np.flatnonzero(device_board == device_board[last])[-1])
        due, later = _apart(later, day_ms + MS_PER_DAY, last)
        own, early = _apart(rows, day_ms + MS_PER_DAY)
        later = _together(later, early)
        if now := _together(due, own):
            yield _one_row_each(now)
    if later:
        yield _one_row_each(later)


def _together(first: Rows, second: Rows) -> Rows:
    return joined([first, second]) if first and second else first or second


def _apart(rows: Rows, until_ms: int, last: int | None = None) -> tuple[Rows, Rows]:
    """The rows before an instant, up to some device, and the others; without a row nothing at all."""
    if not rows:
        return {}, {}
    before = rows["hour_ms"] < until_ms
    if last is not None:
        before &= rows["device"] <= last
    if before.all():
        return rows, {}
    return (kept(rows, before) if before.any() else {}), kept(rows, ~before)


def _one_row_each(rows: Rows) -> Rows:
    """Owners of a device within one period added up. Whole numbers below 2**63, so the order does not matter."""
    key = (rows["device"] << 32) + (rows["hour_ms"] // _HALF_HOUR_MS) + (rows["grain_ms"] == MS_PER_DAY)
    step = np.diff(key)
    if (step < 0).any():
        order = np.argsort(key, kind="stable")
        rows, key = {name: values[order] for name, values in rows.items()}, key[order]
        step = np.diff(key)
    if (step > 0).all():
        return rows
    starts = np.flatnonzero(np.append(1, step))
    first = {name: rows[name][starts] for name in _KEYS}
    first["limit_mw"] = np.fmax.reduceat(rows["limit_mw"], starts)
    # Times known are mostly the time observed: one array under many names.
    made = {id(values): np.add.reduceat(values, starts) for values in apart(rows[name] for name in _SUMS)}
    return first | {name: made[id(rows[name])] for name in _SUMS}


class HourSums(msgspec.Struct):
    """What is gathered over the lines: rows by period, time by cell of the plane, and sums by period and kind."""

    periods: dict[Period, defaultdict[str, float]] = msgspec.field(default_factory=dict)
    plane: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(BINS * BINS))
    groups: HourGroups = msgspec.field(default_factory=HourGroups)
    boards: list[np.ndarray] = msgspec.field(default_factory=list)


def gather(
    lines: Iterable[tuple[int, Rows]],
    fleet: Iterable[Rows],
    names: Mapping[str, Names],
    device_tflops: np.ndarray,
    device_board: np.ndarray,
    device_share: np.ndarray,
) -> HourSums:
    """Add up lines by device, and by kind of work whatever the device (`fleet`).

    `device_tflops`: achievable by device, NaN where unknown; its board, and its share of it.
    """
    sums = HourSums(groups=_groups(fleet, names))
    for rows in device_hours(lines, device_board):
        if len(rows["device"]):
            _add_periods(sums, rows, device_tflops, device_board, device_share)
            _add_plane(sums, rows)
    if sums.boards:  # MIG: the instances of a board count once
        code = distinct(np.concatenate(sums.boards)) // len(device_board)
        for i, count in enumerate(np.bincount(code - code[0]).tolist(), int(code[0])):
            if count:
                sums.periods[_period(i)]["devices"] = count
    return sums


def _add_periods(
    sums: HourSums, rows: Rows, device_tflops: np.ndarray, device_board: np.ndarray, device_share: np.ndarray
) -> None:
    code = _codes(rows)
    low = int(code.min())
    code = code - low
    size = int(code.max()) + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        pif_ratio_ms = np.where(rows["limit_mw"] > 0, rows["pif_uj"] / rows["limit_mw"], 0.0)
        pif = np.where(rows["pif_ms"] > 0, pif_ratio_ms / rows["pif_ms"], np.nan)
    tflops = pif * device_tflops[rows["device"]]
    both = (rows["util_ms"] > 0) & (rows["pif_ms"] > 0)
    added = {"observed_ms": np.bincount(code, rows["observed_ms"], minlength=size)}
    watts, period, added["shared_power_ms"] = _watts(rows, code, device_board, device_share)
    shares = {"pif_ratio_ms": (code, pif_ratio_ms), "tflops": (code, np.nan_to_num(tflops)), "power_w": (period, watts)}
    added["tflops_known"] = np.bincount(code[~np.isnan(tflops)], minlength=size)
    if not both.all():
        alone = code[~both]
        parts = {n: rows[n][~both] for n in ("util_ppm_ms", "util_ms", "pif_ms")}
        added |= {f"lone_{n}": np.bincount(alone, v, minlength=size) for n, v in parts.items()}
        shares["lone_pif_ratio_ms"] = alone, pif_ratio_ms[~both]
    added["devices"] = np.bincount(code, minlength=size)
    met = np.flatnonzero(added["devices"]).tolist()
    held = {i: sums.periods.setdefault(_period(i + low), defaultdict(float)) for i in met}
    further = {name: _further(held, name, size, *values) for name, values in shares.items()}
    for i in met:
        _add(sums.periods, _period(i + low), {name: float(values[i]) for name, values in added.items()})
        held[i].update((name, float(values[i])) for name, values in further.items())
    if int(device_board.max()) + 1 < len(device_board):
        sums.boards.append(distinct((code + low) * len(device_board) + device_board[rows["device"]]))


def _further(
    held: Mapping[int, Mapping[str, float]], name: str, size: int, code: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Figures that are not whole numbers, added one after the other to what is held: as if all were in one file."""
    before = np.zeros(size)
    before[list(held)] = [sums.get(name, 0.0) for sums in held.values()]
    if not before.any():
        return np.bincount(code, values, minlength=size)
    return np.bincount(np.concatenate([np.arange(size), code]), np.concatenate([before, values]), minlength=size)


def _watts(
    rows: Rows, code: np.ndarray, device_board: np.ndarray, device_share: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean power of every board in a period, that period, and by period the time it is known for.

    It is read for the board: slices repeat it; one of unknown share (0) has no part in it.
    """
    device, size = rows["device"], int(code.max()) + 1
    if int(device_board.max()) + 1 == len(device_board):  # no slices: a row is a board
        whole_uj, whole_ms = (rows[name] * (device_share[device] > 0) for name in ("power_uj", "power_ms"))
        watts = np.divide(whole_uj, whole_ms, out=np.zeros(len(code)), where=whole_ms > 0) / 1e3
        return watts, code, np.bincount(code, whole_ms, minlength=size)
    place, of_row = np.unique(code * len(device_board) + device_board[device], return_inverse=True)
    share = device_share[device]
    uj, ms = (np.bincount(of_row.reshape(-1), rows[name] * share) for name in ("power_uj", "power_ms"))
    watts = np.divide(uj, ms, out=np.zeros(len(place)), where=ms > 0) / 1e3
    period = place // len(device_board)
    return watts, period, np.bincount(period, ms, minlength=size)


def _codes(rows: Rows) -> np.ndarray:
    """A number for each period, rising with its start."""
    out: np.ndarray = rows["hour_ms"] // MS_PER_HOUR * 2 + (rows["grain_ms"] == MS_PER_DAY)
    return out


def _period(code: int) -> Period:
    return code // 2 * MS_PER_HOUR, MS_PER_DAY if code % 2 else MS_PER_HOUR


def _add(sums: dict[Period, defaultdict[str, float]], key: Period, values: Mapping[str, float]) -> None:
    """A day may be in several files: what one holds is added to what was there."""
    into = sums.setdefault(key, defaultdict(float))
    for name, value in values.items():
        into[name] += value


def _add_plane(sums: HourSums, rows: Rows) -> None:
    known = (rows["util_ms"] > 0) & (rows["pif_ms"] > 0) & (rows["limit_mw"] > 0)
    rows = kept({c: rows[c] for c in ("util_ppm_ms", "util_ms", "pif_uj", "pif_ms", "limit_mw", "observed_ms")}, known)
    util = rows["util_ppm_ms"] / rows["util_ms"] / PPM
    pif = rows["pif_uj"] / rows["limit_mw"] / rows["pif_ms"]
    place = np.minimum((util * BINS).astype(np.int64), BINS - 1) * BINS
    place += np.minimum((pif * BINS).astype(np.int64), BINS - 1)
    sums.plane += np.bincount(place, rows["observed_ms"], minlength=BINS * BINS)


def hour_rows(sums: HourSums, models: dict[str | None, ModelFacts], why_tflops: str) -> tuple[HourRow, ...]:
    """The fleet per period, in order of time."""
    groups, whole = sums.groups, dict[Period, defaultdict[str, float]]()
    if groups.sums:
        done = work(groups.sums, *kinds_of(groups.model, groups.precision), models, with_notes=False)
        added = {n: groups.sums[n] for n in ("samples", "util_ppm_ms", "util_ms", "pif_ms", "power_ms")}
        added |= {"worked_ratio_ms": done.middle, "worked_loose_ratio_ms": done.loose, "worked_ms": done.ms}
        codes, place = np.unique(groups.period, return_inverse=True)
        totals = {n: np.bincount(place, values).tolist() for n, values in added.items()}
        for i, code in enumerate(codes.tolist()):
            whole[_period(code)] = defaultdict(float, {n: values[i] for n, values in totals.items()})
    return tuple(_hour(key, whole[key] | sums.periods[key], why_tflops) for key in sorted(sums.periods))


def _hour(key: Period, s: defaultdict[str, float], why_tflops: str) -> HourRow:
    no_power, no_util, no_counters = (w if s["observed_ms"] else NO_TIME for w in (NO_POWER, NO_UTIL, NO_COUNTERS))
    pif = ratio(s["pif_ratio_ms"], s["pif_ms"], NO_BOARD if s["power_ms"] else no_power)
    gap: Figure = Unknown("needs utilization and PIF together" if s["observed_ms"] else NO_TIME)
    # Device-hours in which one of the two is unknown are taken off.
    util_ms, pif_ms = s["util_ms"] - s["lone_util_ms"], s["pif_ms"] - s["lone_pif_ms"]
    if util_ms and pif_ms:
        gap = 100 * (s["util_ppm_ms"] - s["lone_util_ppm_ms"]) / PPM / util_ms
        gap -= 100 * (s["pif_ratio_ms"] - s["lone_pif_ratio_ms"]) / pif_ms
    return HourRow(
        start_ms=key[0],
        hours=key[1] / MS_PER_HOUR,
        gpus=round(s["devices"]),
        samples=round(s["samples"]),
        gpu_util_pct=ratio(100 * s["util_ppm_ms"] / PPM, s["util_ms"], no_util),
        pif=pif,
        rfu_power_pct=pif if isinstance(pif, Unknown) else 100 * pif,
        rfu_counters_pct=Unknown(NO_POINT)
        if s["worked_loose_ratio_ms"] > LOOSE_RATIO * s["worked_ratio_ms"]
        else ratio(100 * s["worked_ratio_ms"], s["worked_ms"], no_counters),
        efficiency_gap_pp=gap,
        realized_power_tflops=s["tflops"] if s["tflops_known"] else Unknown(why_tflops),
        power_kw=s["power_w"] / 1e3 if s["shared_power_ms"] else Unknown(NO_SHARE if s["power_ms"] else no_power),
    )


def util_power_cells(sums: HourSums, limits: Thresholds) -> tuple[UtilPowerCell, ...]:
    """Time by 5 % steps of utilization and PIF; the class is the one of the cell's middle."""
    cells = []
    for place in np.flatnonzero(sums.plane).tolist():
        util, pif = divmod(place, BINS)
        klass = classify((util + 0.5) / BINS, (pif + 0.5) / BINS, limits)
        cells.append(UtilPowerCell(100 * util / BINS, pif / BINS, float(sums.plane[place]) / MS_PER_HOUR, klass))
    return tuple(cells)
