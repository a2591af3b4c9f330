"""Which of several source columns names the owner of a row, and which only names the exporter?

Prometheus renames the workload's labels to `exported_*` where they clash with those of the scrape target
(`honor_labels: false`); with `honor_labels: true` they stand in the plain columns. A mapping lists the columns a label
may stand in; of each row the first filled cell counts. A pod that is the exporter's own never held the GPU.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Mapping as Rows
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpuledger.telemetry.formats import Cells
from gpuledger.telemetry.mapping import Bound, Mapping

EXPORTED = "exported_"
_INSTANCE = "instance"  # a host, and the port of its exporter
# What a scrape names after the pod it reads: of the exporter where the pod is.
_OF_POD = ("namespace", "pod", "container")
# By label and source column the rows whose cell was used; under `EXPORTER` the rows that name the exporter's own pod.
Used = Counter[tuple[str, str]]
EXPORTER = ("pod", "")


def read_labels(batch: Cells, bound: Bound) -> tuple[dict[str, pa.DictionaryArray], Used]:
    """The labels of a batch as dictionaries, and which source columns gave them."""
    blank, used, out = pa.array(bound.mapping.blank_text, pa.string()), Used(), {}
    places: dict[str, np.ndarray] = {}
    for column, sources in bound.labels.items():
        cells = [label(batch.column(source), blank) for source in sources]
        if column == "host":
            cells = _hosts(sources, cells, bound.mapping)
        out[column] = cells[0]
        if len(cells) > 1:
            out[column], places[column] = _first_filled(cells)
    own = _exporters(out.get("pod"), bound.mapping)
    if own is not None:
        there = [c for c in _OF_POD if c in out]
        theirs = {c: _exported(bound.labels[c], places.get(c), batch.num_rows) for c in there}
        used[EXPORTER] += int((own & ~np.logical_or.reduce(list(theirs.values()))).sum())
        for column in there:
            left = own if column == "pod" else own & ~theirs[column]
            out[column] = _without(out[column], left)
            if column in places:
                places[column][left] = -1
    for column, place in places.items():
        counts = np.bincount(place + 1, minlength=len(bound.labels[column]) + 1).tolist()
        used.update({(column, s): n for s, n in zip(bound.labels[column], counts[1:], strict=True) if n})
    return out, used


def label(column: pa.Array, blank_text: pa.Array) -> pa.DictionaryArray:
    """A label as a dictionary array; blank spellings become NULL."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    words, distinct = _cleaned(_Words(column.dictionary), _Words(blank_text))
    if distinct:
        return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), words, safe=False)  # as many words
    return words.take(column.indices).dictionary_encode()


class _Words:
    """Words that are told apart by what they say."""

    def __init__(self, words: pa.Array) -> None:
        self.words = words

    def __hash__(self) -> int:
        ends = (self.words[0].as_py(), self.words[-1].as_py()) if len(self.words) else ()
        return hash((len(self.words), *ends))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Words) and bool(self.words.equals(other.words))


@lru_cache(maxsize=64)  # every batch of a large fleet has the same thousands of words
def _cleaned(found: _Words, blank_text: _Words) -> tuple[pa.Array, bool]:
    """Words without the blanks around them, NULL for those that say nothing; whether all are words of their own."""
    words = pc.utf8_trim_whitespace(found.words.cast(pa.string()))
    blank = pc.is_in(words, value_set=blank_text.words)
    if not pc.any(blank).as_py() and len(words) == len(words.unique()):
        return words, True
    return pc.if_else(blank, pa.scalar(None, pa.string()), words), False


def label_notes(labels: Rows[str, Sequence[str]], used: Rows[tuple[str, str], int]) -> list[str]:
    """What to say of a file's labels: where several columns could name the owner, which one did.

    `labels`: by label the columns of the file it may stand in.
    """
    notes = []
    both = {c: s for c, s in labels.items() if c in _OF_POD and any(n.startswith(EXPORTED) for n in s[:-1])}
    if both:
        given = {c: [s for s in sources if used.get((c, s))] for c, sources in both.items()}
        taken = [s for c in both for s in given[c] if s.startswith(EXPORTED)]
        plain = [s for c in both for s in given[c] if not s.startswith(EXPORTED)]
        if taken:
            rest = f"; where they are empty, {', '.join(plain)}" if plain else ""
            notes.append(f"owners come from {', '.join(taken)} (Prometheus with honor_labels: false){rest}")
        elif plain:
            empty = ", ".join(s for c in both for s in both[c] if s.startswith(EXPORTED))
            notes.append(f"owners come from {', '.join(plain)}; {empty} hold nothing")
    if rows := used.get(EXPORTER, 0):
        notes.append(
            f"{rows} row{'s name' if rows != 1 else ' names'} only the exporter's own pod: no workload held the GPU"
            " then, so this time has no owner"
        )
    return notes


