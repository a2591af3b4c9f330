"""What did the pipes do in a block of lines? Worked out once, for everyone who reads the block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gpuledger.cost.buckets import Kinds
from gpuledger.lake.names import Names
from gpuledger.ledger.read.books import Books
from gpuledger.ledger.read.columns import Rows
from gpuledger.ledger.read.rollup import state_codes
from gpuledger.physics.activity import pipe_sums
from gpuledger.physics.evidence import ModelFacts, Worked, work


@dataclass(frozen=True)
class Rated:
    """Lines with the sums of their pipes, `State` numbers and kinds, and the work done in each."""

    rows: Rows
    kinds: Kinds
    done: Worked


class Along(Protocol):
    """Another reader of the lines a bill is made of, so that they are read once: what it needs, and what it takes."""

    @property
    def labels(self) -> Sequence[str]: ...

    @property
    def numbers(self) -> Sequence[str]: ...

    @property
    def maybe(self) -> Sequence[str]: ...

    def take(self, books: Books, day_ms: int, rated: Rated) -> None:
        """A block of lines posted on the day that starts at this instant; "wanted" are those of owners in scope."""


class Rater:
    """Rates block after block of one reading of the books."""

    def __init__(self, names: Mapping[str, Names]) -> None:
        self._names = names
        self.models: dict[str | None, ModelFacts] = {}

    def of(self, found: Rows) -> Rated:
        """A block, rated."""
        rows = found | pipe_sums(found) | {"state": state_codes(self._names["state"], found["state"])}
        kinds = kinds_of_rows(rows, self._names)
        for model, _precision in kinds.pairs:
            self.models.setdefault(model, ModelFacts(model))
        return Rated(rows, kinds, work(rows, kinds.of_row, kinds.pairs, self.models, with_notes=False))


def kinds_of_rows(rows: Rows, names: Mapping[str, Names]) -> Kinds:
    """The GPU model and tensor precision of each row."""
    model, precision = rows["gpu_model"], rows["tensor_precision"]
    wide = int(precision.max(initial=-1)) + 2
    codes, of_row = np.unique((model + 1) * wide + precision + 1, return_inverse=True)
    texts = (names["gpu_model"].text(codes // wide - 1), names["tensor_precision"].text(codes % wide - 1))
    return Kinds(of_row.reshape(-1), list(zip(*texts, strict=True)))
