"""What may an unknown column be, by its name and a cell?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

import msgspec

from gpuledger.catalog.files import data_dir, load_toml
from gpuledger.catalog.gpus import find_gpu
from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping.files import shipped
from gpuledger.telemetry.mapping.rules import ValueRule, WideRule
from gpuledger.telemetry.measures import every_unit, factor_of, header_unit, units_of
from gpuledger.units import Unknown

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|%")
_GPU = r"(?:gpu|card|device)s?"
# Columns of several GPUs: gpu0_power, gpu_power_0, power_gpu0; each with how its pattern is written.
_NUMBERED = (
    (rf"(?P<before>.*?{_GPU}[^0-9a-z]?)(?P<index>\d{{1,3}})(?P<sep>[^0-9a-z]+).+", "{before}{index}{sep}{reading}"),
    (rf"(?P<before>{_GPU}[^0-9a-z])[a-z]\D*?(?P<sep>[^0-9a-z])(?P<index>\d{{1,3}})", "{before}{reading}{sep}{index}"),
    (rf"[a-z]\D*?(?P<sep>[^0-9a-z]{_GPU}[^0-9a-z]?)(?P<index>\d{{1,3}})(?P<before>)", "{reading}{sep}{index}"),
)
_A_UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_A_BRAND = re.compile(r"(NVIDIA|Tesla|Quadro|GeForce|Radeon|AMD (Instinct|Radeon|MI))\b.*\d")
_A_MASK = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_A_FRACTION = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_CELL_UNIT = re.compile(r"[+-]?[\d.]+\s*([^\s\d.+-]\S{0,15})")
_A_DCGM_NAME = re.compile(r"DCGM_FI_(?:DEV|PROF)_(\w+)")
# What the tools that count memory mean by it, NVML first of all.
_MEANT = {("mb", "bytes"): "MiB", ("mw", "W"): "mW"}


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What some words of a name suggest. `only`: where given, no other words may stand in the name, but plain ones and
    numbers. `unsure`, `varies`: why it is left out, always or where it never changes.
    """

    column: str
    any: frozenset[str]
    also: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    unsure: str = ""
    varies: str = ""

    def fits(self, words: set[str]) -> bool:
        """Whether a name with these words may be it."""
        known, of_gpu = vocabulary(), self.column in schema.readings() or self.column.startswith("gpu_")
        never = self.never | (known.others | known.not_one | known.not_measured if of_gpu else frozenset())
        return bool(self.any & words) and (not self.also or bool(self.also & words)) and not never & words

    def strange(self, words: Collection[str]) -> list[str]:
        """The words of a name that may make another reading of it."""
        plain = self.any | self.also | self.only | vocabulary().gpu | vocabulary().plain
        return [word for word in words if self.only and word not in plain and not word.isdecimal()]


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Between which numbers the largest value of a column in this unit lies, and below which none does."""

    measure: str
    unit: str
    from_: float
    to: float
    least: float = 0.0


class Vocabulary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of column names, and what values show of their unit."""

    others: frozenset[str]
    not_one: frozenset[str]
    not_measured: frozenset[str]
    plain: frozenset[str]
    names_gpus: frozenset[str]
    gpu: frozenset[str]
    not_samples: frozenset[str]
    limits: dict[str, float]
    ranges: tuple[Range, ...]
    entries: tuple[Entry, ...]


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


@cache
def vocabulary() -> Vocabulary:
    """What words.toml says."""
    return load_toml(data_dir("gpuledger.telemetry", "words.toml"), Vocabulary)


def words_of(name: str) -> list[str]:
    """The words of a column name, without the unit in brackets behind it; `gpuload` has two."""
    header = header_unit(name)
    apart = re.sub("gpu(?!s)", " gpu ", header.name if header else name, flags=re.IGNORECASE)
    return [w.lower() for w in _WORDS.findall(apart)]


def suggest(source: str, cell: str = "") -> Suggestion | None:
    """What a column is by its name, its unit and its first cell; None where nothing points anywhere."""
    if rule := known_readings().get(_folded(source)):
        return Suggestion(source, rule.column, msgspec.structs.replace(rule, sources=(source,)))
    words, cell = words_of(source), cell.strip()
    entry = entry_of(words)
    column = label_by_cell(cell) or _known_labels().get(_folded(source)) or (entry.column if entry else "")
    if column in schema.labels() and _A_FRACTION.fullmatch(cell):
        return None  # no GPU, host or owner is called 540.0
    if not column or column in schema.labels():
        return Suggestion(source, column) if column else None
    if not units_of(column):
        return Suggestion(source, column, unitless(column, source, cell))
    header, in_cell = header_unit(source), _CELL_UNIT.fullmatch(cell)
    stated = [header.unit if header else "", in_cell[1] if in_cell else ""]
    unit = next((u for u in stated if u and factor_of(u, column) is not None), "") or unit_word(column, words)
    return Suggestion(source, column, ValueRule(column, (source,), unit="" if header else unit) if unit else None)


