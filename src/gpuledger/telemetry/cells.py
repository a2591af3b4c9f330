"""What number does a cell hold, and in what unit?"""

from __future__ import annotations

import string
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.native.fitting import Fit, fitted
from gpuledger.telemetry import schema
from gpuledger.telemetry.mapping import ValueRule, factor
from gpuledger.telemetry.measures import SAME, Factor, factor_of, is_unit

LOOKED_AT = 64
# What Arrow itself reads as a number, so that one wrong cell changes nothing for its neighbours.
_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf(inity)?|nan))$"
_WITH_UNIT = (
    r"^(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?P<gap>[\s\x{A0}\x{202F}]*)"
    r"(?P<unit>[^\s\x{A0}\x{202F}\d.+-]\S{0,15})$"
)
_IN_BRACKETS = r"^\[.*\]$"
_SPACES = " \t\u00a0\u202f"
_UNIT_LETTERS = string.ascii_letters + "%/°µμ" + _SPACES
_NUMBER_LETTERS = string.digits + ".+-" + _SPACES


class Numbers(NamedTuple):
    """Readings in the schema's unit; masks of rows with text in place of a number, and of rows with a wrong unit."""

    values: pa.Array
    text: np.ndarray | None = None
    unit: np.ndarray | None = None

    def take(self, codes: pa.Array) -> Numbers:
        """Those of rows, by which of the words each of them has; NULL has none."""
        places = codes.fill_null(-1).to_numpy(zero_copy_only=False)
        masks = (None if mask is None else np.append(mask, False)[places] for mask in (self.text, self.unit))
        return Numbers(self.values.take(codes), *masks)


def as_python(column: pa.Array) -> list[Any]:
    """The values of a column, to be shown; instants that Python cannot hold are shown as the numbers they are."""
    try:
        return column.to_pylist()
    except (OverflowError, ValueError):
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        return plain.view(pa.int64()).to_pylist()


def quickly(raw: pa.Array, rule: ValueRule, blank_from: float, column: schema.Column) -> pa.Array | None:
    """The readings of a column of numbers of which all are in order; None where they need a closer look."""
    if rule.parse or column.min is None or column.max is None:
        return None
    by = factor(rule)
    wanted = Fit(by.offset, by.multiply, by.divide, blank_from, column.min, column.max)
    return fitted(raw, wanted, column.arrow())


def numbers(raw: pa.Array, rule: ValueRule, blank_from: float, blank_text: pa.Array) -> Numbers:
    """The readings of a column. Bare numbers are in the unit of the rule, a cell with a unit is in its own."""
    if pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if pa.types.is_integer(raw.type):
        return Numbers(_bare(raw.cast(pa.int64()), rule, blank_from))
    if pa.types.is_floating(raw.type):
        return Numbers(_bare(_without_nan(raw), rule, blank_from))
    if pa.types.is_null(raw.type):
        return Numbers(raw.cast(pa.float64()))
    text = pc.utf8_trim_whitespace(raw.cast(pa.string()))
    text = pc.if_else(pc.is_in(text, value_set=blank_text), None, text)
    try:
        text.slice(0, LOOKED_AT).cast(pa.float64())  # a cast that fails is slow: it looks at every cell
        return Numbers(_bare(_without_nan(text.cast(pa.float64())), rule, blank_from))
    except pa.ArrowInvalid:
        coded = text.dictionary_encode()  # such cells are few different ones, in many rows
        return _of_words(coded.dictionary, rule, blank_from).take(coded.indices)


def _of_words(words: pa.Array, rule: ValueRule, blank_from: float) -> Numbers:
    """The readings of cells that are not all bare numbers; a word in brackets, such as [N/A], stands for none."""
    words = pc.if_else(pc.match_substring_regex(words, _IN_BRACKETS), None, words)
    good = pc.fill_null(pc.match_substring_regex(words, _NUMBER), True)
    values = _bare(_without_nan(pc.if_else(good, words, None).cast(pa.float64())), rule, blank_from)
    return _with_units(values, words, ~good.to_numpy(zero_copy_only=False), rule.column)


