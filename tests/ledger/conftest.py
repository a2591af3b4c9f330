"""Samples and lines for the ledger's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import written

from gpuledger.catalog.thresholds import Thresholds, load_thresholds
from gpuledger.efficiency.build import efficiency_statement
from gpuledger.efficiency.statement import EfficiencyStatement
from gpuledger.lake.layout import Lake


@pytest.fixture(scope="session")
def limits() -> Thresholds:
    return load_thresholds()


@pytest.fixture(scope="session")
def books(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Lake]:
    """Writes hand-made lines into a new lake each time."""

    def write(*rows: written.Row, quiet: Sequence[written.Row] = ()) -> Lake:
        return written.write_books(tmp_path_factory.mktemp("books"), rows, quiet)

    return write


@pytest.fixture(scope="session")
def line() -> Callable[..., written.Row]:
    return written.line


@pytest.fixture(scope="session")
def state(books: Callable[..., Lake]) -> Callable[..., EfficiencyStatement]:
    """The efficiency statement over hand-made lines."""

    def make(*rows: written.Row, **options: Any) -> EfficiencyStatement:
        return efficiency_statement(books(*rows), **options)

    return make
