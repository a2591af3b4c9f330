"""Which number has each text of a label, over many tables?

Read from Arrow's buffers: Arrow's own ways to NumPy import pandas where it is installed, half a second of a statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import pyarrow as pa

_DICTIONARIES = 256


class Names:
    """The texts of one label over all files, numbered as they come."""

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self._number: dict[str | None, int] = {}
        self._seen: dict[tuple[int | bytes, ...], np.ndarray] = {}
        self._last: tuple[pa.Array | None, np.ndarray] = None, np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.texts)

    def numbered(self, column: pa.ChunkedArray) -> np.ndarray:
        """The numbers of a column's texts."""
        parts = [self._codes(chunk) for chunk in column.chunks if len(chunk)]
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def _codes(self, chunk: pa.DictionaryArray) -> np.ndarray:
        if chunk.indices.null_count == len(chunk):
            return np.full(len(chunk), -1)
        return self.known(chunk.dictionary)[label_codes(chunk.indices)]

    def known(self, words: pa.Array) -> np.ndarray:
        """By place in a file's dictionary the number here; one place more for NULL."""
        if self._last[0] is not None and words.equals(self._last[0]):
            return self._last[1]
        # Files of one lake mostly name the same things: to tell that takes a tenth of naming them again.
        key = (words.offset, len(words), *(b.to_pybytes() for b in words.buffers() if b is not None))
        if key not in self._seen:
            if len(self._seen) >= _DICTIONARIES:
                self._seen.clear()
            self._seen[key] = np.array([*(self.number(w) for w in words.to_pylist()), -1], dtype=np.int64)
        self._last = words, self._seen[key]
        return self._seen[key]

    def number(self, text: str | None) -> int:
        """The number of a text, a new one where it was not met before."""
        if text not in self._number:
            self._number[text] = len(self.texts)
            self.texts.append(text)
        return self._number[text]

    def places(self) -> np.ndarray:
        """By number the place in alphabetical order, from 1; the last entry, which -1 takes, is 0: NULL comes first."""
        found = np.zeros(len(self.texts) + 1, dtype=np.int64)
        for place, text in enumerate(sorted(self._number, key=str)):
            found[self._number[text]] = place + 1
        return found

    def at(self, places: np.ndarray) -> list[str | None]:
        """The texts at some of these places."""
        ordered = [None, *sorted(self._number, key=str)]
        return [ordered[i] for i in places.tolist()]

    def among(self, wanted: Collection[str], nameless: str | None = None) -> np.ndarray:
        """By number whether a text is one of those wanted; the last entry: whether `nameless` is."""
        return np.array([*(t in wanted for t in self.texts), nameless in wanted], dtype=bool)

    def numbers(self, texts: Iterable[str | None]) -> np.ndarray:
        """The numbers of some texts, -1 where there is none."""
        return np.array([self._number.get(text, -1) for text in texts], dtype=np.int64)

    def text(self, numbers: np.ndarray) -> list[str | None]:
        """The texts of some numbers."""
        texts = [*self.texts, None]
        return [texts[i] for i in numbers.tolist()]


def label_codes(codes: pa.Array) -> np.ndarray:
    """The places in a dictionary, -1 for NULL."""
    if codes.null_count == len(codes):
        return np.full(len(codes), -1, np.int32)
    found = np.frombuffer(codes.buffers()[1], np.int32, len(codes), codes.offset * 4)
    return np.where(present(codes), found, -1) if codes.null_count else found


def present(values: pa.Array) -> np.ndarray:
    """Which values are not NULL."""
    bits = np.unpackbits(np.frombuffer(values.buffers()[0], np.uint8), bitorder="little")
    return bits[values.offset : values.offset + len(values)].astype(bool)
