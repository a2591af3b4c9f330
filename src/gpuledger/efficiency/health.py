"""Which GPUs report faults or are held down by heat?

Faults and reasons for held-down clocks are those of a board. Where a board is cut into MIG instances each of them
reports them again, so a board counts the largest figure of its instances, not their sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.ledger.read.rollup import HEALTH, HOTTEST, AccountSums
from gpuledger.units import MS_PER_HOUR, Unknown, count

Figure = float | Unknown
FAULTS: Mapping[str, tuple[str, str]] = {
    "xid_events": ("XID error", "XID errors"),
    "rows_remapped": ("remapped memory row", "remapped memory rows"),
    "row_remap_failures": ("failed row remapping", "failed row remappings"),
    "pcie_replays": ("PCIe replay", "PCIe replays"),
}
# Clocks held down by heat for a larger share of the time than this are worth naming a GPU for.
THERMAL_ABOVE_PCT = 1.0
NO_REASONS = Unknown("the reasons for held-down clocks are not recorded")
_RECORD_REASONS = Unknown(f"{NO_REASONS.why} (DCGM_FI_DEV_CLOCKS_EVENT_REASONS)")
_NO_GPU = Unknown("no GPU was seen")
_NO_TEMPERATURE = {
    "gpu_temp_max_c": Unknown("the GPU temperature is not recorded"),
    "mem_temp_max_c": Unknown("the memory temperature is not recorded"),
}


@dataclass(frozen=True)
class HealthRow:
    """One GPU with faults, or held down by heat. Shares are of the time with the reasons known.

    `xid_codes`: the codes of its driver errors, as far as samples have them; empty without errors.
    """

    gpu_uuid: str
    gpu_model: str | None
    host: str | None
    gpu_index: str | None
    xid_events: int
    rows_remapped: int
    row_remap_failures: int
    pcie_replays: int
    thermal_pct: Figure
    power_capped_pct: Figure
    gpu_temp_max_c: Figure
    mem_temp_max_c: Figure
    xid_codes: tuple[int, ...] | Unknown = ()

    @property
    def codes(self) -> str:
        """The codes as a table shows them."""
        found = self.xid_codes if self.xid_events else ()
        return found.why.partition(":")[0] if isinstance(found, Unknown) else ", ".join(map(str, found))


@dataclass(frozen=True)
class HealthAnalysis:
    """Faults of the fleet and shares of `throttle_known_h`, GPU-hours with the reasons for held-down clocks known."""

    gpus: int = 0
    xid_events: int = 0
    rows_remapped: int = 0
    row_remap_failures: int = 0
    pcie_replays: int = 0
    thermal_pct: Figure = _NO_GPU
    power_capped_pct: Figure = _NO_GPU
    throttle_known_h: float = 0.0
    gpu_temp_max_c: Figure = _NO_GPU
    mem_temp_max_c: Figure = _NO_GPU
    rows: tuple[HealthRow, ...] = ()


def health_analysis(found: AccountSums) -> HealthAnalysis:
    """Totals of the fleet, and one row for each GPU with a fault or held down by heat; the worst first."""
    account = np.flatnonzero(np.diff(found.device, prepend=-1))  # the first of each device
    first = np.flatnonzero(np.diff(found.board[account], prepend=-1))  # the first device of each board
    by_device = {name: np.add.reduceat(found.sums[name], account) for name in HEALTH}
    by_device |= {name: np.maximum.reduceat(found.sums[name], account) for name in HOTTEST}
    boards = {name: np.maximum.reduceat(values, first) for name, values in by_device.items()}
    faults = np.sum([boards[name] for name in FAULTS], axis=0) > 0
    heat = 100 * boards["thermal_ms"] > THERMAL_ABOVE_PCT * boards["throttle_ms"]
    rows = _rows(found, boards, account, first, np.flatnonzero(faults | heat))
    models = {found.labels["gpu_model"][row] for row in account[first].tolist()}
    total = {name: float(boards[name].sum()) for name in HEALTH}
    return HealthAnalysis(
        gpus=len(first),
        throttle_known_h=total["throttle_ms"] / MS_PER_HOUR,
        rows=tuple(sorted(rows, key=_worst_first)),
        **_figures(total | {name: float(boards[name].max(initial=-1.0)) for name in HOTTEST}, no_reasons(models)),
    )


def _rows(
    found: AccountSums, boards: Mapping[str, np.ndarray], account: np.ndarray, first: np.ndarray, named: np.ndarray
) -> Iterator[HealthRow]:
    """The rows of some boards. By position, in the order of the fields: names would take most of the time."""
    at, ends = account[first[named]].tolist(), np.append(first[1:], len(account))[named].tolist()
    spots = [_place(found, slice(start, end)) for start, end in zip(first[named].tolist(), ends, strict=True)]
    uuid, model = ([found.labels[name][row] for row in at] for name in ("gpu_uuid", "gpu_model"))
    known, whys = boards["throttle_ms"][named].tolist(), [no_reasons([name]) for name in model]
    shares = [
        [why if not ms else 100 * part / ms for part, ms, why in zip(parts.tolist(), known, whys, strict=True)]
        for parts in (boards[name][named] for name in ("thermal_ms", "power_capped_ms"))
    ]
    hottest = [
        [why if degrees < 0 else degrees for degrees in boards[name][named].tolist()]
        for name, why in _NO_TEMPERATURE.items()
    ]
    columns = (
        [text or "" for text in uuid],
        model,
        [host for host, _ in spots],
        [index for _, index in spots],
        *(boards[name][named].astype(np.int64).tolist() for name in FAULTS),
        *shares,
        *hottest,
    )
    return (HealthRow(*row) for row in zip(*columns, strict=True))


def _place(found: AccountSums, devices: slice) -> tuple[str | None, str | None]:
    """The host of a board, and its index there."""
    hosts, indices = found.days.host[devices], found.days.gpu_index[devices]
    host = next((host for host in hosts if host), None)
    return host, next((index for at, index in zip(hosts, indices, strict=True) if at == host and index), None)


def no_reasons(models: Iterable[str | None]) -> Unknown:
    """Why shares of held-down time are unknown; with the field to record, unless all GPUs are of another vendor."""
    gpus = [find_gpu(model) for model in models if model]
    other = bool(gpus) and all(isinstance(gpu, Gpu) and gpu.vendor != "NVIDIA" for gpu in gpus)
    return NO_REASONS if other else _RECORD_REASONS


def _figures(found: Mapping[str, float], why: Unknown) -> dict[str, Any]:
    """What the fleet has, as a board does."""
    known = found["throttle_ms"]
    shares = {"thermal_pct": found["thermal_ms"], "power_capped_pct": found["power_capped_ms"]}
    return {
        **{name: int(found[name]) for name in FAULTS},
        **{name: 100 * part / known if known else why for name, part in shares.items()},
        **{name: none if found[name] < 0 else found[name] for name, none in _NO_TEMPERATURE.items()},
    }


def hot(row: HealthRow) -> bool:
    """Whether heat holds the GPU down for more than a moment."""
    return not isinstance(row.thermal_pct, Unknown) and row.thermal_pct > THERMAL_ABOVE_PCT


def _worst_first(row: HealthRow) -> tuple[int, int, float, int, str]:
    heat = 0.0 if isinstance(row.thermal_pct, Unknown) else row.thermal_pct
    return -row.row_remap_failures, -row.xid_events, -heat, -row.rows_remapped - row.pcie_replays, row.gpu_uuid


def faults_of(holder: HealthRow | HealthAnalysis) -> list[str]:
    """The faults there were, each with its count; driver errors with their codes."""
    counts = {name: getattr(holder, name) for name in FAULTS}
    said = {name: count(number, *FAULTS[name]) for name, number in counts.items() if number}
    codes = _codes(holder.rows if isinstance(holder, HealthAnalysis) else [holder])
    if "xid_events" in said and codes:
        said["xid_events"] += f" ({codes})"
    return list(said.values())


def _codes(rows: Iterable[HealthRow]) -> str:
    """The codes of the driver errors of some GPUs, and whether there are others."""
    wrong = [row for row in rows if row.xid_events]
    known = sorted({code for row in wrong if not isinstance(row.xid_codes, Unknown) for code in row.xid_codes})
    codes = f"code{'s' * (len(known) != 1)} {', '.join(map(str, known))}" if known else ""
    unknown = next((row.codes for row in wrong if isinstance(row.xid_codes, Unknown)), "")
    return "; others: ".join(filter(None, (codes, unknown)))


def health_words(health: HealthAnalysis) -> str:
    """One or two sentences for the whole fleet."""
    faults = faults_of(health)
    if faults:
        broken = sum(any(getattr(r, name) for name in FAULTS) for r in health.rows)
        text = f"{', '.join(faults)} on {broken:,} of {count(health.gpus, 'GPU')}."
    else:
        text = "No faults recorded (XID errors, row remappings and PCIe replays count where the source exports them)."
    if isinstance(health.thermal_pct, Unknown):
        return f"{text} Throttling: {health.thermal_pct}."
    held = sum(hot(r) for r in health.rows)
    limit = f"for more than {THERMAL_ABOVE_PCT:g} % of the recorded time"
    if not held:
        return f"{text} Heat held down the clocks of no GPU {limit}."
    return f"{text} Heat held down the clocks of {count(held, 'GPU')} {limit}."
