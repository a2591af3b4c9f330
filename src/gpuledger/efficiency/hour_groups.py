"""What did each kind of owner and GPU do in each period: utilization and pipe activity?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from gpuledger.ledger.read.adding import Sums
from gpuledger.ledger.read.columns import Names, Rows
from gpuledger.ledger.read.rollup import state_codes
from gpuledger.physics.activity import CONDITIONS, PIPES
from gpuledger.units import MS_PER_DAY, MS_PER_HOUR

_LABELS = ("gpu_model", "tensor_precision", "namespace", "state")
_SUMS = (
    "samples", "util_ppm_ms", "util_ms", "pif_ms", "power_ms", "counters_ms", "matrix_ms", "vector_ms", *PIPES,
    *CONDITIONS,
)  # fmt: skip


@dataclass(frozen=True)
class HourGroups:
    """One place for each period (start and length), model, precision, namespace and state, in that order."""

    period: list[tuple[int, int]] = field(default_factory=list)
    model: list[str | None] = field(default_factory=list)
    precision: list[str | None] = field(default_factory=list)
    namespace: list[str | None] = field(default_factory=list)
    sums: dict[str, np.ndarray] = field(default_factory=dict)


class HourGrouping:
    """Groups the lines that pass."""

    def __init__(self) -> None:
        self._sums = Sums()

    def passing(self, lines: Iterable[tuple[int, Rows]]) -> Iterator[tuple[int, Rows]]:
        """The lines as they come, added up on their way."""
        for day_ms, rows in lines:
            if len(rows["hour_ms"]):
                period = rows["hour_ms"] // MS_PER_HOUR * 2 + (rows["grain_ms"] == MS_PER_DAY)
                zero = np.zeros(len(period), dtype=np.int64)
                self._sums.add([period, *(rows[c] for c in _LABELS)], {c: rows.get(c, zero) for c in _SUMS})
            yield day_ms, rows

    def total(self, names: Mapping[str, Names]) -> HourGroups:
        """What passed, added up."""
        keys, sums = self._sums.total()
        if not keys:
            return HourGroups()
        places = [names[c].places()[codes] for c, codes in zip(_LABELS, keys[1:], strict=True)]
        order = np.lexsort([*reversed(places), keys[0]])
        period, *labels = (key[order] for key in keys)
        starts = (period // 2 * MS_PER_HOUR).tolist()
        length = np.where(period % 2, MS_PER_DAY, MS_PER_HOUR).tolist()
        model, precision, owner = (
            names[c].text(codes) for c, codes in zip(_LABELS, labels, strict=False) if c != "state"
        )
        periods = list(zip(starts, length, strict=True))
        found = {c: v[order] for c, v in sums.items()} | {"state": state_codes(names["state"], labels[-1])}
        return HourGroups(periods, model, precision, owner, found)
