"""How does a batch as the source wrote it become a batch of the schema, and which rows cannot?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.catalog.gpus.mig import compute_slices
from gpuledger.telemetry import schema
from gpuledger.telemetry.cells import as_python, numbers, quickly
from gpuledger.telemetry.formats import Cells
from gpuledger.telemetry.labels import Used, label, read_labels
from gpuledger.telemetry.mapping import Bound, ValueRule
from gpuledger.telemetry.shares import FileShares, as_shares, device_days, filled, seen_in, sure_rows
from gpuledger.telemetry.shares import note as shares_unknown
from gpuledger.telemetry.stamps import Fault as StampFault
from gpuledger.telemetry.stamps import StampReader
from gpuledger.units import MS_PER_DAY, Unknown

NOT_A_NUMBER = "not_a_number"
WRONG_UNIT = "wrong_unit"
OUT_OF_RANGE = "out_of_range"
WRONG_TIME = "wrong_time"
AMBIGUOUS_TIME = "ambiguous_local_time"
IMPOSSIBLE_TIME = "impossible_local_time"
NO_DEVICE = "no_device"

# Readings, and a mask of rows that hold something else.
Parsed = tuple[pa.Array, np.ndarray | None]
_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,16}")
_MIG_PROFILE = re.compile(r"^(\d+)(?:c\.\d+)?g\.")
# What names a GPU without a UUID: "0", "gpu0", "nvidia0".
_INDEX = re.compile(r"(?:gpu|nvidia|card)? ?(\d{1,3})", re.IGNORECASE)

# What names a board on its host: where it is plugged in.
_BUS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.IGNORECASE)


class Fault(NamedTuple):
    """Why a row of a batch cannot be used."""

    row: int
    reason: str
    column: str
    value: str


class Faults:
    """The rows of one batch that cannot be used, each with the first fault found in it; `bad` marks them.

    From `most` rows on they are counted only, by reason: `more`.
    """

    def __init__(self, rows: int, most: int) -> None:
        self.found: list[Fault] = []
        self.more: Counter[str] = Counter()
        self.bad = np.zeros(rows, dtype=bool)
        self._most = most

    def add(self, mask: np.ndarray, reason: str, column: str, values: pa.Array) -> None:
        """Note the rows of `mask` that had no fault so far."""
        rows = np.flatnonzero(mask & ~self.bad)
        if len(rows):
            self.bad[rows] = True
            room = self._most - len(self.found)
            if len(rows) > room:
                self.more[reason] += len(rows) - room
                rows = rows[:room]
            shown = as_python(values.take(pa.array(rows)))
            words = [f"{v:.15g}" if isinstance(v, float) else str(v)[:80] for v in shown]
            self.found += [Fault(n, reason, column, v) for n, v in zip(rows.tolist(), words, strict=True)]


class Converted(msgspec.Struct, frozen=True):
    """A batch in the schema's columns with the faulty rows left out, those rows' faults, and what is not known.

    `label_rows`: where a label may stand in several source columns, how many rows have it from which; `more`: by
    reason how many rows are faulty that `faults` has no room for.
    """

    table: pa.Table
    faults: list[Fault]
    kept: np.ndarray | slice
    notes: tuple[str, ...] = ()
    label_rows: Used = msgspec.field(default_factory=Used)
    more: Counter[str] = msgspec.field(default_factory=Counter)


class _Reader(NamedTuple):
    """What the readings of a batch are read with."""

    batch: Cells
    bound: Bound
    models: pa.DictionaryArray | None
    faults: Faults
    notes: list[str]


def convert(
    batch: Cells, bound: Bound, stamps: StampReader, most_faults: int = 1 << 60, shares: FileShares | None = None
) -> Converted:
    """The batch in schema columns; labels as dictionaries, readings in the schema's units, NULL where silent.

    `shares`: what the whole file holds, where its batches alone do not show what is percent.
    """
    faults = Faults(batch.num_rows, most_faults)
    labels, used = read_labels(batch, bound)
    out: dict[str, pa.Array] = dict(labels)
    for column, word in bound.constants.items():
        out[column] = _filled(out.get(column), word, batch.num_rows)
    notes: list[str] = []
    # A device without a UUID is called by its index.
    if (indices := _indices(out.pop("gpu_index", out["gpu_uuid"]))) is not None:
        out["gpu_index"] = indices
    out["gpu_uuid"] = _device(out["gpu_uuid"], out.get("host"), notes)
    out = {schema.TIME: _instants(batch, bound, stamps, faults, out), **out}
    named = next(iter(bound.labels.get("gpu_uuid", ())), "")
    nameless = out["gpu_uuid"].is_null().to_numpy(zero_copy_only=False)
    if nameless.any():
        faults.add(nameless, NO_DEVICE, named or "gpu_uuid", batch.column(named) if named else out["gpu_uuid"])
    reader = _Reader(batch, bound, out.get("gpu_model"), faults, notes)
    for column, (source, rule) in bound.values.items():
        made = _reading(reader, source, rule, out, shares)
        for other, its_rule in bound.fallbacks.get(column, ()):
            if not made.null_count:
                break
            made = pc.coalesce(made, _reading(reader, other, its_rule, out, shares))
        out[column] = made
    for column, number in bound.fixed.items():
        out[column] = _constant(out.get(column), number, schema.columns()[column], batch.num_rows)
    table = pa.table(out)
    left_out = faults.bad | _silent(out, bound) if bound.mapping.wide else faults.bad
    kept: np.ndarray | slice = slice(None)
    if left_out.any():
        kept = np.flatnonzero(~left_out)
        table = table.take(pa.array(kept))
    return Converted(table, faults.found, kept, tuple(notes), used, faults.more)


def _reading(
    reader: _Reader, source: str, rule: ValueRule, known: dict[str, pa.Array], shares: FileShares | None
) -> pa.Array:
    """One reading in the schema's unit and type; rows whose cell cannot be it are noted. `known`: columns so far."""
    raw, about = reader.batch.column(source), schema.columns()[rule.column]
    blank_from, plain = reader.bound.mapping.blank_from, not (rule.share_with or rule.plus)
    if plain and (quick := quickly(raw, rule, blank_from, about)) is not None:
        return quick
    values = _numbers_of(reader, source, raw, rule)
    if rule.plus:
        values = pc.add(values, _numbers_of(reader, rule.plus, reader.batch.column(rule.plus), rule))
    if rule.share_with:
        values = _shares(reader, source, values, known, shares)
    made, outside = _fit(values, about)
    if outside is not None:
        reader.faults.add(outside, OUT_OF_RANGE, source, raw)
    return made


