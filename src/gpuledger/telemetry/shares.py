"""Is a column of shares of time in percent, where its name does not say so?

DCGM 4.6 called a whole number from 0 to 100 what 4.7 calls a share from 0 to 1. Where a row of a device and instant has
a field that only 4.7 has, all rows of that instant hold shares. Elsewhere all values of a device and a day decide: one
over 1 is percent, and so are the others; one between 0 and 1 is a share. Where all are 0 or 1, a 1 may be 1 % or 100 %,
and none of them is used; all 0 are 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import Flag
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.telemetry import schema
from gpuledger.telemetry.formats import Cells
from gpuledger.telemetry.mapping import Bound, Given
from gpuledger.telemetry.stamps import StampReader, Untimed
from gpuledger.units import MS_PER_DAY

COLUMN = "gpu_util_ratio"


class Seen(Flag):
    """What values of a device and a day were met."""

    NOTHING = 0
    OVER_1 = 1
    BETWEEN = 2
    EXACTLY_1 = 4


def as_shares(values: np.ndarray, sure: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values as shares, and which of them stay unknown (NaN). `sure`: rows that hold shares; `seen`: by row what
    was met of its device and day, as numbers of `Seen`.
    """
    percent = np.where(sure, values > 1, seen & Seen.OVER_1.value != 0)
    unknown = ~sure & (seen == Seen.EXACTLY_1.value) & ~np.isnan(values)
    out = np.where(percent, values / 100, values)
    out[unknown] = np.nan
    return out, unknown


def seen_in(values: np.ndarray, sure: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """What was met in each group of values, as numbers of `Seen`; values that are surely shares decide nothing."""
    out = np.zeros(count, dtype=np.int64)
    for flag, met in (
        (Seen.OVER_1, values > 1),
        (Seen.BETWEEN, (values > 0) & (values < 1)),
        (Seen.EXACTLY_1, values == 1),
    ):
        out[groups[met & ~sure]] |= flag.value
    return out


def note(source: str) -> str:
    """What the user hears of readings that stay unknown."""
    return (
        f"{source} is 0 or 1 only for some GPU and day, and 1 may be 1 % or 100 %: not read there; "
        "export DCGM_FI_DEV_GPU_UTIL or, of DCGM 4.7, DCGM_FI_DEV_FB_USED_BYTES with it"
    )


def groups_of(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each group of equal keys, and by row the number of its group; `keys`: a row of numbers for each
    part of a key, such as the device and the day.
    """
    _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


Device = tuple[str | None, ...]


class FileShares:
    """What a whole file holds of each device and day. It is read through once, where a batch of it asks."""

    def __init__(self, path: Path, bound: Bound, given: Given, zone: str) -> None:
        self._path, self._bound, self._given, self._zone = path, bound, given, zone
        self._seen: dict[tuple[Device, int], int] | None = None

    def seen(self, device: Device, day: int) -> int:
        """What was met of a device on a day, as a number of `Seen`."""
        if self._seen is None:
            self._seen = self._scan()
        return self._seen.get((device, day), 0)

    def _scan(self) -> dict[tuple[Device, int], int]:
        from gpuledger.telemetry.convert import convert  # which asks here
        from gpuledger.telemetry.mapping.shape import open_shaped

        source, rule = next((s, r) for c, s, r in self._bound.readings() if c == COLUMN and r.share_with)
        percent = (source, msgspec.structs.replace(rule, divide=100.0, share_with=()))
        bound = msgspec.structs.replace(
            self._bound.only((*schema.DEVICE, COLUMN)), values={COLUMN: percent}, fallbacks={}
        )
        time = bound.mapping.time
        stamps = StampReader(time.formats, self._zone, unit=time.unit, untimed=Untimed(self._path, self._given))
        found: dict[tuple[Device, int], int] = defaultdict(int)
        opened, labels = open_shaped(self._path, bound.mapping), tuple(bound.label_columns())
        for batch in opened.batches(bound.source_columns(), labels):
            made = convert(batch, bound, stamps)
            values = made.table[COLUMN].to_numpy() * 100
            sure = sure_rows(filled(batch, bound.beside)[made.kept], values, made.table)
            devices, first, group = device_days(made.table)
            met = seen_in(values, sure, group, len(first))
            days = made.table[schema.TIME].to_numpy()[first] // MS_PER_DAY
            for device, day, flags in zip(devices, days.tolist(), met.tolist(), strict=True):
                found[device, day] |= flags
        return found


def filled(batch: Cells, columns: Sequence[str]) -> np.ndarray:
    """The rows that have a value in one of these columns."""
    out = np.zeros(batch.num_rows, dtype=bool)
    for name in columns:
        cells = batch.column(name)
        empty = pc.equal(cells, "") if pa.types.is_string(cells.type) else pc.is_null(cells, nan_is_null=True)
        out |= ~pc.fill_null(empty, True).to_numpy(zero_copy_only=False)
    return out


def sure_rows(beside: np.ndarray, values: np.ndarray, table: pa.Table) -> np.ndarray:
    """The rows that hold shares. `beside`: those with a field that shows it; it shows it of the others of their instant
    too, such as the board's row next to those of the pods that share it.
    """
    if not beside.any() or not (~beside & ~np.isnan(values)).any():
        return beside
    first, group = groups_of(np.stack([*_device_codes(table), table[schema.TIME].to_numpy()]))
    shown = np.zeros(len(first), dtype=bool)
    shown[group[beside]] = True
    return np.asarray(shown[group])


def device_days(table: pa.Table) -> tuple[list[Device], np.ndarray, np.ndarray]:
    """The device of each group of rows of one device and day, the first row of each, and by row its group."""
    first, group = groups_of(np.stack([*_device_codes(table), table[schema.TIME].to_numpy() // MS_PER_DAY]))
    texts = [label.take(pa.array(first)).to_pylist() for label in _device_labels(table)]
    return list(zip(*texts, strict=True)), first, group


def _device_labels(table: pa.Table) -> list[pa.DictionaryArray]:
    return [table[c].combine_chunks() for c in schema.DEVICE if c in table.column_names]


def _device_codes(table: pa.Table) -> list[np.ndarray]:
    labels = _device_labels(table)
    return [c.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) for c in labels]
