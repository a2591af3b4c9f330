"""In which unit is a column, by its header, its cells, its name and its values, and can it be a reading at all?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.telemetry import schema
from gpuledger.telemetry.formats import Opened
from gpuledger.telemetry.mapping import factor
from gpuledger.telemetry.mapping.files import shipped
from gpuledger.telemetry.mapping.rules import ValueRule
from gpuledger.telemetry.mapping.suggest import label_by_cell, other_units, unit_word, unitless, vocabulary
from gpuledger.telemetry.measures import Factor, factor_of, header_unit, units_of

_CELL = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\s\d.+-]\S{0,15})?")
_INDEX = re.compile(r"(?:gpu|nvidia|card)? ?(\d{1,3})", re.IGNORECASE)
_MOST_WRONG, _MOST_GPUS, _MOST_ALONE, _MOST_MODELS = 0.05, 64, 15, 16


class Cells:
    """The first cells of a column: `words` by row, `texts` those that hold something."""

    def __init__(self, name: str, cells: pa.Array) -> None:
        silent, self.name = {*shipped()["dcgm"].blank_text}, name
        self.words = [str(v).strip() if v is not None else "" for v in cells.to_pylist()]
        self.texts = [w for w in self.words if w not in silent and not (w[:1] == "[" and w[-1:] == "]")]

    @cached_property
    def _parts(self) -> list[re.Match[str] | None]:
        return [_CELL.fullmatch(text) for text in self.texts]

    @cached_property
    def numbers(self) -> np.ndarray:
        """What is a number, whatever its unit."""
        return np.array([float(part[1]) for part in self._parts if part])

    @property
    def by_row(self) -> np.ndarray:
        """The numbers by row, NaN where there is none."""
        parts = [_CELL.fullmatch(word) for word in self.words]
        return np.array([float(part[1]) if part else np.nan for part in parts])

    @cached_property
    def units(self) -> set[str]:
        """The units behind the numbers."""
        return {part[2] for part in self._parts if part and part[2]}

    @property
    def odd(self) -> str:
        """A cell that is not a number, where these are more than single wrong ones."""
        wrong = [text for text, part in zip(self.texts, self._parts, strict=True) if not part]
        return wrong[0] if len(wrong) > _MOST_WRONG * len(self.texts) else ""


class Unit(NamedTuple):
    """The unit of a column; `shown`: how its values show it, where nothing states it. Without one, `why`."""

    name: str = ""
    shown: str = ""
    why: str = ""


def read_as(
    column: str, cells: Cells, words: Sequence[str], known: ValueRule | None, most: Callable[[str], float]
) -> tuple[ValueRule | None, str]:
    """How the numbers of a column become a reading, and how its values show its unit; or None, and why not.

    `known`: how a tool means this name. `most`: the largest number of a column in the whole file.
    """
    name, header = cells.name, header_unit(cells.name)
    if not units_of(column):
        rule = unitless(column, name, cells.texts[0])
        return rule, "" if rule else "its cells are not whole numbers"
    if known and not header:
        rule, unit = msgspec.structs.replace(known, sources=(name,)), Unit()
    else:
        unit = _unit(column, cells, words, most)
        if not unit.name:
            return None, unit.why
        rule = ValueRule(column, (name,), unit="" if header else unit.name)
    by = factor(rule) if known and not header else factor_of(unit.name, column)
    why = _impossible(column, cells.numbers, by or Factor())
    return (None, why) if why else (rule, unit.shown)


def _unit(column: str, cells: Cells, words: Sequence[str], most: Callable[[str], float]) -> Unit:
    """The unit that is stated, else the one that the values show."""
    header = header_unit(cells.name)
    stated = [header.unit] if header else sorted(cells.units)
    wrong = [u for u in stated if factor_of(u, column) is None] or other_units(column, [*words])
    if wrong:
        return Unit(why=f"{wrong[0]!r} is not a unit of {column}")
    unit = stated[0] if stated else unit_word(column, [*words])
    if "percent" in units_of(column):
        return _share(column, cells, unit, most)
    return Unit(unit) if unit else _by_range(schema.columns()[column].unit, cells.numbers)


def _share(column: str, cells: Cells, stated: str, most: Callable[[str], float]) -> Unit:
    """Percent or a share: one value over 1 is percent, and so are the others; one between 0 and 1 is a share."""
    top = float(cells.numbers.max())
    top = top if top > 1 or cells.units else max(top, most(cells.name))
    between, as_percent = bool(((cells.numbers > 0) & (cells.numbers < 1)).any()), factor_of("percent", column)
    if stated and factor_of(stated, column) == as_percent:
        doubtful = between and top <= 1 and not cells.units
        return Unit(why="its name says percent, and all of its values are shares") if doubtful else Unit(stated)
    if stated:
        return Unit(stated)
    if top > 1 or not top:
        return Unit("percent", f"up to {top:g}")
    return Unit("share", "all from 0 to 1") if between else Unit(why="its values are 0 and 1: percent or shares")


def _by_range(measure: str, numbers: np.ndarray) -> Unit:
    """The unit that the largest value shows."""
    top, least = float(numbers.max()), float(numbers.min())
    fits = (r for r in vocabulary().ranges if r.measure == measure and r.from_ <= top <= r.to and least >= r.least)
    found = next((r.unit for r in fits), "")
    why = f"nothing states its unit, and its values, up to {top:,.6g}, do not show it"
    return Unit(found, f"up to {top:g}") if found else Unit(why=why)


def _impossible(column: str, numbers: np.ndarray, by: Factor) -> str:
    """Why values in a unit are not those of a GPU; empty where they can be."""
    measure = schema.columns()[column].unit
    limit = 1.0 if "percent" in units_of(column) else vocabulary().limits.get(measure, np.inf)
    outside = [v for v in numbers.tolist() if not (schema.columns()[column].min or 0) <= by.of(v) <= limit * (1 + 1e-9)]
    if len(outside) > _MOST_WRONG * len(numbers):
        return f"no GPU has {by.of(outside[0]):,.6g} {measure}"
    return ""


def gpu_label(cells: Cells, *, sure: bool) -> tuple[str, int]:
    """The label that cells name GPUs by, and how many; "" where they name none. `sure`: the name says it is a number.

    Numbers of GPUs come alike often, or one after the other; a reading does not.
    """
    counts = Counter(cells.texts)
    found = [one for text in counts if (one := _INDEX.fullmatch(text))]
    if len(found) < len(counts):
        odd = any(text.casefold() == "cpu" or label_by_cell(text) == "gpu_model" for text in counts)
        named = not (odd or found or len(cells.numbers)) and len(counts) <= _MOST_GPUS
        return ("gpu_uuid", len(counts)) if named or label_by_cell(cells.texts[0]) == "gpu_uuid" else ("", 0)
    changes = sum(a != b for a, b in zip(cells.texts[1:], cells.texts, strict=False))
    alike = 2 * min(counts.values()) >= max(counts.values()) or changes < 2 * len(counts)
    alone = len(counts) > 1 or all(int(one[1]) <= _MOST_ALONE for one in found)
    return ("gpu_index", len(counts)) if len(counts) <= _MOST_GPUS and (sure or (alike and alone)) else ("", 0)


def is_model(cells: Cells, words: list[str]) -> bool:
    """Whether cells name a model of a GPU: those of the catalog, of a vendor, or of a column that says so."""
    named = label_by_cell(cells.texts[0]) == "gpu_model"
    return named or ("gpu" in words and len({*cells.texts}) <= _MOST_MODELS and not len(cells.numbers))


def largest(opened: Opened, name: str) -> float:
    """The largest number of a column in the whole file."""
    from gpuledger.telemetry.cells import numbers

    rule, blank = ValueRule("gpu_util_ratio", (name,)), pa.array(shipped()["dcgm"].blank_text)
    found = (numbers(batch.column(0), rule, np.inf, blank).values for batch in opened.batches([name], ()))
    return max((pc.max(values).as_py() or 0.0 for values in found), default=0.0)