def _numbers_of(reader: _Reader, source: str, raw: pa.Array, rule: ValueRule) -> pa.Array:
    """The cells of a column as numbers in the schema's unit; what is no number is noted."""
    blank_text = pa.array(reader.bound.mapping.blank_text, pa.string())
    if rule.parse:
        values, text = _PARSERS[rule.parse](label(raw, blank_text), reader.models, reader.notes)
        unit = None
    else:
        values, text, unit = numbers(raw, rule, reader.bound.mapping.blank_from, blank_text)
    for mask, reason in ((text, NOT_A_NUMBER), (unit, WRONG_UNIT)):
        if mask is not None:
            reader.faults.add(mask, reason, source, raw)
    return values


def _shares(
    reader: _Reader, source: str, values: pa.Array, known: dict[str, pa.Array], shares: FileShares | None
) -> pa.Array:
    """Shares of a column that may be in percent, NULL where nothing tells."""
    cells = values.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    table = pa.table({c: known[c] for c in (schema.TIME, *schema.DEVICE) if c in known})
    sure = sure_rows(filled(reader.batch, reader.bound.beside), cells, table)
    devices, first, group = device_days(table)
    met = seen_in(cells, sure, group, len(first))
    if shares is not None and not (sure | np.isnan(cells)).all():
        days = known[schema.TIME].to_numpy(zero_copy_only=False)[first] // MS_PER_DAY
        met |= np.array([shares.seen(d, day) for d, day in zip(devices, days.tolist(), strict=True)], dtype=np.int64)
    made, unknown = as_shares(cells, sure, met[group])
    if unknown.any():
        reader.notes.append(shares_unknown(source))
    return pa.array(made, mask=np.isnan(made))


