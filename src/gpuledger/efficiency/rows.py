"""What does one statement read from the ledger, and of whom?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from gpuledger.efficiency.account_sums import KNOWN, LABELS, OWN, AccountSums, add_accounts, by_day
from gpuledger.efficiency.activity import COLUMNS as ACTIVITY
from gpuledger.efficiency.activity import columns_of, pipe_sums, recorded
from gpuledger.efficiency.columns import Names, Rows, Wanted, joined, kept, read_files, read_groups
from gpuledger.efficiency.scope import UNALLOCATED, Scope, line_files, nothing_found
from gpuledger.errors import LakeError
from gpuledger.lake.layout import Lake
from gpuledger.ledger import lines
from gpuledger.ledger.spells import GAP
from gpuledger.ledger.store import DAYS, Ledger
from gpuledger.telemetry import schema
from gpuledger.units import MS_PER_DAY, day_start_ms

HISTOGRAM = tuple(f"util_h{i:02d}" for i in range(lines.bins()))
_SUMS = (
    "samples", "observed_ms", "idle_ms", "idle_held_ms", "util_ms", "util_ppm_ms", "active_ms", "active_util_ppm_ms",
    "power_ms", "power_uj", "pif_ms", "pif_uj", "active_pif_ms", "active_pif_uj", "energy_ms", "energy_mj",
    "class_idle_ms", "class_efficient_ms", "class_bottlenecked_ms", "class_moderate_ms", "class_inefficient_ms",
    "bottleneck_ms", "phase_idle_ms", "phase_underutilized_ms", "phase_productive_ms", "phase_compute_bound_ms",
    "engine_ms", "engine_ppm_ms", "dram_ms", "dram_ppm_ms", "pcie_rx_ms", "pcie_rx_bytes", "pcie_tx_ms",
    "pcie_tx_bytes", "nvlink_ms", "nvlink_bytes", "tensor_ms", "tensor_ppm_ms", *HISTOGRAM,
)  # fmt: skip
_LINE = (
    "hour_ms", "grain_ms", "samples", "observed_ms", "util_ppm_ms", "util_ms", "pif_uj", "pif_ms", "power_uj",
    "power_ms",
)  # fmt: skip
_OWNER = ("cluster", "namespace", "workload", "run_id")
_SEEN = ("observed_ms", "first_ms", "last_ms")


class Books:
    """The lines in scope."""

    def __init__(self, lake: Lake, scope: Scope) -> None:
        self.scope = scope
        self._lake = lake
        self._files = line_files(lake, scope)
        ledger = Ledger(lake)
        # Whole days are read from the lines added up by day: a twentieth of the rows, the same sums.
        self._daily = scope.whole_days and ledger.has_days(scope.days())
        self.account_files = ledger.files(DAYS, scope.days()) if self._daily else self._files
        self.names: dict[str, Names] = defaultdict(Names)
        self._pipes: frozenset[str] = frozenset()
        self._all_owners: list[Rows] = []
        self._codes: list[np.ndarray] = []

    def _labels(self, *names: str) -> dict[str, Names]:
        return {name: self.names[name] for name in (*names, *(_OWNER if self.scope.names_owners else ()))}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise LakeError(
                f"{self._lake.ledger_dir}: the books cannot be read: {str(error).splitlines()[0]}",
                hint="if samples were just posted, run it again; else delete the ledger folder: it is made again",
            ) from error

    def accounts(self) -> AccountSums:
        """Sums per device and owner; an error where there is not one line. What else is read counts devices as here."""
        numbers = tuple(dict.fromkeys(("hour_ms", "first_ms", "last_ms", *_SUMS, *ACTIVITY)))
        wanted = Wanted(self._labels(*LABELS, "host"), numbers, OWN)
        # Hours are read in pieces: there may be many, and most of their columns are needed.
        read = read_files if self._daily else read_groups
        with self._reading():
            found = [self._account_piece(rows) for _, rows in read(self.account_files, wanted)]
        rows = joined(found)
        if not len(rows.get("samples", ())):
            raise nothing_found(self._lake, self.scope)
        made = add_accounts(rows, self.names)
        first = np.flatnonzero(np.diff(made.device, prepend=-1)).tolist()
        self._codes = [self.names[c].numbers(made.labels[c][i] for i in first) for c in schema.DEVICE]
        return made

    def _account_piece(self, rows: Rows) -> Rows:
        rows = kept(rows, self._in_window(rows))
        if self.scope.names_owners:
            self._all_owners.append({c: rows[c] for c in (*schema.DEVICE, *_SEEN)})
            rows = kept(rows, self._wanted(rows))
        self._pipes |= recorded(rows)
        rows["day"] = rows["hour_ms"] // MS_PER_DAY
        rows = {c: rows[c] for c in (*KNOWN, *_SUMS)} | pipe_sums(rows)
        return rows if self._daily or not len(rows["day"]) else by_day(rows)

    def _in_window(self, rows: Rows) -> np.ndarray:
        inside = np.ones(len(rows["hour_ms"]), dtype=bool)
        for edge, test in ((self.scope.since_ms, np.greater_equal), (self.scope.until_ms, np.less)):
            if edge is not None:
                inside &= test(rows["hour_ms"], edge)
        return inside

    def _wanted(self, rows: Rows) -> np.ndarray:
        """Which lines are of the owners asked for."""
        scope, wanted = self.scope, np.ones(len(rows["hour_ms"]), dtype=bool)

        def among(label: str, texts: Iterable[str], nameless: str | None = None) -> np.ndarray:
            return self.names[label].among(frozenset(texts), nameless)[rows[label]]

        if scope.clusters:
            wanted &= among("cluster", scope.clusters)
        if scope.namespaces:
            wanted &= among("namespace", scope.namespaces, UNALLOCATED)
        if scope.owners:
            own = among("workload", scope.owners) | among("run_id", scope.owners)
            for owner in scope.owners:
                for cut in (i for i, letter in enumerate(owner) if letter == "/"):
                    own |= among("namespace", [owner[:cut]]) & among("workload", [owner[cut + 1 :]])
            wanted &= own
        return wanted

    def unobserved_ms(self) -> list[int] | None:
        """By device the time between its first and last sample that no sample stands for, whoever owned it.

        None where all owners are in scope: then the accounts tell.
        """
        if not self.scope.names_owners:
            return None
        rows = joined(self._all_owners)
        device = self._numbered(rows)
        inside = device >= 0
        size, device = len(self._codes[0]), device[inside]
        first, last = np.full(size, np.iinfo(np.int64).max), np.zeros(size, np.int64)
        np.minimum.at(first, device, rows["first_ms"][inside])
        np.maximum.at(last, device, rows["last_ms"][inside])
        seen = np.bincount(device, rows["observed_ms"][inside], size).astype(np.int64)
        left: list[int] = (last - first - seen).tolist()
        return left

    def _numbered(self, rows: Rows) -> np.ndarray:
        """Each row's device as the accounts count it, -1 for one that is not in scope."""
        boards, instances = (len(self.names[c]) for c in schema.DEVICE)
        number = np.full((boards + 1, instances + 1), -1, dtype=np.int64)  # the last places are for no name, -1
        number[tuple(self._codes)] = np.arange(len(self._codes[0]))
        board, instance = (rows[c] for c in schema.DEVICE)
        return number[board, instance] if instances else number[:, 0][board]

    def lines(self) -> Iterator[tuple[int, Rows]]:
        """The lines in scope a file at a time, with the start of the file's day. Ask for `accounts` first."""
        labels = self._labels(*schema.DEVICE, "namespace", "gpu_model", "tensor_precision")
        with self._reading():
            for file, rows in read_files(
                self._files, Wanted(labels, (*_LINE, *columns_of(self._pipes)), ("board_mw",))
            ):
                rows["device"] = self._numbered(rows)
                inside = self._in_window(rows) & (rows["device"] >= 0)
                if self.scope.names_owners:
                    inside &= self._wanted(rows)
                found = kept(rows, inside)
                yield day_start_ms(Path(file).parent.name), found | pipe_sums(found)

    def quiet_spells(self) -> Iterator[Rows]:
        """Idle and idle-held spells of the devices, a file at a time. Ask for `accounts` first."""
        wanted = Wanted({name: self.names[name] for name in (*schema.DEVICE, "kind")}, ("start_ms", "end_ms"))
        with self._reading():
            for _, rows in read_files(Ledger(self._lake).files("spells", self.scope.days()), wanted):
                device, quiet = self._numbered(rows), ~self.names["kind"].among((GAP,))
                spells = {"device": device, "start_ms": rows["start_ms"], "end_ms": rows["end_ms"]}
                yield kept(spells, (device >= 0) & quiet[rows["kind"]])
