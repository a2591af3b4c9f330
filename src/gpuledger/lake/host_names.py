"""Are the rows of one device that name several hosts those of one GPU?

A GPU keeps its UUID when its host is renamed, and two scrapers may call one host differently: such rows report one
memory. Where two GPUs share a UUID, the memory in use jumps from one host's rows to the other's and stays nearly the
same along the rows of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
import pyarrow as pa

from gpuledger.errors import InputError
from gpuledger.lake.batch import as_dictionary, one_array
from gpuledger.lake.sorting.order import device_codes
from gpuledger.telemetry import schema
from gpuledger.units import GIB

_USED = "fb_used_bytes"
_ENOUGH = 20  # neighbors from different hosts; fewer show nothing
_MOST_NAMED = 3


class Neighbors(msgspec.Struct, frozen=True):
    """What neighbors among the rows of a device by time, then host, have: pairs, and how many of them lie over 1 GiB of
    used memory apart; `across` two hosts, and `within` the rows of one.

    `used`: by host the used memory of its first row, in bytes.
    """

    across: int
    across_apart: int
    within: int
    within_apart: int
    used: dict[str, float]

    def plus(self, other: Neighbors) -> Neighbors:
        """Both together."""
        return Neighbors(
            self.across + other.across,
            self.across_apart + other.across_apart,
            self.within + other.within,
            self.within_apart + other.within_apart,
            other.used | self.used,
        )

    @property
    def in_doubt(self) -> bool:
        """Whether more rows may show two GPUs."""
        return 2 * self.across_apart > self.across

    @property
    def are_two(self) -> bool:
        """Whether the rows are those of two GPUs."""
        return self.across >= _ENOUGH and self.in_doubt and 4 * self.within_apart < self.within


ByDevice = dict[str, Neighbors]


def neighbors_of(table: pa.Table) -> ByDevice:
    """The neighbors in rows in order of device and time, for the devices whose rows name several hosts."""
    if not {"host", _USED} <= set(table.column_names) or not _any_renamed(table):
        return {}
    device, names = device_codes(table)
    hosts, used = as_dictionary(table["host"]), one_array(table[_USED])
    host = _codes(hosts)
    changes = np.flatnonzero((host[1:] != host[:-1]) & (device[1:] == device[:-1]))
    several = np.zeros(len(names), dtype=bool)
    several[device[changes]] = True
    rows = np.flatnonzero(several[device] & (host >= 0) & used.is_valid().to_numpy(zero_copy_only=False))
    found = _counted(
        device[rows],
        host[rows],
        table[schema.TIME].to_numpy()[rows],
        used.take(pa.array(rows)).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False),
    )
    called = hosts.dictionary.to_pylist()
    return {
        names[number]: Neighbors(*counts, {called[code]: first for code, first in firsts.items()})
        for number, (counts, firsts) in found.items()
    }


def _any_renamed(table: pa.Table) -> bool:
    """Whether the host changes along the rows of a device; most often it does between devices only."""
    hosts = as_dictionary(table["host"])
    if len(hosts.dictionary) < 2:
        return False
    codes = _codes(hosts)
    rows = np.flatnonzero(codes[1:] != codes[:-1])
    same = np.ones(len(rows), dtype=bool)
    for name in (name for name in schema.DEVICE if name in table.column_names):
        device = _codes(as_dictionary(table[name]))
        same &= device[rows] == device[rows + 1]
    return bool(same.any())


def _counted(
    device: np.ndarray, host: np.ndarray, at_ms: np.ndarray, used: np.ndarray
) -> dict[int, tuple[tuple[int, int, int, int], dict[int, float]]]:
    """By device with neighbors from different hosts the counts, and by host the used memory of its first row."""
    size, out = int(device.max(initial=-1)) + 1, list[np.ndarray]()
    for keys, across in (((host, at_ms, device), True), ((at_ms, host, device), False)):
        order = np.lexsort(keys)
        same = device[order][1:] == device[order][:-1]
        pairs = same & ((host[order][1:] != host[order][:-1]) == across)
        apart = pairs & (np.abs(np.diff(used[order])) > GIB)
        out += [np.bincount(device[order][1:][chosen], minlength=size) for chosen in (pairs, apart)]
    starts = (
        order[np.append(True, (np.diff(device[order]) != 0) | (np.diff(host[order]) != 0))] if len(order) else order
    )
    firsts: dict[int, dict[int, float]] = {}
    for row in starts.tolist():
        firsts.setdefault(int(device[row]), {})[int(host[row])] = float(used[row])
    counts = np.stack(out, axis=1)
    return {n: ((int(a), int(b), int(c), int(d)), firsts[n]) for n, (a, b, c, d) in enumerate(counts.tolist()) if a}


def _codes(labels: pa.DictionaryArray) -> np.ndarray:
    indices = labels.indices.fill_null(-1) if labels.indices.null_count else labels.indices
    codes: np.ndarray = indices.to_numpy(zero_copy_only=False)
    return codes


def add_neighbors(total: ByDevice, more: Mapping[str, Neighbors]) -> None:
    """Add the neighbors found in other rows of the same devices."""
    for device, found in more.items():
        total[device] = total[device].plus(found) if device in total else found


def refuse_two(found: Iterable[Mapping[str, Neighbors]], *, imported: bool = False) -> None:
    """A fault where rows of two GPUs would be joined, as they have one name. `imported`: a lake has them already."""
    total: ByDevice = {}
    for one in found:
        add_neighbors(total, one)
    bad = [device for device, neighbors in sorted(total.items()) if neighbors.are_two]
    if not bad:
        return
    device, neighbors = bad[0], total[bad[0]]
    shown = sorted(neighbors.used.items())[:_MOST_NAMED]
    hosts = " and ".join(f"{host} ({used / GIB:.1f} GiB in use)" for host, used in shown)
    more = f"; so do those of {len(bad) - 1} more" if len(bad) > 1 else ""
    share = f"{neighbors.across_apart:,} of {neighbors.across:,}"
    raise InputError(
        f"the rows of {device} name the hosts {hosts}{more}. They may be two GPUs with one UUID: in {share} changes"
        " from one host's row to the other's used memory differs by over 1 GiB. Or it is one GPU whose host has two"
        " names",
        hint="two GPUs: give each a UUID of its own in the files. One GPU: give all its rows one host name"
        + (". Then import the files into a new lake" if imported else ""),
    )
