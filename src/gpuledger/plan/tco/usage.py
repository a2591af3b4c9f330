"""How much were the GPUs really used, and what did they draw, by the ledger?"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from gpuledger.catalog.gpus import Gpu, find_gpu
from gpuledger.catalog.thresholds import load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import GpuRow
from gpuledger.errors import InputError
from gpuledger.lake.layout import Lake
from gpuledger.ledger.engine import post_lake
from gpuledger.ledger.read.window import scope_of
from gpuledger.units import Unknown, count, known, utc

PERCENT = Decimal(100)


@dataclass(frozen=True)
class Usage:
    """Share of observed hours in use and average power of a GPU, by the ledger; `words`: of which GPUs."""

    used_pct: Decimal
    power_w: Decimal | Unknown
    words: str
    same_gpu: bool


def usage_of(lake: Path, gpu: Gpu, last: str | None = None) -> Usage:
    """The use of the GPUs of this model in a lake; of all its GPUs where there is none of the model."""
    root = Lake(lake)
    root.require()
    limits = load_thresholds()
    post_lake(root, limits)
    made = efficiency_statement(root, scope_of(root, last=last), thresholds=limits)
    same = [row for row in made.per_gpu if _is(row, gpu)]
    window = f"{utc(made.start_ms):%Y-%m-%d} to {utc(made.end_ms):%Y-%m-%d}"
    return _usage(same or list(made.per_gpu), gpu, window, same_gpu=bool(same))


def _is(row: GpuRow, gpu: Gpu) -> bool:
    found = find_gpu(row.gpu_model or "")
    return not isinstance(found, Unknown) and found.key == gpu.key


def _usage(rows: list[GpuRow], gpu: Gpu, window: str, *, same_gpu: bool) -> Usage:
    # A GPU whose activity is not recorded shows neither use nor idling.
    seen = [(row.means.observed_h, known(row.idle_h), known(row.idle_held_h)) for row in rows]
    observed = sum(hours for hours, idle, _ in seen if idle is not None)
    if not observed:
        raise InputError(
            "the lake has no observed hours in the window", hint="give a longer last=7d, or utilization_pct=60"
        )
    used = observed - sum((idle or 0.0) + (held or 0.0) for _, idle, held in seen)
    drawn = [(row.means.power_w, row.means.observed_h) for row in rows]
    read = [(w, h) for w, h in drawn if not isinstance(w, Unknown)]
    hours = sum(h for _, h in read)
    whose = gpu.name if same_gpu else f"all models, as none is {gpu.name}"
    words = f"ledger: {count(len(rows), 'GPU')} ({whose}), {observed:,.0f} observed GPU-hours, {window}"
    power: Decimal | Unknown = Unknown("the ledger has no power readings")
    if hours:
        power = _decimal(sum(w * h for w, h in read) / hours)
    if used <= 0:
        raise InputError("no GPU in the lake was in use", hint="give utilization_pct=60 instead of a lake")
    return Usage(_decimal(100 * used / observed), power, words, same_gpu)


def _decimal(value: float) -> Decimal:
    """Measured figures to four places: more is noise."""
    return Decimal(f"{value:.4f}")


def busy_pct(usage: Usage, board_w: Decimal, idle_w: Decimal) -> Decimal | Unknown:
    """The draw while in use, in percent of board power, that gives the measured average power."""
    if isinstance(usage.power_w, Unknown):
        return usage.power_w
    if not usage.same_gpu:
        return Unknown("the power in the ledger is that of other GPUs")
    share = usage.used_pct / PERCENT
    busy_w = (usage.power_w - (1 - share) * idle_w) / share
    if busy_w <= 0:
        return Unknown("the measured power is below that of idle GPUs")
    return round(busy_w / board_w * PERCENT, 4)
