"""What does a snapshot show? What each GPU read at its only instant, and what an hour of the fleet costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal

from gpuledger.efficiency.naming import gpu_name
from gpuledger.efficiency.snapshot import IDLE_HELD, GpuReading, Snapshot
from gpuledger.encode import encode
from gpuledger.report.document import Bullets, Document, KeyFigure, Prose, Section
from gpuledger.report.documents import document_for
from gpuledger.report.tables import Cell, Table, cell, figure, make_table
from gpuledger.report.written import capital, gpus, instant, model, number, percent, rate, round_percent, whole
from gpuledger.units import GIB, MS_PER_MIN, Unknown

NAME = "snapshot"
SHORT = {IDLE_HELD: "idle, held"}
ASSUMPTIONS = (
    "Every figure is of one instant: what the GPUs did before and after is not in the data.",
    "Busy or idle is judged by that one sample, with the limits of longer statements: a short pause in work is idle.",
    "A GPU in MIG slices is busy while one of its slices is, and idle if all are.",
    "Power of limit: power over the power limit in force, else over the board power of the catalog.",
)


@document_for(Snapshot)
def snapshot_document(found: Snapshot) -> Document:
    """The document of a snapshot."""
    table = _table(found)
    return Document(
        name=NAME,
        kind="Snapshot",
        title=f"Snapshot, {_when(found)}",
        headline=headline(found),
        facts=[*_models(found), *_means(found), "one sample per GPU: no month, no advice"],
        notes=[*(Prose(capital(words), "warning") for words in _notes(found)), *_priced_by(found)],
        figures=list(_figures(found)),
        summary=[table],
        sections=[Section("assumptions", "Assumptions", [Bullets(ASSUMPTIONS)])],
        screen=[table],
        data=lambda: encode("snapshot", found),
        main_table="by_gpu",
    )


def _when(found: Snapshot) -> str:
    first, last = instant(found.at_ms), instant(found.last_ms)
    same = first == last or found.last_ms - found.at_ms < MS_PER_MIN
    return f"{first} UTC" if same else f"{first} to {last} UTC"


def headline(found: Snapshot) -> str:
    """How many GPUs, what they do, and what an hour of them costs."""
    states = [(found.busy, "busy"), (found.idle, "idle"), (found.unknown, "unknown")]
    parts = ", ".join(f"{whole(n)} {what}" for n, what in states if n)
    return f"{gpus(found.gpus)} at {_when(found)}: {parts}{_dollars(found)}."


def _dollars(found: Snapshot) -> str:
    if isinstance(found.usd_per_h, Unknown) or isinstance(found.idle_usd_per_h, Unknown):
        return ""
    some = f" for {whole(found.gpus_priced)} of them" if found.gpus_priced < found.gpus else ""
    idle = f", {rate(found.idle_usd_per_h)} of it idle" if found.idle else ""
    return f"; {rate(found.usd_per_h)} per hour{some}{idle}"


def _notes(found: Snapshot) -> Iterator[str]:
    """What of the dollars is missing; nothing where the statement uses no prices."""
    unpriced = [row for row in found.by_gpu if isinstance(row.usd_per_h, Unknown)]
    if found.prices and found.gpus_priced == found.gpus:
        return
    if found.prices or not _unasked(found):
        whys = dict.fromkeys(row.usd_per_h.why for row in unpriced if isinstance(row.usd_per_h, Unknown))
        yield f"{gpus(found.gpus - found.gpus_priced)} without a price: {'; '.join(whys)}."


def _priced_by(found: Snapshot) -> list[Prose]:
    """What the prices rest on."""
    words = dict.fromkeys(price.words for price in found.prices)
    return [Prose(f"Prices: {'; '.join(words)}.", "dim")] if words else []


def _unasked(found: Snapshot) -> bool:
    return found.usd_per_h == Snapshot.__dataclass_fields__["usd_per_h"].default


def _means(found: Snapshot) -> Iterator[str]:
    """The means in words."""
    util, power = found.fleet.gpu_util_pct, found.fleet.power_w
    yield f"utilization {'unknown' if isinstance(util, Unknown) else percent(util)}"
    yield "power unknown" if isinstance(power, Unknown) else f"power {_watts(power)} per GPU"


def _models(found: Snapshot) -> Iterator[str]:
    """How many boards there are of each model."""
    boards = {row.gpu_uuid: row.gpu_model for row in found.by_gpu}
    for name, boards_of_it in Counter(boards.values()).most_common():
        yield f"{whole(boards_of_it)} x {model(name) if name else 'no model name'}"


def _figures(found: Snapshot) -> Iterator[KeyFigure]:
    shown: tuple[tuple[str, float | Decimal | Unknown, Callable[[float | Decimal], str], str], ...] = (
        ("Utilization", found.fleet.gpu_util_pct, _percent, "mean of the GPUs that report it"),
        ("Power", found.fleet.power_w, _watts, "mean of the GPUs that report it"),
        ("Per hour", found.usd_per_h, rate, ""),
        ("Idle, per hour", found.idle_usd_per_h, rate, "GPUs that were idle at that instant"),
    )
    for label, value, form, note in shown:
        if isinstance(value, Unknown):
            yield KeyFigure(label, "unknown", "", value.why, unknown=True)
        else:
            yield KeyFigure(label, form(value), "", note)


def _table(found: Snapshot) -> Table:
    """A line for each GPU; dollars only where prices were asked for, and no column that says nothing of any GPU."""
    rows: list[list[Cell]] = []
    for r in found.by_gpu:
        name = gpu_name(r, r.gpu_instance_id)
        state = "unknown" if isinstance(r.state, Unknown) else SHORT.get(r.state, r.state)
        rows.append(
            [
                Cell(name, name, full=r.device), cell(state, r.state), figure(r.gpu_util_pct, percent),
                figure(r.power_w, _watts), _memory(r), figure(r.usd_per_h, rate),
                figure(r.power_of_limit_pct, round_percent), figure(r.gpu_temp_c, number),
                figure(r.sm_clock_mhz, number),
            ]
        )  # fmt: skip
    heads = ("GPU", "State", "Util.", "Power", "Memory GiB", "$/h", "Of limit", "\u00b0C", "MHz")
    kinds = "wwnnnnNNN"
    kept = [i for i, kind in enumerate(kinds) if kind != "N" or any(not row[i].unknown for row in rows)]
    kept = [i for i in kept if heads[i] != "$/h" or not _unasked(found)]
    held = any(r.state == IDLE_HELD for r in found.by_gpu)
    note = "Held: idle, with memory in use." if held else ""
    shown = ([row[i] for i in kept] for row in rows)
    words = "".join(kinds[i] for i in kept)
    return make_table("gpus", f"GPUs at {_when(found)}", [heads[i] for i in kept], words, shown, note=note)


def _watts(value: float | Decimal) -> str:
    return f"{number(value)} W"


def _percent(value: float | Decimal) -> str:
    return percent(float(value))


def _memory(row: GpuReading) -> Cell:
    used, free = row.memory_used_bytes, row.memory_free_bytes
    if isinstance(used, Unknown):
        return cell("unknown", used)
    left = "" if isinstance(free, Unknown) else f", {number(free / GIB, 1)} free"
    return cell(f"{number(used / GIB, 1)}{left}", used)