def _constant(values: pa.Array | None, number: float, column: schema.Column, rows: int) -> pa.Array:
    """The readings with one number where there is none."""
    same = pa.array(np.full(rows, round(number) if column.type == "int64" else number)).cast(column.arrow())
    return same if values is None else pc.coalesce(values, same)


def _silent(out: dict[str, pa.Array], bound: Bound) -> np.ndarray:
    """Rows of a wide file without one reading: the columns of GPUs this host or time does not have."""
    return np.logical_and.reduce([out[c].is_null().to_numpy(zero_copy_only=False) for c in bound.values])


def _instants(batch: Cells, bound: Bound, stamps: StampReader, faults: Faults, labels: dict[str, pa.Array]) -> pa.Array:
    """The instant of each row, in milliseconds."""
    if not (bound.time or bound.clock or bound.elapsed):
        rows = [labels[c] for c in (*schema.DEVICE, *schema.SERIES) if c in labels]
        return pa.array(stamps.untimed.rounds(rows) if stamps.untimed else np.full(batch.num_rows, bound.at_ms))
    column = bound.time or bound.clock or bound.elapsed
    written = batch.column(column)
    if bound.elapsed and stamps.untimed:
        at_ms, wrong = stamps.untimed.after(written)
    else:
        at_ms, wrong = stamps.read(stamps.untimed.dated(written) if bound.clock and stamps.untimed else written)
    limits = schema.columns()[schema.TIME]
    assert limits.min is not None
    assert limits.max is not None
    if wrong.any() or at_ms.min(initial=limits.max) < limits.min or at_ms.max(initial=limits.min) > limits.max:
        for fault, reason in ((StampFault.AMBIGUOUS, AMBIGUOUS_TIME), (StampFault.IMPOSSIBLE, IMPOSSIBLE_TIME)):
            faults.add(wrong == fault, reason, column, written)
        outside = (wrong == StampFault.WRONG) | (at_ms < limits.min) | (at_ms > limits.max)
        faults.add(outside, WRONG_TIME, column, written)
    return pa.array(at_ms, pa.int64())


def _filled(labels: pa.DictionaryArray | None, text: str, rows: int) -> pa.DictionaryArray:
    """The labels with one text where there is none."""
    if labels is None:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    if not labels.null_count:
        return labels
    return labels.dictionary_decode().fill_null(text).dictionary_encode()


def _fit(values: pa.Array, column: schema.Column) -> tuple[pa.Array, np.ndarray | None]:
    """The readings in the column's type, and a mask of those outside its physical bounds."""
    low, high = (pc.min_max(values)[k].as_py() for k in ("min", "max"))
    outside = None
    if low is not None and (low < column.min or high > column.max or not np.isfinite(low + high)):
        numbers = values.cast(pa.float64(), safe=False).fill_null(column.min).to_numpy(zero_copy_only=False)
        outside = (numbers < column.min) | (numbers > column.max) | ~np.isfinite(numbers)
        values = pc.if_else(pa.array(outside), None, values)
    if column.type == "int64" and pa.types.is_floating(values.type):
        values = pc.round(values)
    return values.cast(column.arrow(), safe=False), outside


@lru_cache(maxsize=1 << 16)
def _index(word: str | None) -> str | None:
    """The index a label gives."""
    found = _INDEX.fullmatch(word) if word else None
    return str(int(found[1])) if found else None


def _any_like(words: pa.Array, pattern: re.Pattern[str]) -> bool:
    """Whether some text is of this form; thousands of devices are looked through at once."""
    ignoring = "(?i)" if pattern.flags & re.IGNORECASE else ""
    return bool(pc.any(pc.match_substring_regex(words, f"{ignoring}^(?:{pattern.pattern})$")).as_py())


