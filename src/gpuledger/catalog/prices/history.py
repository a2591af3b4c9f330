"""What did spot and on-demand cost in a zone at an instant, and was it observed at all?

The history has change points: a price holds until the next row of its pool. A pool is one instance type in one zone.
A row without a price means that the offer was gone. After a gap in the observations the price is not known until the
next observation: the reader gives NaN there, never an old price.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from gpuledger.catalog.prices.reclaim import facts, folder
from gpuledger.errors import FactError, UnknownName

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MICRO = 1e6
S_PER_H = 3600
NAMES = ("instance", "region", "zone")


@dataclass(frozen=True, order=True)
class Pool:
    """One instance type in one zone."""

    instance: str
    region: str
    zone: str

    @property
    def name(self) -> str:
        """What a person would call it."""
        return f"{self.instance} in {self.zone if self.zone.startswith(self.region) else f'{self.region} {self.zone}'}"


@dataclass(frozen=True)
class Changes:
    """The change points of a pool: when, and both prices in dollars per hour; NaN without an offer."""

    at_s: Ints
    on_demand_usd_h: Floats
    spot_usd_h: Floats


class PriceHistory:
    """The prices of many pools over time. `observed_s`: the times of observation, sorted."""

    def __init__(self, changes: Mapping[Pool, Changes], observed_s: Ints, source: str, carry_h: float = 60.0) -> None:
        self._changes = dict(sorted(changes.items()))
        self.observed_s, self.source, self.carry_h = observed_s, source, carry_h

    @property
    def pools(self) -> tuple[Pool, ...]:
        """All pools, by name."""
        return tuple(self._changes)

    @cached_property
    def instances(self) -> tuple[str, ...]:
        """All instance types."""
        return tuple(sorted({p.instance for p in self._changes}))

    @cached_property
    def regions(self) -> tuple[str, ...]:
        """All regions."""
        return tuple(sorted({p.region for p in self._changes}))

    @cached_property
    def zones(self) -> tuple[str, ...]:
        """All zones."""
        return tuple(sorted({p.zone for p in self._changes}))

    @property
    def first_s(self) -> int:
        """The first observation."""
        return int(self.observed_s[0])

    @property
    def last_s(self) -> int:
        """The last observation."""
        return int(self.observed_s[-1])

    @property
    def as_of(self) -> dt.date:
        """The day of the last observation."""
        return dt.datetime.fromtimestamp(self.last_s, dt.UTC).date()

    def changes(self, pool: Pool) -> Changes:
        """The change points of a pool."""
        return self._changes[pool]

    def observed(self, at_s: Ints) -> NDArray[np.bool_]:
        """Whether prices at these instants are known: an observation is at most `carry_h` hours back."""
        place = np.searchsorted(self.observed_s, at_s, side="right") - 1
        last = self.observed_s[np.maximum(place, 0)]
        known: NDArray[np.bool_] = (place >= 0) & (at_s - last <= self.carry_h * S_PER_H)
        return known

    def gaps(self) -> list[tuple[int, int]]:
        """Spans without observations: from the end of what is carried forward to the next observation."""
        steps = np.diff(self.observed_s)
        carry = int(self.carry_h * S_PER_H)
        wide = np.flatnonzero(steps > carry)
        return [(int(self.observed_s[i]) + carry, int(self.observed_s[i + 1])) for i in wide]

    def prices(self, pool: Pool, at_s: Ints) -> tuple[Floats, Floats]:
        """Spot and on-demand price of a pool at these instants, carried forward; NaN where gone or not observed."""
        found = self._changes[pool]
        place = np.searchsorted(found.at_s, at_s, side="right") - 1
        known = (place >= 0) & self.observed(at_s)
        at = np.maximum(place, 0)
        return np.where(known, found.spot_usd_h[at], np.nan), np.where(known, found.on_demand_usd_h[at], np.nan)

    def matching(self, instances: Iterable[str], regions: Iterable[str], zones: Iterable[str]) -> list[Pool]:
        """The pools of these instance types; unknown regions and zones are errors, none means all."""
        wanted_r, wanted_z = set(regions), set(zones)
        for kind, names, known in (("region", wanted_r, self.regions), ("zone", wanted_z, self.zones)):
            for name in sorted(names - set(known)):
                raise UnknownName(kind, name, known)
        kinds = set(instances)
        return [
            p
            for p in self._changes
            if p.instance in kinds and (not wanted_r or p.region in wanted_r) and (not wanted_z or p.zone in wanted_z)
        ]


@cache
def load_history() -> PriceHistory:
    """The shipped AWS history."""
    import pyarrow.parquet as pq

    file = folder().joinpath(facts().history)
    with file.open("rb") as stream:
        table = pq.read_table(stream, read_dictionary=list(NAMES)).combine_chunks()
    about = table.schema.metadata or {}
    if about.get(b"gpuledger.spot_history.version") != b"1":
        raise FactError(str(file), "version", "is not 1", hint="install gpuledger again")
    observed = np.array(json.loads(about[b"observed_s"]), dtype=np.int64)
    columns = [table.column(n).chunk(0) for n in NAMES]
    codes = np.stack([c.indices.to_numpy() for c in columns])
    starts = [0, *(np.flatnonzero(np.any(np.diff(codes) != 0, axis=0)) + 1).tolist()]
    at = observed[table.column("observation").to_numpy()]
    on_demand, spot = (_dollars(table.column(n)) for n in ("on_demand_micro_usd", "spot_micro_usd"))
    pools: dict[Pool, Changes] = {}
    for start, end in zip(starts, [*starts[1:], len(at)], strict=True):
        pools[Pool(*(c[start].as_py() for c in columns))] = Changes(
            at[start:end], on_demand[start:end], spot[start:end]
        )
    return PriceHistory(pools, observed, facts().history_source, facts().carry_hours)


def _dollars(column: object) -> Floats:
    import pyarrow.compute as pc

    values = pc.fill_null(pc.cast(column, "float64"), float("nan")).to_numpy()
    return np.asarray(values / MICRO, dtype=np.float64)