def _bare(values: pa.Array, rule: ValueRule, blank_from: float) -> pa.Array:
    """Numbers without a unit, in the schema's unit; what the source writes for nothing becomes NULL."""
    if np.isfinite(blank_from) and len(values):
        top = pc.max(values).as_py()
        if top is not None and top >= blank_from:
            limit = pa.scalar(blank_from).cast(values.type, safe=False)
            blank = pc.and_(pc.greater_equal(values, limit), pc.is_finite(values))
            values = pc.if_else(blank, None, values)
    return _scaled(values, factor(rule))


def _scaled(values: pa.Array, by: Factor) -> pa.Array:
    if by == SAME:
        return values
    if pa.types.is_integer(values.type) and not _stays_whole(values, by):
        values = values.cast(pa.float64(), safe=False)
    whole = pa.types.is_integer(values.type)
    if by.offset:
        values = pc.add(values, by.offset)
    if by.multiply != 1:
        values = pc.multiply(values, int(by.multiply) if whole else by.multiply)
    return pc.divide(values.cast(pa.float64(), safe=False), by.divide) if by.divide != 1 else values


def _stays_whole(values: pa.Array, by: Factor) -> bool:
    """Whether whole numbers times a factor are whole numbers that fit; an absurd one must not wrap into range."""
    if by.offset or by.multiply != int(by.multiply):
        return False
    ends = [v for v in pc.min_max(values).as_py().values() if v is not None]
    return abs(by.multiply) < 2**63 and all(abs(v) * abs(by.multiply) < 2**63 for v in ends)


def _with_units(values: pa.Array, text: pa.Array, rest: np.ndarray, column: str) -> Numbers:
    """The values with those of the `rest`, which are not bare numbers: each in its own unit, or marked as wrong."""
    rows = np.flatnonzero(rest)
    part = text.take(pa.array(rows))
    out = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).copy()
    wrong_text, wrong_unit = np.zeros(len(rest), bool), np.zeros(len(rest), bool)
    # Trimming is far quicker than taking cells apart by a pattern, and enough for nearly all of them.
    amounts, units = pc.utf8_rtrim(part, characters=_UNIT_LETTERS), pc.utf8_ltrim(part, characters=_NUMBER_LETTERS)
    read, _ = _in_units(amounts, units, column)
    out[rows] = read
    odd = np.flatnonzero(np.isnan(read))
    if len(odd):
        found = pc.extract_regex(part.take(pa.array(odd)), _WITH_UNIT)
        read, meant = _in_units(pc.struct_field(found, "number"), pc.struct_field(found, "unit"), column)
        gap = pc.binary_length(pc.struct_field(found, "gap")).fill_null(0).to_numpy(zero_copy_only=False)
        meant, lost = meant | (gap > 0), np.isnan(read)
        out[rows[odd]] = read
        wrong_unit[rows[odd]], wrong_text[rows[odd]] = lost & meant, lost & ~meant
    return Numbers(pa.array(out, pa.float64(), mask=np.isnan(out)), wrong_text, wrong_unit)


def _in_units(amounts: pa.Array, units: pa.Array, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Amounts in the schema's unit, NaN where amount or unit cannot be read; and which have a unit of any reading."""
    coded = units.dictionary_encode()
    names = [str(u) for u in coded.dictionary.to_pylist()]
    factors = [factor_of(name, column) for name in names]
    code = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    table = np.array([(f.offset, f.multiply, f.divide) if f else (np.nan,) * 3 for f in [*factors, None]]).T
    offset, multiply, divide = table[:, code]
    known = pa.array(~np.isnan(multiply))
    try:
        read = pc.if_else(known, amounts, None).cast(pa.float64())
    except pa.ArrowInvalid:
        known = pc.and_(known, pc.match_substring_regex(amounts, _NUMBER))
        read = pc.if_else(known, amounts, None).cast(pa.float64())
    with np.errstate(over="ignore"):  # what is too large is out of range
        number = read.fill_null(np.nan).to_numpy(zero_copy_only=False)
        return (number + offset) * multiply / divide, np.array([*map(is_unit, names), False])[code]


def _without_nan(values: pa.Array) -> pa.Array:
    """Not-a-number is a source's way of saying nothing."""
    cells = values.to_numpy(zero_copy_only=False)
    silent = np.isnan(cells)
    return pa.array(cells, values.type, mask=silent) if silent.any() else values
