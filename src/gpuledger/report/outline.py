"""In which order does the report tell its story, and what stands at its top?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.efficiency.health import health_words
from gpuledger.efficiency.statement import EfficiencyStatement, Range, RoiRow
from gpuledger.report.tables import field_of
from gpuledger.report.written import amount, percent, period, round_percent, tenth, whole, write
from gpuledger.units import Unknown

Comparison = Sequence[tuple[str, object, object]]


class CardKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key figure: where it is in the statement and how it is written.

    `low` and `high`: where its range is. `beside`: where words are that stand in a range's place.
    """

    label: str
    field: str
    style: str
    note: str
    low: str = ""
    high: str = ""
    beside: str = ""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One section: its words, charts and tables; `block` names what else its document puts there."""

    id: str
    title: str
    text: str
    charts: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    block: str = ""


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a word means."""

    term: str
    meaning: str


class Outline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole outline."""

    version: int
    cards: tuple[CardKind, ...]
    sections: tuple[Section, ...]
    glossary: tuple[Term, ...]


@dataclass(frozen=True)
class Card:
    """A key figure ready to be drawn; `range` is empty where the figure is one number."""

    label: str
    value: str
    range: str
    note: str
    unknown: bool


@cache
def load_outline(file: str = "outline.toml") -> Outline:
    """The outline of a report."""
    return load_toml(data_dir("gpuledger.report", file), Outline)


def next_target(s: EfficiencyStatement) -> RoiRow | None:
    """The nearest target that is worth something."""
    worth = [r for r in s.roi if r.equivalent_gpus > 0]
    return min(worth, key=lambda r: r.target_rfu_pct) if worth else None


def card(kind: CardKind, s: object) -> Card:
    """A key figure, filled from a statement."""
    value = field_of(s, kind.field)
    if kind.beside and not isinstance(value, Unknown):
        return Card(kind.label, write(value, kind.style), str(field_of(s, kind.beside)), kind.note, False)
    if kind.low and not isinstance(value, Unknown):
        low, high = write(field_of(s, kind.low), kind.style), write(field_of(s, kind.high), kind.style)
        return Card(kind.label, write(value, kind.style), "" if low == high else f"{low} to {high}", kind.note, False)
    if isinstance(value, Range):
        span = "" if value.low == value.high else f"{write(value.low, kind.style)} to {write(value.high, kind.style)}"
        return Card(kind.label, write(value.middle, kind.style), span, kind.note, False)
    return Card(kind.label, write(value, kind.style), "", kind.note, isinstance(value, Unknown))


def cards(s: EfficiencyStatement) -> list[Card]:
    """The key figures, the worth of the next target last."""
    out = [card(kind, s) for kind in load_outline().cards]
    target = next_target(s)
    if target:
        label = f"Worth at {round_percent(target.target_rfu_pct)} RFU"
        note = f"{amount(tenth(target.gpu_hours_per_day), 'GPU-hour')} a day, by the published method"
        out.append(Card(label, amount(tenth(target.equivalent_gpus), "GPU"), "", note, False))
    else:
        rfu = s.fleet.rfu_power_pct
        missing = isinstance(rfu, Unknown)
        value, note = (str(rfu), "in GPUs") if missing else ("None left", "RFU by power is above every target")
        out.append(Card("Worth at the next RFU target", value, "", note, missing))
    return out


def headline(s: EfficiencyStatement) -> str:
    """The top finding, as a sentence."""
    if s.findings:
        return s.findings[0]
    share = s.active.bottlenecked_pct_of_active
    if isinstance(share, Unknown):
        return f"What this fleet did is {share}."
    return f"{percent(share)} of active GPU time was busy but drew little power."


def facts(s: EfficiencyStatement) -> list[str]:
    """The size of what was looked at."""
    sizes = ((s.gpus, "GPU"), (s.clusters, "cluster"), (s.namespaces, "namespace"), (s.samples, "sample"))
    words = [amount(whole(n), one) for n, one in sizes]
    return [period(s.start_ms, s.end_ms), *words]


def evidence(s: EfficiencyStatement) -> list[str]:
    """What the figures rest on."""
    out: list[str] = []
    found = s.fleet.rfu_counters_pct
    if isinstance(found, Unknown):
        out.append(f"RFU by counters: {found}.")
    else:
        note = f" ({found.note})" if found.note else ""
        out.append(f"RFU by counters rests on {found.evidence}{note}: {write(found, 'percent')}.")
    out.append("RFU by power and PIF rest on board power alone.")
    sources = sorted({c.achievable_source for c in (s.capacity.fleet, *s.capacity.by_model) if c.achievable_source})
    out.append(f"Achievable TFLOPS come from: {', '.join(sources) or 'no source'}.")
    out.append(
        f"{amount(whole(s.samples), 'sample')} over {amount(write(s.fleet.observed_h, 'tenth'), 'GPU-hour')}; "
        f"{amount(whole(s.conflicts), 'conflicting sample was', 'conflicting samples were')} set aside."
    )
    return out


def words_of(name: str, s: EfficiencyStatement) -> str:
    """What a section says in words of its own; empty where it has none."""
    return health_words(s.health) if name == "health" else ""


def compared(value: object) -> str:
    """A published figure or ours: words as they are, numbers to four digits."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,.4g}"
