"""What did matching an inventory with a lake find: which rows fit no GPU, where do two prices contradict each other?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

ZERO = Decimal(0)
# Kinds of files that say which machines there are, without prices.
NODES = ("kubernetes", "slurm")


class Why(StrEnum):
    """Why a row of an inventory is not in the bill."""

    NO_SUCH_HOST = "no_such_host"
    SEVERAL_HOSTS = "several_hosts"
    NOT_SEEN_THEN = "not_seen_then"
    OUTSIDE_LAKE = "outside_lake"
    NEGATIVE = "negative"
    NOTHING_CHARGED = "nothing_charged"


class Skipped(StrEnum):
    """Why a row of a file, or with COMMITMENT_CREDIT a credit within it, is passed over."""

    NO_GPU = "no_gpu"
    NOT_COMPUTE = "not_compute"
    NO_MACHINE = "no_machine"
    NO_COST = "no_cost"
    COMMITMENT_CREDIT = "commitment_credit"


@dataclass(frozen=True)
class Unmatched:
    """Rows for one machine, for one reason. `usd` is None where the rows have no dollars."""

    name: str
    why: Why
    file: str
    instance: str
    rows: int
    usd: Decimal | None
    start_ms: int | None
    end_ms: int | None


class Source(StrEnum):
    """Where a price comes from."""

    GPU_ROW = "gpu_row"
    HOST_ROW = "host_row"
    BILL = "bill"
    LIST = "list"
    GIVEN = "given"


@dataclass(frozen=True)
class PriceConflict:
    """Two prices for the same GPUs at the same time; the first is used. Dollars per GPU-hour, averaged over time."""

    gpu_model: str | None
    gpus: int
    gpu_h: float
    used: Source
    used_from: str
    used_usd_per_h: Decimal
    other: Source
    other_from: str
    other_usd_per_h: Decimal


@dataclass(frozen=True)
class PartlySeen:
    """A machine with more GPUs than were seen: its dollars are spread over those that were."""

    host: str
    seen: int
    has: int


@dataclass(frozen=True)
class FileUse:
    """What became of the rows of one file: `used` are in the bill, `skipped` passed over, with what those cost.

    `skipped_unread`: how many of those have a cost that cannot be read.
    """

    path: str
    kind: str
    rows: int
    skipped: Mapping[Skipped, int]
    used: int = 0
    skipped_usd: Mapping[Skipped, Decimal] = field(default_factory=dict)
    skipped_unread: Mapping[Skipped, int] = field(default_factory=dict)

    @property
    def passed_over(self) -> Mapping[Skipped, int]:
        """Rows passed over as a whole."""
        return {why: rows for why, rows in self.skipped.items() if why is not Skipped.COMMITMENT_CREDIT}


@dataclass(frozen=True)
class InventoryUse:
    """What became of an inventory in a lake.

    `repeated_rows`: rows that are in several files, and count once. `idle_priced_h`: GPU-hours within the time of the
    lake that allocations did not hold, at their rate; `outside_h`: GPU-hours of their periods before its first or after
    its last sample. `gpus_unpriced`: GPUs of the window that no row prices.
    """

    files: tuple[FileUse, ...]
    matched_usd: Decimal = ZERO
    unmatched: tuple[Unmatched, ...] = ()
    conflicts: tuple[PriceConflict, ...] = ()
    partly_seen: tuple[PartlySeen, ...] = ()
    idle_priced_h: float = 0.0
    outside_h: float = 0.0
    repeated_rows: int = 0
    gpus_unpriced: int = 0

    @property
    def unused(self) -> tuple[FileUse, ...]:
        """Files with prices of which no row is in the bill."""
        return tuple(file for file in self.files if not file.used and file.kind not in NODES)

    @property
    def all_unused(self) -> bool:
        """Whether there are files with prices, and no row of any of them is in the bill."""
        return bool(self.unused) and not any(file.used for file in self.files if file.kind not in NODES)

    @property
    def missed(self) -> tuple[Unmatched, ...]:
        """Rows that should be in the bill and are not; what is outside the time of the lake is not among them."""
        return tuple(u for u in self.unmatched if u.why is not Why.OUTSIDE_LAKE)

    @property
    def missed_usd(self) -> Decimal:
        """Dollars of those rows."""
        return sum((u.usd for u in self.missed if u.usd is not None), ZERO)

    @property
    def outside_usd(self) -> Decimal:
        """Dollars for time before the first or after the last sample of the lake."""
        return sum((u.usd for u in self.unmatched if u.why is Why.OUTSIDE_LAKE and u.usd is not None), ZERO)

    def as_json(self) -> dict[str, object]:
        """What was missed first."""
        rows = {"unmatched_rows": sum(u.rows for u in self.missed), "unmatched_usd": self.missed_usd}
        money = {"outside_lake_usd": self.outside_usd, "matched_usd": self.matched_usd}
        rest = {name: value for name, value in vars(self).items() if name != "matched_usd"}
        return rows | money | rest