def unitless(column: str, source: str, cell: str) -> ValueRule | None:
    """How a count, a code or a bit mask is read; None where the cell is none."""
    parse = "hex" if _A_MASK.fullmatch(cell) and schema.columns()[column].type == "int64" else ""
    return ValueRule(column, (source,), parse=parse) if parse or cell.isdecimal() else None


def unit_word(column: str, words: list[str]) -> str:
    """The unit that a word of a name states, the last one counting; "" without one."""
    measure = schema.columns()[column].unit
    return next((_MEANT.get((w, measure), w) for w in reversed(words) if factor_of(w, column) is not None), "")


def other_units(column: str, words: list[str]) -> list[str]:
    """The units that a name states and that are none of this reading."""
    units = {u.casefold() for u in every_unit() if len(u) > 1 or u == "%"}
    return [w for w in words if w in units and factor_of(w, column) is None]


def entry_of(words: list[str]) -> Entry | None:
    """The first entry that fits; of a name that says no more than GPU and a unit, the reading in that unit."""
    found = next((e for e in vocabulary().entries if e.fits({*words})), None)
    rest = {w for w in words if w not in vocabulary().gpu and not w.isdecimal()}
    if (found is None or found.column in schema.labels()) and "gpu" in words and len(rest) == 1:
        (word,) = rest
        plain = ("power_w", "fb_used_bytes", "gpu_temp_c", "gpu_util_ratio")
        reading = next((c for c in plain if factor_of(word, c) is not None), "")
        made = (e for e in reversed(vocabulary().entries) if e.column == reading and not e.unsure)
        return next(made, found)
    return found


def label_by_cell(cell: str) -> str:
    """The label a cell can only be: a GPU's UUID, or the name of a GPU."""
    if _A_UUID.fullmatch(cell):
        return "gpu_uuid"
    named = " " in cell and not isinstance(find_gpu(cell), Unknown)
    return "gpu_model" if named or _A_BRAND.match(cell) else ""


def wide_pattern(names: list[str]) -> WideRule | None:
    """The pattern of columns such as gpu0_power and gpu1_power; None where at most one GPU has columns of its own."""
    seen: defaultdict[str, set[int]] = defaultdict(set)
    for name in names:
        for form, pattern in _NUMBERED:
            found = re.fullmatch(form, name, re.IGNORECASE)
            if found and not {"{", "}"} & {*name}:
                before, sep = found["before"], found["sep"]
                made = pattern.replace("{before}", before).replace("{sep}", sep).replace("{index}", "{gpu_index}")
                seen[made].add(int(found["index"]))
                break
    best = max(seen, key=lambda one: len(seen[one]), default=None)
    return WideRule(best) if best is not None and len(seen[best]) > 1 else None


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


@cache
def known_readings() -> dict[str, ValueRule]:
    """The readings of all layouts that are known, by the folded name of their columns."""
    return {_folded(s): rule for m in shipped().values() for rule in m.values for s in rule.sources}


@cache
def _known_labels() -> dict[str, str]:
    return {_folded(s): c for m in shipped().values() for c, sources in m.labels.items() for s in sources}


@cache
def dcgm_names() -> dict[str, ValueRule]:
    """The fields of DCGM by their names without the prefix, as some of its exporters write them."""
    rules = (rule for rule in shipped()["dcgm"].values if not (rule.share_with or rule.plus))
    found = ((found[1], rule) for rule in rules for s in rule.sources if (found := _A_DCGM_NAME.fullmatch(s)))
    out: dict[str, ValueRule] = {}
    for name, rule in found:
        out.setdefault(name, rule)
    return out


@cache
def nvidia_smi_names() -> dict[str, ValueRule]:
    """The names of nvidia-smi --query-gpu without their units, each in the unit that it prints."""
    from gpuledger.telemetry.formats.nvidia_smi_query import LAYOUT

    found = ((s, header_unit(s), rule) for rule in LAYOUT.values for s in rule.sources if "." in s)
    named = ((h.name if h else s, h.unit if h else "", rule) for s, h, rule in found)
    return {name: msgspec.structs.replace(rule, sources=(name,), unit=unit) for name, unit, rule in named}