def _hosts(sources: Sequence[str], cells: list[pa.DictionaryArray], mapping: Mapping) -> list[pa.DictionaryArray]:
    """The cells that name hosts, without the port of an instance; a pod of an exporter only where no other name is."""
    out = list(cells)
    for place, source in enumerate(sources):
        if source == _INSTANCE:
            words = pc.replace_substring_regex(out[place].dictionary, r"^([^:]+|\[.+\]):\d+$", r"\1")
            out[place] = label(pa.DictionaryArray.from_arrays(out[place].indices, words), pa.array([], pa.string()))
    own = [_exporters(c, mapping) for c in out]
    if all(mine is None for mine in own):
        return out
    others = [_filled(c) >= 0 if mine is None else (_filled(c) >= 0) & ~mine for c, mine in zip(out, own, strict=True)]
    named = np.logical_or.reduce(others)
    return [c if mine is None else _without(c, mine & named) for c, mine in zip(out, own, strict=True)]


def _filled(cells: pa.DictionaryArray) -> np.ndarray:
    """The codes of the cells, -1 where one is empty."""
    code = np.asarray(cells.indices.fill_null(-1))
    # A dictionary may hold NULL itself.
    none = np.array([w is None for w in [*cells.dictionary.to_pylist(), None]])
    return np.where(none[code], -1, code)


def _first_filled(cells: list[pa.DictionaryArray]) -> tuple[pa.DictionaryArray, np.ndarray]:
    """Of each row the first cell that is filled, and the column it stood in (-1: none)."""
    codes = [_filled(c) for c in cells]
    place = np.full(len(codes[0]), -1, dtype=np.int64)
    found = np.full(len(codes[0]), -1, dtype=np.int64)
    starts = [0, *accumulate(len(c.dictionary) for c in cells)]
    for i, code in enumerate(codes):
        here = (place < 0) & (code >= 0)
        place[here], found[here] = i, code[here] + starts[i]
    if (place == 0).all():
        return cells[0], place
    words = pa.concat_arrays([c.dictionary for c in cells])
    return words.take(pa.array(found, mask=found < 0)).dictionary_encode(), place


def _exported(sources: tuple[str, ...], places: np.ndarray | None, rows: int) -> np.ndarray:
    """The rows whose cell stood in an `exported_*` column."""
    marked = np.array([*(s.startswith(EXPORTED) for s in sources), False])
    return np.full(rows, marked[0]) if places is None else marked[places]


def _exporters(pods: pa.DictionaryArray | None, mapping: Mapping) -> np.ndarray | None:
    """The rows whose pod is the exporter's own."""
    if pods is None or not mapping.exporter_pods:
        return None
    own = _like(_Words(pods.dictionary), tuple(mapping.exporter_pods))
    return own[np.asarray(pods.indices.fill_null(-1))] if own.any() else None


@lru_cache(maxsize=64)  # every batch of a large fleet names the same thousands of pods and hosts
def _like(found: _Words, patterns: tuple[str, ...]) -> np.ndarray:
    """By word whether it fits a pattern; one place more, for none."""
    words = [*found.words.to_pylist(), None]
    return np.array([w is not None and any(fnmatch.fnmatchcase(w, p) for p in patterns) for w in words])


def _without(labels: pa.DictionaryArray, rows: np.ndarray) -> pa.DictionaryArray:
    """The labels with NULL in some rows."""
    codes = np.asarray(labels.indices.fill_null(-1))
    indices = pa.array(np.where(rows, -1, codes).astype(np.int32), mask=rows | (codes < 0))
    return pa.DictionaryArray.from_arrays(indices, labels.dictionary)