def _indices(labels: pa.DictionaryArray) -> pa.DictionaryArray | None:
    """The indices these labels give, NULL where one gives none; None where none does."""
    if not _any_like(labels.dictionary, _INDEX):
        return None
    words = pa.array([_index(word) for word in labels.dictionary.to_pylist()], pa.string())
    return words.take(labels.indices).dictionary_encode()


def _device(uuids: pa.DictionaryArray, hosts: pa.DictionaryArray | None, notes: list[str]) -> pa.DictionaryArray:
    """The devices; one known by its index or bus ID only is named by its host too, as every host has a GPU 0."""
    if not _any_like(uuids.dictionary, _INDEX) and not _any_like(uuids.dictionary, _BUS):
        return uuids
    pairs, place = _pairs(uuids, hosts)
    names = [_device_name(uuid, host, notes) for uuid, host in pairs]
    return pa.array(names, pa.string()).take(place).dictionary_encode()


def _device_name(uuid: str | None, host: str | None, notes: list[str]) -> str | None:
    index, bus = _index(uuid), uuid is not None and _BUS.fullmatch(uuid) is not None
    if index is None and not bus:
        return uuid
    if not host:
        notes.append(
            f"GPU {uuid!r} is known by its {'bus ID' if bus else 'index'} only and the rows name no host: such GPUs of"
            " two hosts would count as one; add --host NAME, or a column with the host or the UUID"
        )
        return uuid
    return f"{device_prefix(host)}:{uuid if bus else f'gpu{index}'}"


def device_prefix(host: str) -> str:
    """How devices without a UUID begin. No slash: it sets a MIG instance apart from its board."""
    return host.replace("/", "_")


def _mig_profile(profiles: pa.DictionaryArray, models: pa.DictionaryArray | None, notes: list[str]) -> Parsed:
    """'3g.40gb' is 3 of the board's compute slices; how many the board has depends on its model."""
    pairs, place = _pairs(profiles, models)
    return pa.array([_share(profile, model, notes) for profile, model in pairs], pa.float64()).take(place), None


def _hex(masks: pa.DictionaryArray, _models: pa.DictionaryArray | None, _notes: list[str]) -> Parsed:
    """'0x0000000000000004' is 4."""
    words = masks.dictionary.to_pylist()
    found = [int(w, 16) if w is not None and _HEX.fullmatch(w) else None for w in words]
    values = pa.array([None if n is None or n >= 1 << 63 else n for n in found], pa.int64())
    lost = [w is not None and (n is None or n >= 1 << 63) for w, n in zip(words, found, strict=True)]
    wrong = pa.array(lost, pa.bool_())
    return values.take(masks.indices), wrong.take(masks.indices).fill_null(False).to_numpy(zero_copy_only=False)


def _pairs(
    left: pa.DictionaryArray, right: pa.DictionaryArray | None
) -> tuple[list[tuple[str | None, str | None]], pa.Array]:
    """The different pairs of two labels, and by row which of them it has."""
    words = [None, *left.dictionary.to_pylist()]
    others = [None, *(right.dictionary.to_pylist() if right is not None else [])]
    first = left.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    second = np.zeros(len(first), dtype=np.int64)
    if right is not None:
        second = right.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    found, place = np.unique(first * len(others) + second, return_inverse=True)
    return [(words[f // len(others)], others[f % len(others)]) for f in found.tolist()], pa.array(place)


def _share(profile: str | None, model: str | None, notes: list[str]) -> float | None:
    found = _MIG_PROFILE.match(profile) if profile else None
    if found is None:
        return None
    slices = compute_slices(model) if model else Unknown("the rows name no model")
    if isinstance(slices, Unknown):
        notes.append(f"MIG profile {profile!r} of {model or 'a GPU'}: its share of the board is unknown: {slices.why}")
        return None
    if int(found[1]) > slices:
        notes.append(f"MIG profile {profile!r} does not fit {model}, which has {slices} slices: its share is unknown")
        return None
    return int(found[1]) / slices


_PARSERS: dict[str, Callable[[pa.DictionaryArray, pa.DictionaryArray | None, list[str]], Parsed]] = {
    "mig_profile": _mig_profile,
    "hex": _hex,
}
