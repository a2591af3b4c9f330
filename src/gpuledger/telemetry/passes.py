"""Which pass through a repeated hour is a row of?

When clocks are set back, the times of an hour come twice. Where a device's rows go through that hour twice, one after
the other, the first time is the first pass and the second time the second. A single run through it that joins rows
before the hour only is the first pass, one that joins rows after it only the second. Anything else stays unknown.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping import Bound
from gpuledger.telemetry.mapping.shape import open_shaped
from gpuledger.telemetry.stamps import Fault, StampReader
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR

UNKNOWN = -1


class _Seen:
    """The rows of repeated hours in order, and the hours each device has rows of outside of them."""

    def __init__(self) -> None:
        self.at_ms: list[int] = []
        self.later_ms: list[int] = []
        self.device: list[tuple[str | None, ...]] = []
        self.series: list[tuple[str | None, ...]] = []
        self.hours: set[tuple[tuple[str | None, ...], int]] = set()


def passes_of(path: Path, bound: Bound, stamps: StampReader) -> np.ndarray:
    """For each row of a repeated hour, in the order of the file: 0, 1, or -1 where its pass is unknown."""
    seen = _scan(path, bound, StampReader(stamps.formats, stamps.zone_name, unit=stamps.unit))
    out = np.full(len(seen.at_ms), UNKNOWN, dtype=np.int64)
    at, later = np.array(seen.at_ms), np.array(seen.later_ms)
    for rows in _grouped(seen.device, at):
        found = _two_runs(at[rows])
        if found is not None:
            out[rows] = found
        elif _turns(at[rows]) == 0:
            out[rows] = _one_run(seen, rows, at, later)
        else:
            for some in _grouped([seen.series[r] for r in rows], at[rows]):
                runs = _two_runs(at[rows[some]])
                out[rows[some]] = UNKNOWN if runs is None else runs
    return out


def _scan(path: Path, bound: Bound, stamps: StampReader) -> _Seen:
    # A device known by its index needs its host to be one device.
    device = [source for c in (*schema.DEVICE, "host") for source in bound.labels.get(c, ())]
    series = [*device, *(source for c in schema.SERIES for source in bound.labels.get(c, ()))]
    seen = _Seen()
    columns = list(dict.fromkeys([bound.time, *series]))
    for batch in open_shaped(path, bound.mapping).batches(columns, tuple(dict.fromkeys(series))):
        at, later, fault = stamps.decode(batch.column(bound.time))
        names = [_texts(batch.column(c)) for c in device]
        twice = np.flatnonzero(fault == Fault.AMBIGUOUS)
        sure = np.flatnonzero(fault == Fault.NONE)
        seen.hours |= {
            (tuple(n[i] for n in names), hour)
            for i, hour in zip(sure.tolist(), (at[sure] // MS_PER_HOUR).tolist(), strict=True)
        }
        if len(twice):
            every = [_texts(batch.column(c)) for c in series]
            seen.at_ms += at[twice].tolist()
            seen.later_ms += later[twice].tolist()
            seen.device += [tuple(n[i] for n in names) for i in twice.tolist()]
            seen.series += [tuple(n[i] for n in every) for i in twice.tolist()]
    return seen


def _texts(column: pa.Array) -> list[str | None]:
    return [None if v is None else str(v) for v in column.to_pylist()]


def _grouped(names: list[tuple[str | None, ...]], at_ms: np.ndarray) -> list[np.ndarray]:
    """Row numbers by name and by the day of the repeated hour, each in order."""
    found: dict[tuple[object, ...], list[int]] = {}
    for row, (name, at) in enumerate(zip(names, at_ms.tolist(), strict=True)):
        found.setdefault((name, at // MS_PER_DAY), []).append(row)
    return [np.array(rows) for rows in found.values()]


def _turns(at_ms: np.ndarray) -> int:
    """How often time turns back in a series that mostly rises, or jumps ahead in one that mostly falls."""
    step = np.diff(at_ms)
    rises, falls = int((step > 0).sum()), int((step < 0).sum())
    return min(rises, falls)


def _two_runs(at_ms: np.ndarray) -> np.ndarray | None:
    """The pass of each row where the series goes through the hour twice; None where it does not."""
    if _turns(at_ms) != 1:
        return None
    step = np.diff(at_ms)
    rising = (step > 0).sum() >= (step < 0).sum()
    turn = int(np.flatnonzero(step < 0 if rising else step > 0)[0]) + 1
    after = np.arange(len(at_ms)) >= turn
    return (after if rising else ~after).astype(np.int64)


def _one_run(seen: _Seen, rows: np.ndarray, at: np.ndarray, later: np.ndarray) -> int:
    """The pass of a single run through the hour: the one that joins the rows there are around it."""
    device = seen.device[int(rows[0])]
    before = (device, int(at[rows].min()) // MS_PER_HOUR - 1) in seen.hours
    after = (device, int(later[rows].max()) // MS_PER_HOUR + 1) in seen.hours
    return UNKNOWN if before == after else int(after)
