"""What may an unknown column be?"""

from __future__ import annotations

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Mapping as Cells
from dataclasses import dataclass
from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import find_gpu
from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping.files import shipped
from gpuledger.telemetry.mapping.rules import Mapping, TimeRule, ValueRule, WideRule
from gpuledger.telemetry.measures import factor_of, header_unit, units_of
from gpuledger.units import Unknown

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|%")
_TIME_WORDS = frozenset({"timestamp", "time", "datetime", "date", "ts", "when", "at", "clock", "epoch"})
_A_DATE = re.compile(r"\d{4}[-/.]?\d{2}[-/.]?\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_A_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?")
_NUMBERED = re.compile(
    r"(?P<before>.*?(?:gpu|card|device)s?[^0-9a-z]?)(?P<index>\d{1,3})(?P<sep>[^0-9a-z]+).+", re.IGNORECASE
)
_A_UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_A_MASK = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_A_FRACTION = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_CELL_UNIT = re.compile(r"[+-]?[\d.]+\s*([^\s\d.+-]\S{0,15})")
# Layouts of dates that mean one instant, and no other.
_LAYOUTS = ("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M")


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    column: str
    any: frozenset[str]
    also: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entries: tuple[_Entry, ...]


@dataclass(frozen=True)
class Suggestion:
    """What a column may be. `rule`: how its numbers would be read; None for a label, or where their unit is unknown."""

    source: str
    column: str
    rule: ValueRule | None = None

    @property
    def sure(self) -> bool:
        """Whether it can be read without asking for a unit."""
        return self.rule is not None or self.column in schema.labels()


def suggest(source: str, cell: str = "") -> Suggestion | None:
    """What a column is by its name, its unit and its first cell; None where nothing points anywhere."""
    if rule := _known_readings().get(_folded(source)):
        return Suggestion(source, rule.column, msgspec.structs.replace(rule, sources=(source,)))
    header = header_unit(source)
    words = [w.lower() for w in _WORDS.findall(header.name if header else source)]
    column = _by_cell(cell.strip()) or _known_labels().get(_folded(source)) or _by_words(set(words))
    if column in schema.labels() and _A_FRACTION.fullmatch(cell.strip()):
        return None  # no GPU, host or owner is called 540.0
    if not column or column in schema.labels():
        return Suggestion(source, column) if column else None
    if not units_of(column):
        parse = "hex" if _A_MASK.fullmatch(cell.strip()) and schema.columns()[column].type == "int64" else ""
        plain = parse or cell.strip().isdecimal()
        return Suggestion(source, column, ValueRule(column, (source,), parse=parse) if plain else None)
    unit = _unit(column, header.unit if header else "", cell, words)
    return Suggestion(source, column, ValueRule(column, (source,), unit="" if header else unit) if unit else None)


def _by_cell(cell: str) -> str:
    """The label a cell can only be: a GPU's UUID, or the name of a GPU of the catalog."""
    if _A_UUID.fullmatch(cell):
        return "gpu_uuid"
    return "gpu_model" if " " in cell and not isinstance(find_gpu(cell), Unknown) else ""


def _by_words(words: set[str]) -> str:
    return next((e.column for e in _entries() if _fits(e, words)), "")


def _unit(column: str, header: str, cell: str, words: list[str]) -> str:
    """The unit a column states: in its header, in its cells, or as a word of its name."""
    in_cell = _CELL_UNIT.fullmatch(cell.strip())
    stated = [header, in_cell[1] if in_cell else "", *reversed(words)]
    return next((u for u in stated if u and factor_of(u, column) is not None), "")


def propose(title: str, names: list[str], cells: Cells[str, str]) -> Mapping:
    """A mapping of all columns that can be read without asking: each reading and label once, the first that fits."""
    time = _time(names, cells)
    taken = {*time.sources, *time.join}
    labels: dict[str, tuple[str, ...]] = {}
    values: dict[str, ValueRule] = {}
    for name in names:
        found = suggest(name, cells.get(name, "")) if name not in taken else None
        if found is None or not found.sure:
            continue
        if found.rule is not None:
            values.setdefault(found.column, found.rule)
        else:
            labels.setdefault(found.column, (name,))
    blanks = shipped()["dcgm"].blank_text
    rules = tuple(values.values())
    return Mapping(title=title, time=time, labels=labels, values=rules, blank_text=blanks)


def wide_pattern(names: list[str]) -> WideRule | None:
    """The pattern of columns such as gpu0_power and gpu1_power; None where at most one GPU has columns of its own."""
    seen: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name in names:
        found = _NUMBERED.fullmatch(name)
        if found and not {"{", "}"} & {*found["before"], *found["sep"]}:
            seen[found["before"], found["sep"]].add(found["index"])
    best = max(seen, key=lambda key: len(seen[key]), default=None)
    if best is None or len(seen[best]) < 2:
        return None
    return WideRule(f"{best[0]}{{gpu_index}}{best[1]}{{reading}}")


def _time(names: list[str], cells: Cells[str, str]) -> TimeRule:
    """The column with the instant: one of such a name whose first cell is one; or a date and a time to join."""
    named = [n for n in names if _TIME_WORDS & {w.lower() for w in _WORDS.findall(n)}]
    dates = [n for n in named if _A_DATE.fullmatch(cells.get(n, "").strip())]
    clocks = [n for n in named if _A_CLOCK.fullmatch(cells.get(n, "").strip())]
    if dates and clocks:
        text = f"{cells[dates[0]].strip()} {cells[clocks[0]].strip()}"
        return TimeRule(join=(dates[0], clocks[0]), formats=_layouts(text))
    for name in named:
        text = cells.get(name, "").strip()
        if layouts := _layouts(text):
            return TimeRule(sources=(name,), formats=layouts)
        if _is_instant(text):
            return TimeRule(sources=(name,))
    return TimeRule()


def _layouts(text: str) -> tuple[str, ...]:
    """The layout a text is in, where it is not ISO 8601."""
    for layout in _LAYOUTS:
        try:
            dt.datetime.strptime(text, layout)
        except ValueError:
            continue
        return (layout,)
    return ()


def _is_instant(text: str) -> bool:
    """ISO 8601 with a time of day, or an epoch number of this century."""
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return bool(re.fullmatch(r"\d{9,10}(\.\d*)?|\d{12,13}(\.\d*)?|\d{15,16}|\d{18,19}", text))
    return len(text) > 10


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _fits(entry: _Entry, words: set[str]) -> bool:
    return bool(entry.any & words) and (not entry.also or bool(entry.also & words)) and not entry.never & words


@cache
def _entries() -> tuple[_Entry, ...]:
    return load_toml(data_dir("gpuledger.telemetry", "words.toml"), _File).entries


@cache
def _known_readings() -> dict[str, ValueRule]:
    """The readings of all layouts that are known, by the folded name of their columns."""
    return {_folded(s): rule for m in shipped().values() for rule in m.values for s in rule.sources}


@cache
def _known_labels() -> dict[str, str]:
    return {_folded(s): c for m in shipped().values() for c, sources in m.labels.items() for s in sources}
